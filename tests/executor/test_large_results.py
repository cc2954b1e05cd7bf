"""Results over the limit: truncated, with the complete data in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any  # fixtures

import pytest

pytestmark = pytest.mark.promise("EXE-6")


async def test_a_large_text_is_stored_in_a_file_and_truncated(harness: Any, tmp_path: Path) -> None:
    events = await harness.events("big", megabytes=60, call_id="large", limit=60)
    result = harness.result(events)
    truncated = result.meta.truncated
    assert result.ok
    assert truncated.file == str(tmp_path / "results" / "large.json")
    assert truncated.total_bytes == result.meta.size == len('{"text":"","after":"whole"}') + 60_000_000
    assert 900_000 < truncated.shown_bytes <= 1_000_000
    assert result.data["text"].endswith("x…")
    assert result.data["after"] == "whole"
    whole = harness.read(truncated.file)
    assert whole == {"text": "x" * 60_000_000, "after": "whole"}
    assert await harness.still_works()


async def test_a_long_list_is_truncated_to_its_first_rows(open_harness: Callable[..., Any]) -> None:
    harness = open_harness(result_limit=10_000)
    result = await harness.run("many", count=5_000)
    assert result.data["total"] == 5_000
    assert result.data["rows"][:2] == [{"n": 0, "name": "row 0"}, {"n": 1, "name": "row 1"}]
    assert 100 < len(result.data["rows"]) < 1_000
    assert result.meta.truncated.shown_bytes <= 10_000
    whole = harness.read(result.meta.truncated.file)
    assert len(whole["rows"]) == 5_000


async def test_a_result_at_the_limit_is_not_truncated(open_harness: Callable[..., Any], tmp_path: Path) -> None:
    harness = open_harness(result_limit=100)
    assert (await harness.run("echo", value="x" * 98)).meta.truncated is None
    assert (await harness.run("echo", value="x" * 99)).meta.truncated.total_bytes == 101
    assert len(list((tmp_path / "results").iterdir())) == 1


async def test_large_data_of_a_failure_is_stored_in_a_file(open_harness: Callable[..., Any]) -> None:
    harness = open_harness(result_limit=1_000)
    result = await harness.run("fail", data=list(range(1_000)))
    assert (result.ok, result.error.message) == (False, "no such dataset")
    assert result.data[:3] == [0, 1, 2]
    assert harness.read(result.meta.truncated.file) == list(range(1_000))


async def test_the_umask_of_a_tool_does_not_affect_the_file(harness: Any) -> None:
    file = (await harness.run("big_under_a_mask")).meta.truncated.file
    assert harness.mode(file) & 0o600 == 0o600


async def test_a_result_that_exceeds_the_memory_limit_is_reported(open_harness: Callable[..., Any]) -> None:
    harness = open_harness(workers=1, memory_limit=250_000_000)
    result = await harness.run("big", megabytes=80)
    assert (result.ok, result.error.detail) == (False, "out_of_memory")
    assert await harness.still_works()


async def test_a_result_that_cannot_be_stored_is_a_failure_with_the_reason(
    open_harness: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "results").write_text("a file where the folder should be")
    harness = open_harness(result_limit=1_000)
    result = await harness.run("echo", value="x" * 2_000)
    assert result.error.detail == "not_kept"
    assert "2,002 bytes" in result.error.message
    assert await harness.still_works()


@pytest.mark.parametrize("call_id", ["../../outside", "a/b", "nul\0", "x" * 500, ""])
async def test_the_file_of_a_result_stays_in_its_folder_for_any_call_id(
    open_harness: Callable[..., Any], tmp_path: Path, call_id: str
) -> None:
    harness = open_harness(result_limit=1_000)
    result = harness.result(await harness.events("echo", call_id=call_id, value="x" * 2_000))
    assert Path(result.meta.truncated.file).parent == tmp_path / "results"
