"""The user's editor, which the environment configures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

_LINE_AFTER_COLON = {"hx", "helix", "zed", "subl", "sublime_text", "atom", "lapce"}
_GO_TO = {"code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"}


def editor_command(file: str, line: int | None, environ: Mapping[str, str]) -> list[str]:
    """Return the command that opens a file: `$VISUAL`, else `$EDITOR`, else vi.

    Args:
        file: Path of the file.
        line: Line to open, from 1, or None.
        environ: The environment variables.
    """
    editor = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    try:
        command = shlex.split(editor) or ["vi"]
    except ValueError:
        command = [editor]
    if line is None:
        return [*command, file]
    program = Path(command[0]).stem
    if program in _GO_TO:
        return [*command, "--goto", f"{file}:{line}"]
    if program in _LINE_AFTER_COLON:
        return [*command, f"{file}:{line}"]
    return [*command, f"+{line}", file]
