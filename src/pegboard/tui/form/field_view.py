"""Widget of one form item: its label, its editor and its validation errors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.layouts.vertical import VerticalLayout
from textual.message import Message
from textual.reactive import Reactive
from textual.widget import Widget

from pegboard.data.json_text import parse, write
from pegboard.errors import FormFaults
from pegboard.forms import ChoiceField, Container, Field, JsonField, JsonTextError, Masks, TextField, VariantField
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form import frame
from pegboard.tui.form.choices import Choices
from pegboard.tui.form.editors import TextBox, TextLine, can_be_json, in_editor
from pegboard.tui.form.items import FormItem
from pegboard.tui.form.lines import needs_box
from pegboard.tui.form.messages import ConvertToBox, Edited
from pegboard.tui.form.multi import MultiChoices
from pegboard.tui.form.rows import (
    AddLine,
    Editor,
    Fold,
    KeyLine,
    Selector,
    editor_class,
    make_editor,
    replace_with_box,
)

MainWidget: TypeAlias = Editor | Fold | AddLine | Selector
"""The interactive widget of an item."""

_KEY_SHARE = 0.4
_KEY_WIDTH = range(10, 25)
"""Widths of an entry's key in columns."""


class FieldView(Widget):
    """Widget of a form item.

    Args:
        item: The item.
        space: The space available to it.
    """

    PAGE = "Field"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "field.state",
            "ctrl+k",
            "next_state",
            "Unset/null",
            "Switch between unset, empty, null and the typed value.",
            footer=True,
            priority=True,
            meaning="Unset",
        ),
        Command("field.unset", "", "unset", "Unset", "Leave the argument out."),
        Command("field.empty", "", "empty", "Send empty", "Send an empty string, list or object."),
        Command("field.null", "", "set_null", "Send null", "Send null."),
        Command("field.editor", "f4", "editor", "Editor", "Edit the text, or the JSON of a container, in $EDITOR."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    FieldView { height: auto; text-wrap: nowrap; }
    """

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), repaint=False)
    """Textual's reactive without its second layout on change, since a field doesn't scroll."""

    class Mounted(Message):
        """The view and its children are mounted."""

        def __init__(self, view: FieldView) -> None:
            super().__init__()
            self.view = view

    def __init__(self, item: FormItem, space: frame.Space) -> None:
        self.key = KeyLine(item) if item.entry is not None else None
        self.main: MainWidget = _make_main(item)
        super().__init__(*filter(None, (self.key, self.main)))
        self.item = item
        self.space = space
        self.kind = view_kind(item)
        """Class of its main widget if it can show the items of other forms, else None."""
        self.mounted = asyncio.Event()
        """Set once the view and its children are mounted, or were removed."""
        self._has_focus = False
        self._had_states = False
        self._above: list[Content] = []
        self._below: list[Content] = []
        self._position: tuple[object, ...] = ()
        """What determines the position of the editor."""
        self._layout = _FieldLayout()
        self._draw()

    @property
    def layout(self) -> Layout:
        """A layout that asks the view to place its children."""
        return self._layout

    @property
    def stops(self) -> list[Widget]:
        """The focusable children, in tab order."""
        return [part for part in (self.key, self.main) if part is not None and part.can_focus]

    def update_item(self, item: FormItem, space: frame.Space) -> None:
        """Show the current state of the item.

        Args:
            item: An item with the same key.
            space: The space available to it.
        """
        before, self.item, self.space = self.item, item, space
        if self.key is not None:
            self.key.item = item
        if before.field is not item.field or (isinstance(self.main, TextBox) and frame.is_secret(item.field)):
            self.call_later(self._replace_main)
        elif isinstance(self.main, TextLine):
            self.main.update_secrecy()
        elif isinstance(self.main, Fold | AddLine):
            self.main.update_item(item)
        self.redraw()

    def show_item(self, item: FormItem, space: frame.Space) -> None:
        """Show an item of another form, as if the view were new.

        Args:
            item: An item of the same kind (see `view_kind`).
            space: The space available to it.
        """
        self.item, self.space = item, space
        self._has_focus = False
        match self.main, item.field:
            case Fold() | AddLine() as line, _:
                line.update_item(item)
            case Selector() as selector, VariantField() as variant:
                selector.show_variants(variant)
            case Choices() as choices, ChoiceField() as choice:
                choices.show_field(choice)
            case TextLine() | TextBox() as editor, field:
                editor.show_field(field)
        self.redraw()

    def sync(self) -> None:
        """Show the current value of the field."""
        if self.key is not None:
            self.key.sync()
        if isinstance(self.main, TextLine) and not self.main.password and needs_box(self.item.field.text):
            self.call_later(self._convert_to_box, self.item.field, self.item.field.text)
        else:
            self.main.sync()
        self.redraw()

    def redraw(self) -> None:
        """Redraw status and validation errors; request a layout only if the editor has another position."""
        before = self._position
        self._draw()
        if before != self._position:
            # Textual keeps the arrangement of a widget whose own size stays the same.
            self._clear_arrangement_cache()
        self.refresh(layout=before != self._position)
        if isinstance(self.main, Fold | AddLine):
            self.main.refresh()
        has_states = len(self._states()) > 1
        if has_states != self._had_states:
            self._had_states = has_states
            self.refresh_bindings()

    def lines(self, width: int) -> int:
        """Return the height of the view in lines, given its width in columns."""
        placed = self._layout.arrange(self, list(self.displayed_children), Size(width, 0))
        return max([len(self._above), *(placement.region.bottom for placement in placed)]) + len(self._below)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the height of the view in lines."""
        return self.lines(width)

    def place(self, children: Sequence[Widget], width: int) -> ArrangeResult:
        """Place the key and the editor next to it; a constant goes beside its label."""
        aside = frame.beside(self.item, self.space)
        left, top = frame.indent(self.item, self.space) + len(frame.number(self.item)), len(self._above)
        placed: ArrangeResult = []
        for child in children:
            if aside is not None:
                column, line, columns = aside
                placed += _place(self, child, Region(left + column, line, columns, 0))
            elif child is self.key:
                columns = min(max(round((width - left) * _KEY_SHARE), _KEY_WIDTH.start), _KEY_WIDTH.stop - 1)
                placed += _place(self, child, Region(left, top, columns, 0))
                left += columns + 1
            else:
                placed += _place(self, child, Region(left, top, max(width - left, 1), 0))
        return placed

    def render(self) -> Content:
        """Render the text around the editor."""
        guides = frame.guides(self.item, self.space)
        number = Content.styled(frame.number(self.item), "$text-muted")
        middle = max(self.size.height - len(self._above) - len(self._below), 0)
        lines = [*self._above, *([number] + [Content("")] * (middle - 1) if middle else []), *self._below]
        return Content("\n").join(guides + line for line in lines)

    def on_click(self, event: events.Click) -> None:
        """Focus the editor after a click on its label, description or errors, unless it selected text there."""
        is_on_child = any(child.region.contains(*event.screen_offset) for child in self.displayed_children)
        if self.stops and event.chain == 1 and not is_on_child and not self.screen.get_selected_text():
            event.stop()
            self.stops[-1].focus(scroll_visible=False)

    def _draw(self) -> None:
        self._above = frame.above(self.item, self.space, has_focus=self._has_focus)
        self._below = frame.below(self.item, self.space, has_focus=self._has_focus)
        left = frame.indent(self.item, self.space) + len(frame.number(self.item))
        self._position = left, len(self._above), len(self._below), frame.beside(self.item, self.space)

    def on_mount(self) -> None:
        """Announce that the view is mounted."""
        self.mounted.set()
        self.post_message(self.Mounted(self))

    def on_unmount(self) -> None:
        """Release waiting tasks, and drop what Textual would keep of this widget.

        Textual keeps subscribers to text selection until the next selection, and the strips of the last thousand
        widgets. After a few forms, that makes every full garbage collection noticeable.
        """
        self.mounted.set()
        parts: list[Widget] = [self, self.main, *filter(None, [self.key])]
        for part in parts:
            self.screen.text_selection_started_signal.unsubscribe(part)
            part._styles_cache.clear()  # noqa: SLF001 - Textual has no public way to clear it

    def show_focus(self, has_focus: bool) -> None:
        """Show all notes of the field while it is focused, and only the first lines otherwise."""
        if has_focus != self._has_focus:
            self._has_focus = has_focus
            self.redraw()

    async def on_convert_to_box(self, event: ConvertToBox) -> None:
        """Replace the line by a box."""
        event.stop()
        await self._convert_to_box(event.field, event.text)

    async def _convert_to_box(self, field: Field, text: str) -> None:
        if isinstance(self.main, TextLine) and self.main.field is field:
            self.main = await replace_with_box(self.main, text)
            self.kind = TextBox
            # That of the box doesn't get further: Textual stops a message at the widget in whose handler it was made.
            self.post_message(Edited(field))

    async def _replace_main(self) -> None:
        """Replace the editor after its field was replaced."""
        before, self.main, self.kind = self.main, _make_main(self.item), view_kind(self.item)
        with self.app.batch_update():
            await self.mount(self.main)
            await before.remove()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the commands that apply to the field."""
        target = self._state_field
        match action:
            case "next_state":
                # the key of an entry has a command of its own on the same key
                return len(self._states()) > 1 and (self.key is None or not self.key.has_focus)
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
        """Switch to the next possible state of the field."""
        target, states = self._state_field, self._states()
        now = "empty" if target.state == "value" and not target.is_filled and "empty" in states else target.state
        self._set_state(states[(states.index(now) + 1) % len(states)] if now in states else states[0])

    def action_unset(self) -> None:
        """Unset the argument."""
        self._set_state("unset")

    def action_empty(self) -> None:
        """Send an empty string, list or object."""
        self._set_state("empty")

    def action_set_null(self) -> None:
        """Send null."""
        self._set_state("null")

    async def action_editor(self) -> None:
        """Edit the text, or the JSON of a container with masked secrets, in the user's editor."""
        target = self._state_field
        as_json = _is_json(target)
        is_whole = as_json and isinstance(target, Container) and not target.is_raw and target.state == "value"
        if is_whole and not can_be_json(self.app, target.walk()):
            return
        draft, masks = target.draft(), Masks()
        before = write(masks.hide(draft, target.draft(masked=True)), indent=2) if is_whole else target.text
        after = await in_editor(self.app, before, ".json" if as_json else ".txt")
        if after == before:
            return
        try:
            target.update(masks.reveal(parse(after), target), draft) if is_whole else target.write(after)
        except JsonTextError:
            target.write(after)
        except FormFaults as error:
            self.app.notify(
                f"The edit was not applied. {clean_line(str(error.faults[0]))}.", severity="error", markup=False
            )
            return
        self._show_edit()

    def _states(self) -> list[str]:
        target = self._state_field
        states = [] if target.in_list else ["unset"]
        states += ["empty"] if _can_empty(target) else []
        states += ["null"] if target.nullable else []
        return states + (["value"] if target.can_recall or target.is_filled else [])

    def _set_state(self, state: str) -> None:
        target = self._state_field
        match state:
            case "unset":
                target.unset()
            case "null":
                target.set_null()
            case "value":
                target.recall()
            case _ if isinstance(target, TextField | Container):
                target.empty()
        self._show_edit()

    def _show_edit(self) -> None:
        self.sync()
        self.post_message(Edited(self._state_field))

    @property
    def _state_field(self) -> Field:
        """The field whose state changes: for the field of a variant, the outermost variant field."""
        found = self.item.field
        while isinstance(found.parent, VariantField):
            found = found.parent
        return found


class RowView(FieldView):
    """Widget of a row of a list or an entry of a map, which can be moved and removed."""

    PAGE = "Row"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        *FieldView.ACTIONS,
        Command("row.remove", "ctrl+delete", "remove_row", "Remove row", "Remove this row.", True),
        Command("row.up", "alt+up", "move_row(-1)", "Row up", "Move this row up."),
        Command("row.down", "alt+down", "move_row(1)", "Row down", "Move this row down."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS[len(FieldView.ACTIONS) :])

    class Moved(Message):
        """The user moved the row by a number of positions."""

        def __init__(self, item: FormItem, by: int) -> None:
            super().__init__()
            self.item = item
            self.by = by

    class Removed(Message):
        """The user removed the row."""

        def __init__(self, item: FormItem) -> None:
            super().__init__()
            self.item = item

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the commands that apply to the row."""
        if action in ("remove_row", "move_row"):
            return self.item.index >= getattr(self.item.holder, "fixed", 0)
        return super().check_action(action, parameters)

    def action_remove_row(self) -> None:
        """Remove the row."""
        self.post_message(self.Removed(self.item))

    def action_move_row(self, by: int) -> None:
        """Move the row by a number of positions."""
        self.post_message(self.Moved(self.item, by))


def view_of(item: FormItem, space: frame.Space) -> FieldView:
    """Return a new view of an item."""
    return FieldView(item, space) if item.holder is None else RowView(item, space)


def view_kind(item: FormItem) -> type[MainWidget] | None:
    """Return the class of an item's main widget if views of that kind are reusable for other forms, else None."""
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
            found = editor_class(one)
            return None if found is MultiChoices else found


class _FieldLayout(Layout):
    """Layout that delegates to `FieldView.place`."""

    name = "field"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        """Place the children."""
        assert isinstance(parent, FieldView), "used by FieldView only"
        return parent.place(children, size.width)


def _place(parent: Widget, child: Widget, where: Region) -> list[WidgetPlacement]:
    """Place a widget at a position and width, with the height that it needs."""
    if not isinstance(child, TextBox | MultiChoices):
        return [WidgetPlacement(Region(where.x, where.y, where.width, 1), NULL_OFFSET, NULL_SPACING, child)]
    own = VerticalLayout().arrange(parent, [child], Size(where.width, 0))
    return [placement._replace(region=placement.region.translate(where.offset)) for placement in own]


def _make_main(item: FormItem) -> MainWidget:
    match item.part, item.field:
        case "header", _:
            return Fold(item)
        case "add", _:
            return AddLine(item)
        case "choice", VariantField() as variant:
            return Selector(variant)
        case _, one:
            return make_editor(one)


def _can_empty(one: Field) -> bool:
    return _can_empty(one.inner) if isinstance(one, VariantField) else isinstance(one, TextField | Container)


def _is_json(one: Field) -> bool:
    if isinstance(one, VariantField):
        return one.is_raw or _is_json(one.inner)
    return isinstance(one, Container | JsonField)
