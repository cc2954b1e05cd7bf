"""Structural comparison of two values."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from pegboard.history.diff import MOST_DIFFERENCES, diff
from pegboard.models import JsonObject

VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=15,
)


def kinds(before: JsonValue, after: JsonValue) -> list[tuple[str, str, JsonValue, JsonValue]]:
    return [(one.path, one.kind, one.before, one.after) for one in diff(before, after).differences]


@pytest.mark.promise("ACT-3")
def test_differences_have_paths() -> None:
    before: JsonObject = {"a": 1, "b": {"c": [1, 2], "d e": "x"}, "gone": None}
    after: JsonObject = {"a": True, "b": {"c": [1, 3], "d e": "y"}, "new": 0}
    assert kinds(before, after) == [
        (".a", "changed", 1, True),
        (".b.c[1]", "changed", 2, 3),
        ('.b["d e"]', "changed", "x", "y"),
        (".gone", "removed", None, None),
        (".new", "added", None, 0),
    ]


@pytest.mark.promise("ACT-3")
def test_an_inserted_item_is_one_difference() -> None:
    rows: list[JsonValue] = [{"id": number} for number in range(50)]
    assert kinds(rows, [*rows[:7], {"id": 99}, *rows[7:]]) == [("[7]", "added", None, {"id": 99})]
    assert kinds(rows, rows[1:]) == [("[0]", "removed", {"id": 0}, None)]


@pytest.mark.promise("ACT-3")
def test_texts_are_compared_by_line_with_line_numbers() -> None:
    before = "\n".join(f"line {number}" for number in range(1, 21))
    [difference] = diff(before, before.replace("line 10", "other")).differences
    assert [(line.kind, line.before, line.after, line.text) for line in difference.lines] == [
        ("equal", 7, 7, "line 7"),
        ("equal", 8, 8, "line 8"),
        ("equal", 9, 9, "line 9"),
        ("removed", 10, None, "line 10"),
        ("added", None, 10, "other"),
        ("equal", 11, 11, "line 11"),
        ("equal", 12, 12, "line 12"),
        ("equal", 13, 13, "line 13"),
    ]


@settings(max_examples=40)
@given(VALUES, VALUES)
@pytest.mark.promise("ACT-3")
def test_a_value_equals_itself_and_differs_from_every_other(one: JsonValue, other: JsonValue) -> None:
    assert diff(one, one).differences == ()
    assert bool(diff(one, other).differences) == (repr(one) != repr(other) and not _same(one, other))


def _same(one: JsonValue, other: JsonValue) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other


@pytest.mark.promise("ACT-3")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([*range(300_000)], [*range(1, 300_001)]),
        ({str(number): number for number in range(100_000)}, {str(number): -number for number in range(100_000)}),
        ("\n".join(map(str, range(100_000))), "\n".join(map(str, range(100_000, 0, -1)))),
        ("a\nb\n" * 20_000, "b\na\n" * 20_001),
        ([["x", number] for number in range(500)], [["y", number] for number in range(499)]),
        ([{"a": [1, *[0] * 498]} for _ in range(600)], [{"a": [*[0] * 499, 2]} for _ in range(600)]),
    ],
    ids=["list", "object", "lines", "repeated lines", "rows", "lists of few values"],
)
def test_large_values_are_compared_in_bounded_time(before: JsonValue, after: JsonValue) -> None:
    start = time.monotonic()
    found = diff(before, after)
    assert found.differences
    assert len(found.differences) <= MOST_DIFFERENCES
    assert time.monotonic() - start < 10


def test_values_may_be_nested_deeply() -> None:
    before: JsonValue = 1
    after: JsonValue = 2
    for _ in range(3_000):
        before, after = [before], [after]
    [difference] = diff(before, after).differences
    assert (difference.before, difference.after) == (1, 2)
