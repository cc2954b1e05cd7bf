"""A script as text for other programs."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from itertools import count
from typing import Final, Literal

from pegboard.forms.copy_as import UNTYPABLE

CopyKind = Literal["script", "cli", "json", "python"]

_NON_ASCII: Final = re.compile(r"[^ -~]")

_PYTHON: Final = """\
import asyncio

from pegboard.runtime import Runtime

SCRIPT = {script}


async def main() -> None:
    async with Runtime.from_environment({packs}) as runtime:
        runtime.tools.scan()
        result = await runtime.scripts.orchestrator().execute(SCRIPT)  # an OrchestratorTool over all tools
    print(result.stdout, end="")


asyncio.run(main())"""


def copied_as(kind: CopyKind, script: str, packs: Sequence[str] = ()) -> str:
    """Return a text that runs a script elsewhere.

    Args:
        kind: `script` for the script itself, `cli` for a POSIX shell command, `json` for a call of `script.run`,
            `python` for a program.
        script: The script.
        packs: Folders given with `--packs`.
    """
    match kind:
        case "script":
            return script
        case "cli":
            return _command_line(script, packs)
        case "json":
            return _json({"name": "script.run", "arguments": {"commands": script}})
        case "python":
            folders = f"packs=[{', '.join(f'Path({_python(folder)})' for folder in packs)}]" if packs else ""
            text = _PYTHON.format(script=_python(script), packs=folders)
            return text.replace("import asyncio\n", "import asyncio\nfrom pathlib import Path\n", 1) if packs else text


def _command_line(script: str, packs: Sequence[str]) -> str:
    options = [word for folder in packs for word in ("--packs", folder)]
    command = shlex.join(["pegboard", "script", "run", *options, "-"])
    if UNTYPABLE.search(script):
        return f"printf '%b' '{''.join(map(_escaped, script))}' | {command}"
    lines = script.removesuffix("\n").split("\n")
    end = next(word for number in count(1) if (word := f"END{number if number > 1 else ''}") not in lines)
    return "\n".join([f"{command} <<'{end}'", *lines, end])


def _escaped(character: str) -> str:
    """Return a character for `printf '%b'`, within single quotes."""
    if character == "\\":
        return "\\\\"
    if character == "'":
        return "'\\''"
    if not UNTYPABLE.match(character):
        return character
    return "".join(f"\\0{byte:03o}" for byte in character.encode("utf-8", "replace"))


def _json(value: object) -> str:
    """Return JSON with non-printable characters escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return _NON_ASCII.sub(
        lambda match: match[0] if match[0] == "\n" or match[0].isprintable() else _escape(match[0]), text
    )


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1]


def _python(text: str) -> str:
    """Return a Python literal: in triple quotes if that needs no escapes, else line by line."""
    is_plain = "\n" in text and all(one == "\n" or one.isprintable() for one in text)
    if is_plain and '"""' not in text and not text.endswith(('"', "\\")):
        return f'{"r" if chr(92) in text else ""}"""{text}"""'
    pieces = [repr(piece) for piece in text.splitlines(keepends=True)] or ["''"]
    return pieces[0] if len(pieces) == 1 else "\n".join(["(", *(f"    {piece}" for piece in pieces), ")"])
