"""Dialogs on top of each other: repeated keys and clicks, and their number."""

from __future__ import annotations

import pytest
from stage import GivenRuntime, Stage, on_stage
from textual import events

from pegboard.models import Elicitation, Problem, ToolResult
from pegboard.tui.dialogs.ask_name import AskName
from pegboard.tui.dialogs.problems import ProblemsScreen
from pegboard.tui.dialogs.server_questions import ElicitationScreen
from pegboard.tui.result.text import TextView

BROKEN = Problem(message="It can't be parsed: invalid syntax.", fix="Fix the syntax.", file="/packs/broken.py", line=3)


def opened(stage: Stage) -> list[str]:
    """Return the classes of the screens above the page."""
    return [type(screen).__name__ for screen in stage.app.screen_stack[1:]]


@pytest.mark.parametrize(("key", "dialog"), [("ctrl+g", ProblemsScreen), ("ctrl+s", AskName)])
async def test_a_key_that_repeats_while_its_dialog_opens_opens_it_once(
    given: GivenRuntime, key: str, dialog: type
) -> None:
    given.wrong = [BROKEN]
    async with on_stage(given) as stage:
        await stage.open("list_dir")
        for _ in range(4):
            stage.app.post_message(events.Key(key, None))
        await stage.until(lambda: isinstance(stage.app.screen, dialog), "the dialog is open")
        await stage.pilot.pause()
        await stage.until(lambda: opened(stage) == [dialog.__name__], "it is open once")
        await stage.press("escape")
        await stage.until(lambda: not opened(stage), "one key closes it")


async def test_a_repeated_click_on_the_problems_lists_them_once(given: GivenRuntime) -> None:
    given.wrong = [BROKEN]
    async with on_stage(given) as stage:
        column = stage.lines[0].index("1 problem")
        await stage.pilot.click(offset=(column, 0), times=3)
        await stage.until(lambda: opened(stage) == ["ProblemsScreen"], "they are listed once")


async def test_a_drag_ends_when_a_dialog_opens(given: GivenRuntime) -> None:
    given.answer = lambda call: ToolResult(ok=True, data="first line\nsecond line\nthird line")
    async with on_stage(given) as stage:
        await stage.open("list_dir")
        await stage.press("ctrl+r")
        await stage.until_seen("third line")
        await stage.pilot.pause()
        x, y = next(view for view in stage.result.query(TextView) if view.region).content_region.offset
        top = stage.result.region.y

        async def drag(start: tuple[int, int], end: tuple[int, int]) -> None:
            await stage.pilot.mouse_down(offset=start)
            await stage.pilot.hover(offset=end)
            await stage.press("f1")
            await stage.pilot.mouse_up(offset=end)
            await stage.press("escape")
            await stage.until(lambda: not opened(stage), "the help is closed")
            await stage.pilot.hover(offset=(x + 6, y + 2))
            await stage.pilot.pause()

        await drag((x, y), (x + 5, y + 1))
        assert stage.app.screen.get_selected_text() == "first line\nsecond"
        await drag((x, top), (x, top + 1))
        assert stage.result.region.y == top + 1


@pytest.mark.promise("MCP-5")
async def test_a_question_without_fields_says_so_and_is_shown_above_one_that_looks_the_same(
    given: GivenRuntime,
) -> None:
    question = Elicitation(server="peer", message="Who are you?", json_schema={"type": "object", "properties": {}})
    answers: list[object] = []
    async with on_stage(given) as stage:
        for _ in range(2):
            stage.app.push_screen(ElicitationScreen(question), answers.append)
        await stage.until(lambda: opened(stage) == ["ElicitationScreen"] * 2, "both are open")
        await stage.until_seen("Nothing to fill in.")
        assert answers == []


async def test_the_number_of_dialogs_on_top_of_each_other_is_limited(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        for number in range(20):
            stage.app.push_screen(AskName(f"Name {number}"))
            await stage.pilot.pause()
        await stage.until_seen("Close some dialogs first.")
        assert len(opened(stage)) < 15
        for _ in range(15):
            await stage.press("escape")
        await stage.until(lambda: not opened(stage), "all are closed")
