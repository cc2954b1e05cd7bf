"""Snapshots of the Health page and of a blocked tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from stage import READ_ONLY, TOOLS, GivenRuntime, Stage, as_runtime, tool
from test_health import BROKEN, RG, needing
from textual.pilot import Pilot

from pegboard.models import Requirement
from pegboard.tui.app import PegboardApp
from pegboard.tui.result import ResultPane

pytestmark = pytest.mark.slow

Compare = Callable[..., bool]
Steps = Callable[[Stage], Awaitable[None]]
SIZES = pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])


@pytest.fixture
def given(tmp_path: Path) -> GivenRuntime:
    """Return tools with requirements of every kind in every state, and a pack that can't be read."""
    many = tuple(
        needing(tool(f"net.get_{number}", "Gets."), RG, Requirement(kind="lib", name="httpx")) for number in range(9)
    )
    runtime = GivenRuntime(
        tmp_path,
        tools=[
            *TOOLS,
            *many,
            needing(
                tool("web.search", "Searches.", READ_ONLY, words={"type": "string"}),
                RG,
                Requirement(kind="secret", name="SEARCH_KEY", install="Ask for one at example.org."),
                Requirement(kind="secret", name="EXTRA_KEY", optional=True),
                Requirement(kind="cli", name="git"),
            ),
            needing(
                tool("web.table", "Makes a table."), Requirement(kind="lib", name="pandas_with_a_long_name.core.frame")
            ),
            needing(
                tool("web.old"), Requirement(kind="lib", name="pandas", min_version="2", install="pip install pandas")
            ),
        ],
        problems=[BROKEN],
    )
    runtime.there = {"git": "2.39.5", "pandas": "1.5.3", "httpx": "0.28.1", "SEARCH_KEY": "environment"}
    return runtime


def after(steps: Steps) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Return a function that takes these steps once the app is ready."""

    async def run(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, PegboardApp)
        stage = Stage(pilot.app, pilot)
        await stage.until(lambda: stage.screen.query(ResultPane) and stage.screen.settled, "the app is ready")
        await steps(stage)

    return run


async def everything(stage: Stage) -> None:
    """Show the requirements, one of them selected."""
    await stage.press("f8")
    await stage.until_seen("4 of 7 not met")
    await stage.press("down", "down")
    await stage.until_seen("apt install ripgrep")


async def by_tool(stage: Stage) -> None:
    """Show the tools."""
    await stage.press("f8")
    await stage.until_seen("4 of 7 not met")
    await stage.press("ctrl+t")
    await stage.until_seen("Requirements by tool")


async def a_broken_pack(stage: Stage) -> None:
    """Filter and select a pack."""
    await stage.press("f8")
    await stage.until_seen("4 of 7 not met")
    await stage.type("broken")
    await stage.until_seen("/packs/broken.py:3")


async def a_blocked_tool(stage: Stage) -> None:
    """Show the form of a blocked tool."""
    await stage.until_seen("5 problems")
    await stage.open("web.search")
    await stage.until_seen("`rg` is not there.")


async def the_question(stage: Stage) -> None:
    """Show the confirmation before it runs."""
    await a_blocked_tool(stage)
    await stage.type("x")
    await stage.press("ctrl+r")
    await stage.until_seen("Run web.search anyway?")


@SIZES
@pytest.mark.parametrize("steps", [everything, by_tool, a_broken_pack, a_blocked_tool, the_question])
def test_what_tools_need(snap_compare: Compare, given: GivenRuntime, steps: Steps, size: tuple[int, int]) -> None:
    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=size, run_before=after(steps))


def test_a_first_look_that_is_under_way(snap_compare: Compare, given: GivenRuntime) -> None:
    given.slow = {"rg", "httpx"}

    async def steps(stage: Stage) -> None:
        await stage.press("f8")
        await stage.until_seen("checking… 5 of 7")

    assert snap_compare(PegboardApp(as_runtime(given)), terminal_size=(80, 24), run_before=after(steps))
