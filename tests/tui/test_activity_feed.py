"""The calls that the Activity page loads, without the app."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pytest

from pegboard.config import Paths, Settings
from pegboard.errors import StoreError
from pegboard.models import ToolCall, ToolResult
from pegboard.runtime import Runtime
from pegboard.tui.activity.feed import CallFeed
from pegboard.tui.activity.rows import CallRows

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    """Yield a runtime with an empty history."""
    runtime = Runtime(Settings(), Paths(tmp_path / "config.toml", tmp_path, tmp_path / "state", tmp_path / "cache"))
    yield runtime
    await runtime.close()


def _add(runtime: Runtime, *numbers: int) -> None:
    for number in numbers:
        runtime.history.record(ToolCall(name="a.x", args={"n": number}, source="cli"), ToolResult(ok=True), NOW)
    runtime.history.flush()


class Feed(CallFeed):
    """A feed that reads when it is asked to."""

    def __init__(self, runtime: Runtime, needed: Callable[[], tuple[int, int]] | None = None) -> None:
        self._has_read = asyncio.Event()
        super().__init__(runtime.activity, self._has_read.set, needed)

    async def read(self, ask: Callable[[], None]) -> CallRows:
        """Ask for calls, and return those that are then loaded."""
        self._has_read.clear()
        reading = asyncio.create_task(self.run())
        ask()
        async with asyncio.timeout(30):
            await self._has_read.wait()
        reading.cancel()
        await asyncio.wait({reading})
        return self.rows


@pytest.mark.promise("ACT-1")
async def test_calls_that_the_user_reads_stay_loaded_when_many_new_ones_come(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, number in (("_MOST_OLDER", 20), ("_LEFT", 10)):
        monkeypatch.setattr(f"pegboard.tui.activity.rows.{name}", number)
    feed = Feed(runtime, lambda: (30, 40))
    _add(runtime, *range(100))
    shown = [line.row.position for line in (await feed.read(lambda: feed.search(""))).listed[30:41]]
    _add(runtime, *range(50))
    assert [line.row.position for line in (await feed.read(feed.refresh)).listed[80:91]] == shown


@pytest.mark.promise("ACT-1")
async def test_calls_stay_loaded_when_more_new_ones_come_than_are_read_together(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.tui.activity.feed._MOST_NEW", 50)
    feed = Feed(runtime)
    _add(runtime, *range(60))
    shown = [row.position for row in (await feed.read(lambda: feed.search(""))).top]
    feed.pause(is_paused=True)  # another page is shown
    _add(runtime, *range(350))
    feed.refresh()
    await feed.read(lambda: feed.pause(is_paused=False))
    assert [row.position for row in feed.rows.top] == shown, "the user reads the same calls as before"
    while feed.rows.newer is not None:
        await feed.read(feed.load_newer)
    assert [row.position for row in feed.rows.top] == [*range(410, 0, -1)], "no call is missing or doubled"


@pytest.mark.promise("ACT-1")
async def test_a_call_is_read_again_until_it_has_ended(runtime: Runtime) -> None:
    feed = Feed(runtime)
    ending, lasting = (ToolCall(name="a.x", args={}, source="cli") for _ in range(2))
    for call in (ending, lasting):
        runtime.history.start(call, NOW)
    runtime.history.flush()
    assert (await feed.read(lambda: feed.search(""))).running == {ending.id, lasting.id}
    runtime.history.record(ending, ToolResult(ok=True), NOW)
    runtime.history.flush()
    assert (await feed.read(feed.refresh)).running == {lasting.id}
    for _ in range(3):  # it is on the first page no longer
        _add(runtime, *range(100))
        assert (await feed.read(feed.refresh)).running == {lasting.id}
    runtime.history.record(lasting, ToolResult(ok=True), NOW)
    runtime.history.flush()
    rows = await feed.read(feed.refresh)
    assert rows.running == set()
    assert [row.state for row in rows.top] == ["ok"] * 302


@pytest.mark.promise("ACT-1")
async def test_a_query_that_could_not_be_read_is_read_with_the_next_change(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Feed(runtime)
    _add(runtime, 1, 2)
    assert len((await feed.read(lambda: feed.search(""))).top) == 2

    def fail(*_: object, **__: object) -> NoReturn:
        raise StoreError("The database is locked.")

    with monkeypatch.context() as patched:
        patched.setattr(runtime.activity, "page", fail)
        assert len((await feed.read(lambda: feed.search("tool:b.*"))).top) == 2
        assert "The database is locked." in feed.problem
    assert not (await feed.read(feed.refresh)).top
    assert (feed.text, feed.problem) == ("tool:b.*", "")
    assert len((await feed.read(lambda: feed.search("tool:a.*"))).top) == 2
