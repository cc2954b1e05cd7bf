"""The Activity page: recorded calls of every process, filters, and what can be done with a call."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from pydantic import JsonValue
from stage import GivenRuntime, Stage, on_stage

from pegboard.config import Paths, Settings
from pegboard.config.settings import UiSettings
from pegboard.models import JsonObject, LogPart, ResultMeta, ToolCall, ToolResult
from pegboard.models.result import Truncation
from pegboard.runtime import Runtime
from pegboard.tui.activity import feed
from pegboard.tui.activity.call_list import CallList
from pegboard.tui.activity.query_line import QueryLine
from pegboard.tui.activity.screen import ActivityScreen
from pegboard.tui.chat.prompt import AskLine
from pegboard.tui.chat.screen import ChatScreen
from pegboard.tui.form.editors import TextBox
from pegboard.tui.result import ResultPane
from pegboard.tui.script.editor import ScriptEditor
from pegboard.tui.state.remembered import Remembered
from pegboard.tui.widgets.keys_line import KeysLine

GATE = '''"""Tools that wait."""
import time
from pathlib import Path

def hold(file: str) -> str:
    """Wait until a file exists.

    Args:
        file: The file.
    """
    while not Path(file).exists():
        time.sleep(0.005)
    return "held"

def shout(text: str) -> str:
    """Shout.

    Args:
        text: What to shout.
    """
    return text.upper()
'''
START = datetime.now(UTC) - timedelta(hours=1)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Return the paths of a user with a pack of their own."""
    paths = Paths(tmp_path / "config.toml", tmp_path / "data", tmp_path / "state", tmp_path / "cache")
    paths.packs.mkdir(parents=True)
    (paths.packs / "gate.py").write_text(GATE)
    Remembered(has_run=True).write(paths.interface)
    return paths


def environment(paths: Paths) -> dict[str, str]:
    """Return the environment of another process with the same paths."""
    return {
        **os.environ,
        "PEGBOARD_CONFIG": str(paths.config_file),
        "PEGBOARD_DATA_DIR": str(paths.data),
        "PEGBOARD_STATE_DIR": str(paths.state),
        "PEGBOARD_CACHE_DIR": str(paths.cache),
    }


class Recorder:
    """Records calls of a runtime, one per second.

    Args:
        runtime: The runtime.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._calls = 0

    def add(
        self,
        tool: str = "gate.shout",
        args: JsonObject | None = None,
        result: ToolResult | None = None,
        *,
        parent: str | None = None,
        session: str | None = None,
        source: str = "cli",
        agent: str = "",
    ) -> str:
        """Record a call; return its id."""
        self._calls += 1
        found_agent = {"agent": {"name": agent}} if agent else {}
        call = ToolCall.model_validate(
            {"name": tool, "args": args or {}, "source": source, "parent": parent, "session": session, **found_agent}
        )
        found = result or ToolResult(ok=True, data="done", meta=ResultMeta(duration_ms=12, size=6))
        self._runtime.history.record(call, found, START + timedelta(seconds=self._calls))
        self._runtime.history.flush()
        return call.id


@pytest.fixture
def runtime(paths: Paths) -> Runtime:
    """Return a runtime with an empty history."""
    return Runtime(Settings(), paths)


@pytest.fixture
def recorder(runtime: Runtime) -> Recorder:
    """Return what records calls of the runtime."""
    return Recorder(runtime)


def screen(stage: Stage) -> ActivityScreen:
    shown = stage.app.get_screen_stack("activity")[0]
    assert isinstance(shown, ActivityScreen)
    return shown


def calls(stage: Stage) -> CallList:
    return screen(stage).query_one(CallList)


def rows(stage: Stage) -> Sequence[str]:
    """Return the visible calls with single spaces, without their time."""
    shown = calls(stage)
    lines = [shown.render_line(y).text for y in range(min(shown.size.height, shown.row_count))]
    return [" ".join((line[:2] + line[14:]).split()) for line in lines]


async def settle(stage: Stage) -> None:
    await stage.until(lambda: screen(stage).settled, "the calls are shown")
    await stage.pilot.pause()


async def press(stage: Stage, *keys: str) -> None:
    await stage.press(*keys)
    await settle(stage)


async def filtered(stage: Stage, text: str) -> None:
    """Type a filter and wait for its calls."""
    await stage.type(text)
    await stage.until(lambda: calls(stage).sought.endswith(text[-1]), "it is typed")
    await settle(stage)


@asynccontextmanager
async def on_activity(runtime: Runtime, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Stage]:
    """Open the Activity page."""
    async with on_stage(runtime, size, "activity") as stage:
        await stage.until(lambda: isinstance(stage.app.screen, ActivityScreen), "the page is shown")
        await settle(stage)
        yield stage


def title(stage: Stage) -> str:
    return str(screen(stage).query_one("#calls").border_title)


@pytest.mark.promise("ACT-1")
async def test_the_log_of_a_recorded_call_is_shown_as_plain_text(runtime: Runtime, recorder: Recorder) -> None:
    log = (LogPart(stream="stdout", text="on [bold]line\nand "), LogPart(stream="stderr", text="a \x1b[2Jwarning\n"))
    failed = ToolResult.failed("execution_error", "It failed.").model_copy(update={"meta": ResultMeta(log=log)})
    recorder.add(result=failed)
    recorder.add("gate.hold")
    async with on_activity(runtime) as stage:
        assert "Log" not in stage.text
        await press(stage, "down", "tab")
        await stage.until_seen("Log 3")
        await press(stage, "v")
        await stage.until_seen("on [bold]line")
        await stage.until_seen("! a ␛[2Jwarning")


@pytest.mark.promise("ACT-1")
async def test_calls_are_listed_with_the_newest_first(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("fs.read_file", {"path": "a.txt"}, source="ask", session="abc")
    recorder.add("gate.shout", {"text": "hi"}, ToolResult.failed("execution_error", "Too slow.", "timeout"))
    async with on_activity(runtime) as stage:
        assert rows(stage) == [
            'cli gate.shout {text: "hi"} ✗ timeout',
            'ask abc fs.read_file {path: "a.txt"} 12 ms 6 B ✓ ok',
        ]
        assert "2 calls" in title(stage)
        await stage.until_seen("Too slow.")


@pytest.mark.promise("TUI-7")
async def test_the_smallest_terminal_shows_the_tools_instead_of_cut_arguments(
    runtime: Runtime, recorder: Recorder
) -> None:
    recorder.add("fs.read_many_files", {"path": "a.txt"})
    async with on_activity(runtime, (60, 16)) as stage:
        assert rows(stage) == ["cli fs.read_many_files ✓ ok"]
        assert "a…" not in stage.text


async def test_an_empty_history_says_what_will_appear(runtime: Runtime) -> None:
    async with on_activity(runtime, (80, 24)) as stage:
        await stage.until_seen("No calls yet.")
        await stage.until_seen("pegboard tools invoke")


@pytest.mark.promise("ACT-1")
async def test_a_call_of_the_form_is_listed_and_can_be_deleted_and_restored(tmp_path: Path) -> None:
    async with on_stage(GivenRuntime(tmp_path)) as stage:
        await stage.open("fs.list_dir")
        await stage.press("ctrl+r", "f9")
        await settle(stage)
        await stage.until(lambda: "form fs.list_dir" in rows(stage)[0], "the call is listed")
        await stage.until_seen("you")
        await stage.press("delete")
        await stage.until(lambda: calls(stage).row_count == 0, "it is deleted")
        await stage.press("ctrl+z")
        await stage.until(lambda: calls(stage).row_count == 1, "it is restored")


@pytest.mark.promise("ACT-1")
async def test_typing_filters_and_problems_are_shown_with_their_position(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "apple"})
    recorder.add("gate.shout", {"text": "pear"}, ToolResult.failed("execution_error", "No."))
    recorder.add("fs.read_file", {"path": "apple.txt"})
    async with on_activity(runtime) as stage:
        await filtered(stage, "tool:gate.* apple")
        assert len(rows(stage)) == 1
        assert "apple" in rows(stage)[0]
        await press(stage, "escape")
        assert len(rows(stage)) == 3
        await filtered(stage, "status:bad x")
        await stage.until_seen("✗ column 1: 'bad' is not a status.")
        await press(stage, "escape")
        await filtered(stage, "zebra")
        await stage.until_seen("No call matches.")


@pytest.mark.promise("ACT-1")
async def test_a_problem_of_the_filter_is_not_cut_on_a_narrow_screen(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "apple"})
    async with on_activity(runtime, size=(80, 24)) as stage:
        await filtered(stage, "status:bad")
        await stage.until_seen("interrupted.")


async def test_the_end_of_a_long_filter_of_wide_characters_is_shown_with_the_number_of_calls(
    runtime: Runtime, recorder: Recorder
) -> None:
    recorder.add("fs.read_file")
    async with on_activity(runtime) as stage:
        await stage.type(f"{'漢字' * 50}end")
        await stage.until_seen("字end▏")
        await stage.until_seen("0 calls")


async def test_tab_completes_the_filter(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add()
    recorder.add(result=ToolResult.failed("execution_error", "No."))
    async with on_activity(runtime) as stage:
        await press(stage, "s", "t", "tab")
        await stage.until(lambda: calls(stage).sought == "status:", "the key is completed")
        await press(stage, "f", "tab")
        await stage.until(lambda: calls(stage).sought == "status:failed ", "the value is completed")
        await settle(stage)
        assert len(rows(stage)) == 1
        assert stage.app.focused is calls(stage)


@pytest.mark.promise("ACT-1")
async def test_a_completed_filter_finds_a_tool_whose_name_contains_a_space(
    runtime: Runtime, recorder: Recorder
) -> None:
    recorder.add("gate.shout")
    recorder.add("notes.add one")
    async with on_activity(runtime) as stage:
        await filtered(stage, "tool:notes.a")
        await press(stage, "tab")
        await stage.until(lambda: calls(stage).sought == 'tool:"notes.add one" ', "the name is in quotes")
        await settle(stage)
        assert [row.split()[1:3] for row in rows(stage)] == [["notes.add", "one"]]


@pytest.mark.promise("ACT-1")
async def test_tab_completes_the_name_of_an_agent_in_the_filter(runtime: Runtime, recorder: Recorder) -> None:
    for agent in ("claude-code", "Claude Desktop", "Claude\x1b[31m", "cursor", ""):
        recorder.add("gate.shout", {"text": agent}, source="mcp", agent=agent)
    async with on_activity(runtime) as stage:
        await filtered(stage, "agent:")
        await stage.until_seen('agent:cursor agent:"Claude Desktop" agent:claude-code')
        await stage.type("Cl")
        await press(stage, "tab")
        await stage.until(lambda: calls(stage).sought == 'agent:"Claude Desktop" ', "the name is in quotes")
        await settle(stage)
        assert len(rows(stage)) == 1


async def test_space_is_part_of_a_filter_that_is_typed_and_selects_otherwise(
    runtime: Runtime, recorder: Recorder
) -> None:
    for text in ("one", "two", "three"):
        recorder.add("gate.shout", {"text": text})
    async with on_activity(runtime) as stage:
        await filtered(stage, "gate shout")
        assert calls(stage).sought == "gate shout"
        await press(stage, "enter", "space", "space")
        assert len(calls(stage).ticked) == 2
        assert "2 selected" in title(stage)
        await press(stage, "escape")
        assert calls(stage).sought == ""
        assert len(calls(stage).ticked) == 2
        await press(stage, "escape")
        assert not calls(stage).ticked


@pytest.mark.promise("TUI-7")
async def test_commands_for_one_call_are_not_offered_while_none_is_listed(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "one"})
    async with on_activity(runtime) as stage:
        await press(stage, "space")
        await stage.until_seen("Edit and run")
        await filtered(stage, "nothing")
        await press(stage, "enter")
        await stage.until(lambda: "Edit and run" not in stage.text, "editing is not offered")
        assert "Run again" in stage.text, "it applies to the selected call"
        page = screen(stage)
        assert not any(page.check_action(action, ()) for action in ("form", "copy_as", "details", "keep", "checks"))


@pytest.mark.promise("ACT-1")
async def test_a_click_on_the_filter_starts_typing_it(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("fs.list_dir")
    recorder.add("time.now")
    async with on_activity(runtime) as stage:
        await press(stage, "ctrl+d")
        assert not calls(stage).has_focus
        await stage.pilot.click(QueryLine)
        await stage.type("?now")
        assert calls(stage).sought == "?now"


@pytest.mark.promise("ACT-1")
async def test_a_script_that_ended_with_another_code_than_0_shows_it(runtime: Runtime, recorder: Recorder) -> None:
    for code in (0, 125):
        meta = ResultMeta(duration_ms=12, exit_code=code)
        recorder.add(
            "script.run", {"commands": f"exit {code}"}, ToolResult(ok=True, data={"exit_code": code}, meta=meta)
        )
    async with on_activity(runtime) as stage:
        assert "✗ exit 125" in rows(stage)[0]
        assert "✓ ok" in rows(stage)[1]
        await stage.until_seen("script.run  ✗ exit 125")


@pytest.mark.promise("ACT-1")
async def test_a_long_duration_fits_into_its_column(runtime: Runtime, recorder: Recorder) -> None:
    for seconds in (599, 825, 37_800):
        meta = ResultMeta(duration_ms=seconds * 1000, size=6)
        recorder.add(result=ToolResult(ok=True, data="done", meta=meta))
    async with on_activity(runtime) as stage:
        for row, shown in zip(rows(stage), ("10 h", "13 min", "9 min 59 s"), strict=True):
            assert f" {shown} 6 B ✓ ok" in row


@pytest.mark.promise("ACT-1")
async def test_the_status_above_the_result_of_a_script_names_its_exit_code(
    runtime: Runtime, recorder: Recorder
) -> None:
    for code in (0, 125):
        meta = ResultMeta(duration_ms=12, exit_code=code)
        recorder.add(
            "script.run", {"commands": f"exit {code}"}, ToolResult(ok=True, data={"exit_code": code}, meta=meta)
        )
    async with on_activity(runtime) as stage:
        await stage.until_seen("✗ exit 125 · 12 ms")
        await press(stage, "down")
        await stage.until_seen("✓ ok · 12 ms")


@pytest.mark.promise("ACT-1")
async def test_a_message_says_that_only_the_last_of_very_many_inner_calls_are_listed_and_how_to_list_all(
    runtime: Runtime, recorder: Recorder
) -> None:
    batch = recorder.add("batch.run", source="batch")
    for number in range(1_001):
        call = ToolCall(name="gate.shout", args={"n": number}, source="batch", parent=batch)
        runtime.history.record(call, ToolResult(ok=True), START + timedelta(seconds=number))
    runtime.history.flush()
    async with on_activity(runtime, (80, 24)) as stage:
        await stage.until(lambda: len(rows(stage)) == 1, "the batch is listed")
        await press(stage, "right")
        await stage.until(lambda: calls(stage).row_count == 1_001, "its last calls are listed")
        [shown] = [notice.message for notice in stage.app._notifications]
        assert shown == f"Only the last 1,000 of 1,001 calls are listed. The filter parent:{batch} lists all."
        await press(stage, "slash", *f"parent:{batch}")
        await stage.until_seen("1,001 calls")


@pytest.mark.promise("ACT-1")
async def test_calls_of_a_script_unfold_below_it(runtime: Runtime, recorder: Recorder) -> None:
    script = recorder.add("script.run", {"commands": "gate.shout a; gate.shout b"})
    for text in "ab":
        recorder.add("gate.shout", {"text": text}, parent=script, source="script")
    recorder.add("time.now")
    async with on_activity(runtime) as stage:
        assert len(rows(stage)) == 2
        await press(stage, "down", "right")
        await stage.until(lambda: len(rows(stage)) == 4, "it is unfolded")
        assert "▾ script.run" in rows(stage)[1]
        assert ['text: "a"' in rows(stage)[2], 'text: "b"' in rows(stage)[3]] == [True, True]
        await press(stage, "right", "left")
        call = calls(stage).call
        assert call is not None
        assert call.id == script
        await press(stage, "left")
        await stage.until(lambda: len(rows(stage)) == 2, "it is folded")


@pytest.mark.promise("ACT-1")
async def test_a_click_on_the_symbol_of_a_deeply_nested_call_folds_it(runtime: Runtime, recorder: Recorder) -> None:
    parent = None
    for depth in range(8):
        parent = recorder.add("script.run", {"commands": f"echo {depth}"}, parent=parent, source="script")
    async with on_activity(runtime, (140, 30)) as stage:
        for count in range(2, 9):
            await press(stage, "right")
            await stage.until(partial(is_unfolded_to, stage, count), "it is unfolded")
            await press(stage, "down")
        await stage.pilot.click(CallList, offset=(calls(stage).render_line(6).text.index("▾"), 6))
        await stage.until(lambda: len(rows(stage)) == 7, "the call at depth 6 is folded")


def is_unfolded_to(stage: Stage, number: int) -> bool:
    """Return whether the list has as many lines."""
    return len(rows(stage)) == number


@pytest.mark.promise("WAT-3")
async def test_a_call_of_another_process_appears_while_it_runs_and_then_as_done(
    runtime: Runtime, recorder: Recorder, paths: Paths, tmp_path: Path
) -> None:
    recorder.add("time.now")
    gate = tmp_path / "gate"
    async with on_activity(runtime) as stage:
        marked = calls(stage).call
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pegboard", "tools", "invoke", "gate.hold", "--arg", f"file={gate}"),
            env=environment(paths),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await stage.until(lambda: "gate.hold" in rows(stage)[0] and "▶ running" in rows(stage)[0], "it runs")
            assert calls(stage).call == marked
            gate.touch()
            await stage.until(lambda: "gate.hold" in rows(stage)[0] and "✓ ok" in rows(stage)[0], "it is done")
        finally:
            gate.touch()
            await asyncio.wait_for(process.wait(), 60)
        await press(stage, "home", "enter")
        await stage.until_seen("held")


@pytest.mark.promise("WAT-3")
async def test_nothing_watches_the_history_after_the_app_is_closed(
    runtime: Runtime, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.add("time.now")
    async with on_activity(runtime) as stage:
        await settle(stage)
        monkeypatch.setattr(feed, "_PAUSE_SECONDS", 60)  # the app is closed while the page pauses after a change
        recorder.add("gate.shout")
        await stage.until(lambda: "gate.shout" in rows(stage)[0], "the new call is shown")
    watching = [thread for thread in threading.enumerate() if thread.name == "pegboard-watch"]
    for thread in watching:
        await asyncio.to_thread(thread.join, 2)
    assert not [thread for thread in watching if thread.is_alive()]


@pytest.mark.promise("ACT-1")
async def test_new_calls_do_not_move_what_the_user_reads(runtime: Runtime, recorder: Recorder) -> None:
    for number in range(150):
        recorder.add("gate.shout", {"text": f"number {number}"})
    async with on_activity(runtime, (80, 24)) as stage:
        await press(stage, *["pagedown"] * 5)
        before, marked = rows(stage), calls(stage).call
        for _ in range(3):
            recorder.add("time.now")
        await stage.until(lambda: "↑ 3 new" in title(stage), "the new calls are counted")
        assert rows(stage) == before
        assert calls(stage).call == marked
        await press(stage, "home")
        assert "time.now" in rows(stage)[0]
        assert "new" not in title(stage)


@pytest.mark.promise("ACT-1")
async def test_the_number_of_new_calls_has_a_separator_as_other_numbers_have(runtime: Runtime) -> None:
    history_of(runtime, 150)
    async with on_activity(runtime, (80, 24)) as stage:
        await press(stage, *["pagedown"] * 5)
        history_of(runtime, 1_200)
        await stage.until(lambda: "↑ 1,200 new" in title(stage), "the new calls are counted")


async def test_older_calls_are_loaded_as_the_user_scrolls(runtime: Runtime, recorder: Recorder) -> None:
    for number in range(450):
        recorder._runtime.history.record(
            ToolCall(name="gate.shout", args={"text": f"number {number}"}, source="cli"),
            ToolResult(ok=True),
            START + timedelta(seconds=number),
        )
    async with on_activity(runtime, (80, 24)) as stage:
        loaded = calls(stage).row_count
        assert loaded < 450
        while 'text: "number 0"' not in rows(stage)[-1]:
            before = calls(stage).row_count, calls(stage).cursor
            await press(stage, "end")
            assert (calls(stage).row_count, calls(stage).cursor) != before
        assert calls(stage).row_count == 450


@pytest.mark.promise("ACT-1")
async def test_an_older_call_that_was_running_when_it_was_loaded_is_shown_as_done_when_it_ends(
    runtime: Runtime, recorder: Recorder
) -> None:
    oldest = ToolCall(name="gate.shout", args={"n": -1}, source="cli")
    runtime.history.start(oldest, START)
    runtime.history.flush()
    history_of(runtime, 150)
    async with on_activity(runtime, (100, 30)) as stage:
        await press(stage, "end")
        await stage.until(lambda: "▶ running" in rows(stage)[-1], "the oldest call is shown")
        runtime.history.record(oldest, ToolResult(ok=True), START)
        await stage.until(lambda: "✓ ok" in rows(stage)[-1], "it is done")


def history_of(runtime: Runtime, number: int) -> None:
    """Record calls; every tenth fails."""
    for each in range(number):
        runtime.history.record(
            ToolCall(name="gate.shout", args={"n": each}, source="cli"),
            ToolResult(ok=True) if each % 10 else ToolResult.failed("execution_error", "No."),
            START + timedelta(seconds=each / 10),
        )
    runtime.history.flush()


def numbers(stage: Stage) -> list[int]:
    """Return the numbers of the visible calls of `history_of`."""
    return [int(row.split("{n: ")[1].split("}")[0]) for row in rows(stage)]


def position(stage: Stage) -> int:
    """Return the position of the selected call in the history."""
    call = calls(stage).call
    assert call is not None
    return call.position


@pytest.mark.promise("ACT-1")
async def test_end_goes_to_the_oldest_of_many_calls_and_home_back_to_the_newest(runtime: Runtime) -> None:
    history_of(runtime, 3_000)
    async with on_activity(runtime, (100, 30)) as stage:
        await press(stage, "end")
        await stage.until(lambda: numbers(stage)[-1] == 0, "the oldest call is shown")
        assert calls(stage).cursor == calls(stage).row_count - 1
        assert calls(stage).row_count < 1_000
        assert "3,000 calls" in title(stage)
        assert "↑ newer, home to the newest" in title(stage)
        loaded = calls(stage).row_count
        calls(stage).action_move(-loaded)  # faster than newer calls are loaded
        await stage.until(lambda: calls(stage).row_count > loaded, "newer calls are loaded")
        assert numbers(stage)[0] == loaded - 1, "the selected call is still in the first line"
        for _ in range(30):
            shown = numbers(stage)
            assert shown == list(range(shown[0], shown[0] - len(shown), -1)), "no call is missing or doubled"
            before = position(stage)
            await press(stage, "pageup")
            assert position(stage) > before
        await press(stage, "home")
        await stage.until(lambda: numbers(stage)[0] == 2_999, "the newest call is shown")
        assert "newer" not in title(stage)


@pytest.mark.promise("ACT-1")
async def test_a_page_that_stays_open_forgets_calls_far_from_the_visible_ones_until_they_are_needed(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.tui.activity.rows._MOST_NEWER", 300)
    monkeypatch.setattr("pegboard.tui.activity.rows._MOST_OLDER", 300)
    monkeypatch.setattr("pegboard.tui.activity.rows._LEFT", 100)
    history_of(runtime, 400)
    async with on_activity(runtime, (100, 30)) as stage:
        await press(stage, "end")
        await stage.until(lambda: calls(stage).row_count == 400, "all are loaded")
        await press(stage, "home")
        history_of(runtime, 1)
        await stage.until(lambda: calls(stage).row_count < 300, "the oldest are forgotten")
        while position(stage) > 1:
            await press(stage, "pagedown")
            shown = numbers(stage)
            assert shown == list(range(shown[0], shown[0] - len(shown), -1)), "no call is missing or doubled"
        await press(stage, "home", *["down"] * 5)
        before = rows(stage)[5:]
        for total in range(501, 1_402, 100):
            history_of(runtime, 100)
            counted = f"{total:,} calls"
            await stage.until(lambda: counted in title(stage), "the new calls are counted")  # noqa: B023 - awaited here
            assert calls(stage).row_count < 700
        assert "↑ newer" in title(stage)
        assert set(before) & set(rows(stage)), "the user still sees the selected call and those beside it"
        seen = position(stage)
        while "↑ newer" in title(stage):
            await press(stage, "pageup")
        await press(stage, "home")
        assert position(stage) == 1_401
        await press(stage, *["pagedown"] * 3)
        assert seen == 396
        await press(stage, "end")
        await stage.until(lambda: numbers(stage)[-1] == 0, "the oldest call is shown")


@pytest.mark.promise("ACT-1")
async def test_calls_that_the_size_limit_removes_leave_the_list(runtime: Runtime, recorder: Recorder) -> None:
    history_of(runtime, 300)
    async with on_activity(runtime, (100, 30)) as stage:
        await press(stage, "end")
        await stage.until(lambda: calls(stage).row_count == 300, "all are loaded")
        runtime.history.size_limit = 100_000
        recorder.add("time.now")
        await stage.until(lambda: "removed by the" in title(stage), "some were removed")
        await settle(stage)
        [counted] = re.findall(r"(\d+) calls", title(stage))
        assert calls(stage).row_count == int(counted) < 300


@pytest.mark.promise("ACT-1")
async def test_scrolling_up_from_the_oldest_call_reaches_the_newest_and_new_calls(
    runtime: Runtime, recorder: Recorder
) -> None:
    history_of(runtime, 1_500)
    async with on_activity(runtime, (100, 60)) as stage:
        await filtered(stage, "status:ok")
        await press(stage, "end")
        await stage.until(lambda: numbers(stage)[-1] == 1, "the oldest call that matches is shown")
        before = rows(stage)
        recorder.add("time.now")
        await stage.until(lambda: "1,351 calls" in title(stage), "the new call is counted")
        assert rows(stage) == before
        while "time.now" not in rows(stage)[0]:
            above = position(stage)
            await press(stage, "pageup")
            assert position(stage) > above
        assert calls(stage).row_count == 1_351


@pytest.mark.promise("ACT-2")
async def test_a_call_is_run_again_and_with_other_arguments(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "hello"}, source="ask", session="abc")
    async with on_activity(runtime) as stage:
        await press(stage, "ctrl+r")
        await stage.until(lambda: len(rows(stage)) == 2 and "✓ ok" in rows(stage)[0], "it ran again")
        assert rows(stage)[0].startswith('form gate.shout {text: "hello"}'), "it is a call of the user"
        await stage.press("alt+e")
        await stage.until_seen("Edit gate.shout and run it again")
        await stage.until(lambda: isinstance(stage.app.focused, TextBox), "the field has the focus")
        await stage.press("end", "!")
        await stage.press("ctrl+r")
        await stage.until(lambda: len(rows(stage)) == 3 and "hello!" in rows(stage)[0], "it ran with other arguments")
        await press(stage, "home", "enter")
        await stage.until_seen("HELLO!")


@pytest.mark.promise("ACT-2")
async def test_edited_arguments_are_discarded_only_after_a_question(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "hello"})
    async with on_activity(runtime) as stage:
        await stage.press("alt+e")
        await stage.until(lambda: isinstance(stage.app.focused, TextBox), "the field has the focus")
        await stage.press("escape")
        await stage.until(lambda: not stage.app.screen.is_modal, "unchanged arguments need no question")
        await stage.press("alt+e")
        await stage.until(lambda: isinstance(stage.app.focused, TextBox), "the field has the focus")
        await stage.press("end", "!", "escape")
        await stage.until_seen("The changes to this form will be lost.")
        await stage.press("n")
        await stage.until_seen("hello!")
        await stage.press("ctrl+r")
        await stage.until(lambda: len(rows(stage)) == 2 and "hello!" in rows(stage)[0], "it ran with the change")


@pytest.mark.promise("ACT-2")
async def test_a_call_opens_in_the_form_of_its_tool(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "hello"})
    async with on_activity(runtime) as stage:
        await stage.press("alt+o")
        await stage.until(lambda: stage.app.current_mode == "tools" and stage.form.form is not None, "it is open")
        await stage.until(
            lambda: stage.form.form is not None and stage.form.form.draft() == {"text": "hello"}, "filled"
        )


@pytest.mark.promise("ACT-2")
async def test_a_call_of_a_tool_that_is_gone_says_why_it_cannot_run(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("old.tool", {"a": 1})
    async with on_activity(runtime) as stage:
        for key in ("ctrl+r", "alt+e", "alt+o"):
            await stage.press(key)
            await stage.until_seen("old.tool can't be run again")
            stage.app.clear_notifications()
            await stage.until(lambda: "can't be run" not in stage.text, "the message is gone")
        assert stage.app.current_mode == "activity"


@pytest.mark.promise("ACT-2")
async def test_calls_of_a_broken_pack_name_its_problem_once(runtime: Runtime, recorder: Recorder, paths: Paths) -> None:
    for text in ("hello", "world"):
        recorder.add("gate.shout", {"text": text})
    async with on_activity(runtime) as stage:
        await stage.until_seen("world")
        (paths.packs / "gate.py").write_text("def broken(:\n")
        await stage.until(lambda: runtime.tools.get("gate.shout") is None, "the tool is gone")
        await stage.press("space", "down", "space", "ctrl+r")
        await stage.until_seen("gate.shout can't be run again")
        (toast,) = stage.app._notifications  # The lines on the screen depend on the length of the file's path.
        assert "The file could not be parsed" in toast.message
        stage.app.clear_notifications()
        await stage.press("alt+c")
        await stage.until_seen("The checks were not opened.")


@pytest.mark.promise("ACT-2")
async def test_a_batch_offers_only_what_can_be_done_with_it(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add()
    batch = recorder.add("batch.run", {"tool": "gate.shout"}, source="batch")
    recorder.add(source="batch", parent=batch)
    async with on_activity(runtime) as stage:
        footer = screen(stage).query_one(KeysLine)
        assert "Run again" not in footer.render().plain
        assert "Edit and run" not in footer.render().plain
        assert "In the form" not in footer.render().plain
        await press(stage, "right", "down")
        await stage.until(lambda: "Run again" in footer.render().plain, "a row's call can be run again")
        await press(stage, "left", "space", "up")  # what applies to selected calls is offered
        for key, deed in (("ctrl+right_square_bracket", "copied"), ("alt+k", "kept as a check"), ("alt+c", "checked")):
            await stage.press(key)
            await stage.until_seen(f"A batch can't be {deed}.")
    unusable = runtime.activity.get(batch)
    assert unusable is not None
    assert "It is a batch" in runtime.activity.unusable(unusable)


@pytest.mark.promise("ACT-2")
async def test_selected_calls_become_a_script_in_the_order_of_time(runtime: Runtime, recorder: Recorder) -> None:
    for text in ("one", "two", "three"):
        recorder.add("gate.shout", {"text": text})
    async with on_activity(runtime) as stage:
        await press(stage, "space", "down", "space")
        await stage.press("alt+s")
        await stage.until(lambda: stage.app.current_mode == "script", "the Script page is shown")
        editor = stage.app.screen.query_one(ScriptEditor)
        await stage.until(lambda: "three" in editor.text, "the script is open")
        lines = [line for line in editor.text.splitlines() if line.startswith("gate.shout")]
        assert [line.split()[-1] for line in lines] == ["one", "three"]


@pytest.mark.promise("ACT-2")
async def test_keeping_the_open_script_returns_to_the_calls(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "one"})
    async with on_activity(runtime) as stage:
        await stage.press("f7")
        await stage.until(lambda: stage.app.current_mode == "script", "the Script page is shown")
        editor = stage.app.screen.query_one(ScriptEditor)
        await stage.press(*"echo", "f9")
        await settle(stage)
        await stage.press("alt+s")
        await stage.until_seen("Discard changes?")
        await stage.press("escape")
        await stage.until(lambda: isinstance(stage.app.screen, ActivityScreen), "the Activity page is shown again")
        assert editor.text == "echo"
        await stage.press("alt+s")
        await stage.until_seen("Discard changes?")
        await stage.press("ctrl+y")
        await stage.until(lambda: "gate.shout" in editor.text, "the script is open")
        assert stage.app.current_mode == "script"


@pytest.mark.promise("ACT-2")
async def test_selected_calls_are_exported_with_their_results(
    runtime: Runtime, recorder: Recorder, tmp_path: Path
) -> None:
    for text in ("one", "two"):
        recorder.add("gate.shout", {"text": text})
    async with on_activity(runtime) as stage:
        await press(stage, "space", "space")
        await stage.press("ctrl+s")
        await stage.until_seen("Export 2 calls as JSON Lines")
        file = tmp_path / "out.jsonl"
        await stage.press("ctrl+u")
        await stage.type(str(file))
        await stage.press("enter")
        await stage.until_seen("Exported 2 calls")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert [(line["args"]["text"], line["result"]["data"]) for line in lines] == [("one", "done"), ("two", "done")]


@pytest.mark.promise("ACT-2")
async def test_an_export_says_which_calls_and_results_it_lacks(
    runtime: Runtime, recorder: Recorder, tmp_path: Path
) -> None:
    lost = Truncation(shown_bytes=9, total_bytes=9_000_000, file=str(tmp_path / "lost.json"))
    large = ToolResult(ok=True, data=["start"], meta=ResultMeta(duration_ms=12, size=9_000_000, truncated=lost))
    ids = [recorder.add("gate.shout", {"text": "one"}), recorder.add("gate.shout", {"text": "two"}, large)]
    other = Runtime(Settings(), runtime.paths)
    file = tmp_path / "out.jsonl"
    async with on_activity(runtime) as stage:

        def is_notified(text: str) -> bool:
            return any(text in toast.message for toast in stage.app._notifications)

        await press(stage, "space", "space")
        await stage.press("ctrl+s")
        await stage.until_seen("Export 2 calls as JSON Lines")
        await asyncio.to_thread(other.activity.delete, ids[:1])
        await stage.press("ctrl+u")
        await stage.type(str(file))
        await stage.press("enter")
        await stage.until(lambda: is_notified(f"Exported 1 of 2 calls to {file}. The others were deleted"), "one lacks")
        await stage.until(lambda: is_notified("1 result is incomplete because a file can't be read:"), "it is said")
        assert [json.loads(line)["args"]["text"] for line in file.read_text().splitlines()] == ["two"]
        await stage.press("ctrl+s")
        await stage.until_seen("Export 1 call as JSON Lines")
        await asyncio.to_thread(other.activity.delete, ids[1:])
        await stage.press("ctrl+u")
        await stage.type(str(tmp_path / "empty.jsonl"))
        await stage.press("enter")
        await stage.until_seen("The file was not written because")
        assert not (tmp_path / "empty.jsonl").exists()


@pytest.mark.promise("ACT-2")
async def test_the_name_of_an_export_that_cant_be_written_can_be_corrected(
    runtime: Runtime, recorder: Recorder, tmp_path: Path
) -> None:
    recorder.add("gate.shout", {"text": "one"})
    kept = tmp_path / "out.jsonl"
    kept.write_text("kept")
    async with on_activity(runtime) as stage:
        await stage.press("ctrl+s")
        await stage.until_seen("Export 1 call as JSON Lines")
        await stage.press("ctrl+u")
        await stage.type(str(kept))
        await stage.press("enter")
        await stage.until_seen("This file exists.")
        await stage.until_seen("out.jsonl")  # the cursor is at its end
        await stage.press(*["left"] * len("out.jsonl"))
        await stage.type("none/")
        await stage.press("enter")
        await stage.until_seen("No such file or directory")
        assert "Errno" not in stage.text
        await stage.press(*["left"] * len("out.jsonl"), *["backspace"] * len("none/"))
        await stage.type("new-")
        await stage.press("enter")
        await stage.until_seen("Exported 1 call")
    assert kept.read_text() == "kept"
    assert json.loads((tmp_path / "new-out.jsonl").read_text())["args"] == {"text": "one"}


@pytest.mark.promise("ACT-2")
async def test_deleted_calls_can_be_restored(runtime: Runtime, recorder: Recorder) -> None:
    for text in ("one", "two", "three"):
        recorder.add("gate.shout", {"text": text})
    async with on_activity(runtime) as stage:
        await press(stage, "down", "delete")
        await stage.until(lambda: len(rows(stage)) == 2, "it is gone")
        assert not any("two" in row for row in rows(stage))
        await press(stage, "ctrl+z")
        await stage.until(lambda: len(rows(stage)) == 3, "it is back")
        assert "two" in rows(stage)[1]


@pytest.mark.promise("ACT-2")
async def test_a_selected_call_that_another_program_deletes_is_no_longer_selected(
    runtime: Runtime, recorder: Recorder
) -> None:
    ids = [recorder.add("gate.shout", {"text": text}) for text in ("one", "two", "three")]
    async with on_activity(runtime) as stage:
        await press(stage, "space", "space")
        await stage.until(lambda: "2 selected" in title(stage), "two are selected")
        await asyncio.to_thread(runtime.activity.delete, [ids[1]])
        await stage.until(lambda: "1 selected" in title(stage), "one is left")
        assert calls(stage).ticked == {ids[2]}


@pytest.mark.promise("ACT-2")
async def test_a_selected_call_that_was_deleted_a_moment_ago_is_not_called_running(
    runtime: Runtime, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [recorder.add("gate.shout", {"text": text}) for text in ("one", "two", "three")]
    monkeypatch.setattr(feed, "_PAUSE_SECONDS", 60)  # the page notices the first change only
    async with on_activity(runtime) as stage:
        await press(stage, "space", "space")
        await asyncio.to_thread(runtime.activity.delete, [ids[1]])
        await press(stage, "delete")
        await stage.until_seen("Deleted 1 call.")
        assert "running" not in stage.text


@pytest.mark.promise("ACT-2")
async def test_a_call_that_cannot_be_deleted_because_the_history_is_locked_is_reported(
    runtime: Runtime, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.history.database.BUSY_SECONDS", 0.1)
    recorder.add("gate.shout", {"text": "one"})
    async with on_activity(runtime) as stage:
        with closing(sqlite3.connect(runtime.paths.database)) as other:
            other.execute("BEGIN EXCLUSIVE")
            await press(stage, "delete")
            message = "Nothing was deleted: database is locked. End the process that uses it, then try again."
            toasts = stage.app._notifications
            await stage.until(lambda: any(one.message == message for one in toasts), "the reason is shown")


@pytest.mark.promise("ACT-2")
async def test_restoring_calls_removes_the_message_that_offered_it(runtime: Runtime, recorder: Recorder) -> None:
    for text in ("one", "two"):
        recorder.add("gate.shout", {"text": text})
    async with on_activity(runtime) as stage:
        await press(stage, "delete")
        await stage.until_seen("Deleted 1 call.")
        await press(stage, "ctrl+z")
        await stage.until_seen("Restored 1 call.")
        assert "Deleted 1 call." not in stage.text


@pytest.mark.promise("ACT-2")
async def test_the_result_stays_where_the_user_reads_it_when_other_calls_change(
    runtime: Runtime, recorder: Recorder
) -> None:
    text = "\n".join(f"line {number}" for number in range(200))
    other = recorder.add("time.now")
    recorder.add("gate.shout", {"text": "long"}, ToolResult(ok=True, data=text))
    async with on_activity(runtime) as stage:
        await press(stage, "ctrl+d", "end")
        await stage.until_seen("line 199")
        await asyncio.to_thread(runtime.activity.pin, [other])
        await stage.until(lambda: "◆" in rows(stage)[1], "the change is shown")
        await settle(stage)
        assert "line 199" in stage.text
        await asyncio.to_thread(runtime.activity.redact, "line 0")
        await stage.until_seen("«redacted»")


async def test_delete_does_not_delete_calls_while_a_filter_is_typed(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "one"})
    async with on_activity(runtime) as stage:
        await press(stage, "o", "n", "e", "delete")
        assert len(rows(stage)) == 1


@pytest.mark.promise("ACT-2")
async def test_a_call_is_pinned_copied_and_added_to_the_chat(runtime: Runtime, recorder: Recorder) -> None:
    call = recorder.add("gate.shout", {"text": "hello"})
    async with on_activity(runtime) as stage:
        await press(stage, "alt+n")
        await stage.until(lambda: "◆" in rows(stage)[0], "it is pinned")
        await stage.until_seen("Pinned 1 call. The size limit never removes it.")
        found = runtime.activity.get(call)
        assert found is not None
        assert found.pinned
        await stage.press("ctrl+right_square_bracket")
        await stage.until_seen("pegboard tools invoke gate.shout")
        await stage.press("escape")
        await stage.press("f2")
        await stage.until_seen('"tool": "gate.shout"')
        await stage.press("escape")
        await stage.press("alt+t")
        await stage.until(lambda: isinstance(stage.app.screen, ChatScreen), "the Chat page is shown")
        await stage.until_seen("returned:")


@pytest.mark.promise("ACT-2")
async def test_calls_are_added_to_the_chat_also_if_they_have_no_result(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "one"})
    runtime.history.start(ToolCall(name="gate.shout", args={"text": "two"}, source="cli"), datetime.now(UTC))
    runtime.history.flush()
    async with on_activity(runtime) as stage:
        await stage.until(lambda: len(rows(stage)) == 2, "both are listed")
        await press(stage, "space", "space", "alt+t")
        await stage.until(lambda: isinstance(stage.app.screen, ChatScreen), "the Chat page is shown")
        prompt = stage.app.screen.query_one(AskLine)
        await stage.until(lambda: '{"text":"two"}` has no result.' in prompt.text, "the running call is quoted")
        assert '{"text":"one"}` returned:' in prompt.text


@pytest.mark.promise("ACT-2")
async def test_a_script_is_copied_as_a_command_that_runs_scripts(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("script.run", {"commands": "gate.shout --text hello\n"})
    async with on_activity(runtime) as stage:
        await stage.press("ctrl+right_square_bracket")
        await stage.until_seen("pegboard script run")
        await stage.press("enter")
        await stage.until(lambda: stage.app.clipboard, "it is copied")
        assert stage.app.clipboard.splitlines()[1:] == ["gate.shout --text hello", "END"]


@pytest.mark.promise("ACT-4")
async def test_a_redacted_value_disappears_from_the_page(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "hunter2hunter2"}, ToolResult(ok=True, data="you said hunter2hunter2"))
    async with on_activity(runtime) as stage:
        await stage.until_seen("you said hunter2hunter2")
        await stage.app.run_action("redact", screen(stage))
        await stage.until_seen("Redact a value everywhere")
        await stage.type("hunter2hunter2")
        assert "hunter2hunter2" not in "\n".join(stage.lines[8:30]).replace("you said hunter2hunter2", "")
        await stage.press("enter")
        await stage.until(lambda: "hunter2hunter2" not in stage.text and "you said" in stage.text, "it is gone")


@pytest.mark.promise("ACT-4")
async def test_a_value_that_is_too_short_to_redact_can_be_corrected(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "hunter2"}, ToolResult(ok=True, data="you said hunter2"))
    async with on_activity(runtime) as stage:
        await stage.app.run_action("redact", screen(stage))
        await stage.until_seen("Redact a value everywhere")
        await stage.type("hunte")
        await stage.press("enter")
        await stage.until_seen("Enter at least 6 characters")
        await stage.type("r2")
        await stage.press("enter")
        await stage.until(lambda: "hunter2" not in stage.text and "you said" in stage.text, "it is gone")


async def test_the_page_and_its_filter_are_remembered(runtime: Runtime, recorder: Recorder, paths: Paths) -> None:
    recorder.add("gate.shout", {"text": "one"})
    recorder.add("gate.shout", {"text": "two"})
    async with on_activity(runtime) as stage:
        await filtered(stage, "one")
    async with on_stage(Runtime(Settings(), paths)) as stage:
        await stage.until(lambda: stage.app.current_mode == "activity", "the page is shown again")
        await stage.until(lambda: isinstance(stage.app.screen, ActivityScreen) and len(rows(stage)) == 1, "filtered")
        assert "one" in rows(stage)[0]


async def test_a_key_moves_the_focus_to_the_result_and_back(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("gate.shout", {"text": "one"})
    async with on_activity(runtime) as stage:
        await stage.press("ctrl+d")
        assert stage.app.focused is not None
        assert any(isinstance(node, ResultPane) for node in stage.app.focused.ancestors)
        await stage.press("ctrl+d")
        assert stage.app.focused is calls(stage)


@pytest.mark.promise("TUI-4")
async def test_control_characters_of_calls_are_inert(runtime: Runtime, recorder: Recorder) -> None:
    recorder.add("bad.\x1b[31mtool", {"[bold]x\x1b": "\x1b]0;title\x07[link]"}, session="s\x1b[2J")
    async with on_activity(runtime, (80, 24)) as stage:
        assert "\x1b" not in stage.text
        await stage.press("f2")
        await stage.pilot.pause()
        assert "\x1b" not in stage.text


async def test_large_arguments_are_written_beside_the_event_loop(
    runtime: Runtime, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def arguments_text(args: JsonValue) -> str:
        threads.append(threading.current_thread())
        return "written beside it\nas two lines"

    monkeypatch.setattr("pegboard.tui.activity.detail.arguments_text", arguments_text)
    recorder.add(args={"rows": [*range(1000)]})
    async with on_activity(runtime, (120, 40)) as stage:
        await stage.until_seen("written beside it")
    assert threading.main_thread() not in threads


@pytest.mark.promise("ACT-2")
@pytest.mark.parametrize("size", [(120, 24), (100, 30), (80, 24), (60, 16)])
async def test_long_arguments_leave_space_for_the_result_on_a_short_screen(
    runtime: Runtime, recorder: Recorder, size: tuple[int, int]
) -> None:
    recorder.add("gate.shout", {"text": "long " * 400}, ToolResult(ok=True, data="the result"))
    async with on_activity(runtime, size) as stage:
        await stage.until_seen("the result")
        assert screen(stage).query_one("#arguments").size.height == 2


@pytest.mark.parametrize("width", [60, 70, 80, 100, 120])
async def test_the_five_pages_fit_the_header(runtime: Runtime, recorder: Recorder, width: int) -> None:
    recorder.add()
    async with on_activity(runtime, (width, 24)) as stage:
        header = stage.lines[0]
        assert "f9 Activity" in header
        assert all(key in header for key in ("f5", "f6", "f7", "f8"))
        assert re.search(r"(problems?|✓|✖ \d+|! \d+)$", header.rstrip()), "also on a machine that lacks programs"
        if width >= 80:
            assert all(name in header for name in ("f5 Tools", "f6 Chat", "f7 Script", "f8 Health"))


async def test_with_vim_keys_letters_move_and_slash_filters(paths: Paths) -> None:
    runtime = Runtime(Settings(ui=UiSettings(vim_keys=True)), paths)
    recorder = Recorder(runtime)
    for text in ("one", "two"):
        recorder.add("gate.shout", {"text": text})
    async with on_activity(runtime) as stage:
        await press(stage, "j")
        assert calls(stage).cursor == 1
        await filtered(stage, "/two")
        assert len(rows(stage)) == 1
