"""`.env` files: a `NAME=value` a line, as shells and other programs read them too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pegboard.config.files import read_text, shown
from pegboard.models import Problem

_BLANK: Final = re.compile(r"[ \t\r]*(?:#[^\n]*)?(?:\n|\Z)")
_ASSIGNMENT: Final = re.compile(
    r"""[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][\w.-]*)[ \t]*=[ \t]*
    (?: '(?P<single>[^']*+)'
      | "(?P<double>(?:[^"\\]|\\.)*+)"
      | (?P<bare>(?!['"])(?:[^\s\#]|(?<!\s)\#|[ \t]++(?![\s\#]))*+)
    )
    [ \t\r]*(?:(?<=\s)\#[^\n]*)?(?:\n|\Z)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


@dataclass(frozen=True)
class Dotenv:
    """What a `.env` file says."""

    file: Path
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Name → value; nothing is put in the place of `${NAME}`."""
    problems: tuple[Problem, ...] = ()
    """What can't be read, by its line and never by its text, which may be a secret."""


def read_dotenv(file: Path) -> Dotenv:
    r"""Read a `.env` file; a missing one counts as empty.

    A value stands bare, up to ` #`, or in quotes, where it may have several lines; in double ones `\n`, `\t`, `\r`,
    `\"`, `\$` and `\\` are escapes. `export` before the name is allowed. The last of several values counts.
    """
    return parse_dotenv(file, read_text(file))


def parse_dotenv(file: Path, text: str | Problem) -> Dotenv:
    """Parse the text of a `.env` file as `read_dotenv` does; a problem instead of a text is passed on."""
    if isinstance(text, Problem):
        return Dotenv(file, problems=(text,))
    values: dict[str, str] = {}
    problems: list[Problem] = []
    at, line = 0, 1
    while at < len(text):
        match = _BLANK.match(text, at)
        if match is None and (match := _ASSIGNMENT.match(text, at)):
            values[match["name"]] = _value(match)
        if match is None:
            message, fix = "Expected `NAME=value` on this line.", "The line is not used."
            problems.append(Problem(message=message, fix=fix, severity="warning", file=shown(file), line=line))
        end = match.end() if match else text.find("\n", at) + 1 or len(text)
        line += text.count("\n", at, end)
        at = end
    return Dotenv(file, values, tuple(problems))


def _value(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[0]), match["double"])
    return match["single"] if match["single"] is not None else match["bare"]
