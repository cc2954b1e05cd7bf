"""Widgets inside a form item: the header of a container, the line that adds a row, the key of an entry."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input

from pegboard.forms import (
    ChoiceField,
    Container,
    Field,
    JsonField,
    MapEntry,
    MapField,
    MultiChoiceField,
    Option,
    State,
    TextField,
    VariantField,
)
from pegboard.forms.fields import FieldDescription, FieldPosition
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form.choices import Choices
from pegboard.tui.form.editors import TextBox, TextLine
from pegboard.tui.form.frame import add_line, header
from pegboard.tui.form.items import FormItem
from pegboard.tui.form.lines import SELECT_ALL, LineInput, needs_box
from pegboard.tui.form.messages import Edited, LineSubmitted
from pegboard.tui.form.multi import MultiChoices
from pegboard.tui.widgets.control_pictures import ControlPictures
from pegboard.tui.widgets.paste import may_be_call

Editor: TypeAlias = TextLine | TextBox | Choices | MultiChoices


def editor_class(field: Field) -> type[Editor]:
    """Return the class of the editor of a field, or of a container's JSON."""
    if isinstance(field, ChoiceField):
        return Choices
    if isinstance(field, MultiChoiceField) and not field.is_raw:
        return MultiChoices
    lines = isinstance(field, JsonField | Container) or (isinstance(field, TextField) and field.multiline)
    if lines or (isinstance(field, TextField) and not field.secret and needs_box(field.text)):
        return TextBox
    return TextLine


def make_editor(field: Field) -> Editor:
    """Return a new editor for a field, or for a container's JSON."""
    if isinstance(field, ChoiceField):
        return Choices(field)
    if isinstance(field, MultiChoiceField) and not field.is_raw:
        return MultiChoices(field)
    return TextBox(field) if editor_class(field) is TextBox else TextLine(field)


async def replace_with_box(line: TextLine, text: str) -> TextBox:
    """Replace a line by a box with `text`, and return the box."""
    assert isinstance(line.parent, Widget), "a line is a child of a FieldView"
    box = TextBox(line.field)
    with line.app.batch_update():
        await line.parent.mount(box, after=line)
        await line.remove()
    box.replace_text(text)
    box.move_cursor(box.document.end)
    box.focus()
    return box


class ItemLine(Widget, can_focus=True):
    """Line that shows a form item and can be focused.

    Args:
        item: The item that it shows.
    """

    DEFAULT_CSS = """
    ItemLine {
        height: 1;
        text-wrap: nowrap;
        &:focus { background: $block-cursor-blurred-background; text-style: bold; }
        &:focus:nocolor, &:focus:ansi { text-style: reverse; }
        &:hover { text-style: underline; }
    }
    """

    def __init__(self, item: FormItem) -> None:
        super().__init__()
        self.item = item

    def update_item(self, item: FormItem) -> None:
        """Show the current state of the item."""
        self.item = item
        self.refresh()

    def sync(self) -> None:
        """Show the current state of the item."""
        self.refresh()


class Fold(ItemLine):
    """Header of a container, with a summary of its content while it is collapsed.

    Args:
        item: The item that it shows.
    """

    PAGE = "Section"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("fold.toggle", "enter,space", "fold", "Collapse", "Expand or collapse the content.", True),
        Command(
            "fold.close",
            "left",
            "close",
            "Collapse",
            "Collapse the content; if it is collapsed, focus the enclosing container.",
        ),
        Command("fold.open", "right", "open", "Expand", "Expand the content."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    class Toggled(Message):
        """The user expanded or collapsed a container, or collapsed one that is already collapsed."""

        def __init__(self, item: FormItem, is_open: bool) -> None:
            super().__init__()
            self.item = item
            self.is_open = is_open

    def render(self) -> Content:
        """Render the line."""
        return header(self.item, self.content_size.width)

    def on_click(self) -> None:
        """Expand or collapse."""
        self.action_fold()

    def action_fold(self) -> None:
        """Expand or collapse."""
        self._toggle(not self.item.is_open)

    def action_open(self) -> None:
        """Expand."""
        if not self.item.is_open:
            self._toggle(True)

    def action_close(self) -> None:
        """Collapse, or focus the enclosing container."""
        self._toggle(False)

    def _toggle(self, is_open: bool) -> None:
        self.post_message(self.Toggled(self.item, is_open))


class AddLine(ItemLine):
    """Line that adds a row; for an empty list or map, it shows the label as well.

    Args:
        item: The item that it shows.
    """

    PAGE = "Add row"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("row.add", "enter,space", "add", "Add row", "Add a row at the end of the list.", True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    class Pressed(Message):
        """The user asked for a new row, typed the first character of its text, or pasted its text."""

        def __init__(self, field: Field, text: str = "") -> None:
            super().__init__()
            self.field = field
            self.text = text

    def render(self) -> Content:
        """Render the line."""
        return add_line(self.item, self.content_size.width)

    def action_add(self) -> None:
        """Ask the form for a new row."""
        self.post_message(self.Pressed(self.item.field))

    def on_click(self) -> None:
        """Ask the form for a new row."""
        self.action_add()

    def on_key(self, event: events.Key) -> None:
        """Ask the form for a new row that begins with a typed character."""
        if event.is_printable and event.character != " ":
            event.stop()
            self.post_message(self.Pressed(self.item.field, event.character or ""))

    def on_paste(self, event: events.Paste) -> None:
        """Ask the form for a new row with the pasted text, unless it may be a call."""
        if event.text and not may_be_call(event.text):
            event.stop()
            self.post_message(self.Pressed(self.item.field, event.text))


class KeyLine(LineInput):
    """Editor of the key of a map entry.

    Args:
        item: The item of the entry.
    """

    PAGE = "Key"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "key.empty",
            "ctrl+k",
            "name_empty",
            "Empty key",
            "Use an empty string as the key, or undo that.",
            footer=True,
            meaning="Unset",
        ),
    )
    BINDINGS: ClassVar[list[BindingType]] = [SELECT_ALL, *bindings(ACTIONS)]

    def __init__(self, item: FormItem) -> None:
        assert isinstance(item.holder, MapField), "only map entries have keys"
        assert item.entry is not None, "the item belongs to an entry"
        options = [key for key in item.holder.key_options if key.isprintable()]
        self._offered = f"one of {', '.join(clean_line(key) for key in options[:5])}" if options else "name"
        super().__init__(
            item.entry.key,
            self._hint(item.entry),
            highlighter=ControlPictures(),
            suggester=SuggestFromList(options) if options else None,
            select_on_focus=False,
        )
        self.item = item

    def commit(self) -> None:
        """Rename the entry to the typed key."""
        holder, entry = self.item.holder, self.item.entry
        assert isinstance(holder, MapField), "only map entries have keys"
        if entry in holder.entries and entry.key != self.value:
            holder.rename(holder.entries.index(entry), self.value)
            self.placeholder = self._hint(entry)
            self.post_message(Edited(holder))

    def sync(self) -> None:
        """Show the current key of the entry."""
        entry = self.item.entry
        if entry is None:
            return
        self.placeholder = self._hint(entry)
        if self.value != entry.key and not self.has_focus:
            self.value = entry.key

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the empty key while the line is empty."""
        return action != "name_empty" or not self.value

    def action_name_empty(self) -> None:
        """Use an empty string as the key; if it already is the key, remove the key."""
        holder, entry = self.item.holder, self.item.entry
        assert isinstance(holder, MapField), "only map entries have keys"
        assert entry is not None, "the item belongs to an entry"
        index = holder.entries.index(entry)
        if entry.is_named and not entry.key:
            holder.rename(index, "")
        else:
            holder.name_empty(index)
        self.placeholder = self._hint(entry)
        self.post_message(Edited(holder))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Announce the change; the entry is renamed when the key is complete."""
        event.stop()
        self.post_message(self.Typed())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Rename the entry and focus its value."""
        event.stop()
        self.commit()
        self.post_message(LineSubmitted(self.item.field))

    def on_blur(self) -> None:
        """Rename the entry."""
        self.commit()

    def _hint(self, entry: MapEntry) -> str:
        return "the empty string" if entry.is_named and not entry.key else self._offered

    class Typed(Message):
        """The text of a key changed."""


class _VariantChoice(ChoiceField):
    """Choice whose options are the variants of a field."""

    def __init__(self, field: VariantField) -> None:
        options = tuple(Option(text, index) for index, text in enumerate(field.variants))
        super().__init__(FieldDescription(schema={}, required=True), FieldPosition(), options=options)
        self._field = field

    @property
    def state(self) -> State:
        """Always `value`, since one of the variants is always chosen."""
        return "value"

    @property
    def chosen(self) -> int | None:
        """Index of the chosen variant."""
        return self._field.chosen


class Selector(Choices):
    """Choice of the variant of a field. Typed text goes to the text editor below it, if it has one.

    Args:
        field: The field with variants.
    """

    class Typed(Message):
        """A character for the editor of the chosen variant was typed, or a text was pasted."""

        def __init__(self, field: Field, text: str) -> None:
            super().__init__()
            self.field = field
            self.text = text

    def __init__(self, field: VariantField) -> None:
        super().__init__(_VariantChoice(field))
        self._variants = field

    def show_variants(self, field: VariantField) -> None:
        """Choose the variant of another field."""
        self._variants = field
        self.show_field(_VariantChoice(field))

    def on_key(self, event: events.Key) -> None:
        """Announce a character for the editor of the chosen variant; else choose a variant by its first letter."""
        if event.is_printable and event.character != " " and self._has_editor and self._fits():
            event.stop()
            event.prevent_default()
            self.post_message(self.Typed(self._variants.inner, event.character or ""))

    def on_paste(self, event: events.Paste) -> None:
        """Announce a pasted text for the editor of the chosen variant, unless it may be a call."""
        if event.text and not may_be_call(event.text) and self._has_editor and self._fits():
            event.stop()
            self.post_message(self.Typed(self._variants.inner, event.text))

    @property
    def _has_editor(self) -> bool:
        inner = self._variants.inner
        return not isinstance(inner, Container | VariantField) and editor_class(inner) in {TextLine, TextBox}

    def choose(self, position: int) -> None:
        """Choose a variant by its index."""
        self._variants.choose(position)
        self.refresh()
        self.post_message(Edited(self._variants))
