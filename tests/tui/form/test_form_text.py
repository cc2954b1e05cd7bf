"""Texts of several lines, pastes, and arguments edited as JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual import events

from pegboard.models import JsonObject
from pegboard.tui.form.editors import JsonBox, TextBox, TextLine

from .form_stage import SIZE, FormApp, settled, show, spec_of, until


@pytest.mark.promise("TUI-3")
async def test_switching_between_fields_and_json_keeps_all_values(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"n": {"type": "integer"}, "password": {"type": "string"}}))
        await pilot.press(*"ten", "tab", *"hunter2", "ctrl+t")
        await until(pilot, lambda: isinstance(app.focused, JsonBox))
        box = app.query_one(JsonBox)
        assert '"n": "ten"' in app.text
        assert "hunter2" not in app.text
        box.load_text(box.text.replace('"ten"', "5"))
        assert app.pane.submit() == {"n": 5, "password": "hunter2"}
        box.load_text('{"n": 6')
        assert app.pane.submit() is None
        await pilot.press("ctrl+t")
        assert "press ctrl+t again to discard it." in app.text
        await pilot.press("ctrl+t")
        await until(pilot, lambda: isinstance(app.focused, TextLine))
        assert app.pane.submit() == {"n": 5, "password": "hunter2"}


@pytest.mark.promise("TUI-3", "STO-2")
async def test_undoing_the_deletion_of_a_masked_secret_restores_the_secret(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"password": {"type": "string"}, "n": {"type": "integer"}}))
        await pilot.press(*"hunter2", "tab", "5", "ctrl+t")
        await until(pilot, lambda: isinstance(app.focused, JsonBox))
        await pilot.press("down", "ctrl+shift+k")
        assert app.pane.submit() == {"n": 5}
        await pilot.press("ctrl+z")
        assert "hunter2" not in app.text
        assert app.pane.submit() == {"password": "hunter2", "n": 5}


@pytest.mark.promise("TUI-3", "STO-2")
async def test_a_changed_mask_is_an_error_until_it_is_put_back(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"password": {"type": "string"}}))
        await pilot.press(*"hunter2", "ctrl+t")
        await until(pilot, lambda: isinstance(app.focused, JsonBox))
        await pilot.press("down", "end", "left", "x")
        assert app.pane.submit() is None
        await until(pilot, lambda: "hides a value that was moved or changed" in app.text)
        await pilot.press("backspace")
        assert app.pane.submit() == {"password": "hunter2"}


@pytest.mark.promise("TUI-3")
async def test_invalid_json_stays_until_it_is_fixed_or_discarded(app: FormApp) -> None:
    one, other = spec_of({"n": {"type": "integer"}}, name="a.one"), spec_of({}, name="a.two")
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, one)
        await pilot.press("5", "ctrl+t")
        await until(pilot, lambda: isinstance(app.focused, JsonBox))
        box = app.query_one(JsonBox)
        box.load_text('{"n": 6')
        await until(pilot, lambda: "or press ctrl+t twice to discard it." in app.text)
        await pilot.press("ctrl+t")
        await pilot.pause()
        assert app.focused is box
        assert "is not JSON" in app.text
        assert "Fix it to return to the form, or press ctrl+t again to discard it." in app.text
        app.pane.show(other)
        await settled(pilot)
        assert not app.query(JsonBox)
        app.pane.show(one)
        await until(pilot, lambda: app.query(JsonBox))
        box = app.query_one(JsonBox)
        assert box.text == '{"n": 6'
        await until(pilot, lambda: "is not JSON" in app.text)
        box.focus()
        await pilot.press("ctrl+t", "ctrl+t")
        await until(pilot, lambda: isinstance(app.focused, TextLine))
        assert app.pane.submit() == {"n": 5}
        assert "discard it" not in app.text
        await pilot.press("ctrl+z")
        await until(pilot, lambda: isinstance(app.focused, JsonBox))
        box = app.query_one(JsonBox)
        assert box.text == '{"n": 6'
        assert app.pane.submit() is None
        await pilot.press("end", "}", "ctrl+t")
        await until(pilot, lambda: isinstance(app.focused, TextLine))
        assert app.pane.submit() == {"n": 6}


@pytest.mark.promise("TUI-3")
async def test_a_paste_of_several_lines_keeps_them_all(app: FormApp) -> None:
    text_list: JsonObject = {"type": "array", "items": {"type": "string"}}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": "string"}, "l": text_list, "n": {"type": "integer"}}))
        await pilot.press("a", "b", "left")
        app.screen.post_message(events.Paste("1\n2\n"))
        await until(pilot, lambda: isinstance(app.focused, TextBox))
        await pilot.press("!", "tab", "enter")
        app.screen.post_message(events.Paste("3\n4"))
        await until(pilot, lambda: isinstance(app.focused, TextBox) and app.focused.text)
        await pilot.press("tab", "tab")
        app.screen.post_message(events.Paste(" 5\n"))
        await until(pilot, lambda: app.form.fields[2].text)
        assert app.pane.submit() == {"x": "a1\n2\nb!", "l": ["3\n4"], "n": 5}


@pytest.mark.promise("TUI-7")
async def test_arrow_keys_leave_a_box_at_its_first_and_last_line(app: FormApp) -> None:
    body: JsonObject = {"type": "string", "format": "textarea", "maxLength": 5000}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"a": {"type": "integer"}, "j": body, "z": {"type": "integer"}}))
        app.pane.load({"j": "long\n" * 4})
        await settled(pilot)
        first, last = app.query(TextLine)
        box = app.query_one(TextBox)

        def is_in_box() -> bool:
            return app.focused is box

        first.focus()
        await pilot.press("down")
        assert is_in_box()
        box.move_cursor((0, 0))
        left = 0
        while is_in_box():
            await pilot.press("down")
            left += 1
        assert app.focused is last
        assert left == box.wrapped_document.height > 3
        await pilot.press("up")
        for _ in range(left - 1):
            assert is_in_box()
            await pilot.press("up")
        await pilot.press("shift+up")
        assert is_in_box()
        await pilot.press("up")
        assert app.focused is first


async def test_loaded_text_of_several_lines_is_edited_in_lines_and_unchanged(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": "string"}, "y": {"type": "string"}, "z": {"type": "string"}}))
        arguments: JsonObject = {"x": "a\r\nb\nc\r", "y": "tab\there", "z": "\n"}
        app.pane.load(arguments)
        await until(pilot, lambda: len(app.query(TextBox)) == 2)
        await pilot.pause()
        assert app.pane.submit() == arguments


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("text", ["page1\u2028page2\u0085x\ny\fz\x1c", "a\r\nb\nc\rd\n", "\u2029\n"])
async def test_an_edit_in_a_box_changes_no_other_character(app: FormApp, text: str) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": "string"}}))
        app.pane.load({"x": text})
        await until(pilot, lambda: app.query(TextBox))
        box = app.query_one(TextBox)
        box.focus()
        assert box.document.line_count == text.count("\n") + 1
        box.move_cursor((0, 0))
        await pilot.press("Z")
        box.move_cursor(box.document.end)
        await pilot.press("enter", "Z")
        await until(pilot, lambda: app.pane.submit() == {"x": f"Z{text}\nZ"})
        await pilot.press("ctrl+a", "delete")
        await until(pilot, lambda: app.pane.submit() == {})
        await pilot.press("ctrl+z")
        await until(pilot, lambda: app.pane.submit() == {"x": f"Z{text}\nZ"})


@pytest.mark.promise("TUI-3")
async def test_an_edit_of_the_json_changes_no_other_value(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": "string"}, "n": {"type": "integer"}}))
        app.pane.load({"x": "one\u2028two\u0085\r\n", "n": 1})
        await pilot.press("ctrl+t")
        await until(pilot, lambda: isinstance(app.focused, JsonBox))
        app.query_one(JsonBox).move_cursor((2, 8))
        await pilot.press("2")
        await until(pilot, lambda: app.pane.submit() == {"x": "one\u2028two\u0085\r\n", "n": 12})


async def test_a_text_is_edited_in_the_users_editor(app: FormApp, external_editor: Callable[[str], None]) -> None:
    external_editor(r'printf "%s and\nmore\n" "$(cat "$file")" > "$file"')
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": "string"}}))
        await pilot.press(*"one", "f4")
        await until(pilot, lambda: isinstance(app.focused, TextBox))
        assert app.pane.submit() == {"x": "one and\nmore"}
        await pilot.press("ctrl+t")
        await until(pilot, lambda: isinstance(app.focused, JsonBox))
        await pilot.press("f4")
        await until(pilot, lambda: app.query_one(JsonBox).text.endswith("} and\nmore"))
        assert app.pane.submit() is None


async def test_leaving_the_users_editor_without_a_change_keeps_the_cursor_and_the_undo_history(
    app: FormApp, tmp_path: Path, external_editor: Callable[[str], None]
) -> None:
    external_editor(f"touch {tmp_path}/seen")
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"x": {"type": "string"}}))
        await pilot.press("ctrl+t")
        await until(pilot, lambda: isinstance(app.focused, JsonBox))
        box = app.query_one(JsonBox)
        before = box.text
        await pilot.press("ctrl+end", "x")
        cursor = box.cursor_location
        await box.action_editor()
        assert (tmp_path / "seen").exists()
        assert box.cursor_location == cursor
        await pilot.press("ctrl+z")
        assert box.text == before
