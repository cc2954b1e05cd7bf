"""One item of the form on the screen: its label, what it is edited with, what is wrong with it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from textual.binding import BindingType
from textual.content import Content
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.layouts.vertical import VerticalLayout
from textual.message import Message
from textual.reactive import Reactive
from textual.widget import Widget

from pegboard.data.json_text import parse, write
from pegboard.forms import ChoiceField, Container, Field, JsonField, JsonTextError, TextField, VariantField
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form import frame
from pegboard.tui.form.editors import Choices, Edited, NeedsLines, TextBox, TextLine, in_editor
from pegboard.tui.form.items import Item
from pegboard.tui.form.multi import MultiChoices
from pegboard.tui.form.rows import (
    AddLine,
    Editor,
    Fold,
    KeyLine,
    Selector,
    editor_for,
    exchanged,
    has_lines,
    kind_of,
)

Main: TypeAlias = Editor | Fold | AddLine | Selector
"""What an item is worked with."""

_KEY_SHARE = 0.4
_KEY_WIDTH = range(10, 25)
"""How wide the key of an entry may be."""


class FieldView(Widget):
    """An item of the form.

    Args:
        item: The item.
        room: What it has to draw in.
    """

    PAGE = "Field"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "field.state", "ctrl+n", "next_state", "Unset/null", "Go on to unset, empty, null, what was typed.", True
        ),
        Command("field.unset", "", "unset", "Unset", "Leave the argument out."),
        Command("field.empty", "", "empty", "Send empty", "Send the empty text, list or object."),
        Command("field.null", "", "set_null", "Send null", "Send null."),
        Command("field.editor", "f4", "editor", "Editor", "Edit the text in $EDITOR; of a container, its JSON."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    FieldView { height: auto; text-wrap: nowrap; }
    """

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), repaint=False)
    """Textual's own, which lays the screen out once more whenever it changes; this doesn't scroll."""

    class Stands(Message):
        """The view has been put on the screen with all that is in it."""

        def __init__(self, view: FieldView) -> None:
            super().__init__()
            self.view = view

    def __init__(self, item: Item, room: frame.Room) -> None:
        self.key = KeyLine(item) if item.entry is not None else None
        self.main: Main = _main(item)
        super().__init__(*filter(None, (self.key, self.main)))
        self.item = item
        self.room = room
        self.kind = kind(item)
        """Of what kind it is; None if it can show no item of another form."""
        self.stands = asyncio.Event()
        """Set once it is on the screen with all that is in it, or never will be."""
        self._has_focus = False
        self._had_states = False
        self._above: list[Content] = []
        self._below: list[Content] = []
        self._beside = _Beside()
        self._draw()

    @property
    def layout(self) -> Layout:
        """The editor stands beneath the label, moved to the right."""
        return self._beside

    @property
    def stops(self) -> list[Widget]:
        """What can have the focus, in its order."""
        return [part for part in (self.key, self.main) if part is not None and part.can_focus]

    def take(self, item: Item, room: frame.Room) -> None:
        """Shows the item as it is now.

        Args:
            item: One of the same key.
            room: What it has to draw in.
        """
        before, self.item, self.room = self.item, item, room
        if self.key is not None:
            self.key.item = item
        if before.field is not item.field:
            self.call_later(self._replace_main)
        elif isinstance(self.main, Fold | AddLine):
            self.main.take(item)
        self.redraw()

    def turn_to(self, item: Item, room: frame.Room) -> None:
        """Shows an item of another form, as if it were new.

        Args:
            item: One of the same kind, as `kind` tells.
            room: What it has to draw in.
        """
        self.item, self.room = item, room
        self._has_focus = False
        match self.main, item.field:
            case Fold() | AddLine() as line, _:
                line.take(item)
            case Selector() as selector, VariantField() as variant:
                selector.turn_to_variants(variant)
            case Choices() as choices, ChoiceField() as choice:
                choices.turn_to(choice)
            case TextLine() | TextBox() as editor, field:
                editor.turn_to(field)
        self.redraw()

    def sync(self) -> None:
        """Shows what is in the field."""
        if self.key is not None:
            self.key.sync()
        if isinstance(self.main, TextLine) and not self.main.password and has_lines(self.item.field.text):
            self.call_later(self._take_lines, self.item.field, self.item.field.text)
        else:
            self.main.sync()
        self.redraw()

    def redraw(self) -> None:
        """Shows state and faults as they are now; lays the form out again only where lines were added or fell away."""
        before = len(self._above), len(self._below)
        self._draw()
        self.refresh(layout=before != (len(self._above), len(self._below)))
        if isinstance(self.main, Fold | AddLine):
            self.main.refresh()
        has_states = len(self._states()) > 1
        if has_states != self._had_states:
            self._had_states = has_states
            self.refresh_bindings()

    # Where it stands

    def lines(self, width: int) -> int:
        """Gives how many lines it takes.

        Args:
            width: The columns it has.
        """
        placed = self._beside.arrange(self, list(self.displayed_children), Size(width, 0))
        return max([len(self._above), *(placement.region.bottom for placement in placed)]) + len(self._below)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Gives how many lines it takes."""
        return self.lines(width)

    def place(self, children: Sequence[Widget], width: int) -> ArrangeResult:
        """Places the key, and the editor beside it or where a key would be; a constant beside its label."""
        aside = frame.beside(self.item, self.room)
        left, top = frame.indent(self.item, self.room) + len(frame.number(self.item)), len(self._above)
        placed: ArrangeResult = []
        for child in children:
            if aside is not None:
                column, line, columns = aside
                placed += _placed(self, child, Region(left + column, line, columns, 0))
            elif child is self.key:
                columns = min(max(round((width - left) * _KEY_SHARE), _KEY_WIDTH.start), _KEY_WIDTH.stop - 1)
                placed += _placed(self, child, Region(left, top, columns, 0))
                left += columns + 1
            else:
                placed += _placed(self, child, Region(left, top, max(width - left, 1), 0))
        return placed

    def render(self) -> Content:
        """Draws what is around the editor."""
        guides = frame.guides(self.item, self.room)
        number = Content.styled(frame.number(self.item), "$text-muted")
        middle = max(self.size.height - len(self._above) - len(self._below), 0)
        lines = [*self._above, *([number] + [Content("")] * (middle - 1) if middle else []), *self._below]
        return Content("\n").join(guides + line for line in lines)

    def _draw(self) -> None:
        self._above = frame.above(self.item, self.room, has_focus=self._has_focus)
        self._below = frame.below(self.item, self.room, has_focus=self._has_focus)

    # What happens to it

    def on_mount(self) -> None:
        """Tells that it stands."""
        self.stands.set()
        self.post_message(self.Stands(self))

    def on_unmount(self) -> None:
        """Lets nobody wait for it any more, and what was drawn go.

        Textual keeps what listens for selections until somebody selects, and what the last thousand widgets drew. Over
        a few forms that becomes so much that each full garbage collection is felt.
        """
        self.stands.set()
        parts: list[Widget] = [self, self.main, *filter(None, [self.key])]
        for part in parts:
            self.screen.text_selection_started_signal.unsubscribe(part)
            part._styles_cache.clear()  # noqa: SLF001 - nothing public lets go of it

    def show_focus(self, has_focus: bool) -> None:
        """Says all there is to say of the field while it has the focus, and the most important while it hasn't."""
        if has_focus != self._has_focus:
            self._has_focus = has_focus
            self.redraw()

    async def on_needs_lines(self, event: NeedsLines) -> None:
        """Makes the line a box."""
        event.stop()
        await self._take_lines(event.field, event.text)

    async def _take_lines(self, field: Field, text: str) -> None:
        if isinstance(self.main, TextLine) and self.main.field is field:
            self.main = await exchanged(self.main, text)
            self.kind = TextBox

    async def _replace_main(self) -> None:
        """Puts another editor in the place of the one whose field is gone."""
        before, self.main, self.kind = self.main, _main(self.item), kind(self.item)
        with self.app.batch_update():
            await self.mount(self.main)
            await before.remove()

    # What the user does

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers only what the field can do."""
        target = self._target
        match action:
            case "next_state":
                return len(self._states()) > 1
            case "unset":
                return not target.required and not target.in_list
            case "empty":
                return _can_empty(target)
            case "set_null":
                return target.nullable
            case "editor":
                return not frame.is_secret(self.item.field) and not isinstance(target, ChoiceField)
        return True

    def action_next_state(self) -> None:
        """Goes on to the next of the states that the field can have, the value that was typed among them."""
        target, states = self._target, self._states()
        now = "empty" if target.state == "value" and not target.is_filled and "empty" in states else target.state
        self._go(states[(states.index(now) + 1) % len(states)] if now in states else states[0])

    def action_unset(self) -> None:
        """Leaves the argument out."""
        self._go("unset")

    def action_empty(self) -> None:
        """Sends the empty text, list or object."""
        self._go("empty")

    def action_set_null(self) -> None:
        """Sends null."""
        self._go("null")

    async def action_editor(self) -> None:
        """Edits the text in the user's editor; of a container its JSON, in which secrets are dots."""
        target = self._target
        as_json = _is_json(target)
        is_whole = as_json and isinstance(target, Container) and not target.is_raw and target.state == "value"
        shown = target.draft(masked=True)
        before = write(shown, indent=2) if is_whole else target.text
        after = await in_editor(self.app, before, ".json" if as_json else ".txt")
        if after == before:
            return
        try:
            target.update(parse(after), shown) if is_whole else target.write(after)
        except JsonTextError:
            target.write(after)
        self._tell()

    def _states(self) -> list[str]:
        target = self._target
        states = [] if target.in_list else ["unset"]
        states += ["empty"] if _can_empty(target) else []
        states += ["null"] if target.nullable else []
        return states + (["value"] if target.can_recall or target.is_filled else [])

    def _go(self, state: str) -> None:
        target = self._target
        match state:
            case "unset":
                target.unset()
            case "null":
                target.set_null()
            case "value":
                target.recall()
            case _ if isinstance(target, TextField | Container):
                target.empty()
        self._tell()

    def _tell(self) -> None:
        self.sync()
        self.post_message(Edited(self._target))

    @property
    def _target(self) -> Field:
        """The field that has the states: of a variant's field the variant, since its null is that of all."""
        found = self.item.field
        while isinstance(found.parent, VariantField):
            found = found.parent
        return found


class RowView(FieldView):
    """An item that is a row of a list or an entry of a map, and can be moved."""

    PAGE = "Row"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        *FieldView.ACTIONS,
        Command("row.remove", "ctrl+delete", "remove_row", "Remove row", "Remove this row.", True),
        Command("row.up", "ctrl+up,alt+up", "move_row(-1)", "Row up", "Move this row up."),
        Command("row.down", "ctrl+down,alt+down", "move_row(1)", "Row down", "Move this row down."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS[len(FieldView.ACTIONS) :])

    class Asked(Message):
        """The row is to be moved, or to go where `by` is None."""

        def __init__(self, item: Item, by: int | None) -> None:
            super().__init__()
            self.item = item
            self.by = by

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers only what the row can do."""
        if action in ("remove_row", "move_row"):
            return self.item.index >= getattr(self.item.holder, "fixed", 0)
        return super().check_action(action, parameters)

    def action_remove_row(self) -> None:
        """Asks for the row to go."""
        self.post_message(self.Asked(self.item, None))

    def action_move_row(self, by: int) -> None:
        """Asks for the row to be moved."""
        self.post_message(self.Asked(self.item, by))


def view_of(item: Item, room: frame.Room) -> FieldView:
    """Builds the view of an item.

    Args:
        item: The item.
        room: What it has to draw in.
    """
    return FieldView(item, room) if item.holder is None else RowView(item, room)


def kind(item: Item) -> type[Main] | None:
    """Says of what kind the view of an item is: one of the same can show it later. None if it can show no other."""
    if item.holder is not None:
        return None
    match item.part, item.field:
        case "header", _:
            return Fold
        case "add", _:
            return AddLine
        case "choice", VariantField():
            return Selector
        case _, one:
            found = kind_of(one)
            return None if found is MultiChoices else found


class _Beside(Layout):
    """Leaves the view of an item to say where its parts stand."""

    name = "beside"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        """Places the parts."""
        assert isinstance(parent, FieldView), "the layout of those"
        return parent.place(children, size.width)


def _placed(parent: Widget, child: Widget, where: Region) -> list[WidgetPlacement]:
    """Places a widget, as high as it wants to be, where it is said to stand."""
    if not isinstance(child, TextBox | MultiChoices):
        return [WidgetPlacement(Region(where.x, where.y, where.width, 1), NULL_OFFSET, NULL_SPACING, child)]
    own = VerticalLayout().arrange(parent, [child], Size(where.width, 0))
    return [placement._replace(region=placement.region.translate(where.offset)) for placement in own]


def _main(item: Item) -> Main:
    match item.part, item.field:
        case "header", _:
            return Fold(item)
        case "add", _:
            return AddLine(item)
        case "choice", VariantField() as variant:
            return Selector(variant)
        case _, one:
            return editor_for(one)


def _can_empty(one: Field) -> bool:
    return _can_empty(one.inner) if isinstance(one, VariantField) else isinstance(one, TextField | Container)


def _is_json(one: Field) -> bool:
    if isinstance(one, VariantField):
        return one.is_raw or _is_json(one.inner)
    return isinstance(one, Container | JsonField)
