"""Input that arrives together, as from a slow connection, is handled in its order."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from stage import GivenRuntime, Stage, on_stage
from textual import events
from textual.command import CommandPalette
from textual.widgets import Static

from pegboard.tui.shell.help import HelpScreen

pytestmark = pytest.mark.promise("TUI-7")


def type_at_once(stage: Stage, *keys: str) -> None:
    """Press keys without waiting for anything between them."""
    for key in keys:
        stage.app.post_message(events.Key(key, key if len(key) == 1 else None))


async def test_a_character_after_a_backspace_replaces_what_the_backspace_deleted(tmp_path: Path) -> None:
    async with on_stage(GivenRuntime(tmp_path)) as stage:
        type_at_once(stage, "l", "i", "s", "x", "backspace", "backspace", "s", "t")
        await stage.pilot.pause()
        assert stage.list.sought == "list"


async def test_characters_after_a_tab_go_to_the_next_field(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path)
    async with on_stage(given) as stage:
        await stage.open("read_file")
        type_at_once(stage, "a", "b", "tab", "1", "2", "ctrl+r")
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].args == {"path": "ab", "max_bytes": 12}


async def test_a_pasted_text_stays_between_the_keys_around_it(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path)
    async with on_stage(given) as stage:
        await stage.open("read_file")
        type_at_once(stage, "a", "backspace")
        stage.app.post_message(events.Paste("pasted"))
        type_at_once(stage, "backspace", "s")
        stage.app.post_message(events.Paste(" text"))
        type_at_once(stage, "tab", "5", "ctrl+r")
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].args == {"path": "pastes text", "max_bytes": 5}


async def test_keys_after_one_that_opens_a_form_do_not_run_commands_of_the_list(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path)
    async with on_stage(given) as stage:
        await stage.type("read_file")
        type_at_once(stage, "enter", "/", "t", "m", "p", "ctrl+r")
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].args == {"path": "/tmp"}


async def test_keys_after_one_that_closes_a_dialog_go_to_the_page(tmp_path: Path) -> None:
    async with on_stage(GivenRuntime(tmp_path)) as stage:
        await stage.press("f1")
        await stage.until(lambda: isinstance(stage.app.screen, HelpScreen), "the help is open")
        type_at_once(stage, "x", "escape", "escape", "n", "o", "w")
        await stage.until(lambda: stage.marked == "time.now", "the tools are filtered")
        assert stage.app.screen is stage.screen


async def test_input_is_handled_although_a_widget_is_busy_with_a_key(tmp_path: Path) -> None:
    ready = asyncio.Event()

    class Busy(Static, can_focus=True):
        async def on_key(self, event: events.Key) -> None:
            event.stop()
            await ready.wait()

    async with on_stage(GivenRuntime(tmp_path)) as stage:
        busy = Busy()
        await stage.screen.mount(busy)
        busy.focus()
        type_at_once(stage, "x", "ctrl+p")
        for _ in range(1000):
            if stage.app.screen is not stage.screen:
                break
            await asyncio.sleep(0.01)
        assert isinstance(stage.app.screen, CommandPalette)
        ready.set()
