"""A file opened in the user's editor, at a line."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.app import App

_LINE_AFTER_COLON = {"hx", "helix", "zed", "subl", "sublime_text", "atom", "lapce"}
_GO_TO = {"code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"}


def editor_command(file: str, line: int | None, environ: Mapping[str, str]) -> list[str]:
    """Gives the command that opens a file at a line: `$VISUAL`, else `$EDITOR`, else vi.

    Args:
        file: The file.
        line: From 1; None where no line is meant.
        environ: Where the two variables are.
    """
    said = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    try:
        command = shlex.split(said) or ["vi"]
    except ValueError:
        command = [said]
    if line is None:
        return [*command, file]
    program = Path(command[0]).stem
    if program in _GO_TO:
        return [*command, "--goto", f"{file}:{line}"]
    if program in _LINE_AFTER_COLON:
        return [*command, f"{file}:{line}"]
    return [*command, f"+{line}", file]


async def open_in_editor(app: App[object], file: str, line: int | None = None) -> None:
    """Leaves the screen to the editor until it ends; what goes wrong is a notice.

    Args:
        app: The app that gives its screen away.
        file: The file.
        line: From 1.
    """
    from textual.app import SuspendNotSupported

    if not await asyncio.to_thread(os.path.exists, file):
        app.notify(f"There is no file {file} any more.", severity="error", markup=False)
        return
    command = editor_command(file, line, os.environ)
    trouble = ""
    try:
        # Nothing may be drawn over the editor while calls go on in the background.
        with app.suspend(), app.batch_update():
            try:
                process = await asyncio.create_subprocess_exec(*command)
                code = await process.wait()
                trouble = f"{command[0]} ended with exit code {code}." if code else ""
            except OSError as error:
                trouble = f"Can't start {command[0]}: {error.strerror}. Set $VISUAL or $EDITOR to your editor."
    except SuspendNotSupported:
        trouble = f"This terminal can't be left to an editor. The file is {file}."
    if trouble:
        app.notify(trouble, severity="error", markup=False)
