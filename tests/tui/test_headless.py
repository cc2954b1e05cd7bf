"""Apps without a terminal: what tests rely on although invisible frames are skipped and waits are short."""

from __future__ import annotations

import asyncio
from time import sleep

import pytest
from stage import GivenRuntime, on_stage
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static


class Broken(Widget):
    """A widget that fails when it is drawn."""

    def render_line(self, y: int) -> Strip:
        """Fail."""
        raise ArithmeticError(y)


async def test_a_widget_that_cannot_be_drawn_fails_a_test_that_never_reads_the_screen(given: GivenRuntime) -> None:
    async def mount() -> None:
        async with on_stage(given) as stage:
            await stage.app.screen.mount(Broken())
            await stage.pilot.pause()

    with pytest.raises(ArithmeticError):
        await mount()


async def test_a_pause_waits_for_messages_layout_and_a_working_thread(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        line = Static("before")

        async def change() -> None:
            await asyncio.to_thread(sleep, 0.01)
            line.update("after")

        await stage.app.screen.mount(line)
        stage.app.call_later(stage.app.run_worker, change())
        await stage.pilot.pause()
        assert "after" in stage.text
        assert line.size.width > 0
