"""Running the selected tool."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from stage import GivenRuntime, on_stage, tool
from textual import events
from textual.widgets import Button, TextArea

from pegboard.config import Settings, UiSettings
from pegboard.models import ToolCall, ToolResult, ToolSpec
from pegboard.tui.tools.usage import never_called


@pytest.mark.promise("TUI-1", "EXE-1")
async def test_ctrl_r_in_a_form_runs_the_tool_with_its_arguments(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("a.txt")
        await stage.press("ctrl+r")
        await stage.until_seen("✓ ok")
        assert [(call.name, call.args, call.source) for call in given.calls] == [
            ("fs.read_file", {"path": "a.txt"}, "form")
        ]
        assert "a.txt" in stage.text
        await stage.until_seen("1 call · none failed · p50 12 ms, p95 12 ms")


@pytest.mark.promise("TUI-7")
async def test_the_footer_offers_recent_values_as_soon_as_they_are_known(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path, tools=[tool("p.say", words={"type": "string"})])
    async with on_stage(given, size=(120, 30)) as stage:
        await stage.press("enter")
        await stage.until(
            lambda: "Run" in stage.lines[-1] and "Pick" not in stage.lines[-1], "nothing to pick from yet"
        )
        stage.form.recent = [{"words": "hello"}]
        await stage.until(lambda: "^f Pick" in stage.lines[-1], "the footer follows")


async def test_a_key_that_comes_right_after_typed_text_runs_the_tool_with_all_of_it(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        for key, character in (("a", "a"), ("b", "b"), ("c", "c"), ("ctrl+r", None)):
            stage.app.post_message(events.Key(key, character))
        await stage.until_seen("✓ ok")
        assert [call.args for call in given.calls] == [{"path": "abc"}]


async def test_a_call_is_copied_with_the_text_typed_right_before_the_key(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        for key, character in (("a", "a"), ("b", "b"), ("c", "c"), ("ctrl+right_square_bracket", None)):
            stage.app.post_message(events.Key(key, character))
        await stage.until_seen("--arg path=abc")


@pytest.mark.promise("TUI-1")
async def test_a_repeated_key_runs_the_tool_once_even_while_no_thread_is_free(
    given: GivenRuntime, no_thread: Callable[[], AbstractContextManager[None]]
) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("a.txt")
        with no_thread():
            await stage.press("ctrl+r", "ctrl+r")
        await stage.until_seen("✓ ok")
        await stage.until_seen("1 call · none failed")
        assert len(given.calls) == 1
        await stage.press("ctrl+r")
        await stage.until(lambda: len(given.calls) == 2, "it runs again")


async def test_ctrl_j_runs_the_selected_tool_from_the_list_too(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("end", "ctrl+j")
        await stage.until_seen("✓ ok")
        assert [call.name for call in given.calls] == ["time.now"]


@pytest.mark.promise("TUI-3")
async def test_an_invalid_form_runs_nothing_and_focuses_the_first_error(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.type("read")
        await stage.press("ctrl+r")
        assert not given.calls
        await stage.until(lambda: stage.form.has_focus_within, "the focus is at the fault")
        await stage.until_seen("Not run: 1 argument is invalid.")
        await stage.type("x")
        await stage.until_seen("Press ctrl+r to run the tool.")


@pytest.mark.promise("EXE-4", "TUI-1")
async def test_escape_cancels_a_running_call_from_anywhere(given: GivenRuntime) -> None:
    given.go_on.clear()
    async with on_stage(given) as stage:
        await stage.press("end", "ctrl+r")
        await stage.until_seen("half way")
        assert "esc Cancel" in stage.lines[-1]
        await stage.press("tab", "escape")
        await stage.until_seen("cancelled")
        await stage.until(lambda: "esc Cancel" not in stage.lines[-1], "there is nothing to cancel any more")


async def test_escape_cancels_a_running_call_whose_result_is_maximized(given: GivenRuntime) -> None:
    given.go_on.clear()
    async with on_stage(given) as stage:
        await stage.press("end", "ctrl+r")
        await stage.until_seen("half way")
        await stage.press("ctrl+d", "f10")
        await stage.until_seen("· f10 restores")
        assert "esc cancels" in stage.text
        await stage.press("escape")
        await stage.until_seen("cancelled")
        assert stage.screen.maximized is stage.result
        await stage.press("escape")
        await stage.until(lambda: stage.screen.maximized is None, "it is as before")


async def test_escape_closes_the_input_line_of_a_maximized_result(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("end", "ctrl+r")
        await stage.until_seen("✓ ok")
        await stage.press("ctrl+d", "f10", "s")
        await stage.until_seen("Save as")
        await stage.press("escape")
        await stage.until(lambda: "Save as" not in stage.text, "the line is closed")
        assert stage.screen.maximized is stage.result
        await stage.press("escape")
        await stage.until(lambda: stage.screen.maximized is None, "it is as before")


async def test_a_second_run_during_a_call_is_rejected_with_a_reason(given: GivenRuntime) -> None:
    given.go_on.clear()
    async with on_stage(given) as stage:
        await stage.press("end", "ctrl+r")
        await stage.until_seen("half way")
        await stage.press("ctrl+r")
        await stage.until_seen("time.now is still running. Press esc to cancel it.")
        assert len(given.calls) == 1
        given.go_on.set()
        await stage.until_seen("✓ ok")


@pytest.mark.promise("TUI-2")
async def test_the_list_is_usable_during_a_call_and_the_call_stays_visible(given: GivenRuntime) -> None:
    given.go_on.clear()
    async with on_stage(given) as stage:
        await stage.press("end", "ctrl+r")
        await stage.until_seen("half way")
        await stage.type("read")
        await stage.until_seen("Reads a text file.")
        await stage.until(lambda: stage.screen.settled, "the other form is shown")
        assert "half way" in stage.text
        given.go_on.set()
        await stage.until_seen("✓ ok")


@pytest.mark.promise("TUI-1")
async def test_a_destructive_tool_needs_one_confirmation_and_enter_means_no(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("remove")
        await stage.type("x")
        await stage.press("ctrl+r")
        await stage.until_seen("Run fs.remove?")
        await stage.until_seen('"path": "x"')
        assert isinstance(stage.app.focused, Button)
        assert stage.app.focused.id == "no"
        await stage.press("enter")
        assert not given.calls
        await stage.press("ctrl+r")
        await stage.until_seen("Run fs.remove?")
        await stage.press("ctrl+y")
        await stage.until_seen("✓ ok")
        assert [call.args for call in given.calls] == [{"path": "x"}]


@pytest.mark.promise("TUI-1")
async def test_the_confirmation_shows_the_arguments_that_run_and_not_later_ones(
    given: GivenRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()
    current = given.tools.current

    def slow(spec: ToolSpec) -> ToolSpec:
        assert may_go_on.wait(30)
        return current(spec)

    async with on_stage(given) as stage:
        await stage.open("remove")
        await stage.type("x")
        monkeypatch.setattr(given.tools, "current", slow)
        await stage.press("ctrl+r", "y")
        await stage.until_seen("xy")
        may_go_on.set()
        await stage.until_seen("Run fs.remove?")
        await stage.until_seen('"path": "x"')
        await stage.press("ctrl+y")
        await stage.until_seen("✓ ok")
        assert [call.args for call in given.calls] == [{"path": "x"}]


async def test_the_confirmation_shows_a_text_of_several_lines_as_lines(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("remove")
        await stage.press("ctrl+t")
        await stage.until(lambda: isinstance(stage.app.focused, TextArea), "the JSON is edited")
        await stage.press("ctrl+a", *'{"path": "a.txt\\nb.txt"}')
        await stage.press("ctrl+r")
        await stage.until_seen("Run fs.remove?")
        assert '"path": 2 lines:' in stage.text
        assert "│ a.txt" in stage.text
        assert "│ b.txt" in stage.text
        await stage.press("enter")
    assert not given.calls


async def test_escape_in_the_confirmation_means_no_and_does_not_quit(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("remove")
        await stage.type("x")
        await stage.press("ctrl+r")
        await stage.until_seen("Run fs.remove?")
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.screen, "the question is gone")
        assert not given.calls
        assert stage.app.is_running


@pytest.mark.promise("STO-1")
async def test_the_last_arguments_are_offered_and_loaded_only_on_demand(given: GivenRuntime) -> None:
    given.calls = [ToolCall(name="fs.read_file", args={"path": "before.txt", "max_bytes": 7}, source="cli")]
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.until_seen("ctrl+↑ last arguments")
        assert "before.txt" not in stage.text
        await stage.press("ctrl+up")
        await stage.until_seen("before.txt")
        assert stage.form.submit() == {"path": "before.txt", "max_bytes": 7}
        await stage.press("escape", "escape")
        await stage.open("remove")
        await stage.until(lambda: stage.screen.settled, "the other form is shown")
        assert "before.txt" not in stage.text
        assert "last arguments" not in stage.text


@pytest.mark.promise("STO-1", "SDK-14")
async def test_the_last_arguments_of_a_renamed_tool_are_those_of_its_earlier_name(tmp_path: Path) -> None:
    renamed = tool("fs.read", path={"type": "string"}).model_copy(
        update={"aliases": ("fs.load",), "parameter_aliases": {"file": "path"}}
    )
    given = GivenRuntime(tmp_path, tools=(renamed,))
    given.calls = [ToolCall(name="fs.load", args={"file": "before.txt"}, source="cli")]
    async with on_stage(given) as stage:
        await stage.press("ctrl+up")
        await stage.until_seen("before.txt")
        assert stage.form.submit() == {"path": "before.txt"}


async def test_missing_last_arguments_are_reported(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("ctrl+up")
        await stage.until_seen("fs.list_dir has not been called yet.")


async def test_each_tool_keeps_its_own_result(given: GivenRuntime) -> None:
    given.answer = lambda call: ToolResult(ok=True, data=f"from {call.name}")
    async with on_stage(given) as stage:
        await stage.press("end", "ctrl+r")
        await stage.until_seen("from time.now")
        await stage.press("up", "up")
        await stage.until(lambda: "from time.now" not in stage.text, "the other tool has no result")
        await stage.press("end")
        await stage.until_seen("from time.now")


@pytest.mark.promise("TUI-1")
async def test_each_tool_keeps_the_log_of_its_result(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("end", "ctrl+r")
        await stage.until_seen("Log 1")
        await stage.press("up", "up")
        await stage.until(lambda: "Log 1" not in stage.text, "the other tool has no result")
        await stage.press("end")
        await stage.until_seen("Log 1")
        await stage.press("ctrl+d", "V")
        await stage.until_seen("working")


async def test_a_failure_is_shown_and_counted(given: GivenRuntime) -> None:
    given.answer = lambda _: ToolResult.failed("execution_error", "ValueError: it broke", "raised")
    twelve = never_called("time.now").model_copy(update={"calls": 12, "failures": 1})
    given.activity.statistics = lambda tools: (twelve,)  # type: ignore[method-assign]  # as the history might
    async with on_stage(given) as stage:
        await stage.press("end", "ctrl+r")
        await stage.until_seen("ValueError: it broke")
        await stage.until_seen("12 calls · 8 % failed (1)")


async def test_a_tool_without_arguments_runs_immediately(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path, tools=[tool("p.none")])
    async with on_stage(given) as stage:
        await stage.press("enter", "ctrl+r")
        await stage.until_seen("✓ ok")
        assert [call.args for call in given.calls] == [{}]


async def test_a_pack_row_runs_nothing_and_explains_why(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("home", "ctrl+r")
        await stage.until_seen("Select a tool first.")
        assert not given.calls


@pytest.mark.promise("TUI-7")
async def test_one_key_goes_to_the_result_and_back(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("ctrl+d")
        await stage.until_seen("This tool has no result yet. Press ctrl+r to run it.")
        await stage.open("read")
        await stage.type("a.txt")
        field = stage.app.focused
        await stage.press("ctrl+r")
        await stage.until_seen("✓ ok")
        assert stage.app.focused is field
        await stage.press("ctrl+d")
        await stage.until(lambda: stage.screen.query_one("ResultPane").has_focus_within, "the result has the focus")
        await stage.press("ctrl+d")
        assert stage.app.focused is field


@pytest.mark.promise("TUI-7")
async def test_the_focus_moves_to_the_result_after_a_run_if_that_is_configured(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path, settings=Settings(ui=UiSettings(focus="result")))
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("a.txt")
        await stage.press("ctrl+r")
        await stage.until(lambda: stage.screen.query_one("ResultPane").has_focus_within, "the result has the focus")


@pytest.mark.promise("TUI-3")
async def test_saving_asks_for_the_name_of_a_preset_directly(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("a.txt")
        await stage.press("ctrl+s", *"mine", "enter")
        await stage.until(lambda: given.kept == {"fs.read_file": {"mine": {"path": "a.txt"}}}, "it is kept")
        await stage.until_seen("ctrl+l 1 preset")


async def test_the_app_runs_in_a_folder_that_was_deleted(
    given: GivenRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "deleted"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    async with on_stage(given) as stage:
        await stage.type("now")
        await stage.press("ctrl+r")
        await stage.until_seen("✓ ok")
        stage.result.focus()
        await stage.press("s")
        await stage.until_seen("Save as")
