"""A script as text to be pasted elsewhere. Knows nothing of Textual."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from itertools import count
from typing import Final, Literal

CopyKind = Literal["script", "cli", "json", "python"]

_UNTYPABLE: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What a terminal would take for a key when a text is pasted, and what has no bytes."""
_UNSEEN: Final = re.compile(r"[^ -~]")

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
    """Gives a script as text that runs it elsewhere.

    Args:
        kind: `script`, as it is; `cli`, a command for a POSIX shell; `json`, the call of the tool that runs scripts;
            `python`, a program.
        script: The script.
        packs: The folders that must be named, since tools were found there for this run only.
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
    words = [word for folder in packs for word in ("--packs", folder)]
    command = shlex.join(["pegboard", "script", "run", *words, "-"])
    if _UNTYPABLE.search(script):
        return f"printf '%b' '{''.join(map(_escaped, script))}' | {command}"
    lines = script.removesuffix("\n").split("\n")
    end = next(word for number in count(1) if (word := f"END{number if number > 1 else ''}") not in lines)
    return "\n".join([f"{command} <<'{end}'", *lines, end])


def _escaped(sign: str) -> str:
    """Gives a character as `printf '%b'` reads it, within single quotes."""
    if sign == "\\":
        return "\\\\"
    if sign == "'":
        return "'\\''"
    if not _UNTYPABLE.match(sign):
        return sign
    return "".join(f"\\0{byte:03o}" for byte in sign.encode("utf-8", "replace"))


def _json(value: object) -> str:
    """Writes JSON that any terminal and clipboard takes: what can't be seen is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return _UNSEEN.sub(
        lambda match: match[0] if match[0] == "\n" or match[0].isprintable() else _escape(match[0]), text
    )


def _escape(sign: str) -> str:
    return json.dumps(sign)[1:-1]


def _python(text: str) -> str:
    """Writes a text in Python: as it stands between triple quotes where that is the same, else line by line."""
    is_plain = "\n" in text and all(sign == "\n" or sign.isprintable() for sign in text)
    if is_plain and '"""' not in text and not text.endswith(('"', "\\")):
        return f'{"r" if chr(92) in text else ""}"""{text}"""'
    pieces = [repr(piece) for piece in text.splitlines(keepends=True)] or ["''"]
    return pieces[0] if len(pieces) == 1 else "\n".join(["(", *(f"    {piece}" for piece in pieces), ")"])
