"""The mouse is over a widget that was just removed, before the next layout."""

from __future__ import annotations

import pytest
from stage import GivenRuntime, on_stage
from textual import events
from textual.screen import Screen

from pegboard.tui.form.lines import Lines
from pegboard.tui.shell.help import HelpScreen

pytestmark = pytest.mark.promise("TUI-7")

ACTIONS = [events.MouseMove, events.MouseDown, events.MouseUp, events.MouseScrollDown]


def use_mouse(screen: Screen[object], x: int, y: int) -> None:
    """Move, press, release and turn the wheel at a position."""
    for action in ACTIONS:
        screen._forward_event(action(screen, x, y, 0, 0, 1, False, False, False, x, y))


@pytest.mark.parametrize("where", ["page", "dialog"])
async def test_the_mouse_does_nothing_to_a_widget_that_was_just_removed(given: GivenRuntime, where: str) -> None:
    async with on_stage(given) as stage:
        if where == "dialog":
            await stage.press("f1")
            await stage.until(lambda: isinstance(stage.app.screen, HelpScreen), "the help is open")
        box = Lines("a removed text")
        await stage.app.screen.mount(box)
        box.styles.dock = "top"
        await stage.until_seen("a removed text")
        x, y = box.region.offset
        box.focus()
        await stage.pilot.pause()
        with stage.app.batch_update():
            await box.remove()
            assert box in stage.app.screen._compositor.visible_widgets
            focused = stage.app.screen.focused
            use_mouse(stage.app.screen, x, y)
            assert stage.app.screen.focused is focused
        await stage.until(lambda: "a removed text" not in stage.text, "the text is gone")
