"""Results over the limit are kept whole on disk and passed on truncated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any  # a bench is a fixture's

import pytest

pytestmark = pytest.mark.promise("EXE-6")


async def test_a_large_text_is_kept_whole_and_its_head_is_passed_on(bench: Any, tmp_path: Path) -> None:
    events = await bench.events("big", megabytes=60, call_id="large", limit=60)
    result = bench.result(events)
    truncated = result.meta.truncated
    assert result.ok
    assert truncated.file == str(tmp_path / "results" / "large.json")
    assert truncated.total_bytes == result.meta.size == len('{"text":"","after":"whole"}') + 60_000_000
    assert 900_000 < truncated.shown_bytes <= 1_000_000
    assert result.data["text"].endswith("x…")
    assert result.data["after"] == "whole"
    whole = bench.read(truncated.file)
    assert whole == {"text": "x" * 60_000_000, "after": "whole"}
    assert await bench.still_works()


async def test_of_many_rows_the_first_are_passed_on(open_bench: Callable[..., Any]) -> None:
    bench = open_bench(result_limit=10_000)
    result = await bench.run("many", count=5_000)
    assert result.data["total"] == 5_000
    assert result.data["rows"][:2] == [{"n": 0, "name": "row 0"}, {"n": 1, "name": "row 1"}]
    assert 100 < len(result.data["rows"]) < 1_000
    assert result.meta.truncated.shown_bytes <= 10_000
    whole = bench.read(result.meta.truncated.file)
    assert len(whole["rows"]) == 5_000


async def test_a_result_at_the_limit_is_passed_on_as_it_is(open_bench: Callable[..., Any], tmp_path: Path) -> None:
    bench = open_bench(result_limit=100)
    assert (await bench.run("echo", value="x" * 98)).meta.truncated is None
    assert (await bench.run("echo", value="x" * 99)).meta.truncated.total_bytes == 101
    assert len(list((tmp_path / "results").iterdir())) == 1


async def test_the_large_data_of_a_failure_is_kept_too(open_bench: Callable[..., Any]) -> None:
    bench = open_bench(result_limit=1_000)
    result = await bench.run("fail", data=list(range(1_000)))
    assert (result.ok, result.error.message) == (False, "no such dataset")
    assert result.data[:3] == [0, 1, 2]
    assert bench.read(result.meta.truncated.file) == list(range(1_000))


async def test_what_a_tool_forbids_does_not_concern_the_file(bench: Any) -> None:
    file = (await bench.run("big_under_a_mask")).meta.truncated.file
    assert bench.mode(file) & 0o600 == 0o600


async def test_a_result_too_large_for_the_memory_of_a_tool_is_said_so(open_bench: Callable[..., Any]) -> None:
    bench = open_bench(workers=1, memory_limit=250_000_000)
    result = await bench.run("big", megabytes=80)
    assert (result.ok, result.error.detail) == (False, "out_of_memory")
    assert await bench.still_works()


async def test_a_result_that_cant_be_kept_is_a_failure_that_says_why(
    open_bench: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "results").write_text("a file where the folder should be")
    bench = open_bench(result_limit=1_000)
    result = await bench.run("echo", value="x" * 2_000)
    assert result.error.detail == "not_kept"
    assert "2,002 bytes" in result.error.message
    assert await bench.still_works()


@pytest.mark.parametrize("call_id", ["../../outside", "a/b", "nul\0", "x" * 500, ""])
async def test_whatever_the_id_of_a_call_its_result_stays_in_the_folder(
    open_bench: Callable[..., Any], tmp_path: Path, call_id: str
) -> None:
    bench = open_bench(result_limit=1_000)
    result = bench.result(await bench.events("echo", call_id=call_id, value="x" * 2_000))
    assert Path(result.meta.truncated.file).parent == tmp_path / "results"
