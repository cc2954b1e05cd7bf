"""Typed JSON: strict parsing with readable errors, formatting and comparison."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, NoReturn, cast

from pegboard.errors import PegboardError

if TYPE_CHECKING:
    from pydantic import JsonValue


DEEPEST: Final = 150
"""Levels of lists and objects that a text may have; results have the same limit, and pydantic fails soon beyond it."""


class JsonTextError(PegboardError, ValueError):
    """A text is not JSON; the message is a sentence without its subject: `is not JSON: … (line 2, column 5)`."""


def parse(text: str, *, deepest: int = DEEPEST) -> JsonValue:
    """Parse JSON without losing information: repeated keys, `NaN`, overflowing numbers and deep nesting are errors.

    Args:
        text: The text.
        deepest: Highest number of levels of lists and objects.

    Raises:
        JsonTextError: The text is not such JSON.
    """
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except json.JSONDecodeError as error:
        hint = f"; put text in quotes: {write(text.strip())}" if text.strip().isidentifier() else ""
        where = f"(line {error.lineno}, column {error.colno})"
        raise JsonTextError(f"is not JSON: {error.msg[:1].lower()}{error.msg[1:]} {where}{hint}") from None
    except RecursionError:
        raise JsonTextError("is nested too deeply") from None
    except JsonTextError:
        raise
    except ValueError:  # an integer of more digits than Python reads
        raise JsonTextError("has a number with too many digits") from None
    if text.count("[") + text.count("{") > deepest and _is_too_deep(value, deepest):
        raise JsonTextError(f"is nested deeper than {deepest} levels")
    return cast("JsonValue", value)


def write(value: JsonValue, *, indent: int | None = None) -> str:
    """Return a value as JSON without ASCII escapes.

    Args:
        value: Value to write.
        indent: Spaces per level, or None for one line.
    """
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except (RecursionError, ValueError):  # too deep, or a number of more digits than Python writes
        return "…"


def same(one: JsonValue, other: JsonValue) -> bool:
    """Return True if two values are equal JSON: `1` equals `1.0`, and neither equals `true`."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    return one == other


def comparable(value: JsonValue) -> Hashable:
    """Return a key that is equal for values that are the same JSON, for sets and dictionaries of many values."""
    match value:
        case bool():
            return "true or false", value
        case list():
            return "list", tuple(map(comparable, value))
        case dict():
            return "object", frozenset((name, comparable(inner)) for name, inner in value.items())
        case _:
            return value


def identical(one: JsonValue, other: JsonValue) -> bool:
    """Return True if two values are equal including their types: `1` differs from `1.0`. Key order is ignored."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(identical, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(identical(value, other[name]) for name, value in one.items())
    return type(one) is type(other) and repr(one) == repr(other)


def is_text_of(text: str, value: JsonValue) -> bool:
    """Return whether a text is a value as JSON; spaces and the order of keys don't matter."""
    try:
        return identical(parse(text), value)
    except JsonTextError:
        return False


def _is_too_deep(value: JsonValue, deepest: int) -> bool:
    level: list[JsonValue] = [value]
    for _ in range(deepest):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(level)


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for name, value in pairs:
        if name in found:
            raise JsonTextError(f"has the key {write(name)} twice")
        found[name] = value
    return found


def _constant(name: str) -> NoReturn:
    raise JsonTextError(f"is not JSON: {name} is not a JSON value")


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise JsonTextError(f"has the number {digits[:40]}, which is too large")
    return number
