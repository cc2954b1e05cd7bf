"""`.env` files: one `NAME=value` a line, in the format of python-dotenv."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Final

from pegboard.config.files import read_text, shown, unusable
from pegboard.models import Problem

LONGEST_DOTENV: Final = 250_000
"""Size limit in characters: python-dotenv takes quadratic time for white space, and 150 bytes for each character."""

_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_BREAK: Final = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Dotenv:
    """Content of a `.env` file."""

    file: Path
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Name → value; `${NAME}` is not expanded."""
    problems: tuple[Problem, ...] = ()
    """Invalid lines, by number; a line's text may be a secret and is never quoted."""


def read_dotenv(file: Path) -> Dotenv:
    r"""Read a `.env` file; a missing one counts as empty.

    A value is unquoted and ends at ` #`, or is quoted and may span lines. In double quotes `\n`, `\t`, `\"`, `\\` and
    the like are escapes, in single quotes `\'` and `\\`. `export` before the name is allowed. The last value of a name
    is used.
    """
    return parse_dotenv(file, read_text(file))


def parse_dotenv(file: Path, text: str | Problem) -> Dotenv:
    """Parse the text of a `.env` file as `read_dotenv` does; a problem instead of a text is passed on."""
    if isinstance(text, Problem):
        return Dotenv(file, problems=(text,))
    if not text:
        return Dotenv(file)
    if len(text) > LONGEST_DOTENV:
        return Dotenv(file, problems=(unusable(file, f"This file is longer than {LONGEST_DOTENV:,} characters."),))
    # Imported late: only folders with such a file need it.
    from dotenv.parser import Position, Reader, parse_binding

    values: dict[str, str] = {}
    problems: list[Problem] = []
    reader = Reader(StringIO(text, newline=""))
    while reader.has_next():
        start = reader.position.chars
        binding = parse_binding(reader)
        if binding.key is None and not binding.error:
            continue
        if binding.key is not None and binding.value is not None and _NAME.fullmatch(binding.key):
            values[binding.key] = binding.value
            continue
        begin = start + len(binding.original.string) - len(binding.original.string.lstrip())
        line = binding.original.line + len(_BREAK.findall(binding.original.string[: begin - start]))
        message, fix = "Expected `NAME=value` on this line.", "The line is not used."
        problems.append(Problem(message=message, fix=fix, severity="warning", file=shown(file), line=line))
        # An unclosed quote would swallow the lines up to the next quote: continue with the next line instead.
        if end := _BREAK.search(reader.string, begin):
            reader.position = Position(end.end(), line + 1)
    return Dotenv(file, values, tuple(problems))
