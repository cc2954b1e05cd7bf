"""Sections, lists, tuples, maps and variants, filled by keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from pegboard.models import JsonObject
from pegboard.tui.form.editors import JsonBox, TextBox, TextLine
from pegboard.tui.form.rows import AddLine, Fold, KeyLine, Selector

from .form_stage import SIZE, FormApp, settled, show, spec_of, until

TEXT: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "integer"}
POINT: JsonObject = {"type": "object", "properties": {"x": NUMBER, "y": NUMBER}, "required": ["x"]}


@pytest.mark.promise("TUI-3", "TUI-7")
async def test_a_section_has_the_fields_of_its_properties_and_folds(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"at": POINT, "name": TEXT}))
        assert isinstance(app.focused, Fold)
        await pilot.press("tab", "4", "tab", "5")
        assert app.pane.submit() == {"at": {"x": 4, "y": 5}}
        app.pane.focus_field("/at")
        await pilot.press("enter")
        await until(pilot, lambda: "▸ at  {2 of 2 set}" in app.text)
        assert "x *" not in app.text
        await pilot.press("tab", "n")
        assert app.pane.submit() == {"at": {"x": 4, "y": 5}, "name": "n"}
        await pilot.press("shift+tab", "right", "tab", "0")
        assert app.pane.submit() == {"at": {"x": 40, "y": 5}, "name": "n"}


@pytest.mark.promise("TUI-3", "TUI-7")
async def test_left_folds_a_section_and_then_focuses_the_enclosing_one(app: FormApp) -> None:
    outer: JsonObject = {"type": "object", "properties": {"inner": POINT}}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"outer": outer}))
        app.pane.focus_field("/outer/inner")
        await until(pilot, lambda: app.path == "/outer/inner")
        await pilot.press("left")
        assert app.path == "/outer/inner"
        await pilot.press("left")
        assert app.path == "/outer"
        await pilot.press("left", "right", "tab")
        assert app.path == "/outer/inner"


async def test_one_command_folds_or_unfolds_every_section(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"a": POINT, "b": {"type": "object", "properties": {"at": POINT}}}))
        app.pane.focus_field("/b/at/y")
        await until(pilot, lambda: app.path == "/b/at/y")
        await pilot.press("7")
        app.pane.action_fold_all()
        await until(pilot, lambda: app.path == "/b")
        assert [item.field.path for item in app.body.items] == ["/a", "/b"]
        app.pane.action_unfold_all()
        assert [item.field.path for item in app.body.items][-1] == "/b/at/y"
        assert app.form.draft() == {"b": {"at": {"y": 7}}}


@pytest.mark.promise("TUI-3")
async def test_large_optional_sections_start_folded_unless_they_have_values(app: FormApp) -> None:
    many: JsonObject = {"type": "object", "properties": {f"p{index}": TEXT for index in range(5)}}
    around: JsonObject = {"type": "object", "properties": {"may": many, "must": many}, "required": ["must"]}
    async with app.run_test(size=(80, 50)) as pilot:
        await show(pilot, spec_of({"top": many, "around": around}))
        folded = [item.field.path for item in app.body.items if not item.is_open]
        assert folded == ["/around/may"]
        app.pane.load({"around": {"may": {"p1": "v"}}})
        await settled(pilot)
        assert [item.field.path for item in app.body.items if not item.is_open] == []


@pytest.mark.promise("TUI-3")
async def test_recursive_sections_unfold_on_request(app: FormApp) -> None:
    node: JsonObject = {"type": "object", "properties": {"v": TEXT, "next": {"$ref": "#/$defs/node"}}}
    async with app.run_test(size=SIZE) as pilot:
        spec = spec_of({"list": {"$ref": "#/$defs/node"}})
        schema: JsonObject = {**spec.input_schema, "$defs": {"node": node}}
        await show(pilot, spec.model_copy(update={"input_schema": schema}))
        for value in "abc":
            await pilot.press("tab", value, "tab", "right")
        assert app.pane.submit() == {"list": {"v": "a", "next": {"v": "b", "next": {"v": "c"}}}}
        app.pane.action_unfold_all()
        assert len(app.body.items) < 20


@pytest.mark.promise("TUI-3", "TUI-7")
async def test_rows_that_are_sections_are_added_filled_moved_and_removed(app: FormApp) -> None:
    edit: JsonObject = {"type": "object", "properties": {"op": {"enum": ["add", "cut"]}, "n": NUMBER}}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"edits": {"type": "array", "items": edit}}))
        await pilot.press("enter", "a", "tab", "1", "tab")
        assert isinstance(app.focused, AddLine)
        await pilot.press("enter", "c", "tab", "2")
        assert app.pane.submit() == {"edits": [{"op": "add", "n": 1}, {"op": "cut", "n": 2}]}
        app.pane.focus_field("/edits/1")
        await until(pilot, lambda: app.path == "/edits/1")
        await pilot.press("left", "alt+up")
        assert app.path == "/edits/0"
        await until(pilot, lambda: "▸ 1  op: cut, n: 2" in app.text)
        assert app.pane.submit() == {"edits": [{"op": "cut", "n": 2}, {"op": "add", "n": 1}]}
        await pilot.press("ctrl+delete")
        assert app.path == "/edits/0"
        assert app.pane.submit() == {"edits": [{"op": "add", "n": 1}]}
        await pilot.press("ctrl+delete")
        await until(pilot, lambda: isinstance(app.focused, AddLine))
        assert app.pane.submit() == {}


@pytest.mark.promise("TUI-3")
async def test_a_list_of_lists_has_nested_rows(app: FormApp) -> None:
    lists: JsonObject = {"type": "array", "items": {"type": "array", "items": NUMBER}}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"grid": lists}))
        await pilot.press("enter", "enter", "1", "enter", "2", "tab", "tab", "enter", "enter", "3")
        assert app.pane.submit() == {"grid": [[1, 2], [3]]}


@pytest.mark.promise("TUI-3")
async def test_the_fixed_rows_of_a_tuple_cannot_be_removed(app: FormApp) -> None:
    pair: JsonObject = {
        "type": "array",
        "prefixItems": [{**NUMBER, "title": "Width"}, TEXT],
        "items": {"type": "boolean"},
    }
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"pair": pair}))
        assert "1  Width  integer" in app.text
        await pilot.press("tab", "5", "ctrl+delete", "alt+down", "tab", "t", "tab", "enter", "t")
        assert app.pane.submit() == {"pair": [5, "t", True]}
        await pilot.press("ctrl+delete")
        assert app.pane.submit() == {"pair": [5, "t"]}


@pytest.mark.promise("TUI-3", "TUI-7")
async def test_the_entries_of_a_map_are_named_filled_renamed_and_removed(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"labels": {"type": "object", "additionalProperties": NUMBER}}))
        await pilot.press("enter")
        assert isinstance(app.focused, KeyLine)
        await pilot.press("a", "enter", "1", "enter")
        assert isinstance(app.focused, KeyLine)
        await pilot.press("b", "tab", "2")
        assert app.pane.submit() == {"labels": {"a": 1, "b": 2}}
        await pilot.press("shift+tab", "x")
        assert app.pane.submit() == {"labels": {"a": 1, "bx": 2}}
        await pilot.press("alt+up")
        assert json.dumps(app.form.draft()) == '{"labels": {"bx": 2, "a": 1}}'
        await pilot.press("ctrl+delete")
        assert app.pane.submit() == {"labels": {"a": 1}}


@pytest.mark.promise("TUI-3")
async def test_missing_and_duplicate_keys_are_errors_of_their_entry(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"labels": {"type": "object", "additionalProperties": TEXT}}))
        await pilot.press("enter", "k", "enter", "v", "enter", "k", "enter", "w", "enter")
        assert app.pane.submit() is None
        await pilot.pause()
        lines = app.text.splitlines()
        told = [number for number, line in enumerate(lines) if "✗" in line]
        assert ["is given twice" in lines[number] or "has no name" in lines[number] for number in told] == [True, True]
        assert "w" in lines[told[0] - 1]
        await until(pilot, lambda: isinstance(app.focused, KeyLine) and app.focused.item.index == 1)
        await pilot.press("2")
        app.pane.focus_field("/labels/")
        await until(pilot, lambda: isinstance(app.focused, KeyLine) and app.focused.item.index == 2)
        await pilot.press("ctrl+delete")
        assert app.pane.submit() == {"labels": {"k": "v", "k2": "w"}}


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("keys", ["k", "n"], ids=["twice", "name of another field"])
async def test_entries_that_json_cannot_hold_are_not_edited_as_json(app: FormApp, keys: str) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"n": TEXT}, additionalProperties=TEXT))
        await pilot.press("tab", "enter", keys, "tab", "v", "enter", keys, "tab", "w")
        before = [(one.path, one.text) for one in app.form.walk()]
        await pilot.press("ctrl+t")
        await until(pilot, lambda: any("JSON can't hold all entries." in one.message for one in app._notifications))
        assert not app.query(JsonBox)
        assert [(one.path, one.text) for one in app.form.walk()] == before
        for _ in range(2):
            await pilot.press("ctrl+delete")
        await pilot.press("ctrl+t")
        await until(pilot, lambda: app.query(JsonBox))


@pytest.mark.promise("TUI-3", "STO-2")
async def test_a_value_is_hidden_once_its_key_names_a_secret(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"labels": {"type": "object", "additionalProperties": TEXT}}))
        await pilot.press("enter", "k", "tab", *"hush")
        await until(pilot, lambda: "hush" in app.text)
        await pilot.press("shift+tab", "backspace", *"api_key", "enter")
        await until(pilot, lambda: "hush" not in app.text)
        assert app.pane.submit() == {"labels": {"api_key": "hush"}}


@pytest.mark.promise("TUI-3")
async def test_the_keys_that_a_schema_lists_are_offered(app: FormApp) -> None:
    keyed: JsonObject = {
        "type": "object",
        "propertyNames": {"enum": ["left", "right"]},
        "additionalProperties": NUMBER,
    }
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"margins": keyed}))
        await pilot.press("enter")
        await until(pilot, lambda: "one of left, right" in app.text)
        await pilot.press("r")
        await until(pilot, lambda: "right" in app.text)
        await pilot.press("right", "enter", "3")
        assert app.pane.submit() == {"margins": {"right": 3}}


@pytest.mark.promise("TUI-3", "TUI-7")
async def test_choosing_a_variant_keeps_the_values_of_the_other(app: FormApp) -> None:
    def shape(kind: str, **properties: JsonValue) -> JsonObject:
        return {
            "type": "object",
            "properties": {"kind": {"const": kind}, "name": TEXT, **properties},
            "required": ["kind", *properties],
        }

    union: JsonObject = {"oneOf": [shape("circle", radius=NUMBER), shape("square", side=NUMBER)]}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"shape": union}, "shape"))
        assert "● circle  ○ square" in app.text
        await pilot.press("tab")
        assert isinstance(app.focused, Selector)
        await pilot.press("tab", *"me", "tab", "5")
        assert app.pane.submit() == {"shape": {"kind": "circle", "name": "me", "radius": 5}}
        app.pane.focus_field("/shape")
        await pilot.press("tab", "right")
        assert isinstance(app.focused, Selector)
        await pilot.press("tab", "tab", "6")
        assert app.pane.submit() == {"shape": {"kind": "square", "name": "me", "side": 6}}
        app.pane.focus_field("/shape")
        await pilot.press("tab", "c")
        assert app.pane.submit() == {"shape": {"kind": "circle", "name": "me", "radius": 5}}
        await pilot.press("shift+tab", "left")
        await until(pilot, lambda: "▸ shape *  circle {3 of 3 set}" in app.text)


@pytest.mark.promise("TUI-3")
async def test_a_union_of_plain_values_has_its_editor_beneath_the_choice(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"v": {"type": ["string", "integer", "null"]}}))
        await pilot.press("tab", "1")
        assert app.pane.submit() == {"v": "1"}
        await pilot.press("shift+tab", "right", "tab", "2")
        assert app.pane.submit() == {"v": 2}
        await pilot.press("ctrl+k", "ctrl+k")
        assert app.form.draft() == {"v": None}
        await pilot.press("ctrl+k")
        assert app.pane.submit() == {"v": 2}


@pytest.mark.promise("TUI-3")
async def test_text_typed_on_the_choice_of_a_variant_goes_to_the_editor_beneath_it(app: FormApp) -> None:
    union: JsonObject = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "string", "format": "multiline"}]}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"v": union}))
        assert isinstance(app.focused, Selector)
        await pilot.press(*"ten")
        assert app.pane.submit() == {"v": "ten"}
        await pilot.press("shift+tab", "right", "right", *"!?")
        assert app.pane.submit() == {"v": "!?"}


@pytest.mark.promise("TUI-3")
async def test_opening_a_form_focuses_the_first_editor(app: FormApp) -> None:
    section: JsonObject = {"type": "object", "properties": {"name": TEXT}}
    either: JsonObject = {"anyOf": [{"type": "string"}, {"type": "number"}]}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"who": section, "price": either}, "who", "price"), focus=False)
        app.pane.focus_field()
        await pilot.press("x")
        assert app.form.draft() == {"who": {"name": "x"}}
        await show(pilot, spec_of({"price": either, "who": section}, "price", name="pack.other"), focus=False)
        app.pane.focus_field()
        await pilot.press("7")
        assert app.form.draft() == {"price": "7"}


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("kind", [{"type": "array", "items": TEXT}, {"type": "object", "additionalProperties": TEXT}])
async def test_opening_a_form_focuses_a_required_list_before_later_fields(app: FormApp, kind: JsonObject) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"names": kind, "note": TEXT}, "names"), focus=False)
        app.pane.focus_field()
        await settled(pilot)
        assert app.path == "/names"
        await show(pilot, spec_of({"names": kind, "note": TEXT}, name="pack.other"), focus=False)
        app.pane.focus_field()
        await settled(pilot)
        assert app.path == "/note"


@pytest.mark.promise("TUI-3")
async def test_any_json_value_can_be_entered_if_the_schema_allows_any(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"v": {}}))
        await pilot.press("right", "right", "right")
        assert isinstance(app.focused, Selector)
        await pilot.press("tab", "enter", "right")
        await pilot.press("tab", "7", "enter", "tab", *"text")
        assert app.pane.submit() == {"v": [7, "text"]}


@pytest.mark.promise("TUI-3")
async def test_a_schema_that_is_a_union_starts_with_the_choice_of_a_variant(app: FormApp) -> None:
    schema: JsonObject = {
        "oneOf": [
            {"title": "By name", "type": "object", "properties": {"name": TEXT}, "required": ["name"]},
            {"title": "By id", "type": "object", "properties": {"id": NUMBER}, "required": ["id"]},
        ]
    }
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({}).model_copy(update={"input_schema": schema}))
        assert "● By name  ○ By id" in app.text
        await pilot.press("right", "tab", "4", "2")
        assert app.pane.submit() == {"id": 42}


@pytest.mark.promise("TUI-3")
async def test_a_section_is_unset_empty_null_or_filled(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        section: JsonObject = {"type": ["object", "null"], "properties": {"n": NUMBER, "at": POINT}}
        await show(pilot, spec_of({"s": section, "z": TEXT}))
        await pilot.press("tab", "5", "shift+tab")
        for _ in range(2):
            assert app.form.draft() == {"s": {"n": 5}}
            await pilot.press("ctrl+k")
            assert app.form.draft() == {}
            await pilot.press("ctrl+k")
            await until(pilot, lambda: "empty object" in app.text)
            assert app.form.draft() == {"s": {}}
            await pilot.press("ctrl+k")
            await until(pilot, lambda: "▸ s  null" in app.text)
            assert app.form.draft() == {"s": None}
            await pilot.press("ctrl+k")
        await pilot.press("ctrl+k", "ctrl+k", "ctrl+k", "right")
        assert app.form.draft() == {"s": {"n": 5}}
        await until(pilot, lambda: "n  integer" in app.text)
        assert app.path == "/s"


@pytest.mark.promise("TUI-3")
async def test_errors_in_folded_content_are_counted_and_focused_on_run(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"a": POINT, "list": {"type": "array", "items": POINT}}))
        app.pane.load({"a": {"x": "one", "y": "two"}, "list": [{"x": 1}, {}]})
        await settled(pilot)
        app.pane.action_fold_all()
        await until(pilot, lambda: "▸ a  {2 of 2 set}  ✗ 2 errors" in app.text)
        assert app.pane.submit() is None
        await until(pilot, lambda: app.path == "/a/x")
        assert '✗ must be an integer, not the text "one"' in app.text
        assert "▸ list  2 rows  ✗ 1 error" in app.text
        await pilot.press(*["backspace"] * 5, "1", "tab", *["backspace"] * 5)
        assert app.pane.submit() is None
        await until(pilot, lambda: app.path == "/list/1/x")
        await pilot.press("3")
        assert app.pane.submit() == {"a": {"x": 1}, "list": [{"x": 1}, {"x": 3}]}
        await until(pilot, lambda: "✗" not in app.text)


@pytest.mark.promise("TUI-3")
async def test_a_missing_property_of_a_folded_section_is_focused_on_run(app: FormApp) -> None:
    deep: JsonObject = {"type": "object", "properties": {f"p{n}": POINT for n in range(4)}, "required": ["p3"]}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"a": {"type": "object", "properties": {"deep": deep, "n": NUMBER}}}))
        app.pane.load({"a": {"deep": {}}})
        app.pane.action_fold_all()
        assert app.pane.submit() is None
        await until(pilot, lambda: app.path == "/a/deep/p3/x")
        await until(pilot, lambda: "✗ is required" in app.text)


@pytest.mark.promise("TUI-3")
async def test_the_first_required_field_of_an_untouched_section_is_focused_on_run(app: FormApp) -> None:
    outer: JsonObject = {"type": "object", "properties": {"note": TEXT, "at": POINT}, "required": ["at"]}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"outer": outer}, "outer"))
        assert app.pane.submit() is None
        await until(pilot, lambda: app.path == "/outer/at/x")
        await until(pilot, lambda: "✗ is required" in app.text)
        await pilot.press("7")
        assert app.pane.submit() == {"outer": {"at": {"x": 7}}}


@pytest.mark.promise("TUI-3")
async def test_an_error_across_fields_is_shown_at_their_section(app: FormApp) -> None:
    section: JsonObject = {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "maxProperties": 1}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"s": section, "few": {"type": "array", "items": TEXT, "minItems": 2}}))
        await pilot.press("tab", "x", "tab", "y")
        await until(pilot, lambda: "✗" in app.text)
        lines = app.text.splitlines()
        assert "▾ s" in lines[0]
        assert "✗" in lines[1]
        await pilot.press("tab", "enter", "r")
        await until(pilot, lambda: app.text.count("✗") == 2)
        assert app.pane.submit() is None
        await until(pilot, lambda: app.path == "/s")


@pytest.mark.promise("TUI-3")
async def test_a_value_that_does_not_fit_a_section_is_kept_as_json_until_it_is_fixed(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"at": POINT}))
        app.pane.load({"at": "here"})
        await until(pilot, lambda: "✗ must be an object" in app.text)
        assert app.form.draft() == {"at": "here"}
        await until(pilot, lambda: isinstance(app.focused, TextBox))
        assert isinstance(app.focused, TextBox)
        assert app.focused.text == '"here"'
        await pilot.press("ctrl+a", "delete", *'{"x":1}')
        assert app.pane.submit() == {"at": {"x": 1}}
        assert isinstance(app.focused, TextBox)
        await pilot.press("shift+tab", "tab")
        await until(pilot, lambda: isinstance(app.focused, TextLine) and app.path == "/at/x")


@pytest.mark.promise("TUI-3")
async def test_a_container_is_edited_as_json_in_the_users_editor(
    app: FormApp, tmp_path: Path, external_editor: Callable[[str], None]
) -> None:
    external_editor(f'cp "$file" {tmp_path}/seen\ncp {tmp_path}/next "$file"')
    section: JsonObject = {"type": "object", "properties": {"n": NUMBER, "password": TEXT}}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"s": section}))
        await pilot.press("tab", "1", "tab", *"hunter2")
        app.pane.focus_field("/s")
        await until(pilot, lambda: app.path == "/s")
        (tmp_path / "next").write_text('{"n": 2, "password": "••••••••"}\n')
        await pilot.press("f4")
        await until(pilot, lambda: app.form.draft() == {"s": {"n": 2, "password": "hunter2"}})
        assert json.loads((tmp_path / "seen").read_text()) == {"n": 1, "password": "••••••••"}
        (tmp_path / "next").write_text('{"n": 9, "password": "•••••••• 7"}')
        await pilot.press("f4")
        await until(pilot, lambda: any("was not applied" in toast.message for toast in app._notifications))
        assert app.form.draft() == {"s": {"n": 2, "password": "hunter2"}}
        (tmp_path / "next").write_text('{"n": 3,')
        await pilot.press("f4")
        await until(pilot, lambda: "is not JSON" in app.text)
        assert app.pane.submit() is None
        await until(pilot, lambda: '{"n": 3,' in app.text)
        (tmp_path / "next").write_text('{"n": 4}')
        app.pane.focus_field("/s")
        await until(pilot, lambda: isinstance(app.focused, Fold | TextBox))
        await pilot.press("f4")
        await until(pilot, lambda: app.form.draft() == {"s": {"n": 4}})


@pytest.mark.promise("TUI-4")
async def test_untrusted_text_in_containers_is_shown_as_plain_text(app: FormApp) -> None:
    nasty = "[red]x[/red] \x1b]0;title\x07 \u202eflip"
    properties: JsonObject = {
        nasty: {"type": "object", "title": nasty, "description": nasty, "properties": {nasty: TEXT}},
        "map": {"type": "object", "additionalProperties": TEXT},
        "union": {"oneOf": [{**POINT, "title": nasty, "description": nasty}, {**POINT, "title": "b"}]},
        "rows": {"type": "array", "items": {"type": "object", "properties": {nasty: TEXT}}},
        "keys": {"type": "object", "propertyNames": {"enum": [nasty]}, "additionalProperties": TEXT},
    }
    arguments: JsonObject = {
        nasty: {nasty: nasty},
        "map": {nasty: nasty},
        "rows": [{nasty: nasty}],
        "keys": {nasty: "v"},
    }
    async with app.run_test(size=(100, 70)) as pilot:
        await show(pilot, spec_of(properties))
        shots = [app.text]
        app.pane.load(arguments)
        await settled(pilot)
        app.pane.submit()
        await pilot.pause()
        shots.append(app.text)
        app.pane.action_fold_all()
        await pilot.pause()
        shots.append(app.text)
        assert all("[red]x[/red]" in words for words in shots)
        assert not {"\x1b", "\x07", "\u202e"} & set("".join(shots))
        assert app.form.draft() == arguments
