"""The dialog of the tools that the model sees."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from stage import TOOLS, GivenRuntime, Stage, on_stage, tool

from pegboard.models import ToolSpec
from pegboard.tui.chat.offered_tools import OfferedScreen
from pegboard.tui.widgets.pick_list import PickList

WEIGHTS = {spec.name: 400 for spec in TOOLS}
Closed = list[frozenset[str] | None]


async def open_list(stage: Stage, without: Sequence[str] = (), specs: Sequence[ToolSpec] = TOOLS) -> Closed:
    """Open the dialog and append its result to a list."""
    closed: Closed = []
    await stage.app.push_screen(OfferedScreen(specs, frozenset(without), WEIGHTS), closed.append)
    await stage.until(lambda: stage.app.screen.query_one(PickList).row_count, "the tools are listed")
    return closed


def shown(stage: Stage) -> list[str]:
    """Return the lines of the list with single spaces."""
    tools = stage.app.screen.query_one(PickList)
    lines = [" ".join(tools.render_line(y).text.split()) for y in range(tools.size.height)]
    return [line for line in lines if line]


async def has_closed(stage: Stage, closed: Closed) -> None:
    await stage.until(lambda: closed, "the list is closed")


@pytest.mark.promise("TUI-7")
async def test_tools_and_packs_are_selected_and_their_tokens_are_counted(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        closed = await open_list(stage, ["fs.remove"])
        await stage.until_seen("4 of 5 tools, 1.6k tokens")
        assert shown(stage) == [
            "◪ fs 2 of 3 800",
            "☑ fs.list_dir 400",
            "☑ fs.read_file 400",
            "☐ fs.remove 400",
            "☑ shell 1 of 1 400",
            "☑ shell.pwd 400",
            "☑ time 1 of 1 400",
            "☑ time.now 400",
        ]
        await stage.press("down", "space")
        assert shown(stage)[:2] == ["◪ fs 1 of 3 400", "☐ fs.list_dir 400"]
        await stage.until_seen("Lists a folder, file by file.")
        await stage.press("up", "enter")
        await stage.until_seen("5 of 5 tools, 2.0k tokens")
        assert shown(stage)[0] == "☑ fs 3 of 3 1.2k"
        await stage.press("space")
        await stage.until_seen("2 of 5 tools, 800 tokens")
        await stage.press("escape")
        await has_closed(stage, closed)
    assert closed == [frozenset({"fs.list_dir", "fs.read_file", "fs.remove"})]


async def test_all_matching_tools_are_selected_or_none(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        closed = await open_list(stage, ["time.now"])
        await stage.type("re")
        assert shown(stage) == ["☑ fs.read_file 400", "☑ fs.remove 400"]
        await stage.until_seen("2 of 5")
        await stage.press("ctrl+a")
        await stage.until_seen("2 of 5 tools")
        await stage.press("ctrl+u", "ctrl+a")
        await stage.until_seen("5 of 5 tools")
        await stage.press("ctrl+a")
        await stage.until_seen("0 of 5 tools, 0 tokens")
        await stage.press("ctrl+s")
        await has_closed(stage, closed)
    assert closed == [frozenset(WEIGHTS)]


async def test_unknown_names_are_kept_and_no_change_returns_nothing(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        closed = await open_list(stage, ["gone.tool"])
        await stage.press("space", "space", "escape")
        await has_closed(stage, closed)
        assert closed == [None]
        closed = await open_list(stage, ["gone.tool"])
        await stage.press("end", "space", "escape")
        await has_closed(stage, closed)
    assert closed == [frozenset({"gone.tool", "time.now"})]


@pytest.mark.promise("TUI-7")
async def test_tools_are_selected_by_mouse(given: GivenRuntime) -> None:
    async with on_stage(given, size=(80, 24)) as stage:
        closed = await open_list(stage)
        await stage.pilot.click(PickList, offset=(5, 3))
        await stage.until(lambda: "☐ fs.remove 400" in shown(stage), "it is switched off")
        await stage.press("escape")
        await has_closed(stage, closed)
    assert closed == [frozenset({"fs.remove"})]


@pytest.mark.slow
@pytest.mark.promise("TUI-2", "TUI-4")
async def test_ten_thousand_tools_with_hostile_names_do_not_delay_keys(given: GivenRuntime) -> None:
    many = [tool(f"pack{number % 100}.tool_{number}") for number in range(10_000)]
    async with on_stage(given) as stage:
        closed = await open_list(stage, specs=[*many, tool("p.x[red]y", "[bold]evil\x1b[2J")])
        await stage.press("space", "ctrl+a", "ctrl+a", *"x[red]y")
        await stage.until_seen("[bold]evil␛[2J")
        assert "☐ p.x[red]y" in shown(stage)
        await stage.press("enter", "escape")
        await has_closed(stage, closed)
    assert closed == [frozenset(spec.name for spec in many)]
