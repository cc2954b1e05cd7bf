"""Long and deep forms: scrolling, focus, and state kept per tool."""

from __future__ import annotations

import pytest
from pydantic import JsonValue
from textual import events

from pegboard.models import JsonObject
from pegboard.tui.form.editors import TextLine
from pegboard.tui.form.frame import lines_of

from .form_stage import SIZE, FormApp, settled, show, spec_of, until
from .hands import FormAlone

TEXT: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "integer"}
COUNT = 80
POINT: JsonObject = {"type": "object", "properties": {"x": NUMBER, "y": NUMBER}, "required": ["x"]}


@pytest.mark.slow
@pytest.mark.promise("TUI-3", "TUI-7")
async def test_tab_moves_through_every_field_and_only_visible_ones_are_mounted() -> None:
    properties: JsonObject = {f"p{index}": {**TEXT, "description": "Words. " * 20} for index in range(COUNT)}
    app = FormAlone()
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of(properties))
        most = len(app.body.views)
        seen = []
        for _ in range(COUNT):
            seen.append(app.path)
            most = max(most, len(app.body.views))
            await pilot.press("tab")
        assert seen == [f"/p{index}" for index in range(COUNT)]
        assert most < 60
        await until(pilot, lambda: app.path == "/p0")
        await pilot.press("shift+tab")
        assert app.path == f"/p{COUNT - 1}"
        await pilot.press("shift+tab", "x")
        assert app.pane.submit() == {f"p{COUNT - 2}": "x"}


@pytest.mark.promise("TUI-7")
async def test_a_long_form_is_scrolled_by_keys_and_wheel_and_the_focus_stays(app: FormApp) -> None:
    properties: JsonObject = {f"p{index}": TEXT for index in range(205)}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of(properties))
        line = app.focused
        length = app.pane.max_scroll_y
        await pilot.press("ctrl+end")
        await until(pilot, lambda: "p204 " in app.text)
        assert app.pane.max_scroll_y == length
        await pilot.press("pageup", "pageup")
        await until(pilot, lambda: "p204 " not in app.text and "p18" in app.text)
        await pilot.press("ctrl+home")
        await until(pilot, lambda: "p0 " in app.text)
        await pilot.press("pagedown")
        await until(pilot, lambda: "p0 " not in app.text)
        app.pane.post_message(events.MouseScrollDown(app.pane, 5, 5, 0, 0, 0, False, False, False, 5, 5))
        assert app.focused is line
        await pilot.press("x")
        assert app.pane.submit() == {"p0": "x"}


@pytest.mark.promise("TUI-3")
async def test_sixteen_levels_are_usable_at_eighty_columns(app: FormApp) -> None:
    schema: JsonObject = NUMBER
    for level in range(16, 0, -1):
        schema = {"type": "object", "properties": {f"l{level}": schema}, "required": [f"l{level}"]}
    properties = schema["properties"]
    assert isinstance(properties, dict)
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of(properties, "l1"))
        path = "".join(f"/l{level}" for level in range(1, 17))
        app.pane.focus_field(path)
        await until(pilot, lambda: app.path == path)
        await until(pilot, lambda: app.focused is not None and app.focused.region.width >= 28)
        await pilot.press("7")
        found: JsonValue = app.pane.submit()
        for level in range(1, 17):
            assert isinstance(found, dict)
            found = found[f"l{level}"]
        assert found == 7


@pytest.mark.promise("TUI-2", "TUI-3")
async def test_keys_typed_ahead_reach_the_intended_fields(app: FormApp) -> None:
    properties: JsonObject = {f"p{index}": {**TEXT, "description": "Words. " * 20} for index in range(60)}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of(properties))
        for index in range(60):
            for key in (str(index % 10), "tab"):
                app.post_message(events.Key(key, key if key != "tab" else "\t"))
        await until(pilot, lambda: len(app.form.draft()) == 60)
        assert app.pane.submit() == {f"p{index}": str(index % 10) for index in range(60)}


@pytest.mark.promise("TUI-3")
async def test_the_last_requested_focus_wins(app: FormApp) -> None:
    properties: JsonObject = {f"p{index}": POINT for index in range(60)}
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of(properties))
        for index in (50, 3, 40, 20):
            app.pane.load({f"p{number}": {"x": number} for number in range(60)})
            app.pane.focus_field(f"/p{index}/y")
        await until(pilot, lambda: isinstance(app.focused, TextLine) and app.path == "/p20/y")
        await settled(pilot)
        assert app.path == "/p20/y"
        await until(pilot, lambda: app.focused is not None and app.pane.region.contains_region(app.focused.region))


@pytest.mark.promise("TUI-3")
async def test_folds_and_scroll_position_are_kept_per_tool_and_across_a_rescan(app: FormApp) -> None:
    properties: JsonObject = {f"p{index}": POINT for index in range(30)}
    one, other = spec_of(properties, name="a.one"), spec_of({"x": TEXT}, name="a.two")
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, one)
        app.pane.focus_field("/p2")
        await pilot.press("left")
        app.pane.focus_field("/p20/y")
        await until(pilot, lambda: app.path == "/p20/y" and "p20 " in app.text)
        await until(pilot, lambda: app.focused is not None and app.pane.region.contains_region(app.focused.region))
        await settled(pilot)
        top = app.pane.scroll_y
        assert top > 20
        await show(pilot, other, focus=False)
        app.pane.show(one)
        await until(pilot, lambda: app.pane.scroll_y == top and "p20 " in app.text)
        assert [item.field.path for item in app.body.items if not item.is_open] == ["/p2"]
        app.pane.show(spec_of({"first": TEXT, **properties}, name="a.one"))
        await until(pilot, lambda: "p20 " in app.text)
        assert [item.field.path for item in app.body.items if not item.is_open] == ["/p2"]


@pytest.mark.parametrize("text", ["x" * 12_000, "a\rb", "a\nb", "x" * 900], ids=len)
async def test_the_height_of_a_text_is_known_before_it_is_mounted(app: FormApp, text: str) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await show(pilot, spec_of({"first": TEXT, "x": TEXT}))
        app.pane.load({"x": text})
        await settled(pilot)
        view = next(view for view in app.body.views if view.item.field.path == "/x")
        assert view is not app.body.focused
        assert lines_of(view.item, view.space) == view.lines(view.space.width)


async def test_the_first_form_that_is_shown_while_the_app_ends_causes_no_error(app: FormApp) -> None:
    async with app.run_test(size=SIZE):
        pane = app.pane
        app.exit()
        pane.show(spec_of({"x": TEXT}))
    assert pane.body is not None
    assert [item.field.path for item in pane.body.items] == ["/x"]
