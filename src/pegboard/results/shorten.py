"""Truncation of values that are too large to pass on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_CUT = "…"


def shorten(value: object, limit: int) -> tuple[object, int]:
    """Return the beginning of a JSON value within a size limit.

    The structure is kept. Long texts lose their end, marked with `…`. Lists lose their last items; the beginning of a
    truncated item stays only if the complete items before it leave half of the limit. Objects keep as many keys as
    possible: small values stay complete, and large ones share the remaining bytes.

    Args:
        value: JSON value; not modified.
        limit: Maximum size as compact JSON in UTF-8, in bytes, at least 4.

    Returns:
        The truncated value and its size in bytes.
    """
    size = _size_up_to(value, limit)
    if size <= limit:
        return value, size
    return _fit(value, limit) or (None, 4)


def _fit(value: object, budget: int) -> tuple[object, int] | None:
    """Return as much of a value as fits `budget` bytes, and its size, or None if nothing fits."""
    if isinstance(value, str):
        return _fit_text(value, budget)
    if isinstance(value, Mapping):
        return _fit_object(value, budget)
    if isinstance(value, Sequence):
        return _fit_list(value, budget)
    size = _size_up_to(value, budget)
    return (value, size) if size <= budget else None


def _fit_text(text: str, budget: int) -> tuple[str, int] | None:
    if len(text) + 2 <= budget:
        size = _text_size(text)
        if size <= budget:
            return text, size
    kept = budget
    while kept > 0:
        size = _text_size(text[:kept] + _CUT)
        if size <= budget:
            return text[:kept] + _CUT, size
        kept = min(kept - 1, kept * budget // size)
    return None


def _fit_list(items: Sequence[object], budget: int) -> tuple[list[object], int] | None:
    if budget < 2:
        return None
    kept: list[object] = []
    used = 2
    for item in items:
        comma = 1 if kept else 0
        size = _size_up_to(item, budget - used - comma)
        fitting = (item, size) if used + comma + size <= budget else _fit(item, budget - used - comma)
        if fitting is None or (fitting[0] is not item and used > budget // 2):
            break
        kept.append(fitting[0])
        used += comma + fitting[1]
        if fitting[0] is not item:
            break
    return kept, used


def _fit_object(values: Mapping[str, object], budget: int) -> tuple[dict[str, object], int] | None:
    if budget < 2:
        return None
    names = _names_that_fit(values, budget)
    used = 2 + sum(_text_size(name) + 2 for name in names) - (1 if names else 0)
    # Small values stay complete; large ones share the bytes that these leave of an even distribution.
    share = (budget - used) // len(names) if names else 0
    sizes = {name: _size_up_to(values[name], share) for name in names}
    small = {name for name, size in sizes.items() if size <= share}
    left = budget - used - sum(sizes[name] for name in small)
    waiting = len(names) - len(small)
    kept: dict[str, object] = {}
    for name in names:
        if name in small:
            kept[name] = values[name]
            used += sizes[name]
            continue
        fitting = _fit(values[name], left // waiting)
        waiting -= 1
        if fitting is None:
            used -= _text_size(name) + 2
            continue
        kept[name] = fitting[0]
        used += fitting[1]
        left -= fitting[1]
    return kept, used if kept else 2


def _names_that_fit(values: Mapping[str, object], budget: int) -> list[str]:
    """Return the first keys that fit the budget with two bytes of value each."""
    names = []
    for name in islice(values, budget):
        budget -= _text_size(name) + 4
        if budget < 0:
            break
        names.append(name)
    return names


def _size_up_to(value: object, cap: int) -> int:
    """Return the bytes of a value as compact JSON, or any number above `cap` if there are more."""
    size, unseen = 0, [value]
    while unseen and size <= cap:
        item = unseen.pop()
        if isinstance(item, str):
            size += len(item) + 2 if len(item) > cap else _text_size(item)
        elif isinstance(item, Mapping):
            size += 2 + max(2 * len(item) - 1, 0)
            if size <= cap:
                unseen += item.keys()
                unseen += item.values()
        elif isinstance(item, Sequence):
            size += 2 + max(len(item) - 1, 0)
            if size <= cap:
                unseen += item
        else:
            size += len(_encode(item))
    return size


def _text_size(text: str) -> int:
    return len(_encode(text).encode("utf-8", "replace"))
