"""Snapshots of the Activity page."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from stage import Stage
from test_health_pictures import SIZES, Compare, Steps, after

from pegboard.config import Paths, Settings
from pegboard.models import ResultMeta, ToolCall, ToolResult
from pegboard.runtime import Runtime
from pegboard.tui.activity.screen import ActivityScreen
from pegboard.tui.app import PegboardApp
from pegboard.tui.state.remembered import Remembered

pytestmark = pytest.mark.slow

START = datetime(2024, 5, 6, 12, 0, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Show times in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    """Return a runtime with calls of every source and state."""
    paths = Paths(tmp_path / "config.toml", tmp_path / "data", tmp_path / "state", tmp_path / "cache")
    Remembered(has_run=True).write(paths.interface)
    return Runtime(Settings(), paths)


def fill(runtime: Runtime) -> None:
    def add(number: int, name: str, args: dict[str, object], result: ToolResult, **more: object) -> None:
        values = {"id": f"{number:032x}", "name": name, "args": args, "source": "cli", **more}
        runtime.history.record(ToolCall.model_validate(values), result, START + timedelta(seconds=number))

    meta = ResultMeta(duration_ms=12.5, size=42, worker="pid 4711")
    add(1, "fs.read_file", {"path": "orders.csv"}, ToolResult(ok=True, data="id,total\n1,20", meta=meta))
    add(2, "fs.read_file", {"path": "no.csv"}, ToolResult.failed("execution_error", "No such file.", "not_found"))
    add(
        3,
        "web.fetch",
        {"url": "https://example.org/a/long/address"},
        ToolResult.failed("execution_error", "Too slow.", "timeout"),
        source="ask",
        session="5e55101",
    )
    add(4, "script.run", {"commands": "fs.list_dir | head -3"}, ToolResult(ok=True, data={"exit_code": 0}, meta=meta))
    listed = [{"name": "orders.csv", "size": 120}, {"name": "notes.md", "size": 7}]
    add(5, "fs.list_dir", {}, ToolResult(ok=True, data=listed, meta=meta), source="script", parent=f"{4:032x}")
    add(6, "shop.cancel", {"order": 7}, ToolResult.failed("execution_error", "Rejected.", "denied"), source="ask")
    add(7, "text.count", {"text": "one two"}, ToolResult(ok=True, data={"words": 2}, meta=meta), source="form")
    runtime.history.flush()
    runtime.activity.pin([f"{1:032x}"])


async def shown(stage: Stage) -> None:
    await stage.press("f9")
    await stage.until(
        lambda: isinstance(stage.app.screen, ActivityScreen) and stage.app.screen.settled, "the calls are shown"
    )


async def the_list(stage: Stage) -> None:
    await shown(stage)
    await stage.press("down", "down", "right")
    await stage.until_seen("fs.list_dir")
    await stage.press("down", "space", "down", "space")


async def a_filter(stage: Stage) -> None:
    await shown(stage)
    await stage.type("status:failed slow st")
    await stage.until_seen("tab ")


async def a_mistake(stage: Stage) -> None:
    await shown(stage)
    await stage.type("slower:soon file")
    await stage.until_seen("✗ column 1")


async def redaction(stage: Stage) -> None:
    await shown(stage)
    await stage.app.run_action("redact", stage.app.screen)
    await stage.until_seen("Redact a value everywhere")


@SIZES
@pytest.mark.parametrize("steps", [the_list, a_filter, a_mistake, redaction])
def test_activity(snap_compare: Compare, runtime: Runtime, steps: Steps, size: tuple[int, int]) -> None:
    fill(runtime)

    async def settled(stage: Stage) -> None:
        await steps(stage)
        screen = stage.app.get_screen_stack("activity")[0]
        await stage.until(lambda: isinstance(screen, ActivityScreen) and screen.settled, "the calls are shown")

    assert snap_compare(PegboardApp(runtime), terminal_size=size, run_before=after(settled))


@SIZES
def test_no_activity(snap_compare: Compare, runtime: Runtime, size: tuple[int, int]) -> None:
    assert snap_compare(PegboardApp(runtime), terminal_size=size, run_before=after(shown))
