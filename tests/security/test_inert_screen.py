"""Texts of tools, models and files are shown literally: no markup, no link, no escape sequence, no crash."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import patch

import evil
import pytest
from stage import Stage, on_stage
from textual import events
from textual.command import CommandList
from textual.widgets import Input, Static

from pegboard.runtime import Runtime
from pegboard.runtime.models import Models
from pegboard.tui.activity.call_list import CallList
from pegboard.tui.activity.screen import ActivityScreen
from pegboard.tui.app import PegboardApp
from pegboard.tui.shell.palette import Palette
from pegboard.tui.tools.tool_page import ToolPage
from pegboard.tui.widgets.dialog import Dialog


@pytest.fixture
def packs(tmp_path: Path) -> Path:
    """Return a folder of evil packs."""
    return evil.write(tmp_path / "packs")


def _runtime(packs: Path, home: Path) -> Runtime:
    """Return a runtime with evil tools, themes, scripts, presets and settings."""
    (home / "config.toml").write_text('"[/] [bold" = 1\n')
    for folder, name, text in (
        ("themes", "[bold.toml", 'name = "[bold"\nprimary = "#ff0000"\n'),
        ("scripts", "[-o FILE] [bold.sh", "evil.say --text '[/]'\n"),
    ):
        (home / "data" / folder).mkdir(parents=True)
        (home / "data" / folder / name).write_text(text)
    return Runtime.from_environment(packs=[packs])


def _look(stage: Stage) -> None:
    """Check that the terminal and Textual obey nothing on the screen."""
    for strip in stage.app.screen._compositor.render_strips(stage.app.size):
        for segment in strip:
            assert not evil.unsafe_in(segment.text), ascii(segment.text)
            click = segment.style.meta.get("@click", "") if segment.style else ""
            assert "app.quit" not in str(click), segment.text


TOOLS = ("say", "choose", "rows", "marked", "fail", "blow", "crash", "destroy", "lacking")


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.promise("SEC-5", "TUI-4")
async def test_a_tool_with_evil_texts_is_shown_run_and_defined(tool: str, packs: Path, home: Path) -> None:
    async with on_stage(_runtime(packs, home)) as stage:
        await stage.type(f"evil.{tool}")
        await stage.until_seen(f"evil.{tool}(")
        _look(stage)
        await stage.press("ctrl+r")
        if tool not in {"destroy", "lacking"}:
            await stage.until(lambda: not stage.screen.query_one(ToolPage).running, "the call has ended")
        await stage.pilot.pause()
        _look(stage)
        for key in ("f2", "f3", "escape", "f1", "escape", "ctrl+y", "escape", "f9", "escape"):
            await stage.press(key)
            _look(stage)


@pytest.mark.promise("SEC-5")
async def test_the_palette_shows_docstrings_of_tools_literally(packs: Path, home: Path) -> None:
    async with on_stage(_runtime(packs, home)) as stage:
        await stage.press("ctrl+p")
        await stage.type("evil.")
        await stage.until_seen('[-o FILE] [--name="x]')
        assert "[@click=app.quit]" in stage.text
        _look(stage)


@pytest.mark.parametrize("dialog", ["palette", "name", "rules"])
@pytest.mark.promise("SEC-5")
async def test_pasted_text_is_shown_literally_in_inputs(dialog: str, packs: Path, home: Path) -> None:
    async with on_stage(_runtime(packs, home)) as stage:
        if dialog == "rules":
            stage.app.action_rules()
        else:
            await stage.press(*("ctrl+p",) if dialog == "palette" else ("f7", "x", "ctrl+s"))
        await stage.until(lambda: stage.app.screen.query(Input) and stage.app.screen.is_modal, "the dialog is open")
        line = stage.app.screen.query(Input).first()
        line.focus()
        for text in evil.TEXTS:
            line.clear()
            stage.app.post_message(events.Paste(text))
            await stage.pilot.pause()
            assert line.value
            _look(stage)


async def test_a_search_that_ends_after_the_palette_closed_does_nothing(packs: Path, home: Path) -> None:
    async with on_stage(_runtime(packs, home)) as stage:
        await stage.press("ctrl+p")
        palette = stage.app.screen
        assert isinstance(palette, Palette)
        await stage.press("escape")
        await stage.until(lambda: not palette.query(CommandList), "the palette is closed")
        palette._list_visible = not palette._list_visible
        palette._show_busy = not palette._show_busy
        palette._gather_commands("evil")
        await stage.press("f1")
        await stage.until_seen("Help")


async def test_the_list_of_themes_shows_names_literally(packs: Path, home: Path) -> None:
    async with on_stage(_runtime(packs, home)) as stage:
        stage.app.search_themes()
        await stage.until_seen("[bold")
        await stage.type("[bo")
        await stage.until_seen("[bold")
        _look(stage)


async def test_problems_are_shown_literally(packs: Path, home: Path) -> None:
    async with on_stage(_runtime(packs, home)) as stage:
        await stage.press("ctrl+g")
        await stage.until_seen("[/] [bold")
        await stage.until_seen("broken[bold].py")
        _look(stage)


@pytest.mark.parametrize("text", evil.TEXTS)
async def test_toasts_and_tooltips_are_shown_literally(text: str, packs: Path, home: Path) -> None:
    from pegboard.tui.widgets.clipboard import copy

    async with on_stage(_runtime(packs, home)) as stage:
        await copy(stage.app, text, home / "state")
        await stage.pilot.pause()
        _look(stage)


async def test_saved_scripts_are_shown_literally(packs: Path, home: Path) -> None:
    async with on_stage(_runtime(packs, home)) as stage:
        await stage.press("f7")
        await stage.pilot.pause()
        await stage.press("ctrl+l")
        await stage.pilot.pause()
        _look(stage)


async def test_text_and_calls_of_a_model_are_shown_literally(packs: Path, home: Path) -> None:
    with patch.object(Models, "get", lambda *_, **__: evil.EvilModel(3)):
        async with on_stage(_runtime(packs, home)) as stage:
            await stage.press("f6")
            for _ in range(3):
                await stage.type("go")
                await stage.press("enter")
                await stage.pilot.pause(0.3)
                _look(stage)


@asynccontextmanager
async def _on_activity(packs: Path, home: Path, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Stage]:
    """Open the Activity page on evil calls."""
    runtime = _runtime(packs, home)
    number = evil.record(runtime.history)
    async with on_stage(runtime, size) as stage:
        await stage.press("f9")
        screen = stage.app.screen
        assert isinstance(screen, ActivityScreen)
        await stage.until(lambda: screen.settled, "the calls are shown")
        assert screen.query_one(CallList).row_count >= number - 2, "inner calls are folded"
        yield stage


async def _settle(stage: Stage) -> None:
    screen = stage.app.get_screen_stack("activity")[0]
    assert isinstance(screen, ActivityScreen)
    await stage.until(lambda: screen.settled, "the calls are shown")
    await stage.pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), (160, 50)], ids=str)
@pytest.mark.promise("SEC-5", "ACT-1")
async def test_recorded_calls_and_their_results_are_shown_literally(
    size: tuple[int, int], packs: Path, home: Path
) -> None:
    async with _on_activity(packs, home, size) as stage:
        for _ in range(len(evil.TEXTS) + 2):
            _look(stage)
            await stage.press("right", "down")
            await _settle(stage)
        for text in ("tool:pack.[", "status:failed", "session:[", '"[/]"', "agent:[bold", "tool:\x1b["):
            stage.app.post_message(events.Paste(text))
            await stage.pilot.pause()
            await _settle(stage)
            _look(stage)
            await stage.press("escape", "escape")


ACTIVITY_KEYS = ("enter", "f2", "ctrl+]", "alt+d", "alt+i", "alt+n", "ctrl+r", "alt+e", "delete", "alt+t", "alt+s")


@pytest.mark.parametrize("key", ACTIVITY_KEYS)
@pytest.mark.promise("SEC-5", "ACT-2")
async def test_dialogs_and_toasts_about_recorded_calls_are_shown_literally(key: str, packs: Path, home: Path) -> None:
    async with _on_activity(packs, home) as stage:
        for down in (1, 2, 4):
            await stage.press(*["down"] * down)
            await _settle(stage)
            await stage.press(key)
            for _ in range(3):
                await stage.pilot.pause(0.05)
                _look(stage)
            await stage.press("pagedown", "tab", "escape", "escape", "f9")
            await _settle(stage)
            _look(stage)


# Help, toasts and dialogs on a screen that is small or in motion


SIZES = [(40, 10), (44, 16), (48, 12), (49, 12), (60, 10), (200, 60)]
"""Sizes of terminals."""


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("page", ["f5", "f6", "f7", "f8", "f9"])
@pytest.mark.promise("TUI-7")
async def test_help_opens_at_every_size(page: str, size: tuple[int, int], packs: Path, home: Path) -> None:
    app = PegboardApp(_runtime(packs, home))
    async with app.run_test(size=size) as pilot:
        await pilot.press(page)
        await pilot.press("f1")
        assert type(app.screen).__name__ == "HelpScreen"
        shown = "\n".join(str(block.content) for block in app.screen.query(Static))
        assert "app.quit" in shown


async def test_a_click_on_a_toast_that_is_being_removed_does_nothing(packs: Path, home: Path) -> None:
    from textual.widgets._toast import Toast

    async with on_stage(_runtime(packs, home)) as stage:
        stage.app.notify("Saved")
        await stage.until(lambda: any(toast.region for toast in stage.app.screen.query(Toast)), "the toast is shown")
        toast = stage.app.screen.query_one(Toast)
        x, y = toast.region.x + 1, toast.region.y + 1
        driver = stage.app._driver
        assert driver is not None
        for _ in range(3):
            for kind in (events.MouseDown, events.MouseUp):
                driver.process_message(kind(None, x, y, 0, 0, 1, False, False, False, screen_x=x, screen_y=y))
        await stage.until(lambda: not stage.app.screen.query(Toast), "the toast is gone")
        await stage.press("f1")
        await stage.until_seen("Help")


async def test_a_worker_of_a_closing_dialog_does_not_look_for_its_removed_widgets(packs: Path, home: Path) -> None:
    async with on_stage(_runtime(packs, home)) as stage:
        await stage.press("f1")
        dialog = stage.app.screen
        assert isinstance(dialog, Dialog)
        body = dialog.query_one("#box")

        async def look() -> None:
            for _ in iter(lambda: dialog.query_one("#box") is body, False):
                await asyncio.sleep(0)

        dialog.run_worker(look())
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.screen, "the dialog is closed")
        await stage.press("f1")
        await stage.until_seen("Help")


async def test_a_toast_that_starts_late_ends(packs: Path, home: Path) -> None:
    from textual.notifications import Notification, Notify
    from textual.widgets._toast import Toast

    async with on_stage(_runtime(packs, home)) as stage:
        late = Notify(Notification("Late", timeout=-1))
        stage.app.post_message(late)
        await stage.pilot.pause()
        assert late.notification.has_expired
        assert late.notification.time_left > 0
        toast = Toast(late.notification)
        await stage.app.screen.mount(toast)
        await stage.until(lambda: not toast.is_attached, "the toast is gone")


async def test_a_dialog_that_is_closed_twice_closes_nothing_else(packs: Path, home: Path) -> None:
    async with on_stage(_runtime(packs, home)) as stage:
        await stage.press("f1")
        dialog = stage.app.screen
        assert isinstance(dialog, Dialog)
        dialog.dismiss(None)
        dialog.dismiss(None)
        await stage.pilot.pause()
        assert stage.app.screen is stage.screen
