"""Editors are reused from one tool to the next, and values never leak between tools."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from pegboard.models import JsonObject
from pegboard.tui.form.choices import Choices
from pegboard.tui.form.editors import TextBox, TextLine
from pegboard.tui.form.rows import Selector

from .form_stage import SIZE, FormApp, settled, show, spec_of, until

TEXT: JsonObject = {"type": "string"}
LONG: JsonObject = {"type": "string", "format": "multiline"}


@pytest.fixture
async def pilot() -> AsyncIterator[Pilot[None]]:
    async with FormApp().run_test(size=SIZE) as pilot:
        yield pilot


def stage(pilot: Pilot[None]) -> FormApp:
    assert isinstance(pilot.app, FormApp)
    return pilot.app


def lines(pilot: Pilot[None]) -> list[TextLine]:
    mains = [view.main for view in stage(pilot).body.views]
    return [main for main in mains if isinstance(main, TextLine)]


async def test_the_next_tool_reuses_the_lines_of_the_previous_one(pilot: Pilot[None]) -> None:
    await show(pilot, spec_of({"a": TEXT, "b": TEXT}, name="pack.one"), focus=False)
    before = set(lines(pilot))
    await show(pilot, spec_of({"c": TEXT, "d": TEXT}, name="pack.two"), focus=False)
    assert set(lines(pilot)) == before
    assert [line.field.path for line in lines(pilot)] == ["/c", "/d"]
    await pilot.press("tab", "x", "tab", "y")
    assert stage(pilot).form.arguments() == {"c": "x", "d": "y"}


async def test_lines_are_reused_after_a_tool_without_fields(pilot: Pilot[None]) -> None:
    await show(pilot, spec_of({"a": TEXT}, name="pack.one"), focus=False)
    before = lines(pilot)
    await show(pilot, spec_of({}, name="pack.none"), focus=False)
    assert "This tool has no arguments." in stage(pilot).text
    await show(pilot, spec_of({"b": TEXT}, name="pack.two"))
    assert lines(pilot) == before
    assert "This tool has no arguments." not in stage(pilot).text
    await pilot.press("x")
    assert stage(pilot).form.arguments() == {"b": "x"}


async def test_late_keys_never_reach_another_tool(pilot: Pilot[None]) -> None:
    one, two = spec_of({"a": TEXT}, name="pack.one"), spec_of({"b": TEXT}, name="pack.two")
    await show(pilot, one)
    await pilot.press("x")
    line = lines(pilot)[0]
    for _ in range(5):
        line.post_message(events.Key("y", "y"))
    stage(pilot).pane.show(two)
    await settled(pilot)
    assert stage(pilot).form.draft() == {}
    assert all(not line.value for line in lines(pilot))
    stage(pilot).pane.show(one)
    await settled(pilot)
    assert str(stage(pilot).form.arguments()["a"]).startswith("x")


async def test_text_typed_last_is_written_into_its_own_field(pilot: Pilot[None]) -> None:
    one, two = spec_of({"a": TEXT}, name="pack.one"), spec_of({"b": TEXT}, name="pack.two")
    await show(pilot, one, focus=False)
    await show(pilot, two, focus=False)
    await show(pilot, one, focus=False)
    await pilot.press("tab", "x")
    lines(pilot)[0].value = "typed last"
    stage(pilot).screen.set_focus(None)
    stage(pilot).pane.show(two)
    await settled(pilot)
    assert stage(pilot).form.draft() == {}
    assert not any(field.touched for field in stage(pilot).form.walk())
    stage(pilot).pane.show(one)
    await settled(pilot)
    assert stage(pilot).form.arguments() == {"a": "typed last"}


async def test_a_revealed_secret_is_hidden_in_the_next_tool(
    pilot: Pilot[None],
) -> None:
    secret: JsonObject = {"type": "string", "format": "password"}
    await show(pilot, spec_of({"token": secret}, name="pack.one"))
    await pilot.press(*"hush", "ctrl+f")
    assert "hush" in stage(pilot).text
    other = spec_of({"token": secret, "name": TEXT}, name="pack.two")
    for spec in (other, spec_of({"plain": TEXT}, name="pack.three"), other):
        await show(pilot, spec, focus=False)
        assert "hush" not in stage(pilot).text
    token, name = lines(pilot)
    assert (token.password, name.password) == (True, False)
    await until(pilot, lambda: stage(pilot).path == "/token")
    await pilot.press(*"mum", "tab", *"open")
    assert "mum" not in stage(pilot).text
    assert "open" in stage(pilot).text


async def test_undo_in_a_box_never_restores_text_of_another_tool(pilot: Pilot[None]) -> None:
    await show(pilot, spec_of({"a": LONG}, name="pack.one"))
    await pilot.press(*"mine")
    await show(pilot, spec_of({"b": LONG}, name="pack.two"), focus=False)
    await show(pilot, spec_of({"c": LONG}, name="pack.three"))
    await pilot.press("ctrl+z", "ctrl+z")
    box = stage(pilot).body.views[0].main
    assert isinstance(box, TextBox)
    assert box.text == ""
    assert stage(pilot).form.draft() == {}


async def test_choices_and_suggestions_belong_to_the_tool(pilot: Pilot[None]) -> None:
    def spec(name: str, *choices: str) -> JsonObject:
        return {"kind": {"type": "string", "enum": [*choices]}, "word": {**TEXT, "examples": [f"{name} example"]}}

    await show(pilot, spec_of(spec("first", "red", "green"), "kind", name="pack.one"), focus=False)
    await show(pilot, spec_of(spec("second", "blue", "white", "black"), "kind", name="pack.two"))
    assert "red" not in stage(pilot).text
    await pilot.press("w", "tab", *"fir")
    line = lines(pilot)[0]
    assert line._suggestion == ""
    await pilot.press("backspace", "backspace", "backspace", *"sec")
    await until(pilot, lambda: line._suggestion == "second example")
    assert stage(pilot).form.arguments() == {"kind": "white", "word": "sec"}


async def test_variants_belong_to_the_tool(pilot: Pilot[None]) -> None:
    def either(*names: str) -> JsonObject:
        return {"oneOf": [{"type": "object", "title": name, "properties": {name: TEXT}} for name in names]}

    await show(pilot, spec_of({"v": either("cat", "dog")}, "v", name="pack.one"), focus=False)
    await show(pilot, spec_of({"w": either("sun", "moon", "star")}, "w", name="pack.two"), focus=False)
    choices = next(view.main for view in stage(pilot).body.views if isinstance(view.main, Choices))
    assert isinstance(choices, Selector)
    assert [text for text, _ in choices.entries] == ["sun", "moon", "star"]
    assert "cat" not in stage(pilot).text


async def test_a_line_that_became_a_box_is_reused_as_a_box(pilot: Pilot[None]) -> None:
    await show(pilot, spec_of({"a": TEXT}, name="pack.one"))
    stage(pilot).body.views[0].main.post_message(events.Paste("two\nlines"))
    await until(pilot, lambda: isinstance(stage(pilot).body.views[0].main, TextBox))
    await show(pilot, spec_of({"b": TEXT}, name="pack.two"))
    assert isinstance(stage(pilot).body.views[0].main, Input)
    assert stage(pilot).form.draft() == {}
    await show(pilot, spec_of({"c": LONG}, name="pack.three"))
    await pilot.press("x")
    assert stage(pilot).form.arguments() == {"c": "x"}


async def test_the_number_of_spare_editors_is_limited(pilot: Pilot[None]) -> None:
    choice: JsonObject = {"type": "string", "enum": ["a", "b"]}
    several: JsonObject = {"type": "array", "items": TEXT}
    for round_ in range(30):
        kind = (TEXT, LONG, choice, several)[round_ % 4]
        await show(pilot, spec_of({f"p{n}": kind for n in range(30)}, name=f"pack.t{round_}"), focus=False)
    await until(pilot, lambda: len(stage(pilot).body.children) <= 150)
