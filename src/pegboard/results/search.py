"""Search rule shared by text, trees and tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pegboard.results.paths import JsonPath, Step

TYPE_CHECKING = False  # processes for large results import this module, and pydantic is too heavy for them
if TYPE_CHECKING:
    from pydantic import JsonValue


def pattern(wanted: str) -> re.Pattern[str]:
    """Return a pattern for literal text, ignoring case unless the text has a capital letter."""
    return re.compile(re.escape(wanted), 0 if wanted != wanted.lower() else re.IGNORECASE)


def find(value: JsonValue, wanted: re.Pattern[str]) -> Iterator[JsonPath | None]:
    """Yield the path of every key or scalar that matches, in reading order.

    Yields None for every other node, so that callers can pause, stop or count between any two.

    Args:
        value: Any JSON value.
        wanted: Pattern from `pattern`.
    """
    yield () if _matches(None, value, wanted) else None
    path: list[Step] = []
    open_ones = [_inside(value)]
    while open_ones:
        for step, found in open_ones[-1]:
            path.append(step)
            yield tuple(path) if _matches(step, found, wanted) else None
            open_ones.append(_inside(found))
            break
        else:
            open_ones.pop()
            if path:
                path.pop()


def _inside(value: JsonValue) -> Iterator[tuple[Step, JsonValue]]:
    match value:
        case dict():
            yield from value.items()
        case list():
            yield from enumerate(value)
        case _:
            pass


def _matches(step: Step | None, value: JsonValue, wanted: re.Pattern[str]) -> bool:
    if isinstance(step, str) and wanted.search(step):
        return True
    match value:
        case str():
            return bool(wanted.search(value))
        case dict() | list():
            return False
        case _:
            return bool(wanted.search(json.dumps(value)))
