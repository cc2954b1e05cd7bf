"""A value as text: pretty JSON, short previews, what each word of JSON is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Literal

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json

from pegboard.results.clean import clean_line

TokenKind = Literal["key", "string", "number", "constant", "muted", "plain", "warning"]
"""What a piece of text is, for whoever colours it."""

_TOKEN = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*"(?=\s*:))'
    r'|(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<constant>true|false|null)"
)
_HIGHLIGHT_LIMIT = 5_000


def json_bytes(value: JsonValue, *, indent: int | None = None) -> bytes:
    r"""Gives a value as JSON in UTF-8.

    Args:
        value: Any JSON value, lone surrogates included (they come out as `\ud800`).
        indent: Spaces a level; without it, one line.
    """
    try:
        return to_json(value, indent=indent)
    except PydanticSerializationError:
        # It refuses lone surrogates and deep nesting.
        return json.dumps(value, indent=indent).encode()


def as_text(value: JsonValue) -> str:
    """Gives a string as it is and anything else as indented JSON; not cleaned."""
    if isinstance(value, str):
        return value
    return json_bytes(value, indent=2).decode()


def preview(value: JsonValue, width: int = 80) -> str:
    """Gives a value in one clean line of about `width` characters: `{id: 1, tags: [2], … 3 more}`.

    Args:
        value: Any JSON value.
        width: Characters it may take; strings are cut and containers abridged to fit.
    """
    match value:
        case str():
            return quoted(value, width)
        case dict():
            return _abridged(
                "{}", (f"{clean_line(key[:width])}: {_inner(item)}" for key, item in value.items()), len(value), width
            )
        case list():
            return _abridged("[]", (_inner(item) for item in value), len(value), width)
        case _:
            return json.dumps(value)


def quoted(text: str, width: int) -> str:
    """Gives a string in quotes, clean, in one line, cut at `width` characters with an ellipsis."""
    if len(text) <= width:
        return f'"{clean_line(text)}"'
    return f'"{clean_line(text[: max(width - 1, 1)])}…"'


def json_parts(line: str) -> list[tuple[int, int, TokenKind]]:
    """Gives the coloured pieces of a line of JSON as `(start, end, what it is)`; none for a very long line."""
    if len(line) > _HIGHLIGHT_LIMIT:
        return []
    return [(match.start(), match.end(), _kind(match)) for match in _TOKEN.finditer(line)]


def _kind(match: re.Match[str]) -> TokenKind:
    for part in ("key", "string", "number"):
        if match[part] is not None:
            return part
    return "constant"


def _inner(value: JsonValue) -> str:
    match value:
        case str():
            return quoted(value, 40)
        case dict():
            return f"{{{len(value)}}}" if value else "{}"
        case list():
            return f"[{len(value)}]" if value else "[]"
        case _:
            return json.dumps(value)


def _abridged(brackets: str, items: Iterator[str], total: int, width: int) -> str:
    taken: list[str] = []
    length = 2
    for item in items:
        length += len(item) + 2
        if taken and length > width:
            taken.append(f"… {total - len(taken):,} more")
            break
        taken.append(item)
    return brackets[0] + ", ".join(taken) + brackets[1]
