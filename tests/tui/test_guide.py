"""The guide in the app: opened from help or the palette, searched by typing."""

from __future__ import annotations

import pytest
from stage import GivenRuntime, Stage, on_stage
from textual.widgets import Input, Markdown, OptionList

from pegboard.tui.dialogs.guide import GuideScreen


async def _opened(stage: Stage) -> GuideScreen:
    await stage.until(lambda: isinstance(stage.app.screen, GuideScreen), "the guide is shown")
    screen = stage.app.screen
    assert isinstance(screen, GuideScreen)
    await stage.until(lambda: _shown(screen).startswith("# Tools and forms"), "the first page is shown")
    return screen


def _shown(screen: GuideScreen) -> str:
    return "".join(markdown.source for markdown in screen.query(Markdown))


@pytest.mark.promise("DOC-1")
async def test_help_opens_the_guide_whose_pages_can_be_searched(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("f1")
        await stage.until_seen("f2 guide")
        await stage.press("f2")
        screen = await _opened(stage)
        options = screen.query_one(OptionList)
        everything = options.option_count
        assert everything > 20
        await stage.press(*"exit", "space", *"code")
        await stage.until(lambda: 0 < options.option_count < everything, "fewer sections are listed")
        await stage.press("down")
        await stage.until(lambda: "exit" in _shown(screen).casefold(), "a section that matches is shown")
        screen.query_one(Input).value = "add server"
        await stage.until(lambda: _shown(screen).startswith("## Add servers"), "the section with this title is first")
        screen.query_one(Input).value = "nowhere to be found"
        await stage.until(lambda: options.option_count == 1 and not _shown(screen), "no section is shown")
        await stage.press("escape")
        await stage.until(lambda: not isinstance(stage.app.screen, GuideScreen), "the guide is closed")


@pytest.mark.promise("DOC-1")
async def test_a_link_in_the_guide_opens_its_page(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        stage.app.action_guide()
        screen = await _opened(stage)
        markdown = screen.query_one(Markdown)
        markdown.post_message(Markdown.LinkClicked(markdown, "results.md"))
        await stage.until(lambda: _shown(screen).startswith("# Results"), "the page is shown")


@pytest.mark.promise("TUI-7")
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (40, 14)])
async def test_list_and_text_fit_the_screen(given: GivenRuntime, size: tuple[int, int]) -> None:
    async with on_stage(given, size=size) as stage:
        stage.app.action_guide()
        screen = await _opened(stage)
        await stage.until_seen("that Pegboard found")
        for widget in (screen.query_one(OptionList), screen.query_one("#text")):
            assert widget.region.width > 15
            assert widget.region.height >= 3
            assert screen.region.contains_region(widget.region)
