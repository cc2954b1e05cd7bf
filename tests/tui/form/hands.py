"""Simulated user that fills a form by keys and pastes, following a plan and watching the focus."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

from headless import TIMEOUT_SECONDS
from pydantic import JsonValue
from textual import events
from textual.app import ComposeResult
from textual.keys import _character_to_key
from textual.pilot import Pilot
from typist import Act, field_of, fill, perform

from pegboard.forms import ChoiceField, Field, Form, ListField, MapField, MultiChoiceField, SectionField, VariantField
from pegboard.models import JsonObject, PackHandler, ToolSpec
from pegboard.tui.form import FormPane
from pegboard.tui.form.choices import Choices
from pegboard.tui.form.editors import JsonBox, TextBox, TextLine
from pegboard.tui.form.field_view import FieldView
from pegboard.tui.form.items import FormItem, ItemPart
from pegboard.tui.form.multi import MultiChoices
from pegboard.tui.form.popups import PickOne, PickSeveral
from pegboard.tui.form.rows import KeyLine, Selector
from pegboard.tui.widgets.pick_list import PickList

from .form_stage import FormApp

_TYPED = 40
"""Most characters that are typed; longer texts are pasted."""
_STATES = 6
"""Most presses of the state key, more than any field has states."""


def exact(value: JsonValue) -> str:
    """Return canonical JSON, in which `1`, `1.0` and `true` differ."""
    return json.dumps(value, sort_keys=True)


def tool_of(schema: JsonValue, name: str) -> ToolSpec:
    """Return a tool with any schema; discovered tools always have an object schema."""
    handler = PackHandler(pack="pack", function="tool", file="/pack.py", line=1)
    unchecked: Any = schema  # any JSON value, even if it isn't an object
    return ToolSpec.model_construct(name=name, pack="pack", input_schema=unchecked, handler=handler)


class FormAlone(FormApp):
    """App with a form pane and no footer, whose redraws slow tests down."""

    def compose(self) -> ComposeResult:
        """Compose the pane."""
        yield FormPane()


class Hands:
    """Simulated user of the form in an app.

    Args:
        pilot: The pilot of the app.
    """

    def __init__(self, pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, FormApp)
        self._app = pilot.app
        self._doing = ""

    async def fill(self, spec: ToolSpec, arguments: JsonObject) -> JsonObject | None:
        """Show the form of a tool, fill it by keys, and return the arguments, or None if they are invalid.

        Args:
            spec: The tool, whose name wasn't used before.
            arguments: The arguments to enter.
        """
        acts = fill(Form(spec.input_schema), arguments)
        twin = Form(spec.input_schema)
        self._doing = f"opening {spec.name}"
        self._app.pane.show(spec)
        await self._until(lambda: self._app.pane.body is None or self._app.body.views)
        await self._until(lambda: self._app.pane.body is None or all(view.is_mounted for view in self._app.body.views))
        if acts and self._app.pane.body is not None:
            self._app.pane.focus_field()
            await self._until(lambda: self._app.path is not None)
        for act in acts:
            perform(twin, act)
            self._doing = f"{act} of {exact(arguments)[:400]}"
            wanted = exact(twin.draft())
            if self._has_no_field(act):
                await self._write_as_json(arguments)
                break
            await self._do(act, twin)
            await self._until(lambda wanted=wanted: exact(self._app.form.draft()) == wanted)  # type: ignore[misc]
        return self._app.pane.submit()

    async def _do(self, act: Act, twin: Form) -> None:
        one = field_of(self._app.form, act.at)
        await self._unfold(one, itself=act.do in ("variant", "row", "entry"))
        match act.do, one:
            case "write", _:
                await self._write(one, act.text)
            case "choose", ChoiceField():
                await self._choose(one, act.index)
            case "null" | "unset", ChoiceField():
                await self._choose(one, -1 if act.do == "null" else None)
            case "empty" | "null" | "unset", _:
                await self._switch_state(one, twin)
            case "pick", MultiChoiceField():
                await self._pick(one, act.index)
            case "variant", VariantField():
                await self._choose_variant(one, act.index)
            case "row", ListField():
                await self._add_row(one)
            case "entry", MapField():
                await self._add_entry(one, act.text)

    def _has_no_field(self, act: Act) -> bool:
        """Return whether an act adds an argument that the schema doesn't declare."""
        one = field_of(self._app.form, act.at)
        return act.do == "entry" and isinstance(one.parent, SectionField) and one not in one.parent.children

    async def _write(self, one: Field, text: str) -> None:
        """Replace the text of a field by typing."""
        await self._reach(one, "field")
        editor = self._app.focused
        assert isinstance(editor, TextLine | TextBox), f"{editor} is written in"
        now = editor.value if isinstance(editor, TextLine) else editor.text
        if now:
            await self._press(*(["end", "ctrl+u"] if isinstance(editor, TextLine) else ["alt+a", "backspace"]))
            await self._until(lambda: not one.text)
        await self._enter(text)
        await self._until(lambda: one.text == text or one.draft() == text)

    async def _enter(self, text: str) -> None:
        """Type or paste a text into the focused widget."""
        if len(text) > _TYPED or not text.isprintable():
            self._app.post_message(events.Paste(text))
        else:
            await self._press(*text)

    async def _choose(self, one: ChoiceField, index: int | None) -> None:
        """Choose an option; -1 is null, None is unset."""
        await self._reach(one, "field")
        choices = self._app.focused
        assert isinstance(choices, Choices), f"{choices} is chosen from"
        place = next(place for place, entry in enumerate(choices.entries) if entry[1] == index)
        await self._choose_entry(choices, place)

    async def _choose_variant(self, one: VariantField, index: int) -> None:
        await self._reach(one, "choice")
        selector = self._app.focused
        assert isinstance(selector, Selector), f"{selector} is chosen from"
        await self._choose_entry(selector, index)
        await self._until(lambda: one.chosen == index and one.is_settled)

    async def _choose_entry(self, choices: Choices, place: int) -> None:
        """Choose an entry by its first letter if that is unique, in a list by typing, else by arrow keys."""
        await self._until(lambda: choices.size.width)
        labels = [text.lower() for text, _ in choices.entries]
        if "▾" in str(choices.render()):
            await self._press("enter")
            await self._pick_in_list(place, labels[place])
            await self._press("enter")
            await self._until(lambda: not isinstance(self._app.screen, PickOne))
        elif self._is_unique(labels, place) and not isinstance(choices, Selector):
            await self._press(labels[place][0])
        else:
            now = choices.current
            if now is None:
                await self._press(*["right"] * (place + 1))
            elif now == place:
                # A preselected entry is confirmed by a key that doesn't move, or by moving back and forth.
                await self._press(*(["left"] if place == 0 else ["left", "right"]))
            else:
                await self._press(*["right" if now < place else "left"] * abs(place - now))
        await self._until(lambda: choices.current == place)

    @staticmethod
    def _is_unique(labels: list[str], place: int) -> bool:
        """Return whether a label starts with a letter or digit with which no other label starts."""
        first = labels[place][:1]
        return first.isalnum() and sum(text[:1] == first for text in labels) == 1

    async def _pick_in_list(self, index: int, label: str) -> None:
        """Mark a line of the open list by typing its start and moving down."""
        await self._until(lambda: isinstance(self._app.focused, PickList))
        lines = self._app.focused
        assert isinstance(lines, PickList)
        sought = "".join(letter for letter in label[:6] if letter.isalnum())
        await self._press(*sought)
        await self._until(lambda: lines.sought == sought and lines.marked is not None)
        for _ in range(lines.row_count):
            if lines.marked == index:
                return
            before = lines.cursor
            await self._press("down")
            await self._until(lambda before=before: lines.cursor != before)  # type: ignore[misc]
        raise AssertionError(f"{label!r} is not in the list")

    async def _pick(self, one: MultiChoiceField, index: int) -> None:
        await self._reach(one, "field")
        choices = self._app.focused
        assert isinstance(choices, MultiChoices), f"{choices} is picked from"
        await self._until(lambda: choices.size.width)
        again = one.is_picked(index)
        if "▾" in str(choices.render()):
            await self._press("enter")
            await self._pick_in_list(index, one.options[index].label.lower())
            await self._press("+" if again else "space")
            await self._press("escape")
            await self._until(lambda: not isinstance(self._app.screen, PickSeveral))
            return
        by = index - choices.cursor
        await self._press(*["right" if by > 0 else "left"] * abs(by))
        await self._until(lambda: choices.cursor == index)
        await self._press("+" if again else "space")

    async def _add_row(self, one: ListField) -> None:
        """Add a row by Enter in the last one if it is a focused line, else by the line below."""
        rows = len(one.rows)
        last, focused = one.rows[-1] if one.rows else None, self._app.focused
        if not isinstance(focused, TextLine) or focused.field is not last:
            await self._reach(one, "add")
        await self._press("enter")
        await self._until(lambda: len(one.rows) == rows + 1)
        # The focus moves into the row asynchronously.
        await self._until(lambda: self._here is not None and self._here.field in {*one.rows[-1].walk()})

    async def _add_entry(self, one: MapField, key: str) -> None:
        await self._reach(one, "add")
        entries = len(one.entries)
        await self._press("enter")
        await self._until(lambda: len(one.entries) == entries + 1)
        entry = one.entries[-1]
        await self._until(lambda: isinstance(self._app.focused, KeyLine) and self._app.focused.item.entry is entry)
        if key:
            await self._enter(key)
            await self._until(lambda: isinstance(self._app.focused, KeyLine) and self._app.focused.value == key)
        else:
            await self._press("ctrl+k")
        await self._press("enter")
        await self._until(lambda: entry.key == key and entry.is_named and not isinstance(self._app.focused, KeyLine))

    async def _switch_state(self, one: Field, twin: Form) -> None:
        """Switch the state of a field until the form has the wanted value."""
        await self._reach(one, "header", "choice", "field", "add", "raw")
        wanted = exact(twin.draft())
        for _ in range(_STATES):
            if exact(self._app.form.draft()) == wanted:
                return
            before = exact(self._app.form.draft())
            await self._press("ctrl+k")
            await self._until(lambda before=before: exact(self._app.form.draft()) != before)  # type: ignore[misc]

    async def _write_as_json(self, arguments: JsonObject) -> None:
        """Enter all arguments as JSON, since one of them has no field."""
        if self._app.focused is None:
            await self._press("tab")
            await self._until(lambda: self._app.focused is not None)
        await self._press("ctrl+t")
        await self._until(lambda: isinstance(self._app.focused, JsonBox))
        box = self._app.focused
        assert isinstance(box, JsonBox)
        await self._press("ctrl+a")
        await self._until(lambda: box.selected_text == box.text)
        text = json.dumps(arguments)
        self._app.post_message(events.Paste(text))
        await self._until(lambda: box.text == text)
        await self._press("ctrl+t")
        await self._until(lambda: self._app.pane.body is not None and self._here is not None)

    async def _unfold(self, one: Field, *, itself: bool) -> None:
        """Expand the ancestors of a field."""
        for around in _around(one, itself=itself):
            header = self._item(around, "header")
            if header is not None and not header.is_open:
                await self._go(header)
                await self._press("right")
                await self._until(lambda around=around: self._is_open(around))  # type: ignore[misc]

    def _is_open(self, one: Field) -> bool:
        header = self._item(one, "header")
        return header is None or header.is_open

    def _item(self, one: Field, *parts: ItemPart) -> FormItem | None:
        found = {item.part: item for item in self._app.body.items if item.field is one}
        return next((found[part] for part in parts if part in found), None)

    async def _reach(self, one: Field, *parts: ItemPart) -> None:
        """Focus the editor of a field."""
        await self._until(lambda: self._item(one, *parts) is not None)
        item = self._item(one, *parts)
        assert item is not None
        await self._go(item)
        if isinstance(self._app.focused, KeyLine):
            await self._press("tab")
            await self._until(lambda: not isinstance(self._app.focused, KeyLine))

    async def _go(self, item: FormItem) -> None:
        """Move the focus to an item with tab."""
        for _ in range(3 * len(self._app.body.items)):
            await self._until(lambda: self._here is not None)
            here, before = self._here, self._app.focused
            assert here is not None
            if here.key == item.key:
                return
            keys = [one.key for one in self._app.body.items]
            forward = keys.index(item.key) > keys.index(here.key)
            await self._press("tab" if forward else "shift+tab")
            await self._until(lambda before=before: self._app.focused is not before)  # type: ignore[misc]
        raise AssertionError(f"tab doesn't reach {item} ({self._doing})")

    @property
    def _here(self) -> FormItem | None:
        """The focused item, if it is still in the form."""
        around = self._app.focused.ancestors if self._app.focused is not None else []
        found = (node.item for node in around if isinstance(node, FieldView))
        return next((item for item in found if any(item.key == one.key for one in self._app.body.items)), None)

    async def _press(self, *keys: str) -> None:
        """Send keys one after another, as a terminal does."""
        for key in keys:
            character = key if len(key) == 1 else " " if key == "space" else None
            name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
            self._app.post_message(events.Key(name, character))
        await asyncio.sleep(0)

    async def _until(self, condition: Callable[[], object]) -> None:
        """Wait until `condition` holds."""

        def doing() -> str:
            here = self._here
            return f"{self._doing}, at {self._app.focused} of {here.field.path if here else None}"

        await wait_for(self._app, condition, doing)


async def wait_for(app: FormApp, condition: Callable[[], object], doing: Callable[[], str]) -> None:
    """Wait until `condition` holds, without Textual's slow check of every widget; fail with the current step."""
    end = monotonic() + TIMEOUT_SECONDS
    while not condition():
        if monotonic() > end:
            raise AssertionError(f"the condition never held: {doing()}; on the screen:\n{app.text}")
        await asyncio.sleep(0.002)


def _around(one: Field, *, itself: bool) -> Iterator[Field]:
    """Yield the ancestors of a field, outermost first."""
    if one.parent is not None:
        yield from _around(one.parent, itself=True)
    if itself:
        yield one
