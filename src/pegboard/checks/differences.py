"""Differences between two JSON values, by path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from pydantic import JsonValue

from pegboard.checks.model import FailedExpectation
from pegboard.data.json_text import same, write
from pegboard.data.pointer import pointer, steps
from pegboard.models.readable_path import readable
from pegboard.results.images import are_alike

MOST = 100
"""Differences that one expectation reports."""
_LONGEST = 80
_DEEPEST = 200


def differences(
    expectation: str,
    expected: JsonValue,
    got: JsonValue,
    *,
    is_subset: bool = False,
    ignore: Sequence[str] = (),
) -> tuple[FailedExpectation, ...]:
    """Return the first differences between two values.

    Args:
        expectation: Name of the expectation.
        expected: The expected value.
        got: The value to compare.
        is_subset: Whether `got` may have more keys and more items.
        ignore: JSON Pointers of parts that may differ; the step `*` means every key and index.
    """
    ignored = [steps(path) for path in ignore]
    found = _compare(expected, got, (), is_subset=is_subset, ignored=ignored)
    return tuple(
        FailedExpectation(expectation=expectation, path=path, message=message, expected=wanted, got=value)
        for path, message, wanted, value in islice(found, MOST)
    )


def _compare(
    expected: JsonValue, got: JsonValue, at: tuple[str | int, ...], *, is_subset: bool, ignored: list[list[str]]
) -> Iterator[tuple[str, str, JsonValue, JsonValue]]:
    if any(_fits(pattern, at) for pattern in ignored):
        return
    path = pointer(*at)
    where = named(path)
    if len(at) > _DEEPEST:
        if not same(expected, got):
            yield path, f"{where} differs.", None, None
    elif isinstance(expected, dict) and isinstance(got, dict):
        names = [*expected, *(() if is_subset else (name for name in got if name not in expected))]
        for name in names:
            inner = (*at, name)
            if any(_fits(pattern, inner) for pattern in ignored):
                continue
            if name not in got:
                yield pointer(*inner), f"{named(pointer(*inner))} is missing.", expected[name], None
            elif name not in expected:
                yield pointer(*inner), f"{named(pointer(*inner))} is unexpected.", None, got[name]
            else:
                yield from _compare(expected[name], got[name], inner, is_subset=is_subset, ignored=ignored)
    elif isinstance(expected, list) and isinstance(got, list):
        yield from _compare_lists(expected, got, at, is_subset=is_subset, ignored=ignored)
    elif not same(expected, got) and not are_alike(expected, got):
        yield path, f"Expected {where} to be {shortened(expected)}, got {shortened(got)}.", expected, got


def _compare_lists(
    expected: list[JsonValue],
    got: list[JsonValue],
    at: tuple[str | int, ...],
    *,
    is_subset: bool,
    ignored: list[list[str]],
) -> Iterator[tuple[str, str, JsonValue, JsonValue]]:
    for index, (wanted, value) in enumerate(zip(expected, got, strict=False)):
        yield from _compare(wanted, value, (*at, index), is_subset=is_subset, ignored=ignored)
    rest: Iterable[int] = range(len(got), len(expected))
    for index in rest:
        inner = (*at, index)
        if not any(_fits(pattern, inner) for pattern in ignored):
            yield pointer(*inner), f"{named(pointer(*inner))} is missing.", expected[index], None
    for index in () if is_subset else range(len(expected), len(got)):
        inner = (*at, index)
        if not any(_fits(pattern, inner) for pattern in ignored):
            yield pointer(*inner), f"{named(pointer(*inner))} is unexpected.", None, got[index]


def _fits(pattern: list[str], at: tuple[str | int, ...]) -> bool:
    return len(pattern) == len(at) and all(wanted in ("*", str(step)) for wanted, step in zip(pattern, at, strict=True))


def named(path: str) -> str:
    """Return the name of a part of the data for messages: "`name`", "item #2.size" or "the data"."""
    name = readable(path)
    if not name:
        return "the data"
    return f"item {name}" if name.startswith("#") else f"`{name}`"


def shortened(value: JsonValue) -> str:
    """Return a value as JSON on one line, cut to a readable length."""
    text = write(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
