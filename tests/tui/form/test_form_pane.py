"""The form pane, driven by keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from pegboard.models import JsonObject
from pegboard.tui.form.choices import Choices
from pegboard.tui.form.editors import TextLine
from pegboard.tui.form.rows import AddLine
from pegboard.tui.widgets.pick_list import PickList

from .form_stage import SIZE, FormApp, settled, show, spec_of, until


@pytest.mark.promise("TUI-3", "TUI-7")
async def test_every_kind_of_field_is_filled_by_keys(app: FormApp) -> None:
    spec = spec_of(
        {
            "word": {"type": "string"},
            "number": {"type": "integer"},
            "switch": {"type": "boolean"},
            "choice": {"enum": ["a", 2, None]},
            "list": {"type": "array", "items": {"type": "integer"}},
            "body": {"type": "string"},
            "fixed": {"const": "c"},
        },
        "word",
        "fixed",
    )
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec)
        await pilot.press(*"12", "enter", *"34", "down", "f", "tab", "right", "right", "tab")
        await pilot.press("enter", *"5", "enter", *"6", "tab", "tab")
        await pilot.press(*"l1", "enter", *"l2", "tab")
        assert app.pane.submit() == {
            "word": "12",
            "number": 34,
            "switch": False,
            "choice": 2,
            "list": [5, 6],
            "body": "l1\nl2",
            "fixed": "c",
        }


@pytest.mark.promise("TUI-3")
async def test_one_key_switches_between_unset_empty_and_null_and_the_state_is_shown(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": ["string", "null"], "default": "d"}}))
        seen = []
        for _ in range(4):
            seen.append((app.pane.submit(), next(state for state in STATES if state in app.text)))
            await pilot.press("ctrl+k")
            await pilot.pause()
        assert seen == [
            ({}, "  unset"),
            ({"x": ""}, "empty string"),
            ({"x": None}, "  null"),
            ({}, "  unset"),
        ]


@pytest.mark.promise("SDK-14", "TUI-3")
async def test_arguments_of_an_earlier_call_may_have_other_names_of_the_parameters(app: FormApp) -> None:
    spec = spec_of({"text": {"type": "string"}}, "text").model_copy(update={"parameter_aliases": {"query": "text"}})
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"text": {"type": "string"}}, "text"))
        app.pane.show(spec, {"query": "saw"})
        await until(pilot, lambda: "saw" in app.text)
        assert "query" not in app.text
        assert app.pane.submit() == {"text": "saw"}
        await pilot.press("ctrl+t")
        await pilot.press("ctrl+a", "delete", *'{"query":"nail"}', "ctrl+t")
        await until(pilot, lambda: "nail" in app.text)
        assert app.pane.submit() == {"text": "nail"}


STATES = ("  unset", "empty string", "  null")


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize(
    ("schema", "keys", "value", "states"),
    [
        ({"type": ["string", "null"]}, "abc", "abc", [{}, {"x": ""}, {"x": None}]),
        ({"type": ["integer", "null"]}, "12", 12, [{}, {"x": None}]),
        ({"enum": ["a", "b", None]}, "b", "b", [{}, {"x": None}]),
        ({"type": "boolean"}, "t", True, [{}]),
        ({"type": "string", "format": "textarea", "maxLength": 5000}, "abc", "abc", [{}, {"x": ""}]),
    ],
)
@pytest.mark.parametrize("required", [False, True])
async def test_switching_states_returns_to_the_typed_value(
    app: FormApp, schema: JsonObject, keys: str, value: JsonValue, states: list[JsonObject], required: bool
) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": schema}, *(["x"] if required else [])))
        await pilot.press(*keys)
        for _ in range(2):
            seen = []
            for _ in states:
                await pilot.press("ctrl+k")
                seen.append(app.form.draft())
            assert seen == states
            await pilot.press("ctrl+k")
            assert app.pane.submit() == {"x": value}


@pytest.mark.promise("TUI-3")
async def test_switching_states_restores_the_rows_of_a_list(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": "array", "items": {"type": "string"}}}))
        await pilot.press("enter", "a", "enter", "b", "tab")
        assert isinstance(app.focused, AddLine)
        seen = []
        for _ in range(3):
            await pilot.press("ctrl+k")
            seen.append(app.pane.submit())
        assert seen == [{}, {"x": []}, {"x": ["a", "b"]}]
        await pilot.press("shift+tab", "c")
        assert app.pane.submit() == {"x": ["a", "bc"]}
        await pilot.press("ctrl+k")
        assert app.form.draft() == {"x": ["a", ""]}
        await pilot.press("ctrl+k")
        assert app.pane.submit() == {"x": ["a", "bc"]}


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("more", [{}, {"maxLength": 5000, "format": "textarea"}])
@pytest.mark.parametrize("default", [None, "null", ""])
async def test_an_empty_editor_shows_the_value_that_is_sent_or_the_default(
    app: FormApp, more: JsonObject, default: JsonValue
) -> None:
    async with app.run_test(size=(100, 24)) as pilot:
        await show(pilot, spec_of({"x": {"type": ["string", "null"], "default": default, **more}}))
        written = json.dumps(default)
        seen = []
        for _ in range(4):
            label, editor = app.text.splitlines()[:2]
            seen.append((label.rstrip().split("  ")[-1], editor.strip(" █▌▐▍▎▏")))
            await pilot.press("ctrl+k")
            await pilot.pause()
        unset = ("unset", f"default {written}")
        assert seen == [unset, ("empty string", "an empty string is sent"), ("null", "null is sent"), unset]
        await pilot.press("v", "backspace")
        await pilot.pause()
        assert "is sent" not in app.text
        assert "unset" in app.text


async def test_typing_after_null_makes_it_a_value_and_deleting_all_unsets_it(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": ["integer", "null"]}}))
        await pilot.press("ctrl+k", "7")
        assert app.pane.submit() == {"x": 7}
        await pilot.press("backspace")
        assert app.pane.submit() == {}


@pytest.mark.promise("TUI-3")
async def test_a_switch_can_be_unset_and_is_changed_by_arrows_letters_and_mouse(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": ["boolean", "null"]}}))
        assert "● unset  ○ true  ○ false  ○ null" in app.text
        found = []
        for key in ("right", "right", "right", "right", "left", "t", "u", "space"):
            await pilot.press(key)
            found.append(app.pane.submit())
        values = [True, False, None, None, False, True]
        assert found == [*({"x": value} for value in values), {}, {"x": True}]
        await pilot.click(Choices, offset=(2 + len("● unset  ○ true  "), 0))
        assert app.pane.submit() == {"x": False}


async def test_a_required_switch_cannot_be_unset_and_does_not_default_to_false(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": "boolean"}}, "x"))
        assert app.pane.submit() is None
        assert "○ true  ○ false" in app.text
        await pilot.press("left")
        assert app.pane.submit() == {"x": False}


async def test_many_choices_are_listed_and_found_by_typing(app: FormApp) -> None:
    values: list[JsonValue] = [f"{letter}{index}" for letter in "abc" for index in range(1000)]
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"enum": values}, "y": {"type": "string"}}))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.focused, PickList))
        await pilot.press("c", "down", "enter")
        await until(pilot, lambda: isinstance(app.focused, Choices))
        assert app.pane.submit() == {"x": "c1"}
        assert "▾ c1  2,003 of 3,001" in app.text
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.focused, PickList))
        await pilot.press("up", "escape")
        await until(pilot, lambda: isinstance(app.focused, Choices))
        assert isinstance(app.focused, Choices)
        assert app.pane.submit() == {"x": "c1"}


async def test_rows_are_added_removed_and_moved_by_keys_and_by_mouse(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": "array", "items": {"type": "string"}}}))
        await pilot.press("space", "a", "enter", "b", "enter", "c")
        assert app.pane.submit() == {"x": ["a", "b", "c"]}
        await pilot.press("alt+up", "alt+up", "alt+up")
        assert app.pane.submit() == {"x": ["c", "a", "b"]}
        await pilot.press("alt+down", "d")
        assert app.pane.submit() == {"x": ["a", "cd", "b"]}
        await pilot.press("ctrl+delete")
        assert app.pane.submit() == {"x": ["a", "b"]}
        await pilot.press("e")
        assert app.pane.submit() == {"x": ["a", "be"]}
        await pilot.click(AddLine)
        assert app.pane.submit() == {"x": ["a", "be", ""]}
        await pilot.press("ctrl+delete", "ctrl+delete", "ctrl+delete")
        await until(pilot, lambda: isinstance(app.focused, AddLine))
        assert app.pane.submit() == {}
        await pilot.press("ctrl+k")
        assert app.pane.submit() == {"x": []}


@pytest.mark.promise("TUI-3")
async def test_the_rows_of_a_list_stay_aligned_when_their_numbers_become_wider(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": "array", "items": {"type": "string"}}}))
        for row in range(10):
            await pilot.press(*f"r{row}", "enter")
            await settled(pilot)
        assert " 9 ▌ r8" in app.text
        assert "10 ▌ r9" in app.text


@pytest.mark.promise("TUI-7")
@pytest.mark.parametrize("text", ["second", "About it.", "must match"])
async def test_a_click_on_the_text_around_an_editor_focuses_the_editor(app: FormApp, text: str) -> None:
    fields: JsonObject = {
        "first": {"type": "string"},
        "second": {"type": "string", "description": "About it.", "pattern": "^a$"},
    }
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of(fields))
        await pilot.press("tab", "b", "shift+tab")
        app.pane.submit()
        await pilot.press("shift+tab", "a")
        await until(pilot, lambda: "✗" in app.text)
        rows = app.text.split("\n")
        row = next(number for number, line in enumerate(rows) if text in line)
        await pilot.click(offset=(rows[row].index(text), row))
        await until(pilot, lambda: app.path == "/second")


@pytest.mark.promise("TUI-3")
async def test_errors_of_touched_fields_appear_after_a_pause(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"a": {"type": "string"}, "n": {"type": "integer"}}, "a"))
        await pilot.press("tab", *"ten")
        assert "✗" not in app.text
        await until(pilot, lambda: app.announced)
        await pilot.pause()
        assert [fault.path for fault in app.announced[-1]] == ["/a", "/n"]
        assert '✗ must be an integer, not "ten"' in app.text
        assert "is required" not in app.text
        await pilot.press("backspace", "backspace", "backspace", "5")
        await until(pilot, lambda: "✗" not in app.text)


@pytest.mark.promise("TUI-3")
async def test_running_shows_all_errors_and_focuses_the_first(app: FormApp) -> None:
    properties: JsonObject = {f"p{index}": {"type": "string"} for index in range(40)}
    items: JsonObject = {"type": "array", "items": {"type": "integer"}}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({**properties, "list": items, "z": {"type": "string"}}, "z"))
        app.pane.load({"list": [1, 2]})
        app.pane.focus_field("/list/1")
        await until(pilot, lambda: isinstance(app.focused, TextLine) and app.path == "/list/1")
        row = app.focused
        await pilot.press("x")
        app.set_focus(None)
        app.pane.scroll_home(animate=False)
        assert app.pane.submit() is None
        await until(pilot, lambda: app.focused is row)
        await until(pilot, lambda: '✗ must be an integer, not "2x"' in app.text)

        def at_the_end() -> bool:
            app.pane.scroll_end(animate=False)
            return "✗ is required" in app.text

        await until(pilot, at_the_end)
        app.pane.load({"list": [1, 2]})
        assert app.pane.submit() is None
        await until(pilot, lambda: app.focused is not None and app.path == "/z")
        await pilot.pause()
        assert app.path == "/z"


async def test_half_filled_forms_are_kept_per_tool(app: FormApp) -> None:
    one, other = spec_of({"x": {"type": "string"}}, name="a.one"), spec_of({"x": {"type": "string"}}, name="a.two")
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, one)
        await pilot.press("h", "i")
        await show(pilot, other, focus=False)
        assert app.pane.submit() == {}
        await show(pilot, one, focus=False)
        assert app.pane.submit() == {"x": "hi"}
        app.pane.show(other, {"x": "given"})
        assert app.pane.submit() == {"x": "given"}
        app.pane.clear()
        assert app.pane.form is None
        assert app.pane.submit() is None


async def test_a_rescan_keeps_typed_values_and_the_focus(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": "string"}, "n": {"type": "integer"}}))
        await pilot.press("tab", *"te")
        line = app.focused
        app.pane.show(spec_of({"x": {"type": "string"}, "n": {"type": "integer"}}))
        await pilot.press("n")
        assert app.focused is line
        app.pane.show(spec_of({"n": {"type": "integer"}, "y": {"type": "string"}}, "y"))
        await until(pilot, lambda: isinstance(app.focused, TextLine) and app.focused is not line)
        assert app.form.draft() == {"n": "ten"}
        await pilot.press("0")
        assert app.form.draft() == {"n": "ten0"}


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("path", ["/needed/x", "/optional/x", "/nested/inner/x", "/union/x"])
async def test_a_rescan_keeps_the_focus_in_an_untouched_field_of_an_object(app: FormApp, path: str) -> None:
    box: JsonValue = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    parts: dict[str, JsonValue] = {
        "needed": box,
        "optional": box,
        "nested": {"type": "object", "properties": {"inner": box}},
        "union": {"anyOf": [box, {"type": "object", "properties": {"y": {"type": "string"}}, "required": ["y"]}]},
    }
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of(parts, "needed"))
        app.pane.focus_field(path)
        await until(pilot, lambda: isinstance(app.focused, TextLine))
        line = app.focused
        app.pane.show(spec_of({**parts, "more": {"type": "integer"}}, "needed"))
        await until(pilot, lambda: isinstance(app.focused, TextLine) and app.focused is not line)
        await pilot.press("a")
        field = app.form.field_at(path)
        assert field is not None
        assert (field.path, field.text) == (path, "a")


@pytest.mark.promise("TUI-3")
async def test_a_rescan_shows_options_whose_type_changed(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"enum": [0, 1]}}))
        app.pane.show(spec_of({"x": {"enum": [False, True]}}))
        app.pane.load({"x": True})
        assert app.pane.submit() == {"x": True}


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("fill", [True, False], ids=["filled", "reset"])
async def test_undo_restores_typed_text_after_the_form_was_filled_or_reset_twice(app: FormApp, fill: bool) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": "string"}}))
        await pilot.press(*"typed")
        for _ in range(2):
            if fill:
                app.pane.load({"x": "last call"})
            else:
                app.pane.action_reset()
        assert app.pane.submit() == ({"x": "last call"} if fill else {})
        app.pane.action_bring_back()
        assert app.pane.submit() == {"x": "typed"}
        app.pane.action_bring_back()
        assert app.pane.submit() == ({"x": "last call"} if fill else {})


@pytest.mark.promise("TUI-3")
async def test_a_fill_can_be_undone_after_the_schema_has_changed(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        text: JsonObject = {"type": "string"}
        await show(pilot, spec_of({"x": text, "y": text}))
        await pilot.press(*"typed")
        app.pane.load({"x": "last call", "y": "too"})
        app.pane.show(spec_of({"x": text, "z": text}))
        assert app.pane.submit() == {"x": "last call"}
        app.pane.action_bring_back()
        assert app.pane.submit() == {"x": "typed"}
        app.pane.action_bring_back()
        assert app.pane.submit() == {"x": "last call"}


@pytest.mark.promise("TUI-4")
async def test_untrusted_text_is_shown_as_plain_text(app: FormApp) -> None:
    nasty = "[red]x[/red] \x1b]0;title\x07 \u202eflip \u3164\U000e0041"
    schema: JsonObject = {
        "type": "string",
        "title": nasty,
        "description": nasty,
        "default": nasty,
        "examples": [nasty],
        "pattern": "[/]\x1b",
    }
    properties: JsonObject = {
        nasty: schema,
        "choice": {"enum": [nasty, "b"]},
        "many": {"enum": [nasty, *"abcdefghijklmnopqrstuvwxyz"], "default": nasty},
        "json": {"description": nasty},
        "list": {"type": "array", "items": {"type": "string"}},
    }
    async with app.run_test(size=(100, 60)) as pilot:
        await show(pilot, spec_of(properties))
        arguments: JsonObject = {nasty: nasty, "choice": nasty, "many": nasty, "json": nasty, "list": [nasty, "a\nb"]}
        shots = [app.text]
        app.pane.load(arguments)
        app.pane.submit()
        await pilot.pause()
        shots.append(app.text)
        await pilot.press("ctrl+t")
        await pilot.pause()
        shots.append(app.text)
        assert all("[red]x[/red]" in words for words in shots)
        assert not {"\x1b", "\x07", "\u202e", "\u3164", "\U000e0041"} & set("".join(shots))
        assert app.form.draft() == arguments


async def test_secrets_are_masked(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"api_key": {"type": "string", "default": "swordfish"}}, "api_key"))
        await pilot.press("end", "!")
        assert app.pane.submit() == {"api_key": "swordfish!"}
        assert "swordfish" not in app.text


async def test_a_tool_without_arguments_shows_a_note_and_sends_none(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({}), focus=False)
        assert "This tool has no arguments." in app.text
        assert app.pane.submit() == {}
        app.pane.load({"extra": 1})
        await until(pilot, lambda: "other arguments" in app.text)
        assert app.pane.submit() == {"extra": 1}


async def test_the_error_of_an_unknown_argument_is_visible(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"path": {"type": "string"}}, additionalProperties=False))
        app.pane.load({"pth": "x"})
        await settled(pilot)
        assert app.pane.submit() is None
        await pilot.pause()
        await until(pilot, lambda: "✗ unknown argument; did you mean `path`?" in app.text)


async def test_a_missing_constant_can_be_set_again(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"mode": {"const": "fast"}}, "mode"), focus=False)
        app.pane.load({})
        await pilot.pause()
        assert app.pane.submit() is None
        await until(pilot, lambda: isinstance(app.focused, Choices))
        await pilot.press("space")
        assert app.pane.submit() == {"mode": "fast"}


@pytest.mark.promise("TUI-3")
async def test_a_sample_of_the_corpus_is_loaded_and_returned_unchanged(app: FormApp, data_folder: Path) -> None:
    lines = (data_folder / "schemas" / "open.jsonl").read_text(encoding="utf-8").splitlines()[::40]
    lines += (data_folder / "schemas" / "hardcases.jsonl").read_text(encoding="utf-8").splitlines()
    wrong = []
    async with app.run_test(size=SIZE) as pilot:
        for line in lines:
            row = json.loads(line)
            examples = row["valid"][-1:]
            spec = spec_of({}, name=row["id"]).model_copy(update={"input_schema": row["schema"]})
            for example in examples:
                app.pane.show(spec, example)
                await pilot.pause()
                if json.dumps(app.pane.submit(), sort_keys=True) != json.dumps(example, sort_keys=True):
                    wrong.append(row["id"])
    assert wrong == []


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("fields", range(6, 14))
async def test_an_error_below_the_viewport_is_scrolled_into_view(app: FormApp, fields: int) -> None:
    properties: JsonObject = {f"n{index}": {"type": "integer"} for index in range(fields)}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of(properties))
        await pilot.press(*["tab"] * (fields - 1), *"soon")
        await until(pilot, lambda: 'must be an integer, not "soon"' in app.text)


async def test_the_unset_command_appears_once_text_is_typed(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"n": {"type": "integer"}}))
        assert "Unset/null" not in app.text
        await pilot.press("1")
        await until(pilot, lambda: "Unset/null" in app.text)
        await pilot.press("ctrl+k")
        assert app.pane.submit() == {}
