"""Batches: one function for many items."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from dataclasses import dataclass
from datetime import date

import pytest

from pegboard.sdk import ToolFailed, batch_execute, normalize_items, testing
from pegboard.sdk.host import install, installed
from pegboard.sdk.values import encode

pytestmark = pytest.mark.promise("SDK-3")


@pytest.mark.promise("SDK-4")
def test_the_default_label_of_an_item_is_the_item() -> None:
    assert normalize_items(["a"]) == [("a", "a")]
    assert normalize_items([1, (2, "two")]) == [(1, "1"), (2, "two")]
    assert normalize_items(iter(())) == []


def test_sections_have_the_order_of_the_items() -> None:
    later = threading.Event()

    def shout(word: str) -> str:
        if word == "a":
            assert later.wait(30)
        else:
            later.set()
        return word.upper()

    items: list[str | tuple[str, str]] = ["a", ("b", "second")]
    assert batch_execute(items, shout) == "=== a ===\nA\n\n=== second ===\nB"


def test_items_with_the_same_label_keep_separate_sections() -> None:
    assert batch_execute([(1, "x"), (2, "x")], str) == "=== x ===\n1\n\n=== x ===\n2"


def test_an_exception_becomes_the_section_of_its_item_only() -> None:
    def check(word: str) -> str:
        if word == "bad":
            raise ValueError("no good")
        if word == "worse":
            raise ToolFailed("In my own words.", code="x")
        return "fine"

    assert batch_execute(["bad", "good", "worse"], check) == (
        "=== bad ===\nError: ValueError: no good\n\n=== good ===\nfine\n\n=== worse ===\nError: In my own words."
    )


def test_results_other_than_text_are_written_as_json() -> None:
    assert batch_execute(["ä"], lambda item: {"it": item}) == '=== ä ===\n{\n  "it": "ä"\n}'


@dataclass
class Point:
    """A value of a type that isn't one of JSON's."""

    x: int


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ([Point(1)], [{"x": 1}]),
        ({"b", "a"}, ["a", "b"]),
        ({date(2024, 5, 1): math.nan}, {"2024-05-01": "NaN"}),
        (b"raw", "raw"),
    ],
)
def test_results_have_the_json_form_of_a_tools_result(value: object, written: object) -> None:
    _, text = batch_execute(["a"], lambda _: value).split("\n", 1)
    assert json.loads(text) == json.loads(encode(value)) == written


def test_a_result_without_a_json_form_is_an_error_of_its_item() -> None:
    assert batch_execute(["a"], lambda _: {"x": [threading.Lock()]}) == (
        "=== a ===\nError: The result can't be converted to JSON: an object of type _thread.lock at .x[0]."
    )


def test_the_function_may_be_asynchronous() -> None:
    async def double(number: int) -> str:
        await asyncio.sleep(0)
        return str(number * 2)

    assert batch_execute([2], double) == "=== 2 ===\n4"


@pytest.mark.parametrize(("given", "most"), [({}, 8), ({"max_workers": 3}, 3)])
def test_the_number_of_concurrent_items_is_limited(given: dict[str, int], most: int) -> None:
    running: set[int] = set()
    seen: list[int] = []
    full = threading.Barrier(most, timeout=30)  # opens only if that many run concurrently
    lock = threading.Lock()

    def work(item: int) -> str:
        with lock:
            running.add(item)
            seen.append(len(running))
        full.wait()
        with lock:
            running.discard(item)
        return ""

    batch_execute(range(most * 3), work, **given)
    assert max(seen) == most


def test_progress_is_reported_as_items_finish() -> None:
    with testing.host() as host:
        batch_execute(["a", ("b", "bee")], str, max_workers=1)
    assert host.progressed == [(1, 2, "a"), (2, 2, "bee")]


def test_an_empty_batch_returns_an_empty_text() -> None:
    assert batch_execute([], str) == ""


def test_a_cancelled_batch_starts_no_further_items() -> None:
    begun: list[int] = []
    cancelled = threading.Event()

    class Cancelled(testing.ChosenHost):
        def progress(self, done: float, total: float | None, message: str) -> None:
            cancelled.set()
            raise KeyboardInterrupt

    def begin(item: int) -> None:
        begun.append(item)
        if item > 0:  # Otherwise a fast thread is done with all items before the first progress.
            cancelled.wait(60)

    before = installed()
    install(Cancelled({}, {}, {}))
    try:
        with pytest.raises(KeyboardInterrupt):
            batch_execute(range(10_000), begin, max_workers=1)
    finally:
        install(before)
    assert len(begun) < 10_000


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit(), StopIteration(1)]
)
def test_an_item_that_raises_system_exit_does_not_stop_the_others(error: BaseException) -> None:
    def check(word: str) -> str:
        if word == "bad":
            raise error
        return "fine"

    found = batch_execute(["good", "bad", "better"], check)
    assert found.startswith("=== good ===\nfine\n\n=== bad ===\nError: " + type(error).__name__)
    assert found.endswith("=== better ===\nfine")
