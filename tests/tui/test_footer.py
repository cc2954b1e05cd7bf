"""The footer."""

from __future__ import annotations

import pytest
from stage import GivenRuntime, Stage, on_stage

from pegboard.tui.form.editors import JsonBox
from pegboard.tui.widgets.keys_line import KeysLine


def line(stage: Stage) -> str:
    """Return the text of the footer."""
    return str(stage.screen.query_one(KeysLine).render())


@pytest.mark.promise("TUI-7")
async def test_the_footer_shows_the_keys_of_the_focused_widget(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.until(lambda: "f1 Help" in line(stage), "it is there")
        before = line(stage)
        await stage.press("enter")
        await stage.until(lambda: line(stage) != before, "it is there")
        assert "^r Run" in line(stage)
        assert "f1 Help" in line(stage)


@pytest.mark.promise("TUI-7")
async def test_the_first_key_of_a_command_is_shown_even_where_another_of_its_keys_is_a_text_editors(
    given: GivenRuntime,
) -> None:
    async with on_stage(given) as stage:
        await stage.press("enter", "ctrl+t")
        await stage.until(lambda: isinstance(stage.app.focused, JsonBox), "the JSON is edited")
        await stage.until(lambda: line(stage).lstrip().startswith("^r Run"), "it is there")


@pytest.mark.promise("TUI-7")
async def test_a_click_on_a_key_simulates_the_key(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.until(lambda: "Help" in line(stage), "it is there")
        await stage.pilot.click(KeysLine, offset=(line(stage).index("Help"), 0))
        await stage.until(lambda: type(stage.app.screen).__name__ == "HelpScreen", "it is there")


async def test_only_whole_keys_are_shown(given: GivenRuntime) -> None:
    async with on_stage(given, size=(80, 24)) as stage:
        await stage.press("enter")
        await stage.until(lambda: "Help" in line(stage), "it is there")
        keys = stage.screen.query_one(KeysLine)
        assert keys.render().cell_length <= keys.size.width + 1
        assert line(stage).rstrip().endswith("f1 Help  ^p Commands  ^q Quit")
        assert line(stage).lstrip().startswith("^r Run")


async def test_a_key_under_the_mouse_shows_its_help_line(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.until(lambda: "Help" in line(stage), "it is there")
        keys = stage.screen.query_one(KeysLine)
        await stage.pilot.hover(KeysLine, offset=(line(stage).index("Help"), 0))
        await stage.until(lambda: keys.tooltip == "Show the keys of the focused pane.", "it is there")
