"""Edge cases of forms that real schemas contain."""

from __future__ import annotations

import asyncio

import pytest
from textual import events

from pegboard.models import JsonObject
from pegboard.tui.form.choices import Choices
from pegboard.tui.form.editors import JsonBox
from pegboard.tui.form.rows import KeyLine

from .form_stage import SIZE, FormApp, settled, show, spec_of, until
from .hands import Hands, tool_of

TEXT: JsonObject = {"type": "string"}


@pytest.mark.promise("TUI-3", "TUI-7")
async def test_one_key_sets_any_value_to_unset_empty_or_null(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"any": {}}))
        seen = []
        for _ in range(4):
            await pilot.press("ctrl+k")
            seen.append(app.form.draft())
        assert seen == [{"any": ""}, {"any": None}, {}, {"any": ""}]


@pytest.mark.promise("TUI-3", "TUI-7")
async def test_the_empty_text_is_a_key_on_request(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"labels": {"type": "object", "additionalProperties": TEXT}}))
        await pilot.press("enter", "tab", "v")
        assert app.pane.submit() is None
        await until(pilot, lambda: isinstance(app.focused, KeyLine))
        await pilot.press("ctrl+k")
        await until(pilot, lambda: "the empty string" in app.text)
        assert app.pane.submit() == {"labels": {"": "v"}}
        await pilot.press("ctrl+k")
        assert app.pane.submit() is None
        await pilot.press("k")
        assert app.pane.submit() == {"labels": {"k": "v"}}
        await pilot.press("tab", "ctrl+k")
        assert app.form.draft() == {"labels": {"k": ""}}


@pytest.mark.promise("TUI-2")
async def test_a_closed_form_never_takes_the_focus(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({f"p{index}": TEXT for index in range(60)}))
        app.pane.focus_field("/p40")
        app.pane.show(spec_of({"first": TEXT, "last": TEXT}, name="pack.other"))
        app.pane.focus_field()
        assert app.path == "/first"
        await settled(pilot)
        await pilot.press("v")
        assert app.path == "/first"
        left = app.body
        left.focus_field("/last")
        app.pane.load({"first": "w"})
        app.pane.focus_field("/first")
        left.focus_field("/last")
        assert app.focused is app.pane
        await until(pilot, lambda: app.path == "/first")
        await settled(pilot)
        await pilot.press("v")
        assert app.pane.submit() == {"first": "wv"}


@pytest.mark.promise("TUI-3", "TUI-7")
async def test_a_tool_with_an_empty_schema_accepts_arguments_as_json(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        assert await Hands(pilot).fill(tool_of({}, "pack.any"), {"a": [1, "x"]}) == {"a": [1, "x"]}
        app.pane.show(tool_of({}, "pack.other"))
        assert app.pane.submit() == {}
        await pilot.pause()
        await pilot.press("tab", "ctrl+t")
        await until(pilot, lambda: isinstance(app.focused, JsonBox))
        assert app.form.draft() == {}


@pytest.mark.promise("TUI-2")
async def test_a_letter_typed_before_the_choices_are_laid_out_chooses(app: FormApp) -> None:
    async with app.run_test(size=SIZE):
        app.pane.show(spec_of({"ok": {"type": "boolean"}}))
        app.pane.focus_field()
        while not isinstance(app.focused, Choices):  # noqa: ASYNC110 - what comes after the focus is too late
            await asyncio.sleep(0)
        app.focused.post_message(events.Key("f", "f"))
        for _ in range(10_000):
            if app.form.draft():
                break
            await asyncio.sleep(0.002)
        assert app.form.draft() == {"ok": False}
