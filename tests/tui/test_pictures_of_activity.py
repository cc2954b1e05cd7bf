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
from pegboard.models import Agent, ResultMeta, ToolCall, ToolResult
from pegboard.models.conversation import Usage
from pegboard.models.turn import ModelTurn
from pegboard.runtime import Runtime
from pegboard.tui.activity.compare import CompareScreen
from pegboard.tui.activity.screen import ActivityScreen
from pegboard.tui.activity.timeline import TimelineScreen
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
@pytest.mark.promise("ACT-1")
def test_an_open_turn(snap_compare: Compare, runtime: Runtime, size: tuple[int, int]) -> None:
    fill(runtime)
    turn, script = f"{20:032x}", f"{21:032x}"
    meta = ResultMeta(duration_ms=12.5, size=42)
    known = ModelTurn(text="Which orders are [b]late[/b]?\nAnswer in one line.", model="openai:gpt", message=0, steps=3)
    known = known.model_copy(update={"usage": Usage(input_tokens=5_120, output_tokens=260)})
    made: list[tuple[int, dict[str, object]]] = [
        (20, dict(known.call(turn, "ask", "5e55101"))),
        (21, {"id": script, "name": "script.run", "args": {"commands": "fs.list_dir orders | head"}}),
        (22, {"id": f"{22:032x}", "name": "fs.list_dir", "args": {"path": "orders"}, "parent": script}),
        (23, {"id": f"{23:032x}", "name": "fs.read_file", "args": {"path": "orders.csv"}}),
    ]
    for number, values in made:
        call = ToolCall.model_validate({"source": "ask", "session": "5e55101", "turn": turn, **values})
        lasted = meta.model_copy(update={"duration_ms": 4200.0}) if number == 20 else meta
        runtime.history.record(call, ToolResult(ok=True, data="x", meta=lasted), START + timedelta(seconds=number))
    runtime.history.flush()

    async def steps(stage: Stage) -> None:
        await shown(stage)
        await stage.press("right")
        await stage.until_seen("▸ script.run")
        await stage.press("down", "right")
        await stage.until_seen("▾ script.run")
        await stage.press("up")
        screen = stage.app.get_screen_stack("activity")[0]
        await stage.until(lambda: isinstance(screen, ActivityScreen) and screen.settled, "the turn is shown")

    assert snap_compare(PegboardApp(runtime), terminal_size=size, run_before=after(steps))


@SIZES
def test_no_activity(snap_compare: Compare, runtime: Runtime, size: tuple[int, int]) -> None:
    assert snap_compare(PegboardApp(runtime), terminal_size=size, run_before=after(shown))


async def a_timeline(stage: Stage) -> None:
    await shown(stage)
    await stage.press("end", "alt+i")
    await stage.until(
        lambda: isinstance(stage.app.screen, TimelineScreen) and stage.app.screen.is_loaded, "it is shown"
    )
    await stage.press("n")
    await stage.until_seen('{path: "notes')


@SIZES
@pytest.mark.promise("ACT-3")
def test_a_comparison(snap_compare: Compare, runtime: Runtime, size: tuple[int, int]) -> None:
    fill(runtime)
    texts = ["id,total\n1,20\n2,[b]7[/b]\n3,1", "id,total\n1,20\n2,8\n3,1\n4,0"]
    for number, text in enumerate(texts, 11):
        data = {"text": text, "rows": [{"id": 1, "name": "Ada" if number == 11 else "Eva"}], "only": [number] * 3}
        args = {"path": "orders.csv", "limit": number}
        call = ToolCall.model_validate({"id": f"{number:032x}", "name": "fs.read_file", "args": args, "source": "cli"})
        result = ToolResult(ok=True, data=data, meta=ResultMeta(duration_ms=12.5, size=42))
        runtime.history.record(call, result, START + timedelta(seconds=number))
    runtime.history.flush()

    async def steps(stage: Stage) -> None:
        await shown(stage)
        await stage.press("alt+d")
        await stage.until(
            lambda: isinstance(stage.app.screen, CompareScreen) and stage.app.screen.settled, "it is shown"
        )
        await stage.press("n")

    assert snap_compare(PegboardApp(runtime), terminal_size=size, run_before=after(steps), each_size=True)


@SIZES
@pytest.mark.promise("WAT-5")
def test_a_timeline(snap_compare: Compare, runtime: Runtime, size: tuple[int, int]) -> None:
    agent = Agent(name="claude-code", version="2.1", process=4711, started=START.isoformat(), key="5f0c9a1e")
    script = f"{2:032x}"
    for number, (name, at, lasted, ok) in enumerate(
        [
            ("files.find", 0.0, 1.5, True),
            ("script.run", 2.0, 6.0, True),
            ("files.read", 3.0, 2.0, True),
            ("files.read", 5.5, 2.0, False),
            ("web.fetch", 61.0, 3.0, True),
            ("files.write_something_with_a_long_name", 64.2, 0.3, True),
        ],
        1,
    ):
        values = {"id": f"{number:032x}", "name": name, "source": "watch", "session": agent.session, "agent": agent}
        parent = script if name == "files.read" else None
        values["args"] = {"path": f"notes-{number}.md"} if parent else {}
        result = ToolResult(ok=True, data="x") if ok else ToolResult.failed("execution_error", "No such file.")
        meta = ResultMeta(duration_ms=lasted * 1000, size=4_321 * number)
        runtime.history.record(
            ToolCall.model_validate({**values, "parent": parent}),
            result.model_copy(update={"meta": meta}),
            START + timedelta(seconds=at),
        )
    runtime.history.flush()
    assert snap_compare(PegboardApp(runtime), terminal_size=size, run_before=after(a_timeline))
