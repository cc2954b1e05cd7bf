"""Paths within a JSON value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TypeAlias

Step: TypeAlias = str | int
"""Key of an object or index of a list."""
JsonPath: TypeAlias = tuple[Step, ...]
"""Steps from the root of a value to one of its parts."""

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def jq_path(path: JsonPath) -> str:
    """Return a path in the syntax of `jq`: `.results[3].title`, `."a key"`, or `.` for the root."""
    if not path:
        return "."
    named = "".join(_step(step) for step in path)
    return named if named.startswith(".") else "." + named


def values_along(value: object, path: JsonPath) -> Iterator[object]:
    """Yield a value and the values at the steps of a path, up to the first that doesn't exist."""
    yield value
    for step in path:
        match value, step:
            case dict(), str() if step in value:
                value = value[step]
            case list(), int() if step < len(value):
                value = value[step]
            case _:
                return
        yield value


def value_at(value: object, path: JsonPath) -> object:
    """Return the value at a path, or None if it doesn't exist."""
    found = list(values_along(value, path))
    return found[-1] if len(found) > len(path) else None


def _step(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN_KEY.fullmatch(step):
        return f".{step}"
    return f".{json.dumps(step, ensure_ascii=False)}"
