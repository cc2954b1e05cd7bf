"""Pasting a call into the app."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import GivenRuntime, Stage, on_stage, tool
from textual import events

from pegboard.models import JsonObject
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.form.editors import JsonBox, TextBox


async def paste(stage: Stage, text: str) -> None:
    """Paste as a terminal does."""
    stage.app.post_message(events.Paste(text))
    await stage.pilot.pause()


CALLS = [
    '{"path": "p.txt", "max_bytes": 7}',
    "pegboard tools invoke fs.read_file --arg path=p.txt --arg max_bytes=7",
    '{"name": "fs.read_file", "arguments": {"path": "p.txt", "max_bytes": 7}}',
    '{"tool": "fs.read_file", "args": {"path": "p.txt", "max_bytes": 7}}',
    (
        '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", '
        '"params": {"name": "fs.read_file", "arguments": {"path": "p.txt", "max_bytes": 7}}}'
    ),
]
MEANT: JsonObject = {"path": "p.txt", "max_bytes": 7}


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("text", CALLS)
async def test_a_call_pasted_into_the_list_fills_the_form_of_the_selected_tool(given: GivenRuntime, text: str) -> None:
    async with on_stage(given) as stage:
        await stage.type("read_f")
        await stage.until(lambda: stage.screen.settled, "its form is shown")
        await paste(stage, text)
        await stage.until(lambda: stage.form.form and stage.form.form.draft() == MEANT, "the form is filled")
        assert stage.list.sought == "read_f"


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("text", CALLS)
async def test_a_call_pasted_into_a_text_field_stays_text_and_can_be_loaded(given: GivenRuntime, text: str) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("x")
        await paste(stage, text)
        await stage.until_seen("You pasted a call to fs.read_file. Press ctrl+f")
        assert stage.form.submit() == {"path": "x" + text}
        await stage.press("ctrl+f")
        await stage.until(lambda: stage.form.form and stage.form.form.draft() == MEANT, "the form is filled")


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("count", [3, 10_000], ids=["short", "very long"])
async def test_pasted_lines_stay_lines_though_terminals_end_them_with_a_carriage_return(
    tmp_path: Path, count: int
) -> None:
    pasted = "".join(f"# line {number}\r" for number in range(count)) + "\r\nend"
    text = pasted.replace("\r\n", "\n").replace("\r", "\n")
    pasted_on = tool("p.t", "", None, line={"type": "string"}, box={"type": "string", "format": "textarea"})
    async with on_stage(GivenRuntime(tmp_path, tools=[pasted_on])) as stage:
        await stage.open("p.t")
        await paste(stage, pasted)
        await stage.until(lambda: isinstance(stage.app.focused, TextBox), "the line is a box")
        await stage.press("tab")
        await paste(stage, pasted)
        both: JsonObject = {"line": text, "box": text}
        await stage.until(lambda: stage.form.form and stage.form.form.draft() == both, "it is pasted")


@pytest.mark.promise("TUI-2", "TUI-3")
async def test_a_long_line_and_another_can_be_pasted_into_a_field_for_a_number(given: GivenRuntime) -> None:
    pasted = f"{'7' * 200_000}\n8"
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.press("tab")
        await paste(stage, pasted)
        await stage.until(lambda: stage.form.form and stage.form.form.draft() == {"max_bytes": pasted}, "it is pasted")
        await stage.press("9")
        assert "⏎89" in stage.text


@pytest.mark.promise("TUI-3")
async def test_the_cursor_of_a_line_is_where_its_text_ends_though_tabs_and_line_breaks_are_shown_as_signs(
    given: GivenRuntime,
) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.press("tab")
        await paste(stage, "1\t2\n3")
        await stage.until_seen("1␉2⏎3")
        row = next(number for number, line in enumerate(stage.lines) if "1␉2⏎3" in line)
        assert stage.app.cursor_position == (stage.lines[row].index("⏎3") + 3, row)


@pytest.mark.promise("TUI-3")
async def test_undo_restores_the_form_exactly(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("mine")
        await stage.press("tab", *"12x")
        await paste(stage, CALLS[0])
        await stage.until_seen("ctrl+z")
        await stage.until(lambda: stage.form.form and stage.form.form.draft() == MEANT, "the form is filled")
        before = {"path": "mine", "max_bytes": "12x"}
        for meant in (before, MEANT, before):
            await stage.until(lambda: stage.form.has_focus_within, "the form has the focus")
            await stage.press("ctrl+z")
            assert stage.form.form
            assert stage.form.form.draft() == meant
        await stage.until_seen("12x")


async def test_a_reset_can_be_undone(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("mine")
        stage.form.action_reset()
        await stage.until(lambda: "mine" not in stage.text, "the form is empty")
        await stage.press("ctrl+z")
        await stage.until_seen("mine")
        assert stage.form.submit() == {"path": "mine"}


async def test_the_offer_ends_with_the_next_key(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await paste(stage, CALLS[0])
        await stage.until_seen("You pasted a call to fs.read_file. Press ctrl+f")
        await stage.press("y", "ctrl+f")
        assert stage.form.submit() == {"path": CALLS[0] + "y"}


@pytest.mark.promise("TUI-3")
async def test_a_call_pasted_into_a_number_fills_the_form_and_other_text_is_typed(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.press("tab")
        await paste(stage, CALLS[0])
        await stage.until(lambda: stage.form.form and stage.form.form.draft() == MEANT, "the form is filled")
        await stage.press("ctrl+u")
        stage.form.load({"path": "x"})
        await stage.press("tab")
        await paste(stage, '{"nonsense": ')
        await stage.until(lambda: stage.form.form and stage.form.form.draft().get("max_bytes"), "it is typed")


@pytest.mark.promise("TUI-3")
async def test_a_pasted_call_of_another_tool_opens_it_after_confirmation(given: GivenRuntime) -> None:
    line = "pegboard tools invoke fs.list_dir --arg path=src --arg recursive=true"
    async with on_stage(given) as stage:
        await stage.type("read_f")
        await stage.until(lambda: stage.screen.settled, "its form is shown")
        for answer in ("n", "ctrl+y"):
            await paste(stage, line)
            await stage.until(lambda: isinstance(stage.app.screen, Confirm), "a question is asked")
            await stage.until_seen("Go to fs.list_dir?")
            await stage.press(answer)
            await stage.until(lambda: stage.app.screen is stage.screen, "it is answered")
            assert stage.form.form
            if answer == "n":
                assert stage.form.form.draft() == {}
        await stage.until(lambda: stage.marked == "fs.list_dir", "it is marked")
        meant = {"path": "src", "recursive": True}
        await stage.until(lambda: stage.form.form and stage.form.form.draft() == meant, "its form is filled")


async def test_a_command_line_pasted_into_the_json_text_fills_the_form(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.press("ctrl+t")
        await stage.until(lambda: isinstance(stage.app.focused, JsonBox), "the JSON has the focus")
        await paste(stage, CALLS[1])
        await stage.until(lambda: stage.form.form and stage.form.form.draft() == MEANT, "the form is filled")
        await stage.until_seen('"max_bytes": 7')


async def test_a_call_pasted_onto_choices_fills_the_form(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path, tools=[tool("p.t", x={"enum": ["a", "b"]}, y={"type": "string"})])
    async with on_stage(given) as stage:
        await stage.open("p.t")
        await paste(stage, '{"x": "b", "y": "z"}')
        await stage.until(lambda: stage.form.submit() == {"x": "b", "y": "z"}, "the form is filled")


async def test_text_that_only_looks_like_a_call_is_reported(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.type("read_f")
        await stage.until(lambda: stage.screen.settled, "its form is shown")
        await paste(stage, "pegboard tools invoke 'unended")
        await stage.until_seen("The pasted text is not a tool call.")


async def test_other_text_still_filters_the_list(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await paste(stage, "read")
        await stage.until(lambda: stage.list.sought == "read", "it filters")


@pytest.mark.promise("TUI-4")
async def test_a_hostile_tool_name_is_shown_as_text_in_the_confirmation(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path, tools=[tool("a.b", x={"type": "string"}), tool("p.[red]y", x={"type": "string"})])
    async with on_stage(given) as stage:
        await paste(stage, '{"name": "p.[red]y", "arguments": {"x": "1"}}')
        await stage.until_seen("Go to p.[red]y?")
