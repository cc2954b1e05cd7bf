"""JSON as people type it: read strictly, told with line and column what is wrong, and written for reading."""

from __future__ import annotations

import json
import math
from typing import NoReturn, cast

from pydantic import JsonValue

from pegboard.errors import PegboardError


class JsonTextError(PegboardError, ValueError):
    """A text is not JSON; the message is a sentence without its subject: `is not JSON: … (line 2, column 5)`."""


def parse(text: str) -> JsonValue:
    """Reads JSON without losing anything: no key twice, no `NaN`, no number that would become infinite.

    Raises:
        JsonTextError: The text isn't such JSON.
    """
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except json.JSONDecodeError as error:
        hint = f"; text stands in quotes: {write(text.strip())}" if text.strip().isidentifier() else ""
        where = f"(line {error.lineno}, column {error.colno})"
        raise JsonTextError(f"is not JSON: {error.msg[:1].lower()}{error.msg[1:]} {where}{hint}") from None
    except RecursionError:
        raise JsonTextError("is nested too deeply") from None
    except JsonTextError:
        raise
    except ValueError:  # an integer of more digits than Python reads
        raise JsonTextError("has a number with too many digits") from None
    return cast("JsonValue", value)  # what a JSON text holds is a JSON value


def write(value: JsonValue, *, indent: int | None = None) -> str:
    """Writes a value as JSON, characters as they are.

    Args:
        value: The value.
        indent: Spaces per level, or None for one line.
    """
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except (RecursionError, ValueError):  # too deep, or a number of more digits than Python writes
        return "…"


def same(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are the same JSON: `1` is `1.0`, and neither is `true`."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    return one == other


def identical(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are the same to the last type: `1` is neither `1.0` nor `true`; the order of keys is free."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(identical, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(identical(value, other[name]) for name, value in one.items())
    return type(one) is type(other) and repr(one) == repr(other)


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for name, value in pairs:
        if name in found:
            raise JsonTextError(f"has the key {write(name)} twice")
        found[name] = value
    return found


def _constant(name: str) -> NoReturn:
    raise JsonTextError(f"is not JSON: {name} is no JSON value")


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise JsonTextError(f"has the number {digits[:40]}, which is too large")
    return number
