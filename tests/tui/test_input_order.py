"""Input that arrives together, as from a slow connection, is handled in its order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from chat_stage import on_chat
from headless import TIMEOUT_SECONDS
from models import calls, says
from stage import GivenRuntime, Stage, as_runtime, on_stage, tool
from textual import events
from textual.app import ScreenStackError
from textual.command import CommandList, CommandPalette
from textual.widget import Widget
from textual.widgets import Input, Static

from pegboard.models import JsonObject
from pegboard.tui.app import PegboardApp
from pegboard.tui.dialogs.ask_name import AskName
from pegboard.tui.form.choices import Choices
from pegboard.tui.form.rows import AddLine
from pegboard.tui.shell import input_order
from pegboard.tui.shell.help import HelpScreen
from pegboard.tui.tools import screen
from pegboard.tui.tools.presets import PresetsScreen

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


@pytest.mark.parametrize("joiner", ["\u200c", "\u200d"], ids=["of Persian", "of emoji"])
async def test_joiners_without_a_width_are_typed_as_other_characters_are(tmp_path: Path, joiner: str) -> None:
    given = GivenRuntime(tmp_path)
    async with on_stage(given) as stage:
        await stage.open("read_file")
        stage.app.post_message(events.Key("a", "a"))
        stage.app.post_message(events.Key("zero_width", joiner))
        type_at_once(stage, "b", "ctrl+r")
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].args == {"path": f"a{joiner}b"}


async def test_a_text_field_inserts_no_key_with_alt_which_terminals_send_with_its_character(tmp_path: Path) -> None:
    async with on_stage(GivenRuntime(tmp_path)) as stage:
        await stage.open("read_file")
        await stage.press("a", "alt+x", "alt+shift+x", "b")
        field = stage.app.focused
        assert isinstance(field, Input)
        assert field.value == "ab"


async def test_keys_after_one_that_opens_a_form_do_not_run_commands_of_the_list(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path)
    async with on_stage(given) as stage:
        await stage.type("read_file")
        type_at_once(stage, "enter", "/", "t", "m", "p", "ctrl+r")
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].args == {"path": "/tmp"}


async def test_enter_before_the_tools_are_found_opens_the_best_match_once_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, found = GivenRuntime(tmp_path), threading.Event()
    monkeypatch.setattr(given.tools, "scan", lambda: found.wait(TIMEOUT_SECONDS))
    app = PegboardApp(as_runtime(given))
    async with app.run_test(size=(80, 24)) as pilot:
        stage = Stage(app, pilot)
        type_at_once(stage, *"read_file", "enter", *"ab", "tab", "4", "2", "ctrl+r")
        for _ in range(2000):  # turns of the event loop, because the pilot would wait for the scan
            await asyncio.sleep(0)
        assert stage.list.sought == "read_file", "later keys wait"
        assert app.tool_scan.scanning
        found.set()
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].args == {"path": "ab", "max_bytes": 42}


@pytest.mark.parametrize("is_found", [True, False])
async def test_run_before_the_tool_page_is_built_runs_only_a_tool_that_was_selected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_found: bool
) -> None:
    given, loaded, found = GivenRuntime(tmp_path), threading.Event(), threading.Event()
    monkeypatch.setattr(screen, "_load_panes", lambda: loaded.wait(TIMEOUT_SECONDS))
    monkeypatch.setattr(given.tools, "scan", lambda: found.wait(TIMEOUT_SECONDS))
    app = PegboardApp(as_runtime(given))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        stage = Stage(app, pilot)
        if is_found:
            found.set()
            await wait(lambda: stage.marked == "fs.list_dir")
        type_at_once(stage, *"pwd", "ctrl+r")
        await wait(lambda: any(worker.group == "run" for worker in app.workers))
        found.set()
        await wait(lambda: stage.marked == "shell.pwd")
        loaded.set()
        if is_found:
            await stage.until(lambda: given.calls, "the tool was run")
            assert [call.name for call in given.calls] == ["shell.pwd"]
        else:
            await stage.until_seen("Nothing was run because the tools")
            assert not given.calls


async def wait(true: Callable[[], object]) -> None:
    """Wait until a condition is true; the pilot would wait for threads, too."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not true():  # noqa: ASYNC110 - the screen raises no event here
            await asyncio.sleep(0.005)


async def test_keys_after_one_that_opens_the_form_of_another_tool_go_into_its_first_field(tmp_path: Path) -> None:
    text: JsonObject = {"type": "string"}
    many = tool("odd.many", "Has many fields.", None, **{f"p{number}": text for number in range(60)})
    given = GivenRuntime(tmp_path, [many, tool("odd.note", "Has one field.", None, text=text)])
    async with on_stage(given) as stage:
        for name in ("many", "note", "many", "note"):
            type_at_once(stage, *name, "enter", *"hello")
            await stage.until(lambda: stage.form.form is not None and stage.form.form.draft(), "a field is filled in")
            await stage.until(lambda: "hello" in str(stage.form.form and stage.form.form.draft()), "it has all of it")
            await stage.press("ctrl+n")
            stage.screen.action_show_tools()
            await stage.pilot.pause()


async def test_keys_after_a_tab_from_the_list_go_into_the_form_of_the_tool_that_was_selected_just_before(
    tmp_path: Path,
) -> None:
    async with on_stage(GivenRuntime(tmp_path)) as stage:
        await stage.until(lambda: stage.screen.settled, "the form of fs.list_dir is shown")
        type_at_once(stage, *"read_file", "tab", *"hello")
        await stage.until(lambda: stage.form.form is not None and stage.form.form.draft(), "a field is filled in")
        await stage.until(lambda: stage.form.form and stage.form.form.draft() == {"path": "hello"}, "it has all of it")


async def test_keys_after_a_tab_from_a_list_without_matches_continue_the_filter(tmp_path: Path) -> None:
    async with on_stage(GivenRuntime(tmp_path)) as stage:
        await stage.until(lambda: stage.screen.settled, "the form of fs.list_dir is shown")
        type_at_once(stage, *"nothing", "tab", *"here")
        await stage.until(lambda: stage.list.sought == "nothinghere", "the filter is continued")
        assert stage.list.has_focus


@pytest.mark.parametrize("page", ["tools", "health"])
async def test_keys_after_a_tool_is_chosen_in_the_palette_go_into_its_first_field(
    tmp_path: Path, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_order, "_LONGEST_PREPARATION", TIMEOUT_SECONDS)
    given = GivenRuntime(tmp_path)
    async with on_stage(given, page=page) as stage:
        await stage.press("ctrl+p")
        await stage.type("read_file")
        await stage.until_seen("fs.read_file")
        hits = stage.app.screen.query_one(CommandList)
        await stage.until(lambda: hits.highlighted == 0 and not hits.query_ancestor(CommandPalette)._show_busy, "found")
        type_at_once(stage, "enter", "a", "b", "tab", "7", "ctrl+r")
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].name == "fs.read_file"
        assert given.calls[0].args == {"path": "ab", "max_bytes": 7}


async def test_keys_after_one_that_opens_a_dialog_are_typed_into_it(tmp_path: Path) -> None:
    async with on_stage(GivenRuntime(tmp_path)) as stage:
        await stage.open("read_file")
        await stage.type("v")
        await stage.press("ctrl+l")
        await stage.until(lambda: isinstance(stage.app.screen, PresetsScreen), "the presets are shown")
        type_at_once(stage, *"first", "enter", *"second")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "the name is asked for")
        await stage.pilot.pause()
        assert stage.app.screen.query_one(Input).value == "firstsecond"


async def test_a_reason_typed_right_after_the_key_that_asks_for_it_is_complete(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("work_remove", {"path": "a.txt"})), says("Ah")) as stage:
        await stage.say("Remove")
        await stage.select()
        type_at_once(stage, "R", *"because")
        await stage.until(lambda: isinstance(stage.app.screen, AskName), "the reason is asked for")
        await stage.pilot.pause()
        assert stage.app.screen.query_one(Input).value == "because"


async def test_keys_after_one_that_closes_a_dialog_go_to_the_page(tmp_path: Path) -> None:
    async with on_stage(GivenRuntime(tmp_path)) as stage:
        await stage.press("f1")
        await stage.until(lambda: isinstance(stage.app.screen, HelpScreen), "the help is open")
        type_at_once(stage, "x", "escape", "escape", "n", "o", "w")
        await stage.until(lambda: stage.marked == "time.now", "the tools are filtered")
        assert stage.app.screen is stage.screen


async def test_enter_after_the_last_screen_of_an_ending_app_is_ignored(tmp_path: Path) -> None:
    def no_screen(_: PegboardApp) -> None:
        raise ScreenStackError("No screens on stack")

    async with on_stage(GivenRuntime(tmp_path)) as stage:
        with pytest.MonkeyPatch.context() as ending:
            ending.setattr(PegboardApp, "screen", property(no_screen))
            await stage.app.on_event(events.Key("enter", None))
        await stage.type("now")
        assert stage.list.sought == "now"


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


@pytest.mark.parametrize(
    ("kind", "keys", "value"),
    [
        (
            {"type": "array", "items": {"type": "string"}},
            ["enter", *"ab", "enter", *"cd", "enter", "e"],
            ["ab", "cd", "e"],
        ),
        (
            {"type": "array", "items": {"type": "string"}},
            ["enter", *"ab", "enter", *"cd", "ctrl+delete", *"ef"],
            ["abef"],
        ),
        ({"type": "array", "items": {"type": "string"}}, [*"ab", "enter", "c"], ["ab", "c"]),
        ({"type": "array", "items": {"type": "integer"}}, [*"12", "enter", "3"], [12, 3]),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            [*"ab", "enter", "1", "tab", *"cd", "enter", "2"],
            {"ab": 1, "cd": 2},
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            ["enter", *"ab", "enter", "1", "enter", *"cd", "enter", "2"],
            {"ab": 1, "cd": 2},
        ),
    ],
)
async def test_keys_after_one_that_adds_or_removes_a_row_go_into_the_row_that_it_focuses(
    tmp_path: Path, kind: JsonObject, keys: list[str], value: object
) -> None:
    names = tool("odd.names", "Has rows.", None, names=kind, note={"type": "string", "default": ""})
    given = GivenRuntime(tmp_path, [names])
    async with on_stage(given) as stage:
        await stage.type("odd.names")
        type_at_once(stage, "enter", *keys, "ctrl+r")
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].args == {"names": value}


NAMES: JsonObject = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    ("kind", "typed", "arguments"),
    [
        ({"type": "string"}, [events.Paste("1\n2"), events.Key("tab", None), *"x"], {"one": "1\n2", "two": "xz"}),
        (
            NAMES,
            [events.Key("enter", None), events.Paste("1\n2"), events.Key("tab", None), "x"],
            {"one": ["1\n2", "xz"]},
        ),
        ({}, [*"x", events.Key("ctrl+k", None), "y"], {"one": "yz"}),
        ({}, [events.Key("shift+tab", None), *"x", events.Key("ctrl+k", None), "y"], {"one": "yz"}),
    ],
)
async def test_keys_after_one_that_replaces_the_focused_editor_go_into_the_new_one(
    tmp_path: Path, kind: JsonObject, typed: list[events.Event | str], arguments: JsonObject
) -> None:
    given = GivenRuntime(
        tmp_path, [tool("odd.one", "Has two fields.", None, one=kind, two={"type": "string", "default": ""})]
    )
    async with on_stage(given) as stage:
        await stage.open("odd.one")
        for event in typed:
            stage.app.post_message(events.Key(event, event) if isinstance(event, str) else event)
        await stage.pilot.pause()
        await stage.press("z", "ctrl+r")
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].args == arguments


def click_at_once(stage: Stage, widget: Widget) -> None:
    """Click a widget without waiting for anything."""
    x, y = widget.region.offset
    for kind in (events.MouseDown, events.MouseUp):
        stage.app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))


async def test_keys_after_a_click_that_adds_a_row_go_into_the_row(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path, [tool("odd.names", "Has a list.", None, names=NAMES)])
    async with on_stage(given) as stage:
        for keys in ("one", "two"):
            click_at_once(stage, stage.form.query_one(AddLine))
            type_at_once(stage, *keys)
            await stage.pilot.pause()
        await stage.press("ctrl+r")
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].args == {"names": ["one", "two"]}


async def test_keys_after_a_click_that_lists_the_options_of_a_choice_filter_them(tmp_path: Path) -> None:
    city: JsonObject = {"enum": [f"city-{number}" for number in range(200)]}
    given = GivenRuntime(tmp_path, [tool("odd.city", "Has a choice.", None, city=city)])
    async with on_stage(given) as stage:
        click_at_once(stage, stage.form.query_one(Choices))
        type_at_once(stage, *"123", "enter", "ctrl+r")
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].args == {"city": "city-123"}


async def test_a_key_that_runs_the_tool_waits_for_the_last_arguments_that_the_key_before_it_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_order, "_LONGEST_PREPARATION", TIMEOUT_SECONDS)
    given, found = GivenRuntime(tmp_path), threading.Event()
    last: JsonObject = {"path": "last.txt"}
    monkeypatch.setattr(given.history, "last_arguments", lambda _: last if found.wait(TIMEOUT_SECONDS) else None)
    async with on_stage(given) as stage:
        await stage.open("list_dir")
        type_at_once(stage, "ctrl+up", "ctrl+r")
        for _ in range(2000):  # turns of the event loop, because the pilot would wait for the thread
            await asyncio.sleep(0)
        assert not given.calls
        found.set()
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].args == last


async def test_a_key_that_runs_the_tool_waits_for_arguments_that_are_read_for_longer_than_other_keys_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_order, "_LONGEST_PREPARATION", 0.0)
    given, found = GivenRuntime(tmp_path), threading.Event()
    last: JsonObject = {"path": "last.txt"}
    monkeypatch.setattr(given.history, "last_arguments", lambda _: last if found.wait(TIMEOUT_SECONDS) else None)
    async with on_stage(given) as stage:
        await stage.open("list_dir")
        type_at_once(stage, "ctrl+up", "ctrl+r")
        for _ in range(2000):  # turns of the event loop, because the pilot would wait for the thread
            await asyncio.sleep(0)
        found.set()
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].args == last


async def test_keys_after_a_pasted_call_change_the_form_that_it_fills(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path)
    async with on_stage(given) as stage:
        await stage.open("read_file")
        type_at_once(stage, "tab")
        stage.app.post_message(events.Paste('{"path": "a.txt", "max_bytes": 7}'))
        type_at_once(stage, "ctrl+r")
        await stage.until(lambda: given.calls, "the tool was run")
        assert given.calls[0].args == {"path": "a.txt", "max_bytes": 7}
