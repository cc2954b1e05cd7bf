"""Values that were recently used in a field."""

from __future__ import annotations

import pytest

from pegboard.models import JsonObject
from pegboard.tui.form.popups import PickOne

from .form_stage import SIZE, FormApp, show, spec_of, until

ROWS: JsonObject = {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}


@pytest.mark.promise("TUI-3")
async def test_values_recently_used_in_a_field_are_offered(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"city": {"type": "string", "default": "Bern"}, "token": {"type": "string"}}))
        app.pane.recent = ({"city": "Oslo", "token": "t"}, {"city": "Bern"}, {"city": "«secret X»"}, {"city": "Rome"})
        await pilot.press("ctrl+f")
        await until(pilot, lambda: isinstance(app.screen, PickOne))
        for text in ("Bern", "Oslo", "Rome", "recent", "default"):
            assert text in app.text
        assert "secret" not in app.text
        await pilot.press(*"osl", "enter")
        assert app.form.draft() == {"city": "Oslo"}


async def test_a_field_in_a_row_offers_the_values_of_all_rows(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"steps": ROWS}))
        app.pane.recent = ({"steps": [{"name": "saw"}, {"name": "glue"}]},)
        app.pane.load({"steps": [{"name": ""}]})
        app.pane.focus_field("/steps/0/name")
        await until(pilot, lambda: type(app.focused).__name__ == "TextLine")
        await pilot.press("ctrl+f")
        await until(pilot, lambda: isinstance(app.screen, PickOne))
        assert "saw" in app.text
        assert "glue" in app.text


async def test_recent_secrets_are_not_offered(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"password": {"type": "string"}}))
        app.pane.recent = ({"password": "hunter2"},)
        await pilot.press("ctrl+f")
        await pilot.pause()
        assert "hunter2" not in app.text


@pytest.mark.promise("TUI-3")
async def test_errors_number_rows_as_the_form_does(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"steps": {"type": "array", "items": {"type": "integer"}}}))
        await pilot.press("ctrl+t")
        app.pane.load({"steps": [1, "x"]})
        await until(pilot, lambda: "✗ steps #2: must be an integer" in app.text)


@pytest.mark.promise("TUI-3")
async def test_a_default_is_shown_once(app: FormApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"city": {"type": "string", "default": "Bern"}}))
        assert app.text.count("Bern") == 1
