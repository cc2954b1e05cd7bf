"""Truncation of values that are too large to pass on."""

from __future__ import annotations

import json
from typing import Any  # JSON values

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.results.shorten import shorten

pytestmark = pytest.mark.promise("EXE-6")


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def test_a_small_value_is_unchanged() -> None:
    value = {"a": [1, "é", None], "b": {"c": 2.5}}
    assert shorten(value, _size(value)) == (value, _size(value))


def test_a_long_text_loses_its_end() -> None:
    assert shorten("x" * 100, 20) == ("x" * 15 + "…", 20)
    assert shorten('"' * 100, 20)[0] == '"' * 7 + "…"


def test_a_list_keeps_its_first_items_and_the_beginning_of_a_truncated_one() -> None:
    assert shorten(list(range(100)), 11) == ([0, 1, 2, 3, 4], 11)
    short, _ = shorten(["ab", "x" * 100, "y"], 20)
    assert short == ["ab", "xxxxxxxx…"]


def test_small_values_of_an_object_stay_and_large_ones_share_the_remaining_bytes() -> None:
    value = {"count": 3, "first": ["a" * 50] * 100, "second": ["b" * 50] * 100, "last": "whole"}
    short, size = shorten(value, 1_000)
    assert isinstance(short, dict)
    assert (short["count"], short["last"]) == (3, "whole")
    assert 7 <= len(short["first"]) <= 9
    assert 7 <= len(short["second"]) <= 10
    assert size <= 1_000


def test_an_object_with_many_keys_keeps_the_first_ones() -> None:
    short, size = shorten({f"key {number}": number for number in range(100_000)}, 1_000)
    assert isinstance(short, dict)
    assert list(short)[:2] == ["key 0", "key 1"]
    assert 50 < len(short) < 100
    assert size <= 1_000


def test_most_of_the_limit_is_used() -> None:
    rows = [{"id": number, "text": "word " * 20} for number in range(10_000)]
    assert shorten({"total": 10_000, "rows": rows}, 100_000)[1] > 99_000


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=8), inner, max_size=20),
    max_leaves=60,
)


def _is_head(short: Any, whole: Any) -> bool:
    if isinstance(whole, str):
        return short == whole or (short.endswith("…") and whole.startswith(short[:-1]))
    if isinstance(whole, list):
        return len(short) <= len(whole) and all(map(_is_head, short, whole))
    if isinstance(whole, dict):
        return short.keys() <= whole.keys() and all(_is_head(short[key], whole[key]) for key in short)
    return bool(short == whole)


@pytest.mark.slow
@given(_JSON, st.integers(4, 400))
def test_any_truncated_value_fits_the_limit_and_has_the_returned_size(value: Any, limit: int) -> None:
    short, size = shorten(value, limit)
    assert size == _size(short)
    assert size <= limit
    assert short is None or _is_head(short, value)
    if _size(value) <= limit:
        assert short == value


def test_a_list_of_many_items_ends_with_a_complete_one() -> None:
    rows: list[object] = [{"id": number, "name": f"name {number}"} for number in range(1000)]
    kept, _ = shorten(rows, 5000)
    assert isinstance(kept, list)
    assert kept == rows[: len(kept)]
