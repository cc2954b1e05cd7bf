"""Values as text: indented JSON, short previews and syntax highlighting."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, Literal

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json

from pegboard.results.clean import clean_line

TokenKind = Literal["key", "string", "number", "constant", "muted", "plain", "warning"]
"""Kind of a piece of text, which selects its color."""

_TOKEN = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*"(?=\s*:))'
    r'|(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<constant>true|false|null)"
)
_HIGHLIGHT_LIMIT = 5_000


def json_bytes(value: JsonValue, *, indent: int | None = None) -> bytes:
    r"""Return a value as JSON in UTF-8.

    Args:
        value: Any JSON value. Lone surrogates are escaped (`\ud800`).
        indent: Spaces per level, or None for one line.
    """
    try:
        return to_json(value, indent=indent)
    except PydanticSerializationError:
        # pydantic rejects lone surrogates and deep nesting.
        return json.dumps(value, indent=indent).encode()


def as_text(value: JsonValue) -> str:
    """Return a string unchanged and other values as indented JSON; not sanitized."""
    if isinstance(value, str):
        return value
    return json_bytes(value, indent=2).decode()


_BETWEEN: Final = ", "


def preview(value: JsonValue, width: int = 80) -> str:
    """Return a sanitized summary of at most `width` characters: `{id: 1, tags: [2], … 3 more}`.

    Args:
        value: Any JSON value.
        width: Length to which strings are truncated and containers abridged; a first item that is longer stays.
    """
    match value:
        case str():
            return quoted(value, width)
        case dict():
            return _abridged(
                "{}", (f"{shown_key(key, width)}: {_inner(item)}" for key, item in value.items()), len(value), width
            )
        case list():
            return _abridged("[]", (_inner(item) for item in value), len(value), width)
        case _:
            return json.dumps(value)


def quoted(text: str, width: int) -> str:
    """Return a sanitized string in quotes, truncated to `width` characters with an ellipsis."""
    return f'"{clean_line(shortened(text, width))}"'


def shown_key(key: str, width: int) -> str:
    """Return a sanitized key, truncated to `width` characters; in quotes if it would be invisible without."""
    return clean_line(shortened(key, width)) if key.strip() else quoted(key, width)


def shortened(text: str, width: int) -> str:
    """Return a text, truncated to `width` characters with an ellipsis."""
    return text if len(text) <= width else f"{text[: max(width - 1, 1)]}…"


def json_parts(line: str) -> list[tuple[int, int, TokenKind]]:
    """Return the start, end and kind of each token in a line of JSON; none for a very long line."""
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
    length = len(brackets) - len(_BETWEEN)
    for item in items:
        taken.append(item)
        length += len(_BETWEEN) + len(item)
        if length > width and total > 1:
            break
    else:
        return brackets[0] + _BETWEEN.join(taken) + brackets[1]
    while True:  # The number of the others must be visible, too.
        length -= len(_BETWEEN) + len(taken.pop()) if len(taken) > 1 else 0
        others = f"… {total - len(taken):,} more"
        if len(taken) == 1 or length + len(_BETWEEN) + len(others) <= width:
            return brackets[0] + _BETWEEN.join([*taken, others]) + brackets[1]
