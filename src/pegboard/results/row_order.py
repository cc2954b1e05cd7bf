"""Order and selection of the rows of a table. Imports little, because processes for large results load it."""

from __future__ import annotations

import json
from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re


def order(values: Iterable[tuple[int, object]], *, descending: bool = False) -> list[int]:
    """Return the numbers of rows, sorted by their values: numbers, then texts, then others; missing ones are last.

    Rows with equal values keep their order.

    Args:
        values: Number of each row and its value; None if it is missing.
        descending: Whether the largest value comes first.
    """
    filled: list[tuple[tuple[int, float, str], int]] = []
    empty: list[int] = []
    for number, value in values:
        if value is None:
            empty.append(number)
        else:
            filled.append((_sort_key(value), number))
    filled.sort(key=_first, reverse=descending)
    return [number for _, number in filled] + empty


def matches(value: object, wanted: re.Pattern[str]) -> bool:
    """Return True if a value contains a matching scalar at any depth; keys don't count."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found
        elif wanted.search(found if isinstance(found, str) else json.dumps(found)):
            return True
    return False


def _first(item: tuple[tuple[int, float, str], int]) -> tuple[int, float, str]:
    return item[0]


def _sort_key(value: object) -> tuple[int, float, str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 0, value, ""
    return (1, 0, value.casefold()) if isinstance(value, str) else (2, 0, str(value))
