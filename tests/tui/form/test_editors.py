"""Editors of fields: choices, multiple choices, offers, files, secrets, very long texts."""

from __future__ import annotations

import os
import re
from pathlib import Path
from time import process_time
from typing import NoReturn

import pytest
from pydantic import JsonValue
from stage import GivenRuntime, Stage, on_stage, tool
from textual import events
from textual.errors import NoWidget
from textual.screen import Screen
from textual.widget import Widget

from pegboard.models import JsonObject
from pegboard.tui.form.choices import Choices
from pegboard.tui.form.editors import TextBox, TextLine
from pegboard.tui.form.files import FilePicker
from pegboard.tui.form.lines import MOST_IN_PLACE, Lines
from pegboard.tui.form.multi import MultiChoices
from pegboard.tui.form.popups import PickOne, PickSeveral
from pegboard.tui.form.rows import KeyLine
from pegboard.tui.widgets.pick_list import PickLine, PickList, ranked

OPTIONAL: JsonObject = {"default": None}
"""Property that makes a parameter of `tool` optional."""


def given_tool(folder: Path, **properties: JsonObject) -> GivenRuntime:
    """Return a runtime with one tool."""
    return GivenRuntime(folder, tools=[tool("p.t", "", None, **properties)])


def draft(stage: Stage) -> JsonObject:
    """Return the current values of the form."""
    assert stage.form.form is not None
    return stage.form.form.draft()


async def opened(stage: Stage, kind: type) -> None:
    """Wait until a list next to an editor is open and has lines."""
    await stage.until(lambda: isinstance(stage.app.screen, kind), "the list is open")
    await stage.until(lambda: stage.app.screen.query_one(PickList).row_count, "the list has lines")


async def closed(stage: Stage) -> None:
    """Wait until the list is closed."""
    await stage.until(lambda: stage.app.screen is stage.screen, "the list is closed")
    await stage.pilot.pause()


async def paste(stage: Stage, text: str) -> None:
    """Paste a text as a terminal does."""
    stage.app.post_message(events.Paste(text))
    await stage.pilot.pause()


@pytest.mark.promise("TUI-3")
async def test_the_line_breaks_of_a_pasted_text_are_line_feeds_in_every_editor(tmp_path: Path) -> None:
    texts: JsonObject = {"type": "array", "items": {"type": "string"}}
    lines: JsonObject = {"type": "string", "format": "textarea", "maxLength": 5000}
    async with on_stage(given_tool(tmp_path, tags={**texts, **OPTIONAL}, body=lines)) as stage:
        await stage.open("p.t")
        await stage.until(lambda: isinstance(stage.app.focused, TextBox), "the text area is focused")
        await paste(stage, "three\r\nfour\rfive")
        await stage.press("shift+tab", "enter")
        await stage.until(lambda: isinstance(stage.app.focused, TextLine), "the row is focused")
        await paste(stage, "one\rtwo\r")
        await stage.until(lambda: isinstance(stage.app.focused, TextBox), "the row has a box")
        assert draft(stage) == {"tags": ["one\ntwo\n"], "body": "three\nfour\nfive"}


@pytest.mark.promise("TUI-3")
async def test_a_field_is_checked_after_several_lines_were_pasted_into_its_line(tmp_path: Path) -> None:
    async with on_stage(given_tool(tmp_path, day={"type": "string", "format": "date", **OPTIONAL})) as stage:
        await stage.open("p.t")
        await stage.until_seen("day  string · date  unset")
        await paste(stage, "2024-05-31\n2024-06-01")
        await stage.until_seen("✗ must be a date like")
        assert "unset" not in stage.text
        assert draft(stage) == {"day": "2024-05-31\n2024-06-01"}


@pytest.mark.promise("TUI-3")
async def test_text_that_is_pasted_where_a_row_is_added_or_a_variant_chosen_goes_to_its_editor(tmp_path: Path) -> None:
    text: JsonObject = {"type": "string"}
    tags: JsonObject = {"type": "array", "items": text}
    env: JsonObject = {"type": "object", "additionalProperties": text}
    either: JsonObject = {"anyOf": [text, {"type": "number"}]}
    async with on_stage(given_tool(tmp_path, tags=tags, env=env, either=either)) as stage:
        await stage.open("p.t")
        await paste(stage, "one\ntwo")
        await stage.until(lambda: isinstance(stage.app.focused, TextBox), "the row has a box")
        await stage.press("tab")
        await paste(stage, "three")
        await stage.press("tab", "tab")
        await paste(stage, "NAME\n")
        await stage.until(lambda: isinstance(stage.app.focused, KeyLine), "the key of an entry is focused")
        await stage.press("tab", *"value", "tab", "tab")
        await paste(stage, "four")
        await stage.until(lambda: isinstance(stage.app.focused, TextLine), "the editor is focused")
        assert draft(stage) == {"tags": ["one\ntwo", "three"], "env": {"NAME": "value"}, "either": "four"}


@pytest.mark.promise("TUI-3")
async def test_the_cursor_after_a_long_text_is_in_the_viewport_when_its_field_is_focused(tmp_path: Path) -> None:
    text: JsonObject = {"type": "string", **OPTIONAL}
    async with on_stage(given_tool(tmp_path, number={"type": "integer", **OPTIONAL}, label=text)) as stage:
        await stage.open("p.t")
        await paste(stage, f'{{"label": "{"long " * 40}END"}}')
        await stage.until_seen("long")
        assert "END" not in stage.text
        await stage.press("tab")
        await stage.until_seen("END")
        await stage.pilot.resize_terminal(80, 24)
        await stage.until_seen("END")


@pytest.mark.promise("TUI-3")
async def test_the_form_shows_what_it_sends_instead_of_a_typed_time(tmp_path: Path) -> None:
    async with on_stage(given_tool(tmp_path, at={"type": "string", "format": "time"})) as stage:
        await stage.open("p.t")
        await stage.type("8:30")
        await stage.until_seen("sends 08:30:00")
        await stage.press("backspace")
        await stage.until(lambda: "sends" not in stage.text, "an incomplete time is not converted")


@pytest.mark.promise("TUI-3")
async def test_a_row_of_a_list_shows_what_it_sends_instead_of_a_typed_time(tmp_path: Path) -> None:
    times: dict[str, JsonValue] = {"type": "array", "items": {"type": "string", "format": "time"}}
    async with on_stage(given_tool(tmp_path, times=times)) as stage:
        await stage.open("p.t")
        await stage.type("4pm")
        await stage.until_seen("sends 16:00:00")
        assert stage.form.submit() == {"times": ["16:00:00"]}
        await stage.press("backspace")
        await stage.until(lambda: "sends" not in stage.text, "an incomplete time is not converted")


# Choices


def test_a_list_is_filtered_by_letters_in_order_best_first() -> None:
    names = ["red", "dark red", "bored", "r-e-d", "rd", "green"]
    lines = [PickLine("save", pinned=True), *map(PickLine, names)]
    assert [lines[index].text for index in ranked("R ed", lines)] == ["save", "red", "dark red", "bored", "r-e-d"]
    assert ranked("", lines) == [*range(7)]


@pytest.mark.promise("TUI-3")
async def test_one_of_ten_thousand_choices_is_found_by_typing(tmp_path: Path) -> None:
    values: list[JsonValue] = [f"{letter}{index}" for letter in "abcd" for index in range(2500)]
    async with on_stage(given_tool(tmp_path, x={"enum": values}), size=(80, 24)) as stage:
        await stage.open("p.t")
        await stage.press("enter")
        await opened(stage, PickOne)
        await stage.type("d2499")
        await stage.until_seen("1 of 10,000")
        await stage.press("enter")
        await closed(stage)
        assert draft(stage) == {"x": "d2499"}
        assert isinstance(stage.app.focused, Choices)
        await stage.type("c")
        await opened(stage, PickOne)
        await stage.until_seen("2,500 of 10,000")
        await stage.press("down", "escape")
        await closed(stage)
        assert draft(stage) == {"x": "d2499"}


@pytest.mark.promise("TUI-3")
async def test_unset_and_null_differ_from_the_texts_of_these_names(tmp_path: Path) -> None:
    values = ["null", "unset", *(f"v{index}" for index in range(60))]
    async with on_stage(given_tool(tmp_path, x={"enum": [*values, None], **OPTIONAL})) as stage:
        await stage.open("p.t")
        seen = []
        for query in ('"null', '"unset', "null", "unset", "v59"):
            await stage.press("enter")
            await opened(stage, PickOne)
            await stage.press(*("quotation_mark" if sign == '"' else sign for sign in query), "enter")
            await closed(stage)
            seen.append(draft(stage))
        assert seen == [{"x": "null"}, {"x": "unset"}, {"x": None}, {}, {"x": "v59"}]


@pytest.mark.promise("TUI-4")
async def test_the_labels_of_choices_are_plain_text(tmp_path: Path) -> None:
    values: list[JsonValue] = ["[red]a[/red]", "b\x1b[2Jb", "c\nc", *(f"filler {index}" for index in range(40))]
    async with on_stage(given_tool(tmp_path, x={"enum": values})) as stage:
        await stage.open("p.t")
        await stage.press("enter")
        await opened(stage, PickOne)
        await stage.until_seen("[red]a[/red]")
        assert "c⏎c" in stage.text
        assert "\x1b" not in stage.text


@pytest.mark.promise("TUI-7")
async def test_choices_are_made_by_mouse(tmp_path: Path) -> None:
    async with on_stage(given_tool(tmp_path, x={"enum": [f"v{index}" for index in range(99)]})) as stage:
        await stage.open("p.t")
        await stage.pilot.click(Choices)
        await opened(stage, PickOne)
        await stage.pilot.click(PickList, offset=(3, 2))
        await closed(stage)
        assert draft(stage) == {"x": "v2"}
        await stage.pilot.click(Choices)
        await opened(stage, PickOne)
        await stage.pilot.click(offset=(1, 1))
        await closed(stage)
        assert draft(stage) == {"x": "v2"}


# Multiple choices


def several(*values: JsonValue, **more: JsonValue) -> JsonObject:
    """Return the schema of a list of these values."""
    return {"type": "array", "items": {"enum": [*values]}, **more}


@pytest.mark.promise("TUI-3", "TUI-7")
async def test_values_are_sent_in_the_order_in_which_they_are_ticked(tmp_path: Path) -> None:
    async with on_stage(given_tool(tmp_path, x=several("red", "green", "blue"))) as stage:
        await stage.open("p.t")
        assert isinstance(stage.app.focused, MultiChoices)
        assert "☐ red  ☐ green  ☐ blue" in stage.text
        await stage.press("g", "space", "left", "space")
        await stage.until_seen("☑ red  ☑ green  ☐ blue")
        assert "in this order: green, red" in stage.text
        assert draft(stage) == {"x": ["green", "red"]}
        await stage.press("end", "plus", "plus")
        await stage.until_seen("☑ 2 × blue")
        assert draft(stage) == {"x": ["green", "red", "blue", "blue"]}
        await stage.press("minus", "home", "space", "right", "enter")
        assert draft(stage) == {"x": ["blue"]}
        await stage.press("end", "space")
        assert draft(stage) == {"x": []}


async def test_a_value_is_ticked_once_if_the_schema_forbids_duplicates(tmp_path: Path) -> None:
    async with on_stage(given_tool(tmp_path, x=several("a", "b", uniqueItems=True))) as stage:
        await stage.open("p.t")
        await stage.press("plus", "space", "plus")
        assert draft(stage) == {"x": ["a"]}


@pytest.mark.promise("TUI-3")
async def test_many_values_are_one_line_that_opens_a_list(tmp_path: Path) -> None:
    values = [f"value{index}" for index in range(300)]
    async with on_stage(given_tool(tmp_path, x=several(*values)), size=(80, 24)) as stage:
        await stage.open("p.t")
        await stage.until_seen("▾ 0 of 300")
        await stage.press("space")
        await opened(stage, PickSeveral)
        await stage.type("299")
        await stage.press("space", "ctrl+u")
        await stage.type("17")
        await stage.press("enter", "plus")
        await stage.until_seen("☑ 2 × value17")
        await stage.press("escape")
        await closed(stage)
        await stage.until_seen("▾ 3 of 300: value299, value17, value17")
        assert draft(stage) == {"x": ["value299", "value17", "value17"]}


@pytest.mark.promise("TUI-3")
async def test_text_that_is_typed_after_a_choice_finds_the_next_one(tmp_path: Path) -> None:
    values = [f"value{index}" for index in range(300)]
    async with on_stage(given_tool(tmp_path, x=several(*values)), size=(80, 24)) as stage:
        await stage.open("p.t")
        await stage.press("space")
        await opened(stage, PickSeveral)
        await stage.type("299")
        await stage.press("space")
        await stage.type("17")
        await stage.press("backspace")
        await stage.type("8")
        await stage.press("enter", "escape")
        await closed(stage)
        assert draft(stage) == {"x": ["value299", "value18"]}


@pytest.mark.promise("TUI-7")
async def test_a_click_on_the_hint_at_the_edge_closes_the_list(tmp_path: Path) -> None:
    values = [f"value{index}" for index in range(300)]
    async with on_stage(given_tool(tmp_path, x=several(*values)), size=(80, 24)) as stage:
        await stage.open("p.t")
        await stage.press("space")
        await opened(stage, PickSeveral)
        row = next(number for number, line in enumerate(stage.lines) if "esc closes" in line)
        await stage.pilot.click(offset=(stage.lines[row].index("esc closes"), row))
        await closed(stage)


async def test_thousands_of_ticked_values_do_not_block_the_app(tmp_path: Path) -> None:
    values: list[JsonValue] = [f"value{index}" for index in range(5000)]
    async with on_stage(given_tool(tmp_path, x=several(*values)), size=(80, 24)) as stage:
        await stage.open("p.t")
        await stage.until_seen("▾ 0 of 5,000")
        start = process_time()
        stage.form.load({"x": [*values, "other"]})
        await stage.until_seen("▾ 5,001 of 5,000")
        assert stage.form.submit() is None
        stage.form.load({"x": values})
        await stage.until_seen("▾ 5,000 of 5,000")
        assert stage.form.submit() == {"x": values}
        assert process_time() - start < 12, "comparing in pairs takes a minute"


async def test_a_value_outside_the_options_is_shown_and_can_be_removed(tmp_path: Path) -> None:
    async with on_stage(given_tool(tmp_path, x=several("a", "b"))) as stage:
        await stage.open("p.t")
        stage.form.load({"x": ["z", "a"]})
        await stage.until_seen('✗ "z"')
        await stage.until(lambda: isinstance(stage.app.focused, MultiChoices), "it has the focus")
        await stage.press("end", "space")
        assert draft(stage) == {"x": ["a"]}


@pytest.mark.promise("TUI-7")
async def test_values_are_ticked_by_mouse(tmp_path: Path) -> None:
    async with on_stage(given_tool(tmp_path, x=several("red", "green", "blue"))) as stage:
        await stage.open("p.t")
        await stage.pilot.click(MultiChoices, offset=(12, 0))
        await stage.pilot.pause()
        assert draft(stage) == {"x": ["green"]}


@pytest.mark.promise("TUI-7")
async def test_each_value_that_is_wider_than_the_form_has_its_own_line(tmp_path: Path) -> None:
    values = [f"{name}{' is a value with a long name' * 3}" for name in ("one", "two", "three")]
    async with on_stage(given_tool(tmp_path, x=several(*values)), size=(80, 24)) as stage:
        await stage.open("p.t")
        await stage.until_seen("☐ three is a value")
        lines = [line for line in stage.lines if "☐ " in line]
        assert [re.findall(r"☐ (\w+) is .*…", line) for line in lines] == [["one"], ["two"], ["three"]]
        await stage.pilot.click(MultiChoices, offset=(12, 1))
        await stage.pilot.pause()
        assert draft(stage) == {"x": [values[1]]}
        await stage.until_seen("☑ two is a value")


async def test_a_chosen_value_that_is_wider_than_the_form_ends_with_an_ellipsis(tmp_path: Path) -> None:
    values: list[JsonValue] = [f"{name}{' is a value with a long name' * 3}" for name in ("one", "two", "three")]
    async with on_stage(given_tool(tmp_path, x={"enum": values}), size=(80, 24)) as stage:
        await stage.open("p.t")
        await stage.press("right", "right")
        await stage.until(lambda: re.search(r"▾ two is a value .*…  2 of 3", stage.text), "the value is cut")
        stage.form.load({"x": "none of them" * 20})
        await stage.until(lambda: re.search(r"▾ .none of them.*…  \(3\)", stage.text), "the text is cut")


async def test_arrow_keys_move_through_lines_of_values_and_to_the_next_field(tmp_path: Path) -> None:
    values = [f"a long value {index}" for index in range(6)]
    given = given_tool(tmp_path, x=several(*values), y={"type": "string"})
    async with on_stage(given, size=(80, 24)) as stage:
        await stage.open("p.t")
        await stage.until(lambda: stage.form.query_one(MultiChoices).content_size.width, "its lines are known")
        await stage.press("down", "space")
        assert draft(stage) == {"x": [values[2]]}
        await stage.press("down", "down")
        await stage.until(lambda: isinstance(stage.app.focused, TextLine), "the next field has the focus")


# Offers


@pytest.mark.promise("TUI-3")
async def test_the_default_and_the_examples_are_offered(tmp_path: Path) -> None:
    given = given_tool(
        tmp_path,
        word={"type": "string", "examples": ["alpha", "[b]beta[/b]", "alpha"], "default": "omega"},
        size={"type": "integer", "examples": [12345678901234567890, 2]},
        free={"type": "object", "examples": [{"a": 1}], "additionalProperties": True},
    )
    async with on_stage(given) as stage:
        await stage.open("p.t")
        await stage.press("ctrl+f")
        await opened(stage, PickOne)
        assert "omega" in stage.text
        assert "default" in stage.text
        await stage.press("down", "down", "enter")
        await closed(stage)
        await stage.press("tab", "ctrl+f")
        await opened(stage, PickOne)
        await stage.press("enter")
        await closed(stage)
        assert draft(stage) == {"word": "[b]beta[/b]", "size": 12345678901234567890}


async def test_an_example_of_several_lines_opens_a_box(tmp_path: Path) -> None:
    given = given_tool(tmp_path, word={"type": "string", "examples": ["one\ntwo"]})
    async with on_stage(given) as stage:
        await stage.open("p.t")
        await stage.press("ctrl+f")
        await opened(stage, PickOne)
        await stage.press("enter")
        await stage.until(lambda: draft(stage) == {"word": "one\ntwo"}, "it is taken")
        await stage.until(lambda: isinstance(stage.app.focused, TextBox), "it is in a box")


async def test_the_pick_key_does_nothing_without_offers(tmp_path: Path) -> None:
    async with on_stage(given_tool(tmp_path, word={"type": "string"})) as stage:
        await stage.open("p.t")
        assert "Pick" not in stage.lines[-1]
        await stage.press("ctrl+f")
        assert stage.app.screen is stage.screen


@pytest.mark.promise("TUI-3")
async def test_a_secret_is_masked_until_it_is_revealed_and_after_it_loses_the_focus(tmp_path: Path) -> None:
    given = given_tool(tmp_path, api_key={"type": "string", "examples": ["none"]}, z={"type": "string"})
    async with on_stage(given) as stage:
        await stage.open("p.t")
        await stage.type("hush")
        assert "hush" not in stage.text
        assert "^f Reveal" in stage.lines[-1]
        await stage.press("ctrl+f")
        await stage.until_seen("hush")
        await stage.press("tab")
        await stage.until(lambda: "hush" not in stage.text, "it is masked again")
        assert draft(stage) == {"api_key": "hush"}


# Files


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with files and folders."""
    folder = tmp_path / "work"
    for name in ("src/deep", "tests", ".hidden"):
        (folder / name).mkdir(parents=True)
    for name in ("a.txt", "b [red].txt", ".env", "src/code.py", "src/deep/end.py"):
        (folder / name).touch()
    monkeypatch.chdir(folder)
    return folder


PATH: JsonObject = {"type": "string", "format": "file-path"}


def made(name: bytes) -> bool:
    """Create a file of any name, if the file system allows it."""
    try:
        Path(os.fsdecode(name)).touch()
    except OSError:
        return False
    return True


@pytest.mark.promise("TUI-3", "TUI-7")
async def test_a_file_is_picked_by_opening_folders(tmp_path: Path, shelf: Path) -> None:
    async with on_stage(given_tool(tmp_path, path=PATH), size=(80, 24)) as stage:
        await stage.open("p.t")
        await stage.press("ctrl+f")
        await opened(stage, FilePicker)
        assert "b [red].txt" in stage.text
        assert ".env" not in stage.text
        await stage.type("src")
        await stage.press("right")
        await stage.until_seen("code.py")
        await stage.press("enter")
        await stage.until_seen("end.py")
        await stage.press("left")
        await stage.until_seen("code.py")
        await stage.type("code")
        await stage.press("enter")
        await closed(stage)
        assert draft(stage) == {"path": "src/code.py"}


async def test_the_list_of_files_starts_at_the_typed_path(tmp_path: Path, shelf: Path) -> None:
    async with on_stage(given_tool(tmp_path, path=PATH)) as stage:
        await stage.open("p.t")
        await stage.type("src/co")
        await stage.press("ctrl+f")
        await opened(stage, FilePicker)
        await stage.until_seen("code.py")
        assert "deep" not in stage.text
        await stage.press("escape")
        await closed(stage)
        assert draft(stage) == {"path": "src/co"}
        await stage.press("ctrl+u")
        await stage.type(str(shelf / "src"))
        await stage.press("ctrl+f")
        await opened(stage, FilePicker)
        await stage.until_seen("code.py")
        await stage.type("code")
        await stage.press("enter")
        await closed(stage)
        assert draft(stage) == {"path": str(shelf / "src" / "code.py")}


async def test_hidden_files_are_shown_on_demand_or_when_a_dot_is_typed(tmp_path: Path, shelf: Path) -> None:
    async with on_stage(given_tool(tmp_path, path=PATH)) as stage:
        await stage.open("p.t")
        await stage.press("ctrl+f")
        await opened(stage, FilePicker)
        await stage.press("ctrl+t")
        await stage.until_seen(".env")
        await stage.press("escape")
        await closed(stage)
        await stage.type(".h")
        await stage.press("ctrl+f")
        await opened(stage, FilePicker)
        await stage.until_seen(".hidden/")


async def test_the_selected_match_of_a_filter_stays_selected_when_hidden_files_are_shown(
    tmp_path: Path, shelf: Path
) -> None:
    for name in ("some_a", "some_b", ".some_c"):
        (shelf / name).touch()
    async with on_stage(given_tool(tmp_path, path=PATH)) as stage:
        await stage.open("p.t")
        await stage.press("ctrl+f")
        await opened(stage, FilePicker)
        picker = stage.app.screen
        assert isinstance(picker, FilePicker)
        await stage.type("some")
        await stage.press("end")
        await stage.until(lambda: _name(picker) == "some_b", "the last one is selected")
        await stage.press("ctrl+t")
        await stage.until_seen(".some_c")
        assert _name(picker) == "some_b"


def _name(picker: FilePicker) -> str:
    marked = picker._marked()
    return marked.name if marked is not None else ""


@pytest.mark.promise("TUI-3")
async def test_a_folder_is_picked_from_a_list_without_files(tmp_path: Path, shelf: Path) -> None:
    given = given_tool(tmp_path, out_dir={"type": "string", "format": "directory-path"})
    async with on_stage(given) as stage:
        await stage.open("p.t")
        await stage.press("ctrl+f")
        await opened(stage, FilePicker)
        assert "a.txt" not in stage.text
        await stage.press("enter")
        await closed(stage)
        assert draft(stage) == {"out_dir": "src"}
        await stage.press("ctrl+f")
        await opened(stage, FilePicker)
        await stage.until_seen("deep/")
        await stage.press("backspace")
        await stage.until_seen("tests/")
        await stage.press("home", "enter")
        await closed(stage)
        assert draft(stage) == {"out_dir": "."}


async def test_an_unreadable_folder_shows_an_error(tmp_path: Path, shelf: Path) -> None:
    async with on_stage(given_tool(tmp_path, path=PATH)) as stage:
        await stage.open("p.t")
        await stage.press("ctrl+f")
        await opened(stage, FilePicker)
        await stage.type("tests")
        (shelf / "tests").rmdir()
        await stage.press("right")
        await stage.until_seen("Can't read this folder: No such file or directory.")


@pytest.mark.promise("TUI-4")
async def test_a_file_whose_name_is_not_unicode_is_listed_and_refused(tmp_path: Path, shelf: Path) -> None:
    if not made(os.fsencode(shelf) + b"/\xff\x1b[2J"):
        pytest.skip("this file system takes only text for names")
    async with on_stage(given_tool(tmp_path, path=PATH)) as stage:
        await stage.open("p.t")
        await stage.press("ctrl+f")
        await opened(stage, FilePicker)
        await stage.until_seen("name isn't valid Unicode")
        assert "\x1b" not in stage.text
        await stage.press("end", "enter")
        await stage.until_seen("This file can't be sent because its name")
        assert draft(stage) == {}


@pytest.mark.promise("TUI-3")
async def test_a_text_that_is_loaded_while_the_widgets_are_arranged_is_wrapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_none(self: Screen[None], widget: Widget) -> NoReturn:
        raise NoWidget

    async with on_stage(given_tool(tmp_path, body={"type": "string", "format": "textarea"})) as stage:
        await stage.open("p.t")
        await stage.until(lambda: stage.form.query_one(Lines).wrap_width > 0, "the editor has a width")
        with monkeypatch.context() as arranging:
            arranging.setattr(Screen, "find_widget", find_none)
            stage.form.query_one(Lines).load_text(f"{'word ' * 40}end")
        await stage.until_seen("word end")


# Very long texts


@pytest.mark.promise("TUI-2", "TUI-3")
@pytest.mark.parametrize("text", ["x" * 1_000_000, "line of words\n" * 80_000], ids=["one line", "many lines"])
async def test_of_a_megabyte_only_the_first_lines_are_shown_and_all_of_it_is_edited_and_undone(
    tmp_path: Path, text: str
) -> None:
    async with on_stage(given_tool(tmp_path, body={"type": "string"})) as stage:
        await stage.open("p.t")
        await stage.type("before")
        await paste(stage, text)
        await stage.until_seen("more characters: edit in $EDITOR (f4)")
        await stage.type("zzz")
        stage.form.query_one(Lines).move_cursor((0, 0))
        await stage.type("y")
        assert draft(stage) == {"body": f"ybefore{text}zzz"}
        await paste(stage, text)
        assert draft(stage) == {"body": f"y{text}before{text}zzz"}
        await stage.press("ctrl+a", "ctrl+x")
        assert stage.app.clipboard == f"y{text}before{text}zzz"
        assert draft(stage) == {}
        for expected in (f"y{text}before{text}zzz", f"ybefore{text}zzz", f"before{text}zzz", f"before{text}", "before"):
            await stage.press("ctrl+z")
            await stage.until(lambda expected=expected: draft(stage) == {"body": expected}, "it is undone")  # type: ignore[misc]


@pytest.mark.promise("TUI-2", "TUI-3")
async def test_a_hidden_text_is_never_deleted_in_part_and_a_message_names_the_key_of_the_editor(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(20_000)) + "end"
    body: JsonObject = {"type": "string", "format": "textarea"}
    async with on_stage(given_tool(tmp_path, body=body)) as stage:
        await stage.open("p.t")
        await paste(stage, text)
        await stage.press("backspace")
        await stage.until_seen("The hidden text was not changed.")
        await stage.until_seen("press f4 to edit it")
        await stage.press("backspace", "shift+left", "shift+left", "x", "left", "!")
        assert draft(stage) == {"body": f"{text}!"}
        assert len(stage.app._notifications) == 1
        stage.form.query_one(Lines).move_cursor((6, 0))
        await stage.press("shift+end", "delete")
        await stage.until(
            lambda: draft(stage) == {"body": "".join(text.splitlines(keepends=True)[:6])}, "it is deleted"
        )
        await stage.press("ctrl+z")
        await stage.until(lambda: draft(stage) == {"body": f"{text}!"}, "it is undone")


@pytest.mark.parametrize(
    "text",
    ["a\r\n" * 50_000, "\n" + "a\r\nb\n" * 50_000, "a\x0cb\u2028\n" * 50_000, "x\r" * 50_000, "x" * 90_000 + "\r\n"],
    ids=["CRLF", "mixed", "other separators", "CR", "one line"],
)
def test_a_text_of_which_a_part_is_hidden_is_otherwise_unchanged(text: str) -> None:
    lines = Lines(text)
    assert lines.is_cut
    assert lines.text == text


async def test_a_long_text_in_a_line_opens_a_box(tmp_path: Path) -> None:
    async with on_stage(given_tool(tmp_path, word={"type": "string"})) as stage:
        await stage.open("p.t")
        assert stage.form.query(TextLine)
        await paste(stage, "w" * (MOST_IN_PLACE + 1))
        await stage.until(lambda: isinstance(stage.app.focused, Lines), "it is in a box")
        assert draft(stage) == {"word": "w" * (MOST_IN_PLACE + 1)}
        assert stage.form.query_one(Lines).is_cut


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize(
    ("schema", "has_lines"),
    [
        ({"pattern": "^[0-9 +-]+$"}, False),
        ({"pattern": r"^\p{L}+$", "maxLength": 500}, False),
        ({"pattern": r"^(\d{3}-)?\d{4}$"}, False),
        ({"pattern": r"^\s*\S[\s\S]*$"}, True),
        ({"pattern": "^[^<>]*$"}, True),
        ({"pattern": "^a|b$"}, True),
        ({"pattern": r"^US\$"}, True),
        ({"pattern": r"\S"}, True),
        ({"pattern": "^.*$", "format": "multiline"}, True),
        ({}, True),
    ],
)
async def test_a_text_whose_pattern_allows_only_one_line_is_edited_in_a_line(
    tmp_path: Path, schema: JsonObject, has_lines: bool
) -> None:
    async with on_stage(given_tool(tmp_path, body={"type": "string", **schema})) as stage:
        await stage.open("p.t")
        assert bool(stage.form.query(Lines)) is has_lines
        assert bool(stage.form.query(TextLine)) is not has_lines


@pytest.mark.promise("TUI-3")
async def test_the_json_of_a_very_long_argument_is_shown_as_an_excerpt_and_sent_whole(tmp_path: Path) -> None:
    given = given_tool(tmp_path, body={"type": "string"}, n={"type": "integer"})
    async with on_stage(given) as stage:
        await stage.open("p.t")
        await paste(stage, "b" * 200_000)
        await stage.press("tab", "7", "ctrl+t")
        await stage.until(lambda: stage.form.query(Lines), "the JSON is shown")
        await stage.until_seen("more characters: edit in $EDITOR (f4)")
        await stage.press("ctrl+t")
        assert stage.form.submit() == {"body": "b" * 200_000, "n": 7}


async def test_undo_in_a_box_reverts_typing_before_the_form_reverts_a_fill(tmp_path: Path) -> None:
    async with on_stage(given_tool(tmp_path, body={"type": "string"})) as stage:
        await stage.open("p.t")
        await stage.type("first")
        stage.form.load({"body": "second"})
        await stage.until(lambda: isinstance(stage.app.focused, TextBox), "the box has the focus")
        await stage.press("ctrl+end", "x", "ctrl+z")
        assert draft(stage) == {"body": "second"}
        await stage.press("ctrl+z")
        assert draft(stage) == {"body": "first"}
