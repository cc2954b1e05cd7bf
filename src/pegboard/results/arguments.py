"""Arguments of a call as text to read, for a decision about the call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from pydantic import JsonValue

from pegboard.results.sizes import count
from pegboard.results.text import TokenKind, json_bytes, json_parts

BAR: Final = "│ "
"""Begins each line of a text of several lines."""
_MOST_BLANK: Final = 3
"""Blank lines that follow one another. More could push the rest of a text out of sight, so they are counted."""
_DEEPEST: Final = 50
"""Depth below which a value is on one line."""


def arguments_text(args: JsonValue) -> str:
    """Return arguments as indented JSON, but with texts of several lines, such as commands, as they are.

    Every line of such a text is after a bar (`│`), with which no line of JSON begins. Many blank lines are one line
    without a bar. A carriage return at the end of a line is visible. The text is not sanitized.
    """
    return "\n".join(_lines(args, "", "", ""))


def argument_parts(line: str) -> Sequence[tuple[int, int, TokenKind]]:
    """Return the parts of a line of `arguments_text`: start, end and kind."""
    text = line.lstrip(" ")
    if not text.startswith(BAR):
        return json_parts(line)
    start = len(line) - len(text)
    return [(start, start + len(BAR), "muted"), (start + len(BAR), len(line), "string")]


def argument_lead(line: str) -> str:
    """Return the beginning of each row that continues a line of `arguments_text`, so that no row looks like a line."""
    indent = " " * (len(line) - len(line.lstrip(" ")))
    return indent + (BAR if line.startswith(indent + BAR) else "    ")


def _with_return(line: str) -> str:
    """Return a line whose last carriage return is visible: sanitizing would take it for a part of the line break."""
    return f"{line[:-1]}␍" if line.endswith("\r") else line


def _lines(value: JsonValue, indent: str, key: str, comma: str) -> Iterator[str]:
    inner = f"{indent}  "
    match value:
        case str() if "\n" in value.rstrip("\n"):
            lines = value.split("\n")
            yield f"{indent}{key}{count(len(lines), 'line')}:"
            for is_blank, group in groupby(lines, key=lambda line: not line.strip()):
                run = [*group]
                if is_blank and len(run) > _MOST_BLANK:
                    yield f"{inner}… {count(len(run), 'blank line')}"
                else:
                    yield from (f"{inner}{BAR}{_with_return(line)}" for line in run)
        case dict() if value and len(indent) < 2 * _DEEPEST:
            yield f"{indent}{key}{{"
            for left, (name, item) in zip(range(len(value) - 1, -1, -1), value.items(), strict=True):
                yield from _lines(item, inner, f"{json.dumps(name, ensure_ascii=False)}: ", "," if left else "")
            yield f"{indent}}}{comma}"
        case list() if value and len(indent) < 2 * _DEEPEST:
            yield f"{indent}{key}["
            for left, item in zip(range(len(value) - 1, -1, -1), value, strict=True):
                yield from _lines(item, inner, "", "," if left else "")
            yield f"{indent}]{comma}"
        case _:
            yield f"{indent}{key}{json_bytes(value).decode()}{comma}"
