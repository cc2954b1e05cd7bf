"""Differences of two recorded values as lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pegboard.results.clean import clean_line
from pegboard.results.sizes import count

if TYPE_CHECKING:
    from pegboard.models.difference import JsonDifference, ValueDiff

_SHOWN_DIFFERENCES = 200
_LONGEST_VALUE = 100_000


def difference_lines(name: str, values: ValueDiff) -> Iterator[str]:
    """Yield the lines that show how two values differ.

    Args:
        name: What the values are.
        values: The comparison.
    """
    if not values.differences:
        yield f"{name}: equal" if values.is_whole else f"{name}: no difference in the part that was compared"
        return
    yield f"{name}:"
    for difference in values.differences[:_SHOWN_DIFFERENCES]:
        yield from _lines_of(difference)
    left = len(values.differences) - _SHOWN_DIFFERENCES
    if left > 0:
        yield f"  … and {count(left, 'more difference')} (--json prints all)"
    if not values.is_whole:
        yield "  The values are too large to be compared completely."


def _lines_of(difference: JsonDifference) -> Iterator[str]:
    yield f"  {clean_line(difference.path) or '(whole value)'}"
    if difference.kind == "text":
        for line in difference.lines:
            sign = {"removed": "-", "added": "+"}.get(line.kind, " ")
            yield f"    {sign} {clean_line(line.text)}"
        if not difference.is_whole:
            yield "    … more lines differ"
        return
    if difference.kind != "added":
        yield f"    - {compact(difference.before)}"
    if difference.kind != "removed":
        yield f"    + {compact(difference.after)}"


def compact(value: object) -> str:
    """Return a value as one line of JSON, cut if it is very long."""
    text = json.dumps(value, ensure_ascii=False)
    return clean_line(text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…")
