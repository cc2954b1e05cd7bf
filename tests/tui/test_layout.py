"""The layout at several terminal sizes, and hidden and maximized panes."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from stage import TOOLS, GivenRuntime, Stage, as_runtime, on_stage, tool
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static
from textual.widgets._toast import Toast

from pegboard.models import Hints, JsonObject
from pegboard.tui.app import PegboardApp
from pegboard.tui.dialogs.ask_text import AskText
from pegboard.tui.dialogs.problems import ProblemsScreen
from pegboard.tui.form.editors import JsonBox
from pegboard.tui.form.lines import Lines
from pegboard.tui.shell.palette import Palette
from pegboard.tui.tools.screen import ToolsScreen
from pegboard.tui.tools.tool_page import ToolPage
from pegboard.tui.widgets.dialog import Overlay
from pegboard.tui.widgets.keys_line import KeysLine


@pytest.mark.promise("TUI-7")
@pytest.mark.parametrize("size", [(120, 40), (80, 24), (60, 16), (200, 60), (100, 20), (70, 50)])
async def test_every_pane_is_visible_at_every_size(given: GivenRuntime, size: tuple[int, int]) -> None:
    async with on_stage(given, size=size) as stage:
        text = stage.text
        for title in ("Tools", "fs.list_dir", "Arguments", "Result"):
            assert f"─{title}─" in text.replace(" ", ""), title
        assert stage.form.size.height >= 3
        assert stage.result.size.height >= 2
        assert all(len(line) <= size[0] for line in stage.lines)


@pytest.mark.parametrize(("size", "names"), [((80, 24), {"-narrow", "-high-enough"}), ((120, 15), {"-wide", "-flat"})])
async def test_a_new_screen_has_the_classes_of_its_size_before_it_is_arranged(
    given: GivenRuntime, size: tuple[int, int], names: set[str]
) -> None:
    async with PegboardApp(as_runtime(given)).run_test(size=size) as pilot:
        dialog = ProblemsScreen(())
        pilot.app.push_screen(dialog)
        assert not dialog.is_mounted
        assert names <= dialog.classes


@pytest.mark.parametrize(("size", "is_compact"), [((80, 24), True), ((120, 40), False)])
async def test_the_borders_of_the_tool_page_are_those_of_its_size_before_it_is_arranged(
    given: GivenRuntime, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], is_compact: bool
) -> None:
    monkeypatch.setattr(ToolPage, "on_resize", lambda *_: None)
    async with on_stage(given, size=size) as stage:
        assert stage.screen.query_one(ToolPage).has_class("-compact") is is_compact


@pytest.mark.promise("TUI-7")
async def test_a_toast_covers_no_buttons_and_keys_of_a_dialog(given: GivenRuntime) -> None:
    async with on_stage(given, size=(80, 24)) as stage:
        dialog = AskText("Text", "some lines")
        await stage.app.push_screen(dialog)
        stage.app.notify("It failed.\n" * 5, timeout=60)
        await stage.until(lambda: dialog.query(Toast), "the toast is there")
        await stage.pilot.pause()
        toast, keys = dialog.query_one(Toast).region, dialog.query_one(KeysLine).region
        assert toast.area
        assert not toast.overlaps(keys)


@pytest.mark.promise("TUI-7")
async def test_a_toast_is_shown_once_while_a_dialog_is_open_and_after_it_is_closed(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        stage.app.notify("It failed.", timeout=60)
        await stage.until_seen("It failed.")
        await stage.app.push_screen(AskText("Text", "some lines"))
        await stage.until(lambda: stage.app.screen.query(Toast), "the dialog has the toast")
        await stage.until(lambda: stage.text.count("It failed.") == 1, "the page has none")
        await stage.press("escape")
        await stage.until(lambda: not isinstance(stage.app.screen, AskText), "the dialog is closed")
        await stage.until(lambda: stage.text.count("It failed.") == 1, "the page has it again")


async def test_json_is_wrapped_for_its_new_width_after_the_terminal_is_resized(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("list_dir")
        await stage.press("ctrl+t")
        await stage.until(lambda: isinstance(stage.app.focused, JsonBox), "the JSON has the focus")
        box = stage.screen.query_one(JsonBox)
        box.load_text("".join(f"{number:03}," for number in range(90)))
        for size in ((100, 30), (120, 40), (100, 30)):
            await stage.pilot.resize_terminal(*size)
            await stage.press()
            shown = [line[box.region.x : box.region.right].strip("▌ ") for line in stage.lines]
            assert box.text in "".join(shown)


@pytest.mark.parametrize("size", [(59, 24), (80, 15), (20, 5)])
async def test_a_terminal_that_is_too_small_shows_a_message(given: GivenRuntime, size: tuple[int, int]) -> None:
    app = PegboardApp(as_runtime(given))
    async with app.run_test(size=size) as pilot:
        screen = app.screen
        assert isinstance(screen, ToolsScreen)
        await pilot.pause()
        assert screen.query_one("#too-small").display
        assert not screen.query_one("#body").display
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert screen.query_one("#body").display
        await pilot.press("n", "o", "w")
        assert screen.tool_list.list.sought == "now"


async def focused_after_resizing(stage: Stage, size: tuple[int, int]) -> Widget:
    """Resize the terminal to a size and back, wait until the focused widget has the focus again, and return it."""
    focused = stage.app.focused
    assert focused is not None
    await stage.pilot.resize_terminal(*size)
    await stage.pilot.pause()
    await stage.pilot.resize_terminal(80, 24)
    await stage.until(lambda: stage.app.focused is focused, "the same widget has the focus")
    return focused


def has_moved(stage: Stage, focused: Widget) -> bool:
    """Return whether another widget has the focus."""
    return stage.app.focused is not None and stage.app.focused is not focused


@pytest.mark.promise("TUI-7")
@pytest.mark.parametrize("size", [(40, 24), (80, 12)])
async def test_the_focus_returns_when_the_terminal_is_large_enough_again(
    given: GivenRuntime, size: tuple[int, int]
) -> None:
    async with on_stage(given, size=(80, 24)) as stage:
        await stage.open("read_file")
        await stage.type("ab")
        for page in ("f8", "f9", "f5"):
            focused = await focused_after_resizing(stage, size)
            await stage.press(page)
            await stage.until(partial(has_moved, stage, focused), "the next page is shown")
        await stage.type("c")
        await stage.press("ctrl+r")
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].args == {"path": "abc"}


@pytest.mark.promise("TUI-7")
async def test_the_focus_returns_to_a_field_if_a_dialog_was_closed_while_the_terminal_was_too_small(
    given: GivenRuntime,
) -> None:
    steps: dict[str, JsonObject] = {f"step{number}": {"type": "string", "default": ""} for number in range(30)}
    given.found = (tool("work.plan", "", None, **steps),)
    async with on_stage(given) as stage:
        await stage.open("plan")
        await stage.press(*["down"] * 15)
        field = stage.app.focused
        await stage.press("ctrl+p")
        await stage.until(lambda: isinstance(stage.app.screen, Palette), "the palette is open")
        await stage.pilot.resize_terminal(40, 10)
        await stage.press("escape")
        await stage.until_seen("Make the terminal larger.")
        assert stage.app.focused is None, "the body of the page is hidden"
        await stage.pilot.resize_terminal(120, 40)
        await stage.until(lambda: stage.app.focused is field, "the field has the focus")
        await stage.type("saw")
        assert stage.form.form is not None
        assert stage.form.form.arguments() == {"step15": "saw"}


async def test_ctrl_b_hides_the_tool_list_and_moves_its_focus(given: GivenRuntime) -> None:
    async with on_stage(given, size=(80, 24)) as stage:
        await stage.press("ctrl+b")
        await stage.until(lambda: stage.form.has_focus_within, "the form has the focus")
        assert stage.form.size.width > 70
        await stage.press("ctrl+b")
        assert stage.list.has_focus
        await stage.press("ctrl+b")
        await stage.until(lambda: stage.form.has_focus_within, "the form has the focus")
        await stage.press("escape")
        assert stage.list.has_focus
        assert stage.list.region.width > 0


@pytest.mark.parametrize("pane", ["list", "form", "result"])
async def test_f10_maximizes_the_focused_pane_and_escape_restores_it(given: GivenRuntime, pane: str) -> None:
    async with on_stage(given, size=(80, 24)) as stage:
        await stage.press("ctrl+r")
        await stage.until_seen("✓ ok")
        widget = {"list": stage.list, "form": stage.form, "result": stage.result}[pane]
        if pane == "form":
            await stage.open("list")
        else:
            widget.focus()
        await stage.pilot.pause()
        await stage.press("f10")
        assert widget.region.width >= 78
        assert widget.region.height >= 19
        await stage.until_seen("· f10 restores")
        assert "f5 Tools 5" in stage.lines[0]
        assert "Help" in stage.lines[-1]
        await stage.press("escape")
        await stage.until(lambda: widget.region.height < 23 and stage.screen.maximized is None, "it is as before")
        assert "restores" not in stage.text


@pytest.mark.promise("TUI-2")
async def test_the_first_frame_is_painted_before_the_scan_is_done(given: GivenRuntime) -> None:
    import threading

    go_on = threading.Event()
    given.tools.scan = lambda: go_on.wait(100)  # type: ignore[method-assign]  # a scan that takes as long as the test needs
    app = PegboardApp(as_runtime(given))
    try:
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            screen = app.screen
            assert isinstance(screen, ToolsScreen)
            assert "Looking for tools…" in app.tool_scan.empty
            await pilot.press("a", "b", "backspace")
            assert screen.tool_list.list.sought == "a"
            await pilot.press("backspace")
            strips = screen._compositor.render_strips(app.size)
            assert any("Looking for tools…" in "".join(segment.text for segment in strip) for strip in strips)
            go_on.set()
            async with asyncio.timeout(20):
                while app.tool_scan.scanning:
                    await pilot.pause(0.01)
            assert len(app.tool_scan.catalogue.entries) == 5
    finally:
        go_on.set()


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_the_focused_pane_is_highlighted(given: GivenRuntime, size: tuple[int, int]) -> None:
    async with on_stage(given, size=size) as stage:
        focused = stage.screen.tool_list.styles.border_top[1]
        await stage.open("read")
        assert stage.form.styles.border_top[1] == focused
        assert stage.screen.tool_list.styles.border_top[1] != focused


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_tool_without_arguments_leaves_the_space_to_its_result(
    given: GivenRuntime, size: tuple[int, int]
) -> None:
    async with on_stage(given, size=size) as stage:
        await stage.type("pwd")
        await stage.until_seen("This tool has no arguments.")
        await stage.press("ctrl+r")
        await stage.until_seen("✓ ok")
        assert stage.form.size.height <= 2
        assert stage.result.size.height >= size[1] // 2


@pytest.mark.promise("TUI-8")
async def test_the_list_of_a_wide_terminal_shows_long_names_whole(given: GivenRuntime) -> None:
    name = "github.list_pull_request_review_comments"
    given.found = [*TOOLS, tool(name, hints=Hints(destructive=True))]
    async with on_stage(given, (200, 50)) as stage:
        await stage.type("review")
        await stage.until(lambda: any(name in line[:55] for line in stage.lines), "it is whole in the list")
        await stage.pilot.resize_terminal(120, 40)
        await stage.until(lambda: stage.list.region.width < 34, "the form needs the columns of a smaller terminal")
        await stage.pilot.resize_terminal(200, 50)
        await stage.until(lambda: any(name in line[:55] for line in stage.lines), "it is whole again")


class Scrolled(Overlay[None]):
    """A screen that adds a text area to lines, scrolls, and reads a place before the next layout."""

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static("line\n" * 99)
            yield Static("hidden", id="hidden")

    async def add(self) -> None:
        """Add the text area."""
        box = Lines("word " * 99)
        await self.query_one(VerticalScroll).mount(box, before=0)
        self._compositor.reflow_visible(self, self.size)  # as a scroll does
        assert self.query_one("#hidden").region


@pytest.mark.promise("TUI-7")
async def test_a_text_area_wraps_its_lines_if_a_place_is_read_before_its_first_layout(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.app.push_screen(screen := Scrolled())
        await stage.until(lambda: screen.query_one(VerticalScroll).max_scroll_y, "it is arranged")
        screen.call_later(screen.add)
        await stage.until(lambda: screen.query(Lines), "it is mounted")
        await stage.until(lambda: screen.query_one(Lines).wrapped_document.height == 5, "its lines are wrapped")


@pytest.mark.promise("TUI-7")
async def test_a_very_long_message_keeps_its_beginning_and_end_and_leaves_most_of_the_page_visible(
    given: GivenRuntime,
) -> None:
    async with on_stage(given, size=(80, 24)) as stage:
        stage.app.notify(f"The server {'x' * 5000} doesn't start. Look at its log.", markup=False)
        await stage.until_seen("Look at its log.")
        assert "The server" in stage.text
        assert stage.app.screen.query_one(Toast).size.height < 16
