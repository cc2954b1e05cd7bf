"""The line with the use of a tool on its page."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from stage import Stage, on_stage
from test_activity import Recorder, paths, recorder, runtime

from pegboard.models import ResultMeta, ToolResult
from pegboard.models.statistics import ToolStatistics
from pegboard.runtime import Runtime
from pegboard.tui.state.catalogue import PackEntry
from pegboard.tui.tools.tool_page import ToolPage
from pegboard.tui.tools.usage import UsageLine

__all__ = ["paths", "recorder", "runtime"]


def line(stage: Stage) -> str:
    shown = stage.screen.query_one(UsageLine)
    return str(shown.render()) if shown.display else ""


def lasting(milliseconds: float, *, ok: bool = True) -> ToolResult:
    result = ToolResult(ok=True, data="x") if ok else ToolResult.failed("execution_error", "No.")
    return result.model_copy(update={"meta": ResultMeta(duration_ms=milliseconds)})


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((120, 40), "8 calls · 12 % failed (1) · p50 500 ms, p95 800 ms · ▂▃▄▅▅▆▇█"),
        ((80, 24), "8 × · 12 % failed · p50 500 ms, p95 800 ms ▂▃▄▅▅▆▇█"),
    ],
    ids=["120x40", "80x24"],
)
async def test_calls_failures_and_durations_are_shown_with_a_sparkline(
    runtime: Runtime, recorder: Recorder, size: tuple[int, int], expected: str
) -> None:
    for number in range(8):
        recorder.add("gate.shout", {"text": "x"}, lasting(100 * (number + 1), ok=number != 3))
    async with on_stage(runtime, size) as stage:
        await stage.open("shout")
        await stage.until_seen(expected)


async def test_only_calls_that_ran_count_as_failures_and_for_durations(runtime: Runtime, recorder: Recorder) -> None:
    for number in range(4):
        recorder.add("gate.shout", {"text": "code invalid_args"}, lasting(100 * (number + 1), ok=number > 0))
    for _ in range(3):
        recorder.add("gate.shout", {"n": 1}, ToolResult.failed("invalid_args", "`text` is required."))
    async with on_stage(runtime) as stage:
        await stage.open("shout")
        await stage.until_seen("7 calls · 3 not run · 25 % failed (1) · p50 300 ms, p95 400 ms · ▃▅▆█")


async def test_calls_of_a_tool_that_was_not_allowed_do_not_count_as_failures(
    runtime: Runtime, recorder: Recorder
) -> None:
    recorder.add("gate.shout", {"text": "x"}, lasting(100))
    recorder.add("gate.shout", {"text": "x"}, ToolResult.failed("tool_not_found", "It is not allowed.", "not_allowed"))
    async with on_stage(runtime) as stage:
        await stage.open("shout")
        await stage.until_seen("2 calls · 1 not run · none failed · p50 100 ms, p95 100 ms")


async def test_denied_calls_count_as_not_run(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "x"}, lasting(100, ok=False))
    recorder.add("gate.shout", {"text": "x"}, ToolResult.failed("execution_error", "Rejected.", "denied"))
    async with on_stage(runtime) as stage:
        await stage.open("shout")
        await stage.until_seen("2 calls · 1 not run · 100 % failed (1) · p50 100 ms, p95 100 ms")


async def test_the_line_is_updated_by_a_run_and_hidden_for_other_tools(runtime: Runtime, recorder: Recorder) -> None:
    for _ in range(3):
        recorder.add("gate.shout", {"text": "x"}, lasting(100))
    async with on_stage(runtime) as stage:
        await stage.open("shout")
        await stage.until(lambda: line(stage).startswith("3 calls · none failed"), "the use is shown")
        await stage.type("hello")
        await stage.press("ctrl+r")
        await stage.until(lambda: line(stage).startswith("4 calls · none failed"), "the run is counted")
        await stage.press("escape", "escape", "ctrl+u")
        await stage.open("hold")
        await stage.until(lambda: not line(stage), "the other tool was never called")


async def test_the_use_of_a_tool_that_is_read_late_is_not_shown_for_its_pack(
    runtime: Runtime, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.add("gate.shout", {"text": "x"}, lasting(100))
    is_free, read = threading.Event(), runtime.activity.statistics

    def read_late(tools: Sequence[str] | None = None) -> tuple[ToolStatistics, ...]:
        is_free.wait(30)
        return read(tools)

    monkeypatch.setattr(runtime.activity, "statistics", read_late)
    async with on_stage(runtime) as stage:
        await stage.open("shout")
        page = stage.screen.query_one(ToolPage)
        (reading,) = (worker for worker in stage.app.workers if worker.group == "recall")
        await stage.press("escape", "escape", "ctrl+u", "home")
        await stage.until(lambda: isinstance(page.subject, PackEntry), "the pack is shown")
        await stage.until(lambda: stage.screen.settled, "its form is hidden")
        is_free.set()
        await stage.until(lambda: reading.is_finished, "the use of the tool is read")
        await stage.pilot.pause()
        assert not line(stage)
        assert page.statistics is None


@pytest.mark.parametrize(("leave", "back"), [("f9", "f5"), ("f2", "escape")], ids=["a page", "a dialog"])
async def test_the_line_counts_calls_that_were_made_while_something_covered_the_page(
    runtime: Runtime, recorder: Recorder, leave: str, back: str
) -> None:
    async with on_stage(runtime) as stage:
        await stage.open("shout")
        await stage.press(leave)
        await stage.until(lambda: stage.app.screen is not stage.screen, "the tool page is covered")
        recorder.add("gate.shout", {"text": "x"}, lasting(100))
        await stage.press(back)
        await stage.until(lambda: line(stage).startswith("1 call"), "the call is counted")
