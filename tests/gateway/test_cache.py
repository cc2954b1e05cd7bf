"""Reuse of results: within a session, only of tools that allow it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.models import ToolCall, ToolResult
from pegboard.runtime import Runtime

PACK = '''
import itertools
from pathlib import Path
from pegboard.sdk import ToolFailed, hints

_count = itertools.count(1)

@hints(read_only=True, cache_seconds=600)
def counted(*, step: float = 1, unit: str = "") -> int:
    """Counts its own runs in this process."""
    return next(_count)

@hints(read_only=True, cache_seconds=0.2)
def brief() -> int:
    """Counts, and may be used again for a moment."""
    return next(_count)

@hints(read_only=True, cache_seconds=600)
def replaced() -> int:
    """Counts, while a person saves its file."""
    Path(__file__).touch()
    return next(_count)

@hints(read_only=True, cache_seconds=600)
def long() -> str:
    """Returns a text that is kept in a file."""
    return f"{next(_count)} " + "x" * 1_100_000

@hints(read_only=True, cache_seconds=600)
def key() -> str:
    """Returns a text that should not be there."""
    return "hunter2-in-a-result"

@hints(read_only=True)
def fresh() -> int:
    """Counts, and says nothing of caching."""
    return next(_count)

@hints(cache_seconds=600)
def changing() -> int:
    """Counts, and doesn't say that it only reads."""
    return next(_count)

@hints(read_only=True, cache_seconds=600)
def failing(*, file: str) -> str:
    """Fails the first time."""
    if Path(file).exists():
        return "well"
    Path(file).touch()
    raise ToolFailed("Not yet.")
'''


@pytest.fixture
def runtime(write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]) -> Runtime:
    return open_runtime(write_pack("count.py", PACK))


async def _call(runtime: Runtime, tool: str, session: str | None = "s", **args: object) -> ToolResult:
    call = {"name": f"count.{tool}", "args": args, "source": "form", "session": session}
    return (await runtime.result(ToolCall.model_validate(call)))[1]


@pytest.mark.promise("ASK-3")
@pytest.mark.parametrize(
    ("tool", "first", "second", "cached"),
    [
        ("counted", {}, {}, True),
        ("counted", {"step": 1, "unit": "m"}, {"unit": "m", "step": 1}, True),
        ("counted", {"step": 1}, {"step": 2}, False),
        ("counted", {"step": 1}, {"step": 1.0}, False),
        ("fresh", {}, {}, False),
        ("changing", {}, {}, False),
    ],
)
async def test_only_an_equal_call_of_a_read_only_cacheable_tool_reuses_a_result(
    runtime: Runtime, tool: str, first: dict[str, object], second: dict[str, object], cached: bool
) -> None:
    before = await _call(runtime, tool, "s", **first)
    after = await _call(runtime, tool, "s", **second)
    assert (before.meta.cached, after.meta.cached) == (False, cached)
    assert (after.data == before.data) is cached


@pytest.mark.promise("ASK-3")
async def test_results_are_reused_within_one_session_only(runtime: Runtime) -> None:
    await _call(runtime, "counted")
    assert not (await _call(runtime, "counted", "other")).meta.cached
    assert not (await _call(runtime, "counted", None)).meta.cached
    assert not (await _call(runtime, "counted", None)).meta.cached


@pytest.mark.promise("ASK-3")
async def test_an_expired_result_is_not_reused(runtime: Runtime) -> None:
    first = await _call(runtime, "brief")
    async with asyncio.timeout(30):
        while (again := await _call(runtime, "brief")).meta.cached:
            assert again.data == first.data
    assert again.data != first.data


@pytest.mark.promise("ASK-3")
async def test_a_result_is_not_reused_after_the_clock_was_set_back(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await _call(runtime, "counted")
    now = time.time()
    monkeypatch.setattr("pegboard.gateway.cache.time.time", lambda: now - 3600)
    again = await _call(runtime, "counted")
    monkeypatch.undo()
    assert not again.meta.cached
    assert again.data != first.data


@pytest.mark.promise("ASK-3")
async def test_a_failure_is_never_reused(runtime: Runtime, tmp_path: Path) -> None:
    file = str(tmp_path / "seen")
    assert not (await _call(runtime, "failing", file=file)).ok
    second = await _call(runtime, "failing", file=file)
    assert (second.data, second.meta.cached) == ("well", False)
    assert (await _call(runtime, "failing", file=file)).meta.cached


@pytest.mark.promise("ASK-3")
async def test_reuse_can_be_disabled(
    runtime: Runtime, open_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    await _call(runtime, "counted")
    monkeypatch.setenv("PEGBOARD_ASK__CACHE", "false")
    off = open_runtime(*runtime.folders)
    assert not (await _call(off, "counted")).meta.cached


@pytest.mark.promise("ASK-3")
async def test_a_session_that_continues_in_another_process_has_its_results_unless_the_surroundings_changed(
    runtime: Runtime,
    open_runtime: Callable[..., Runtime],
    write_pack: Callable[[str, str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = await _call(runtime, "counted")
    later = open_runtime(*runtime.folders)
    again = await _call(later, "counted")
    assert (again.data, again.meta.cached) == (first.data, True)
    monkeypatch.chdir(tmp_path)
    assert not (await _call(later, "counted")).meta.cached, "somewhere else, the same words may mean another thing"
    assert (await _call(later, "counted")).meta.cached
    write_pack("count.py", PACK + "\n# changed\n")
    assert not (await _call(later, "counted")).meta.cached


@pytest.mark.promise("ASK-3")
async def test_a_result_is_not_reused_if_the_file_of_its_tool_was_saved_while_the_call_ran(runtime: Runtime) -> None:
    assert not (await _call(runtime, "replaced")).meta.cached
    assert not (await _call(runtime, "replaced")).meta.cached


@pytest.mark.promise("ACT-4", "ASK-3")
async def test_a_value_that_another_process_redacted_is_not_in_a_reused_result(
    runtime: Runtime, open_runtime: Callable[..., Runtime]
) -> None:
    assert (await _call(runtime, "key")).data == "hunter2-in-a-result"
    assert (await _call(runtime, "key")).meta.cached
    await asyncio.to_thread(runtime.history.flush)  # the calls are over for other processes, too
    report = await asyncio.to_thread(open_runtime(*runtime.folders).activity.redact, "hunter2-in-a-result")
    assert not report.remaining
    again = await _call(runtime, "key")
    assert (again.meta.cached, again.data) == (True, "«redacted»")


@pytest.mark.promise("ASK-3")
async def test_a_large_result_is_not_reused_without_its_file(runtime: Runtime) -> None:
    first = await _call(runtime, "long")
    again = await _call(runtime, "long")
    assert again.meta.cached
    assert first.meta.truncated is not None
    await asyncio.to_thread(Path(first.meta.truncated.file).unlink)
    later = await _call(runtime, "long")
    assert not later.meta.cached
    assert later.meta.truncated is not None
    assert later.meta.truncated.file != first.meta.truncated.file
