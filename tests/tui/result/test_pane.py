"""The result pane, operated by keys and mouse at several sizes."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from headless import compose_strips
from pydantic import JsonValue
from rich.style import Style
from textual import events
from textual.widgets import Input

from pegboard.models import (
    ApprovalRequested,
    Fault,
    Finished,
    Log,
    Progress,
    ResultMeta,
    Started,
    ToolCall,
    ToolError,
    ToolResult,
    Truncation,
)
from pegboard.results.table import Table
from pegboard.tui.result import ResultPane
from pegboard.tui.result.status import StatusLine, ViewBar
from pegboard.tui.result.table import TableView
from pegboard.tui.result.text import TextView
from pegboard.tui.result.tree import TreeView
from pegboard.tui.result.views import ResultViews

from .pane_stage import OpenStage, Stage

ANSWER: JsonValue = {"success": True, "results": [{"id": number, "name": f"name {number}"} for number in range(40)]}
HOSTILE = "[bold red]x[/] \x1b[2J\x1b]0;title\x07 a\rb \u202egnp.exe [@click=app.quit]y[/]"
SIZES = pytest.mark.parametrize(("width", "height"), [(40, 6), (80, 24), (120, 40)])


# Running calls


async def test_the_empty_pane_explains_how_to_run_a_tool(stage: OpenStage) -> None:
    async with stage() as on:
        assert "Press ctrl+r to run the tool" in on.text
        on.pane.run_key = "f2"
        await on.pilot.pause()
        assert "Press f2 to run the tool" in on.text


@pytest.mark.promise("TUI-1", "TUI-2")
async def test_a_call_is_followed_from_waiting_to_its_result(stage: OpenStage) -> None:
    async with stage() as on:
        on.pane.start(on.call)
        await on.pilot.pause()
        assert on.is_running()
        assert re.search(r"… waiting · \d\.\d s · esc cancels", on.text)
        on.pane.feed(ApprovalRequested(call=on.call, reason="it deletes"))
        await on.until(lambda: "it deletes" in on.text, "the reason to wait is shown")
        on.pane.feed(Started(call=on.call, worker="pid 4711"))
        on.pane.feed(Log(call_id=on.call.id, stream="stdout", text="first\nsecond "))
        on.pane.feed(Log(call_id=on.call.id, stream="stderr", text="careful\n"))
        on.pane.feed(Progress(call_id=on.call.id, done=3, total=10, message="copying"))
        await on.until(lambda: "second" in on.text, "a line that has only begun is shown too")
        assert re.search(r"▶ running · \d\.\d s · esc cancels · demo", on.text)
        assert re.search(r"█+░+ 30% 3 of 10 · copying", on.text)
        assert "! careful" in on.text
        shown = on.text.splitlines()[1]
        await on.until(lambda: on.text.splitlines()[1] != shown, "time goes on")
        meta = ResultMeta(duration_ms=340, size=3_449, worker="pid 4711", cached=True)
        on.pane.feed(Finished(call=on.call, result=ToolResult(ok=True, data="done", meta=meta)))
        await on.pilot.pause()
        assert not on.is_running()
        assert "✓ ok · 340 ms · 3.4 kB · cached · demo.tool" in on.text
        assert str(on.pane.query_one(StatusLine).tooltip) == "Worker process: pid 4711"
        assert "[Text]   Markdown    Log 3" in on.text
        assert "30%" not in on.text


async def test_progress_without_a_total_is_a_count(stage: OpenStage) -> None:
    async with stage() as on:
        on.pane.start(on.call)
        on.pane.feed(Progress(call_id=on.call.id, done=1234))
        await on.until(lambda: "1,234" in on.text, "the count is shown")
        assert "%" not in on.text


@pytest.mark.parametrize(("done", "shown"), [(299, "99%"), (300, "100%"), (87, "29%"), (301, "100%"), (2.9, "0%")])
async def test_progress_is_at_100_percent_only_at_the_end(stage: OpenStage, done: float, shown: str) -> None:
    async with stage() as on:
        on.pane.start(on.call)
        on.pane.feed(Progress(call_id=on.call.id, done=done, total=300))
        await on.until(lambda: f" {shown} {done:g} of 300" in on.text, "the share is shown")


async def test_large_figures_of_progress_have_all_their_digits(stage: OpenStage) -> None:
    async with stage() as on:
        on.pane.start(on.call)
        on.pane.feed(Progress(call_id=on.call.id, done=5_242_881, total=10_485_762))
        await on.until(lambda: "50% 5,242,881 of 10,485,762" in on.text, "the figures are exact")


async def test_events_of_another_call_are_ignored(stage: OpenStage) -> None:
    async with stage() as on:
        other = ToolCall(name="demo.other", source="mcp")
        on.pane.start(on.call)
        on.pane.feed(Started(call=other))
        on.pane.feed(Log(call_id=other.id, stream="log", text="not mine\n"))
        on.pane.feed(Finished(call=other, result=ToolResult(ok=True)))
        assert on.state() == "waiting"
        on.pane.feed(Log(call_id=on.call.id, stream="log", text="own line\n"))
        await on.until(lambda: "own line" in on.text, "lines of its call are shown")
        assert "not mine" not in on.text
        on.pane.feed(Finished(call=on.call, result=ToolResult(ok=True, data=1)))
        on.pane.feed(Log(call_id=on.call.id, stream="log", text="too late\n"))
        await on.pilot.pause()
        assert on.state() == "finished"
        assert on.pane.result == ToolResult(ok=True, data=1)


@pytest.mark.promise("TUI-4")
async def test_markdown_cannot_control_the_screen(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show(f"# Title\n\n{HOSTILE}\n")
        await on.until(lambda: "Title" in on.text, "it is rendered")
        assert "[Markdown]" in on.text
        assert "␛[2J" in on.text
        assert "\\u202egnp" in on.text
        _assert_harmless(on.text)


async def test_a_log_is_followed_until_the_user_scrolls_up_and_keeps_its_last_lines(stage: OpenStage) -> None:
    async with stage() as on:
        on.pane.start(on.call)
        on.pane.focus()
        on.pane.feed(Log(call_id=on.call.id, stream="stdout", text="".join(f"line {n}\n" for n in range(100))))
        await on.until(lambda: "line 99" in on.text, "the end is in sight")
        await on.press("home")
        on.pane.feed(Log(call_id=on.call.id, stream="stdout", text="".join(f"line {n}\n" for n in range(100, 200))))
        await on.until(lambda: "Log 200" in on.text, "more came")
        await on.pilot.pause()
        await on.pilot.pause()
        assert "line 0 " in on.text
        await on.press("end")
        on.pane.feed(Log(call_id=on.call.id, stream="stdout", text="".join(f"line {n}\n" for n in range(200, 9_000))))
        await on.until(lambda: "line 8999" in on.text, "it is followed again")
        assert "Log 9,000" in on.text
        kept = on.pane.query_one(TextView).text.split("\n")
        assert len(kept) <= 6_000
        assert kept[-1] == "  line 8999"


async def test_a_filter_is_followed_from_the_log_to_which_the_pane_returns_without_it(stage: OpenStage) -> None:
    async with stage() as on:
        on.pane.start(on.call)
        on.pane.feed(Log(call_id=on.call.id, stream="stdout", text="printed\n"))
        on.pane.feed(Finished(call=on.call, result=ToolResult(ok=True, data={"a": [{"b": 1}, {"b": 2}]})))
        await on.pilot.pause()
        on.pane.focus()
        await on.press("V")
        assert "[Log 1]" in on.text
        await on.press("vertical_line", *"a")
        await on.until(lambda: "[Table]" in on.text, "the filtered result is shown")
        await on.press("enter", "escape")
        await on.until(lambda: "[Log 1]" in on.text, "the log is shown again")


async def test_a_finished_call_is_shown_and_cleared(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show({"a": 1})
        assert "a: 1" in on.text
        on.pane.clear()
        await on.pilot.pause()
        assert "to run the tool" in on.text
        assert on.pane.call is None
        assert on.pane.result is None


# Failures


async def test_an_error_is_a_card_with_its_traceback_folded(stage: OpenStage) -> None:
    async with stage() as on:
        faults = (Fault(path="/path", message="is missing"), Fault(path="/max/0", message="is no number"))
        error = ToolError(code="invalid_args", message="two things are wrong", faults=faults)
        await on.show_result(ToolResult(ok=False, error=error, meta=ResultMeta(traceback="File x\nboom")))
        assert "✗ failed · invalid_args" in on.text
        assert "╭─ invalid_args" in on.text
        for shown in ("two things are wrong", "path  is missing", "max #1  is no number", "▸ Traceback, 2 lines"):
            assert shown in on.text
        assert "Correct these arguments" in on.text
        assert "boom" not in on.text
        await on.press("t")
        assert "▾ Traceback" in on.text
        assert "boom" in on.text
        await on.press("enter")
        assert "boom" not in on.text
        await on.pilot.click(".fold")
        await on.pilot.pause()
        assert "boom" in on.text


async def test_a_failure_with_data_shows_both(stage: OpenStage) -> None:
    async with stage() as on:
        error = ToolError(code="execution_error", message="nothing there", detail="no_such_dataset")
        await on.show_result(ToolResult(ok=False, error=error, data={"success": False}))
        assert "╭─ execution_error · no_such_dataset" in on.text
        await on.press("v")
        assert "success: false" in on.text


async def test_a_cancelled_call_is_labelled(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show_result(ToolResult.failed("execution_error", "cancelled after 3 s", "cancelled"))
        assert "⊘ cancelled" in on.text


# Views


async def test_views_are_changed_by_key_and_mouse_and_remembered_for_the_tool(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show(ANSWER)
        assert "[Table]   Tree    Text" in on.text
        await on.press("v", "v")
        assert "[Text]" in on.text
        assert '"success": true,' in on.text
        await on.show(ANSWER)
        assert "[Text]" in on.text
        await on.press("V")
        assert "[Tree]" in on.text
        await on.pilot.click(ViewBar, offset=(3, 0))
        await on.pilot.pause()
        assert "[Table]" in on.text


async def test_the_pane_keeps_the_focus_and_never_takes_it(stage: OpenStage) -> None:
    async with stage() as on:
        on.app.query_one(Input).focus()
        await on.pilot.pause()
        on.pane.start(on.call)
        on.pane.feed(Finished(call=on.call, result=ToolResult(ok=True, data={"a": 1})))
        await on.pilot.pause()
        assert on.focused() == "Input"
        on.pane.focus()
        await on.pilot.pause()
        assert on.focused() == "TreeView"
        on.pane.start(on.call)
        await on.pilot.pause()
        assert on.focused() == "TextView"
        on.pane.feed(Finished(call=on.call, result=ToolResult(ok=True, data={"a": 1})))
        await on.pilot.pause()
        assert on.focused() == "TreeView"
        await on.press("v")
        assert on.focused() == "TextView"


async def test_a_tree_is_operated_by_keys(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show({"a": {"b": [{"c": list(range(60))}]}, "z": 1})
        assert "▾ a: 1 key" in on.text
        await on.press("down", "left")
        assert "▸ a: {b: [1]}" in on.text
        assert " .a " in on.text
        await on.press("asterisk")
        assert "[15] 15" in on.text
        await on.press("right", "right", "right", "right")
        assert ".a.b[0].c[0]" in on.text
        await on.press("left", "enter")
        assert "▸ c: [0, 1, 2, 3" in on.text
        await on.press("end")
        assert " .z " in on.text
        await on.press("home", "space")
        assert "▸ {a: {1}, z: 1}" in on.text


async def test_a_tree_is_operated_by_mouse(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show({"a": {"b": 1}})
        await on.pilot.click(TreeView, offset=(2, 1))
        await on.pilot.pause()
        assert "▸ a: {b: 1}" in on.text
        await on.pilot.click(TreeView, offset=(8, 1), times=2)
        await on.pilot.pause()
        assert "▾ a: 1 key" in on.text


async def test_more_of_a_large_list_is_loaded_on_demand(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show(list(range(1_000)))
        await on.press("end")
        assert "▸ … 800 more" in on.text
        await on.press("enter", "end")
        assert "▸ … 600 more" in on.text


async def test_a_table_shows_rows_and_the_path_of_the_cell(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show([{"id": number, "name": f"name {number}", "tags": ["x"]} for number in range(3_000)])
        assert "[Table]   Tree    Text" in on.text
        assert re.search(r" id +name +tags", on.text)
        await on.press("end", "right")
        assert "name 2999" in on.text
        assert ".[2999].name" in on.text
        await on.press("enter")
        assert "[Tree]" in on.text
        await on.until(lambda: "▾ [2999] 3 keys" in on.text, "the tree is open at the cell")
        assert ".[2999].name" in on.text


async def test_an_object_around_a_list_is_a_table_with_the_other_values_beside_it(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show({"success": True, "count": 63, "results": [{"id": "a"}]})
        assert "[Table]   Tree    Text" in on.text
        assert "success true · count 63 · 1 row · .results[0].id" in on.text


async def test_only_a_list_of_objects_is_offered_and_shown_as_a_table(stage: OpenStage) -> None:
    rows: list[JsonValue] = [{"a": number} for number in range(100)]
    async with stage() as on:

        def is_offered() -> bool:
            return "Show as table" in {one.binding.description for one in on.app.screen.active_bindings.values()}

        await on.show({"list": [{"a": 1}, 5], "x": {"list": [{"b": 1}], "rows": [{"c": 1}]}})
        assert is_offered()
        await on.press("down", "t")
        assert "[Tree]" in on.text
        assert not is_offered(), "a list of objects and numbers isn't a table"
        await on.press("up", "t")
        assert "[Table]" in on.text
        assert ".x.list[0].b" in on.text
        await on.show({"list": [*rows, 5], "x": 1})
        await on.press("t")
        assert on.app.notices == [".list can't be a table: not all of its items are objects."]
        assert "[Tree]" in on.text


async def test_any_list_of_objects_in_the_tree_can_be_shown_as_a_table(stage: OpenStage) -> None:
    async with stage() as on:
        files: list[JsonValue] = [
            {"name": f"file {number}", "url": f"https://example.org/{number}"} for number in range(5)
        ]
        await on.show({"title": "Water", "result": {"of": {}, "tags": [{"tag": "a"}, {"tag": "b"}], "files": files}})
        assert "[Tree]   Text" in on.text
        await on.press("down", "t")
        assert "[Tree]   Text" in on.text, "there is no list here"
        await on.press("up", "t")
        assert ".result.tags[0].tag" in on.text, "the first below"
        await on.press("enter")
        on.pane.query_one(TreeView).go(("result", "files", 1, "url"))
        await on.press("t")
        assert re.search(r" name +url", on.text)
        assert ".result.files[0].name" in on.text
        await on.press("right", "down", "c")
        await on.until(lambda: on.app.clipboard == "https://example.org/1", "the URL is copied")
        await on.press("enter")
        await on.until(lambda: ".result.files[1].url" in on.text, "the tree is at the cell")
        on.pane.query_one(TreeView).go(("result", "tags", 1))
        await on.press("t")
        assert " Tree   [Table]   Text" in on.text
        assert "example.org" not in on.text
        assert ".result.tags[0].tag" in on.text


async def test_columns_scroll_into_view_with_the_cursor(stage: OpenStage) -> None:
    async with stage(width=60) as on:
        await on.show([{f"column{number}": f"value {number}" for number in range(60)}])
        assert "column0" in on.text
        assert "column40" not in on.text
        await on.press(*["right"] * 6)
        assert "value 6" in on.text
        on.pane.query_one(TableView).cursor = (0, 49)
        await on.pilot.pause()
        assert "value 49" in on.text
        assert "… 10 more keys" in on.text
        assert "column0 " in on.text, "the first column stays"
        assert "column1 " not in on.text
        await on.pilot.click(TableView, offset=(14, 1))
        await on.pilot.pause()
        assert re.search(r"\.\[0\]\.column4\d", on.text)


@pytest.mark.promise("TUI-7")
async def test_a_filtered_table_says_so_on_a_narrow_screen_and_esc_shows_all_rows(stage: OpenStage) -> None:
    async with stage(width=48) as on:
        await on.show({"results": [{"name": f"row {number}", "size": number} for number in range(15)], "next": None})
        await on.press("f", *"row 1", "enter")
        await on.until(lambda: "6 of 15" in on.text, "the number of rows is visible")
        await on.press("escape")
        await on.until(lambda: "row 14" in on.text and "row 2" in on.text, "all rows are back")
        assert "6 of 15" not in on.text
        assert on.pane.has_focus_within


@pytest.mark.promise("TUI-7")
async def test_a_table_says_how_many_columns_it_leaves_out_of_its_search(stage: OpenStage) -> None:
    async with stage(width=90) as on:
        await on.show([{f"column{number}": f"value-{number}-" for number in range(2000)}])
        assert "1 row · 50 of 2,000 columns · .[0].column0" in on.text
        await on.press("slash", *"value-1990", "enter")
        await on.until(lambda: "no match in 50 of 2,000 columns: value-1990" in on.text, "the columns are named")
        await on.press("slash", *"value-4-", "enter")
        await on.until(lambda: "1 of 1 in 50 of 2,000 columns: value-4-" in on.text, "a match says it, too")
        await on.press("v", "slash", *"value-1990", "enter")
        await on.until(lambda: "1 of 1: value-1990" in on.text, "the tree has all")


@pytest.mark.promise("TUI-7")
async def test_columns_scroll_with_the_wheel_and_with_a_click_on_their_number(stage: OpenStage) -> None:
    async with stage(width=60) as on:
        await on.show([{f"column{number}": f"value {number}" for number in range(20)}])
        table = on.pane.query_one(TableView)

        async def scroll(event: type[events.MouseEvent], *, shift: bool = False) -> None:
            table.post_message(event(table, 9, 2, 0, 0, 0, shift, False, False))
            await on.pilot.pause()

        await scroll(events.MouseScrollRight)
        assert "column1 " not in on.text
        assert "column2 " in on.text
        assert table.cursor == (0, 0)
        await scroll(events.MouseScrollUp, shift=True)
        assert "column1 " in on.text
        row = on.text.split("\n")[table.region.y]
        await on.pilot.click(offset=(row.index("→ ") + 1, table.region.y))
        await on.until(lambda: "value 5" in on.text and "value 1 " not in on.text, "the next columns are shown")
        for _ in range(30):
            await scroll(events.MouseScrollDown, shift=True)
        assert "value 19" in on.text
        assert "value 18" in on.text, "nothing is behind the last column"
        assert "column0 " in on.text, "the first column stays"
        for width in reversed(range(50, 60)):  # at one of them, the last columns fit exactly
            await on.pilot.resize_terminal(width, 30)
            for _ in range(20):
                table.post_message(events.MouseScrollDown(table, 9, 2, 0, 0, 0, True, False, False))
            await on.pilot.pause()
            row = next(line for line in on.text.split("\n") if "value 19" in line)
            assert len(f"{row.rstrip()}  column16 ") > table.row_width, "no column is hidden that would fit"


@pytest.mark.promise("TUI-7")
async def test_a_click_on_the_number_of_columns_to_the_left_shows_them(stage: OpenStage) -> None:
    async with stage(width=80) as on:
        await on.show([{"name": "a", **{f"column{number}": "value" * 10 for number in range(4)}}])
        table = on.pane.query_one(TableView)
        await on.press(*["right"] * 5)
        await on.until(lambda: "← 3 more columns" in on.text, "the last columns are shown")
        row = on.text.split("\n")[table.region.y]
        await on.pilot.click(offset=(row.index("← 3") + 2, table.region.y))
        await on.until(lambda: "column2" in on.text, "columns to the left are shown")
        assert "▲" not in on.text, "no column is sorted"


async def test_a_table_says_what_it_cuts_and_uses_free_width(stage: OpenStage) -> None:
    async with stage(width=65) as on:
        await on.show([{"n": 7, "path": "/data/" + "x" * 60, "ratio": 2 / 7, "id": 1, "end": "e"}])
        assert "/data/" + "x" * 33 + "… " in on.text
        assert re.search(r" 0\.2857\d*… ", on.text), "the last visible cell is cut"
        assert re.search(r" ratio +→ 2 *\n", on.text)
        await on.press(*["right"] * 4)
        assert re.search(r" ratio .* end ", on.text)
        await on.pilot.resize_terminal(110, 30)
        await on.until(lambda: re.search(r" path .* end *\n", on.text), "all columns are visible")
        assert "/data/" + "x" * 60 in on.text
        assert "0.2857142857142857 " in on.text
        await on.show([{f"column{number}": "value" * 7 for number in range(5)}])
        assert "→ 2 more columns" in on.text


async def test_markdown_is_rendered_piece_by_piece_and_its_links_are_not_followed(stage: OpenStage) -> None:
    async with stage() as on:
        opened: list[str] = []
        on.app.open_url = lambda url, **_: opened.append(url)  # type: ignore[method-assign]  # to see it
        text = "# A title\n\n[a link](https://example.org)\n\n" + "words\n\n" * 300 + "the end\n"
        await on.show(text)
        assert "[Markdown]" in on.text
        assert "# A title" not in on.text
        assert "A title" in on.text
        await on.pilot.click("MarkdownParagraph", offset=(3, 0))
        await on.until(lambda: on.app.notices, "the link is named")
        assert on.app.notices == ["https://example.org"]
        assert opened == []
        before = len(on.pane.query("Markdown"))
        while "the end" not in on.text:
            await on.press("end")
        assert len(on.pane.query("Markdown")) > before


@pytest.mark.promise("TUI-1", "TUI-4")
async def test_the_output_of_a_program_is_shown_as_lines_with_those_of_stderr_marked(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show({"stdout": f"first\n\n{HOSTILE}\n", "stderr": "careful\x1b[2J\n", "exit_code": 3})
        assert "[Output]   Tree    Text" in on.text
        view = on.pane.query_one(TextView)
        lines = view.text.split("\n")
        assert (lines[:2], lines[-1]) == (["first", ""], "! careful␛[2J")
        _assert_harmless(on.text)
        assert [view.row(index)[1] for index in (0, view.row_count - 1)] == [[], [(0, len(lines[-1]), "warning")]]
        await on.press("slash", *"careful", "enter")
        assert "1 of 1" in on.text
        await on.press("c")
        await on.until(lambda: on.app.clipboard == view.text, "it is copied as shown")
        await on.press("v")
        assert "exit_code: 3" in on.text
        await on.show({"stdout": "", "stderr": "", "exit_code": 3})
        assert "[Tree]   Text" in on.text


# Search


async def test_a_text_is_searched_while_typing(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show("\n".join(f"line {number}" for number in range(500)))
        await on.press("slash", *"line 30")
        assert "1 of 11: line 30" in on.text
        await on.press("enter", "n", "n")
        assert "3 of 11" in on.text
        assert "line 301" in on.text
        await on.press("N", "N", "N")
        assert "11 of 11" in on.text
        await on.press("slash", "escape")
        assert "of 11" not in on.text


async def test_a_tree_is_searched_even_where_it_is_closed(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show({"a": [{"deep": {"name": f"n{number}"}} for number in range(900)], "b": "x\n" * 300 + "Needle"})
        await on.press("slash", *"n777", "enter")
        assert "1 of 1: n777" in on.text
        assert 'name: "n777"' in on.text
        await on.press("slash", *"needle", "enter")
        assert "1 of 1: needle" in on.text
        assert "Needle" in on.text
        await on.press("slash", *"nowhere", "enter")
        assert "no match: nowhere" in on.text


async def test_a_table_is_searched_by_cell(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show([{"id": number, "tags": [f"t{number}"]} for number in range(900)])
        await on.press("slash", *"t88", "enter", "n", "n")
        assert "3 of 11: t88" in on.text
        await on.press("p")
        assert on.app.clipboard == ".[881].tags"


async def test_the_matches_follow_the_rows_and_columns_of_a_table(stage: OpenStage) -> None:
    rows: JsonValue = [{"name": f"row {number}", "size": number * 37 % 101} for number in range(40)]

    def cell() -> JsonValue:
        table = on.pane.query_one(TableView)
        return table.table.value(*table.cursor)

    async with stage() as on:
        await on.show(rows)
        await on.press("slash", *"row 1", "enter", "n")
        assert ("2 of 11: row 1" in on.text, cell()) == (True, "row 10")
        await on.press("right", "o")
        assert ("11 matches: row 1" in on.text, cell()) == (True, 0), "sorting shows the first row"
        found = []
        for _ in range(11):
            await on.press("n")
            found.append(cell())
        by_size = sorted(range(40), key=lambda number: number * 37 % 101)
        assert found == [f"row {number}" for number in by_size if str(number).startswith("1")]
        assert "11 of 11: row 1" in on.text
        await on.press("right", "o")
        await on.press("N")
        assert ("11 of 11: row 1" in on.text, cell()) == (True, found[0])
        await on.press("f", *"row 11", "enter")
        await on.until(lambda: "1 match: row 1" in on.text, "the rows that are left are searched")
        await on.press("h", "n")
        assert "no match: row 1" in on.text
        await on.press("H", "escape")
        await on.until(lambda: "11 matches: row 1" in on.text, "all rows are searched")


async def test_a_search_covers_the_lines_that_a_running_tool_prints_later(stage: OpenStage) -> None:
    async with stage() as on:

        def log(first: int, last: int, rest: str = "") -> None:
            lines = (f"line {number} {'needle' if number % 500 == 7 else 'hay'}\n" for number in range(first, last))
            on.pane.feed(Log(call_id=on.call.id, stream="stdout", text="".join(lines) + rest))

        def marked() -> list[str]:
            return [view.row(index)[0].strip() for index in range(view.row_count) if view.overlays(index)]

        on.pane.start(on.call)
        on.pane.feed(Started(call=on.call))
        view = on.pane.call_log.view
        log(0, 400)
        await on.until(lambda: "line 399" in on.text, "the last lines are shown")
        on.pane.focus()
        await on.press("slash", *"needle", "enter")
        assert ("1 of 1: needle" in on.text, marked()) == (True, ["line 7 needle"])
        log(400, 4_000, "another needle")
        await on.until(lambda: "1 of 9: needle" in on.text, "new lines are searched")
        assert "line 7 needle" in on.text, "and don't move the match out of view"
        await on.press("n", "n")
        assert ("3 of 9: needle" in on.text, marked()) == (True, ["line 1007 needle"])
        log(4_000, 6_500)
        await on.until(lambda: "11 matches: needle" in on.text, "the match that was shown is removed with its line")
        for number in (1507, 2007, 2507, 3007):
            await on.press("n")
            assert marked() == [f"line {number} needle"]
        log(6_500, 7_000)
        await on.until(lambda: "4 of 12: needle" in on.text, "more lines are searched")
        log(7_000, 8_000)
        await on.until(lambda: "1 of 11: needle" in on.text, "lines before the match are removed")
        assert marked() == ["line 3007 needle"]
        assert "line 3007 needle" in on.text, "the lines that are read stay in view"


async def test_another_view_is_searched_for_the_same_text_unless_the_search_was_left(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show([{"id": number, "tags": [f"t{number}"]} for number in range(900)])
        await on.press("slash", *"t88", "enter")
        shown = on.pane._views.shown
        await on.press("v")
        assert on.pane._views.shown != shown
        await on.until(lambda: "of 11: t88" in on.text, "the other view is searched")
        await on.press("slash", "escape", "v")
        assert "of 11" not in on.text


# The next call


@pytest.mark.promise("TUI-4")
@pytest.mark.parametrize("kind", ["a text", "a tree"])
async def test_nothing_of_a_call_remains_in_the_view_of_the_next_one(stage: OpenStage, kind: str) -> None:
    lines = [f"line {number}" for number in range(500)]
    before: JsonValue = "\n".join(lines) if kind == "a text" else {"list": [*lines], "end": {"x": [1, 2, 3]}}
    after: JsonValue = "\n".join(lines[::-1]) if kind == "a text" else {"list": [*lines[::-1]], "end": "line 30"}
    async with stage() as on:
        await on.show(after)
        fresh = on.text
    async with stage() as on:
        await on.show(before)
        view = on.app.focused
        await on.press("slash", *"line 30", "enter", "n", "pagedown", "end")
        assert on.text != fresh
        await on.show(after)
        assert on.text == fresh
        assert on.app.focused is view, "the view is the same"
        assert isinstance(view, TextView | TreeView)
        assert view.matching is None
        await on.press("slash", *"line 499", "enter")
        assert "1 of 1: line 499" in on.text


async def test_a_search_that_still_runs_ends_with_its_call(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show("old line\n" * 400_000)
        on.pane.query_one(ResultViews).search_for("old")
        await asyncio.sleep(0)
        await on.show("new line\n" * 3)
        await on.app.workers.wait_for_complete()
        await on.pilot.pause()
        assert "old" not in on.text
        assert on.pane.query_one(TextView).matching is None


async def test_a_cell_that_is_chosen_as_the_next_call_begins_does_not_change_its_views(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show([{"id": 1, "inner": {"a": 1}}])
        table = on.pane.query_one(TableView)
        table.post_message(TableView.CellChosen((0, "inner", "a")))
        on.pane.start(on.call)
        await on.pilot.pause()
        on.pane.feed(Finished(call=on.call, result=ToolResult(ok=True, data={"b": [1]})))
        await on.pilot.pause()
        assert on.pane.query_one(ResultViews).shown == "tree"
        assert "▾ 1 key" in on.text


async def test_a_cell_that_is_chosen_as_the_next_result_appears_moves_no_cursor(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show([{"id": 1, "inner": {"a": 1}}])
        table = on.pane.query_one(TableView)
        table.post_message(TableView.CellChosen((0, "inner", "a")))
        await on.show([{"id": 2}])
        await on.pilot.pause()
        assert on.app.is_running
        assert "2" in on.text


async def test_a_selection_of_text_ends_with_its_call(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show("first call\n" * 9)
        await on.pilot.mouse_down(TextView, offset=(3, 1))
        await on.pilot.hover(TextView, offset=(12, 3))
        await on.pilot.mouse_up(TextView, offset=(12, 3))
        assert "first call" in (on.app.screen.get_selected_text() or "")
        await on.show("second call\n" * 9)
        assert not on.app.screen.get_selected_text()


@pytest.mark.promise("TUI-5")
@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
async def test_selected_text_can_be_read_while_it_is_selected(stage: OpenStage, theme: str) -> None:
    async with stage() as on:
        on.app.theme = theme
        await on.show({"owner": "Ada Lovelace"})
        row = next(row for row, line in enumerate(on.text.split("\n")) if "Ada" in line)
        before = _styles_of(on, row, "Ada")
        await on.pilot.click(offset=(on.text.split("\n")[row].index("Ada"), row), times=2)
        selected = _styles_of(on, row, "Ada")
        assert selected.bgcolor != before.bgcolor
        assert selected.color != selected.bgcolor


def _styles_of(on: Stage, row: int, text: str) -> Style:
    """Return the style of a text in a line of the screen."""
    return next(part.style or Style() for part in compose_strips(on.app)[row] if text in part.text)


@pytest.mark.promise("TUI-5")
async def test_selected_text_has_the_line_breaks_of_the_result_not_those_of_the_view(stage: OpenStage) -> None:
    words = " ".join(f"word{number}" for number in range(60))
    async with stage() as on:
        await on.show(f"{words}\nsecond line")
        rows = on.text.split("\n")
        assert not any(words in row for row in rows), "the line is wrapped"
        last = next(number for number, row in enumerate(rows) if "second line" in row)
        first = next(number for number, row in enumerate(rows) if "word0 " in row)
        await on.pilot.mouse_down(TextView, offset=(1, 0))
        await on.pilot.hover(TextView, offset=(6, last - first))
        await on.pilot.mouse_up(TextView, offset=(6, last - first))
        assert on.app.screen.get_selected_text() == f"{words}\nsecond"


@pytest.mark.promise("TUI-5")
async def test_a_double_click_selects_a_word_even_a_wrapped_one_and_a_triple_click_its_line(stage: OpenStage) -> None:
    address = "https://example.org/" + "/".join(f"part{number}" for number in range(40))
    async with stage() as on:
        await on.show(f"see {address}, or ask\nthe second line")
        selected = on.app.screen.get_selected_text
        await on.pilot.click(TextView, offset=(9, 1), times=2)
        assert selected() == address
        await on.pilot.click(TextView, offset=(9, 1), times=3)
        assert selected() == f"see {address}, or ask"
        await on.pilot.click(TextView, offset=(1 + len("see"), 0), times=2)
        assert not selected(), "between two words"


@pytest.mark.promise("TUI-5")
async def test_a_double_click_selects_a_word_of_a_value_in_a_tree(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show({"a": {"b": 1}, "owner": "Ada Lovelace"})
        row, line = next((row, line) for row, line in enumerate(on.text.split("\n")) if "Ada" in line)
        await on.pilot.click(offset=(line.index("Ada"), row), times=2)
        assert on.app.screen.get_selected_text() == "Ada"


async def test_lines_of_a_text_do_not_take_the_colors_of_json(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show([1, 2])
        await on.press("v")
        view = on.app.focused
        assert isinstance(view, TextView)
        assert view.row(1)[1], "JSON is colored"
        await on.show('"name": 1')
        assert on.app.focused is view
        assert view.row(0) == ('"name": 1', [])


# Copy and save


@pytest.mark.promise("TUI-5")
async def test_value_path_and_complete_result_are_copied(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show({"a": {"text": "x\x1b\ny"}, "b": 1})
        await on.press("down", "down", "c")
        assert on.app.clipboard == "x\x1b\ny"
        await on.press("p")
        assert on.app.clipboard == ".a.text"
        await on.press("up", "c")
        assert json.loads(on.app.clipboard) == {"text": "x\x1b\ny"}
        await on.press("C")
        assert json.loads(on.app.clipboard) == {"a": {"text": "x\x1b\ny"}, "b": 1}
        assert on.app.notices[-1].endswith("to the terminal (OSC 52).")


async def test_an_error_is_copied_with_its_traceback(stage: OpenStage) -> None:
    async with stage() as on:
        error = ToolError(code="execution_error", message="ValueError: no")
        await on.show_result(ToolResult(ok=False, error=error, meta=ResultMeta(traceback="File x\n")))
        await on.press("c")
        assert on.app.clipboard == "execution_error\nValueError: no\n\nFile x\n"


async def test_a_result_is_saved_to_the_entered_file(stage: OpenStage, tmp_path: Path) -> None:
    async with stage(width=200) as on:
        await on.show([{"a": 1}])
        await on.press("s")
        assert f"Save as {tmp_path}/demo.tool-" in on.text
        await on.press(*["ctrl+u"], *"r.csv", "enter")
        assert (tmp_path / "r.csv").read_text().split() == ["a", "1"]
        assert on.app.notices[-1] == "Saved 6 B to r.csv"
        await on.press("s", "ctrl+u", *"r.csv", "enter")
        assert on.app.notices[-1] == "The result was not saved: r.csv already exists"
        await on.press("s", "ctrl+u", *"none/r.csv", "enter")
        assert on.app.notices[-1] == "The result was not saved: the folder none does not exist"


async def test_the_name_of_a_result_that_was_not_saved_can_be_corrected(stage: OpenStage, tmp_path: Path) -> None:
    async with stage(width=200) as on:
        await on.show([{"a": 1}])
        await on.press("s", "ctrl+u", *"none/r.csv", "enter", "s")
        assert on.text.splitlines()[-1].strip() == "Save as none/r.csv"
        await on.press("home", *["delete"] * len("none/"), "enter")
        assert on.app.notices[-1] == "Saved 6 B to r.csv"
        await on.press("s")
        assert f"Save as {tmp_path}/demo.tool-" in on.text
        await on.press("ctrl+u", *"none/r.csv", "enter", "escape")
        await on.show([{"a": 2}])
        await on.press("s")
        assert f"Save as {tmp_path}/demo.tool-" in on.text


async def test_every_view_is_aligned_with_the_lines_above(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show([{"a": 1}])
        begun = []
        for _ in range(3):
            lines = on.text.splitlines()
            begun.append([len(line) - len(line.lstrip()) for line in (lines[1], lines[3])])
            await on.press("v")
        assert begun == [[1, 1]] * 3


async def test_toasts_do_not_cover_the_input_line(stage: OpenStage) -> None:
    async with stage(notices=True) as on:
        await on.show([{"a": 1}])
        for _ in range(4):
            on.app.notify("a notice of some length\n" * 4, timeout=600)
        await on.until(lambda: "a notice" in on.text, "the notices are there")
        await on.press("s")
        await on.until(lambda: "a notice" not in on.text, "the notices are gone")
        await on.press("ctrl+u", *"r.json")
        assert on.text.splitlines()[-1].strip() == "Save as r.json"


@pytest.mark.promise("EXE-6")
async def test_a_truncated_result_shows_how_much_is_missing_and_its_file(stage: OpenStage, tmp_path: Path) -> None:
    whole = tmp_path / "whole.json"
    whole.write_text("[1,2,3]")
    cut = Truncation(shown_bytes=1_000_000, total_bytes=60_000_000, file=str(whole))
    async with stage(width=200) as on:
        await on.show([1], ResultMeta(size=60_000_000, truncated=cut))
        assert "60 MB · truncated" in on.text
        await on.until(lambda: f"from the file as you scroll · f3 opens, s saves all · {whole}" in on.text, "the note")
        await on.press("s", "ctrl+u", *"r.json", "enter")
        assert (tmp_path / "r.json").read_text() == "[1,2,3]"


async def test_a_terminal_without_suspend_support_is_reported(stage: OpenStage) -> None:
    async with stage() as on:
        await on.show({"a": 1})
        await on.press("f3")
        assert on.app.notices == ["The pager can't be opened because this terminal does not support suspending."]


# Untrusted and large results


@pytest.mark.promise("TUI-4")
@SIZES
async def test_untrusted_text_cannot_control_the_screen(stage: OpenStage, width: int, height: int) -> None:
    async with stage(width, height) as on:
        call = ToolCall(name=f"x.{HOSTILE}", source="mcp")
        on.pane.start(call)
        on.pane.feed(ApprovalRequested(call=call, reason=HOSTILE))
        on.pane.feed(Started(call=call, worker=HOSTILE))
        on.pane.feed(Log(call_id=call.id, stream="stdout", text=HOSTILE))
        on.pane.feed(Progress(call_id=call.id, done=1, total=0, message=HOSTILE))
        await on.until(lambda: "[bold red]x" in on.text, "the running call is shown")
        _assert_harmless(on.text)
        error = ToolError(
            code="execution_error", message=HOSTILE, detail=HOSTILE, faults=(Fault(path=HOSTILE, message=HOSTILE),)
        )
        cut = Truncation(shown_bytes=1, total_bytes=2, file=HOSTILE)
        data: JsonValue = [{HOSTILE: HOSTILE, "n": [HOSTILE, {HOSTILE: "\ud800"}]}]
        meta = ResultMeta(traceback=HOSTILE, worker=HOSTILE, truncated=cut)
        for result in (
            ToolResult(ok=False, error=error, data=data, meta=meta),
            ToolResult(ok=True, data=f"# {HOSTILE}\n\n- {HOSTILE}\n- `{HOSTILE}`\n"),
        ):
            on.pane.show(call, result)
            await on.pilot.pause()
            on.pane.focus()
            for _ in on.pane._views.offered:
                await on.press("asterisk", "t", "slash", *"x", "enter", "down")
                _assert_harmless(on.text)
                await on.press("v")
        assert on.app.is_running


def _assert_harmless(screen: str) -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", screen)


@SIZES
async def test_every_view_works_at_every_size(stage: OpenStage, width: int, height: int) -> None:
    values: list[JsonValue] = [None, "日本語 word " * 200, {}, [[[]]], ANSWER]
    async with stage(width, height) as on:
        for value in values:
            await on.show(value)
            for _ in on.pane._views.offered:
                await on.press("end", "pageup", "right", "enter", "v")
            assert "✓ ok" in on.text
        await on.pilot.resize_terminal(height * 2, width // 2)
        await on.pilot.pause()
        await on.press("v", "end")
        assert on.app.is_running


async def test_only_the_visible_part_of_a_megabyte_is_rendered(
    stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    original = TextView.row

    def row(view: TextView, index: int) -> object:
        drawn.append(index)
        return original(view, index)

    monkeypatch.setattr(TextView, "row", row)
    async with stage() as on:
        await on.show("\n".join(f"line {number} {'x' * 60}" for number in range(15_000)))
        await on.press("end", "pageup", "home")
        assert len(set(drawn)) < 200
        assert len(on.pane.query("*")) < 30


async def test_wrapped_text_keeps_its_position_when_the_width_changes(stage: OpenStage) -> None:
    async with stage(width=100) as on:
        await on.show("\n".join(f"{number:04} " + "word " * 30 for number in range(500)))
        await on.press("slash", *"0300", "enter")
        await on.pilot.resize_terminal(60, 24)
        await on.pilot.pause()
        assert "0300 word" in on.text


async def test_only_applicable_commands_are_enabled(stage: OpenStage) -> None:
    async with stage() as on:

        def offered() -> set[str]:
            return {binding.binding.id or "" for binding in on.app.screen.active_bindings.values() if binding.enabled}

        await on.show(1)
        assert "result.copy" in offered()
        assert not {"result.next_view", "result.copy_path", "result.next_match"} & offered()
        await on.show({"a": 1})
        assert {"result.next_view", "result.copy_path"} <= offered()
        await on.press("slash", *"a", "enter")
        assert "result.next_match" in offered()


def test_the_ids_of_its_commands_are_unique() -> None:
    ids = [command.id for command in ResultPane.ACTIONS]
    assert len(ids) == len(set(ids))
    assert all(identifier.startswith("result.") for identifier in ids)


@pytest.mark.promise("TUI-7")
async def test_a_click_on_a_heading_sorts_the_table_and_the_path_stays_that_of_the_row(stage: OpenStage) -> None:
    rows: JsonValue = [{"name": "b", "size": 10}, {"name": "a", "size": 9}, {"name": "c"}, {"name": "d", "size": 100}]
    async with stage() as on:
        await on.show(rows)
        table = on.pane.query_one(TableView)

        def names() -> str:
            return "".join(table.row(index)[0].split()[0] for index in range(4))

        assert names() == "bacd"
        for order, sign in (("abdc", "▲"), ("dbac", "▼"), ("bacd", "size")):
            await on.pilot.click(TableView, offset=(9, 0))
            await on.app.workers.wait_for_complete()
            await on.pilot.pause()
            assert (names(), sign in table.header()) == (order, True)
        await on.pilot.click(TableView, offset=(9, 0))
        await on.app.workers.wait_for_complete()
        assert table.path == (1, "size"), "of the first row in the sorted table"
        await on.press("left", "o")
        assert names() == "abcd"


async def test_the_largest_values_are_whole_after_sorting_or_filtering_if_the_pane_is_wide_enough(
    stage: OpenStage,
) -> None:
    sizes = {150: 12_345_678, 151: 23_456_789, 152: 8}
    rows: JsonValue = [{"name": f"f{index}", "size": sizes.get(index, 1)} for index in range(300)]
    async with stage() as on:
        await on.show(rows)
        table = on.pane.query_one(TableView)
        await on.press("right", "o", "o")
        await on.app.workers.wait_for_complete()
        await on.pilot.pause()
        assert [table.row(index)[0].split() for index in (0, 1, 2)] == [
            ["f151", "23456789"],
            ["f150", "12345678"],
            ["f152", "8"],
        ]
        await on.press("o", "f", *"1234")
        await on.until(lambda: table.row_count == 1, "the rows are filtered")
        assert table.row(0)[0].split() == ["f150", "12345678"]


async def test_the_failing_line_of_a_pack_is_shown_with_what_to_do(stage: OpenStage) -> None:
    traceback = 'Traceback (most recent call last):\n  File "/packs/room.py", line 12, in book\n    x()\nNameError: x\n'
    error = ToolError(code="execution_error", message="NameError: x")
    async with stage() as on:
        await on.show_result(ToolResult(ok=False, error=error, meta=ResultMeta(traceback=traceback)))
        assert "Failed at room.py:12, in book." in " ".join(on.text.split())
        assert "press o in this pane" in " ".join(on.text.split())


async def test_the_end_of_a_long_key_is_shown_in_the_status_line(stage: OpenStage) -> None:
    async with stage(width=60) as on:
        await on.show([{"k" * 300_000 + "end": 1, "b": 2}])
        await on.until(lambda: "kend" in on.text, "the path of the cell is shown")


def test_cells_are_found_in_a_long_sorted_table() -> None:
    table = Table.of([{"name": number, "size": 1} for number in range(200_000)])
    assert table is not None
    view = TableView(table.arranged("name", descending=True))
    paths: list[tuple[str | int, ...]] = [(number, "size") for number in range(0, 200_000, 2)]
    cells = view.cells_of([*paths, (0, "size", 1), (200_000, "size"), (1, "other"), (1,)])
    assert cells == [(199_999 - number, 1) for number in range(0, 200_000, 2)]
