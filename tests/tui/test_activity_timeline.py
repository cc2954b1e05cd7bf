"""The timeline of a session on the Activity page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from stage import Stage
from test_activity import START, Recorder, on_activity, paths, press, recorder, runtime

from pegboard.models import Agent, ResultMeta, ToolCall, ToolResult
from pegboard.models.conversation import ModelMessage, UserMessage
from pegboard.runtime import Runtime
from pegboard.tui.activity.timeline import TimelineScreen, TimelineView, ToolTotals
from pegboard.tui.dialogs.result import ResultScreen
from pegboard.tui.widgets.cut_text import CutText
from pegboard.tui.widgets.line_view import LineView

__all__ = ["paths", "recorder", "runtime"]

FAILED = ToolResult.failed("execution_error", "Out of paper.")


def lines(stage: Stage, view: type[LineView]) -> Sequence[str]:
    """Return all rows of a view."""
    shown = stage.app.screen.query_one(view)
    return [shown.row(index)[0].rstrip() for index in range(shown.row_count)]


class Session:
    """Records the calls of an agent's connection at chosen times.

    Args:
        runtime: The runtime.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.agent = Agent(name="claude-code", version="2.1", process=4711, started=START.isoformat())

    def add(
        self, tool: str, at: float, lasted: float, *, size: int = 0, ok: bool = True, parent: str | None = None
    ) -> str:
        """Record a call that starts `at` seconds after the start and lasts some seconds; return its id."""
        call = ToolCall(
            name=tool,
            args={"at": at},
            source="watch",
            session=self.agent.session,
            agent=self.agent,
            parent=parent,
        )
        meta = ResultMeta(duration_ms=lasted * 1000, size=size)
        result = (ToolResult(ok=True, data="found") if ok else FAILED).model_copy(update={"meta": meta})
        self._runtime.history.record(call, result, START + timedelta(seconds=at))
        self._runtime.history.flush()
        return call.id


@pytest.fixture
def session(runtime: Runtime) -> Session:
    """Return what records the calls of a session."""
    return Session(runtime)


async def opened(stage: Stage) -> TimelineScreen:
    """Press the key and wait for the timeline."""
    await stage.press("alt+i")
    await stage.until(lambda: isinstance(stage.app.screen, TimelineScreen), "the timeline opens")
    screen = stage.app.screen
    assert isinstance(screen, TimelineScreen)
    await stage.until(lambda: screen.is_loaded, "it is shown")
    await stage.pilot.pause()
    return screen


def bar(line: str, sign: str = "█") -> tuple[int, int]:
    """Return where the bar of a row starts and ends."""
    return line.index(sign), line.rindex(sign) + 1


@pytest.mark.promise("WAT-5")
@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def test_calls_of_an_agent_are_bars_on_a_time_axis(
    runtime: Runtime, recorder: Recorder, session: Session, size: tuple[int, int]
) -> None:
    session.add("files.find", 0, 4)
    script = session.add("script.run", 4, 4)
    session.add("files.read", 6, 2, ok=False, parent=script)
    session.add("files.write", 3608, 2)
    async with on_activity(runtime, size) as stage:
        await opened(stage)
        await stage.until_seen("claude-code 2.1 (process 4711)")
        found = lines(stage, TimelineView)
        assert [" ".join(line.split()[:4]).rstrip(" █┄") for line in found] == [
            "+0.0 s ✓ files.find",
            "+4.0 s ✓ script.run",
            "+6.0 s ↳ ✗",
            "+8.0 s ┄ no",
            "+1h0min ✓ files.write",
        ]
        assert [line.split("  ")[-1].strip() for line in found] == ["4.0 s", "4.0 s", "2.0 s", "1 h 0 min", "2.0 s"]
        first, script_bar, inner, last = (bar(found[index]) for index in (0, 1, 2, 4))
        gap = found[3].index("┄┄"), found[3].rindex("┄") + 1
        assert abs(first[1] - script_bar[0]) <= 1
        assert abs(script_bar[1] - inner[1]) <= 1
        assert abs((inner[1] - inner[0]) * 2 - (script_bar[1] - script_bar[0])) <= 2
        # The hour without activity is shortened.
        assert gap[1] - gap[0] <= 5
        assert last[1] - last[0] > 3
        assert max(len(line) for line in found) <= size[0] - 4
        assert last[1] == max(bar(found[index])[1] for index in (0, 1, 2, 4))


@pytest.mark.promise("WAT-5")
@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def test_offsets_and_durations_of_a_long_session_keep_the_columns_of_the_timeline(
    runtime: Runtime, recorder: Recorder, session: Session, size: tuple[int, int]
) -> None:
    starts = {0: "+0.0 s", 999: "+999.0 s", 1000: "+16.7min", 3580: "+59.7min", 7200: "+2h0min", 442_742: "+123 h"}
    for at in starts:
        session.add("files.find", at, 2)
    async with on_activity(runtime, size) as stage:
        screen = await opened(stage)
        view = screen.query_one(TimelineView)
        found = lines(stage, TimelineView)
        calls = [line for line in found if "✓" in line]
        assert [line[: line.index("✓")].strip() for line in calls] == list(starts.values())
        assert len({line.index("✓") for line in calls}) == 1
        assert {len(line) for line in found} == {view.row_width}
        assert len(view.header() or "") == view.row_width
        assert found[-2].endswith(" 121 h")


@pytest.mark.promise("WAT-5", "SCR-2")
async def test_a_script_that_ended_with_an_exit_code_is_a_failure_in_the_timeline(
    runtime: Runtime, recorder: Recorder, session: Session
) -> None:
    for at, code in enumerate((0, 3)):
        call = ToolCall(
            name="script.run",
            args={"commands": "fs.list_dir .\nexit 3"},
            source="watch",
            session=session.agent.session,
            agent=session.agent,
        )
        result = ToolResult(ok=True, data={}, meta=ResultMeta(duration_ms=500, exit_code=code))
        runtime.history.record(call, result, START + timedelta(seconds=at))
    runtime.history.flush()
    async with on_activity(runtime, (80, 24)) as stage:
        shown = stage.app.screen.query_one("#arguments", CutText)
        await stage.until(lambda: shown.text.plain == "fs.list_dir .⏎exit 3", "the commands are separate lines")
        await opened(stage)
        assert [" ".join(line.split()[2:4]) for line in lines(stage, TimelineView)] == ["✓ script.run", "✗ script.run"]
        await stage.press("n")
        await stage.until_seen("script.run · exit 3 · id")
        await stage.press("home", "end")
        await stage.until_seen("script.run · exit 3 · id")
        await stage.until_seen(" · fs.list_dir .⏎exi")  # the arguments


@pytest.mark.promise("WAT-5")
async def test_totals_per_tool_have_failures_and_tokens_of_results(
    runtime: Runtime, recorder: Recorder, session: Session
) -> None:
    for number in range(4):
        session.add("files.find", number, 1, size=10_000, ok=number > 0)
    script = session.add("script.run", 5, 1, size=400)
    session.add("files.read", 5, 1, size=99_999, parent=script)
    recorder.add("files.find", session="another")
    async with on_activity(runtime, (80, 24)) as stage:
        await press(stage, "down")
        await opened(stage)
        await stage.until_seen("6 calls · 1 (17 %) failed · ≈ 10.1k tokens of results")
        assert [line.split() for line in lines(stage, ToolTotals)] == [
            ["files.find", "4", "1", "(25", "%)", "4.0", "s", "10.0k"],
            ["files.read", "1", "0", "1.0", "s", "0"],
            ["script.run", "1", "0", "1.0", "s", "100"],
        ]


@pytest.mark.promise("WAT-5")
async def test_model_turns_of_a_chat_are_between_its_calls(runtime: Runtime, recorder: Recorder) -> None:
    chat = "chat-1"
    runtime.sessions.start(chat, model="m")
    runtime.sessions.append(chat, UserMessage(text="Hi"))
    runtime.sessions.append(chat, ModelMessage(text="I [b]look[/b] \x1b[31mit up."))
    recorder.add("files.find", session=chat, source="ask")
    async with on_activity(runtime) as stage:
        await opened(stage)
        found = lines(stage, TimelineView)
        assert any("◇ I [b]look[/b] ␛[31mit up." in line for line in found)
        await stage.until_seen("1 model turn")


async def test_a_long_name_of_a_tool_is_complete_on_a_wide_screen(runtime: Runtime, session: Session) -> None:
    tool = "github.create_pull_request_review_comment"
    session.add(tool, 0, 1)
    for size, is_complete in (((200, 50), True), ((120, 40), False)):
        async with on_activity(runtime, size) as stage:
            await opened(stage)
            (line,) = lines(stage, TimelineView)
            assert (tool in line) == is_complete


@pytest.mark.promise("WAT-5")
async def test_a_bar_opens_the_result_of_its_call(runtime: Runtime, recorder: Recorder, session: Session) -> None:
    for number in range(30):
        session.add("files.find", number * 0.1, 0.1, ok=number != 20)
    async with on_activity(runtime, (80, 24)) as stage:
        await opened(stage)
        await stage.press("n")
        await stage.until_seen("files.find · failed")
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, ResultScreen), "the result opens")
        await stage.until_seen("Out of paper.")
        await stage.press("escape")
        await stage.until(lambda: isinstance(stage.app.screen, TimelineScreen), "the timeline is back")
        await stage.press("n")
        await stage.until_seen("No failed call follows.")


async def test_the_timeline_follows_a_running_session(runtime: Runtime, recorder: Recorder, session: Session) -> None:
    session.add("files.find", 0, 1)
    async with on_activity(runtime) as stage:
        await opened(stage)
        session.add("files.write", 1, 1, ok=False)
        await stage.until_seen("2 calls · 1 (50 %) failed")
        assert "✗ files.write" in lines(stage, TimelineView)[1]


@pytest.mark.promise("WAT-5")
async def test_new_calls_do_not_move_the_timeline_away_from_what_the_user_reads(
    runtime: Runtime, recorder: Recorder, session: Session
) -> None:
    for number in range(60):
        session.add("files.find", number, 1)
    async with on_activity(runtime, (80, 24)) as stage:
        await opened(stage)
        await stage.press("end")
        view = stage.app.screen.query_one(TimelineView)
        await stage.until(lambda: view.is_vertical_scroll_end, "the end is shown")
        session.add("files.write", 60, 1)
        await stage.until(lambda: view.cursor == 60 and view.is_vertical_scroll_end, "the end is followed")
        view.scroll_to(y=10, animate=False, immediate=True)
        session.add("files.write", 61, 1)
        await stage.until(lambda: view.row_count == 62, "the new call is shown")
        assert (view.cursor, view.scroll_offset.y) == (60, 10)
        await stage.press("end", "up")
        session.add("files.write", 62, 1)
        await stage.until(lambda: view.row_count == 63, "the new call is shown")
        assert view.cursor == 60


@pytest.mark.promise("WAT-5")
async def test_the_timeline_stays_at_the_rows_that_the_user_reads_when_the_oldest_are_dropped(
    runtime: Runtime, recorder: Recorder, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.history.statistics._MOST_BARS", 60)
    for number in range(60):
        session.add(f"files.find{number:02}", number, 1)
    async with on_activity(runtime, (80, 24)) as stage:
        await opened(stage)
        view = stage.app.screen.query_one(TimelineView)
        await stage.press(*["down"] * 3)
        view.scroll_to(y=20, animate=False, immediate=True)
        for number in range(3):
            session.add("files.write", 60 + number, 1)
        await stage.until(lambda: "find03" in lines(stage, TimelineView)[0], "the oldest are dropped")
        assert view.cursor == 0, "the same call is selected"
        assert "find20" in lines(stage, TimelineView)[view.scroll_offset.y]


@pytest.mark.promise("WAT-5")
async def test_a_session_is_exported_as_json_lines(
    runtime: Runtime, recorder: Recorder, session: Session, tmp_path: Path
) -> None:
    ids = [session.add("files.find", number, 0.5, ok=number != 1) for number in range(3)]
    recorder.add("files.find", session="another")
    file = tmp_path / "session.jsonl"
    async with on_activity(runtime) as stage:
        await press(stage, "down")
        await opened(stage)
        await stage.press("ctrl+s")
        await stage.until_seen("Export the session claude-code 2.1")
        await stage.press("ctrl+u")
        await stage.type(str(file))
        await stage.press("enter")
        await stage.until_seen("Exported the session")
    exported = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["id"] for line in exported] == ids
    assert [line["result"]["ok"] for line in exported] == [True, False, True]
    assert file.stat().st_mode & 0o777 == 0o600


async def test_a_call_without_a_session_has_no_timeline(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add()
    async with on_activity(runtime) as stage:
        await stage.press("alt+i")
        await stage.until_seen("The selected call belongs to no session.")
