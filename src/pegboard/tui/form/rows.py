"""What stands in an item of the form: the editor of a field, the line of a container, the key of an entry."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

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
from pegboard.forms.fields import FieldFacts, FieldPosition
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form.editors import Choices, Edited, Entered, Pictures, TextBox, TextLine
from pegboard.tui.form.frame import add_line, header
from pegboard.tui.form.items import Item
from pegboard.tui.form.multi import MultiChoices

Editor: TypeAlias = TextLine | TextBox | Choices | MultiChoices

_LONGEST_LINE = 10_000
"""Characters of a text that is edited in a line."""


def kind_of(field: Field) -> type[Editor]:
    """Says what a field that is shown in one piece is edited with, or the JSON of a container."""
    if isinstance(field, ChoiceField):
        return Choices
    if isinstance(field, MultiChoiceField) and not field.is_raw:
        return MultiChoices
    lines = isinstance(field, JsonField | Container) or (isinstance(field, TextField) and field.multiline)
    if lines or (isinstance(field, TextField) and not field.secret and has_lines(field.text)):
        return TextBox
    return TextLine


def editor_for(field: Field) -> Editor:
    """Gives the editor for a field that is shown in one piece, or for the JSON of a container."""
    if isinstance(field, ChoiceField):
        return Choices(field)
    if isinstance(field, MultiChoiceField) and not field.is_raw:
        return MultiChoices(field)
    return TextBox(field) if kind_of(field) is TextBox else TextLine(field)


def has_lines(text: str) -> bool:
    """Whether a text doesn't fit into one line."""
    return "\n" in text or "\r" in text or len(text) > _LONGEST_LINE


async def exchanged(line: TextLine, text: str) -> TextBox:
    """Puts a box with `text` in the place of a line, and gives it."""
    assert isinstance(line.parent, Widget), "a line stands in the view of its item"
    box = TextBox(line.field)
    with line.app.batch_update():
        await line.parent.mount(box, after=line)
        await line.remove()
    box.put(text)
    box.move_cursor(box.document.end)
    box.focus()
    return box


class Fold(Widget, can_focus=True):
    """The line of a container: what it is, and what is in it where that is folded away.

    Args:
        item: What it shows.
    """

    PAGE = "Section"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("fold.toggle", "enter,space", "fold", "Fold", "Fold what is in it away, or unfold it.", True),
        Command("fold.close", "left", "close", "Fold away", "Fold it away; folded already, go to what it is in."),
        Command("fold.open", "right", "open", "Unfold", "Show what is in it."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    Fold {
        height: 1;
        text-wrap: nowrap;
        &:focus { background: $block-cursor-blurred-background; text-style: bold; }
        &:focus:nocolor { text-style: reverse; }
        &:hover { text-style: underline; }
    }
    """

    class Asked(Message):
        """A container is to be folded or unfolded; or, where it is folded already, the one around it gone to."""

        def __init__(self, item: Item, is_open: bool) -> None:
            super().__init__()
            self.item = item
            self.is_open = is_open

    def __init__(self, item: Item) -> None:
        super().__init__()
        self.item = item

    def take(self, item: Item) -> None:
        """Shows the line as it is now."""
        self.item = item
        self.refresh()

    def sync(self) -> None:
        """Shows what is in the container."""
        self.refresh()

    def render(self) -> Content:
        """Draws the line."""
        return header(self.item, self.content_size.width)

    def on_click(self) -> None:
        """Folds or unfolds."""
        self.action_fold()

    def action_fold(self) -> None:
        """Folds or unfolds."""
        self._ask(not self.item.is_open)

    def action_open(self) -> None:
        """Unfolds."""
        if not self.item.is_open:
            self._ask(True)

    def action_close(self) -> None:
        """Folds; or goes to what is around."""
        self._ask(False)

    def _ask(self, is_open: bool) -> None:
        self.post_message(self.Asked(self.item, is_open))


class AddLine(Widget, can_focus=True):
    """Adds a row; where there is none yet, it says what the list or map is as well.

    Args:
        item: What it shows.
    """

    PAGE = "List"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("row.add", "enter,space", "add", "Add row", "Add a row at the end of the list.", True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    AddLine {
        height: 1;
        text-wrap: nowrap;
        &:focus { background: $block-cursor-blurred-background; text-style: bold; }
        &:focus:nocolor { text-style: reverse; }
        &:hover { text-style: underline; }
    }
    """

    class Pressed(Message):
        """A row is asked for."""

        def __init__(self, field: Field) -> None:
            super().__init__()
            self.field = field

    def __init__(self, item: Item) -> None:
        super().__init__()
        self.item = item

    def take(self, item: Item) -> None:
        """Shows the line as it is now."""
        self.item = item
        self.refresh()

    def sync(self) -> None:
        """Shows whether there are rows."""
        self.refresh()

    def render(self) -> Content:
        """Draws the line."""
        return add_line(self.item, self.content_size.width)

    def action_add(self) -> None:
        """Asks for a row."""
        self.post_message(self.Pressed(self.item.field))

    def on_click(self) -> None:
        """Asks for a row."""
        self.action_add()


class KeyLine(Input):
    """The key of an entry of a map.

    Args:
        item: The entry's item.
    """

    PAGE = "Key"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("key.empty", "ctrl+n", "name_empty", "Empty key", "Make the empty text the key, or no longer.", True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    KeyLine {
        height: 1;
        border: none;
        border-left: outer $border-blurred;
        padding: 0 1;
        background: $surface;
        &:focus { border: none; border-left: outer $border; background-tint: $foreground 5%; }
        &:ansi { border: none; border-left: outer ansi_default; }
        &:ansi:focus { border: none; border-left: outer ansi_bright_yellow; }
    }
    """

    def __init__(self, item: Item) -> None:
        assert isinstance(item.holder, MapField), "only the entries of a map have keys"
        assert item.entry is not None, "it is the item of one"
        options = [key for key in item.holder.key_options if key.isprintable()]
        self._offered = f"one of {', '.join(clean_line(key) for key in options[:5])}" if options else "name"
        super().__init__(
            item.entry.key,
            self._hint(item.entry),
            highlighter=Pictures(),
            suggester=SuggestFromList(options) if options else None,
            select_on_focus=False,
        )
        self.item = item

    def commit(self) -> None:
        """Gives the entry the key that was typed."""
        holder, entry = self.item.holder, self.item.entry
        assert isinstance(holder, MapField), "only the entries of a map have keys"
        if entry in holder.entries and entry.key != self.value:
            holder.rename(holder.entries.index(entry), self.value)
            self.placeholder = self._hint(entry)
            self.post_message(Edited(holder))

    def sync(self) -> None:
        """Shows the key that the entry has."""
        entry = self.item.entry
        if entry is None:
            return
        self.placeholder = self._hint(entry)
        if self.value != entry.key and not self.has_focus:
            self.value = entry.key

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers the empty key where none is typed."""
        return action != "name_empty" or not self.value

    def action_name_empty(self) -> None:
        """Makes the empty text the key; if it is that already, leaves the entry without a key."""
        holder, entry = self.item.holder, self.item.entry
        assert isinstance(holder, MapField), "only the entries of a map have keys"
        assert entry is not None, "it is the item of one"
        index = holder.entries.index(entry)
        if entry.is_named and not entry.key:
            holder.rename(index, "")
        else:
            holder.name_empty(index)
        self.placeholder = self._hint(entry)
        self.post_message(Edited(holder))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Waits for the key to be whole."""
        event.stop()
        self.post_message(self.Typed())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Goes on to the value."""
        event.stop()
        self.commit()
        self.post_message(Entered(self.item.field))

    def on_blur(self) -> None:
        """Takes the key."""
        self.commit()

    def _hint(self, entry: MapEntry) -> str:
        return "the empty text" if entry.is_named and not entry.key else self._offered

    class Typed(Message):
        """A key is being typed."""


class _Variants(ChoiceField):
    """The variants of a field as options, so that they are chosen like any."""

    def __init__(self, field: VariantField) -> None:
        options = tuple(Option(text, index) for index, text in enumerate(field.variants))
        super().__init__(FieldFacts(schema={}, required=True), FieldPosition(), options=options)
        self._field = field

    @property
    def state(self) -> State:
        """One of the variants is always there to be filled in."""
        return "value"

    @property
    def chosen(self) -> int | None:
        """The variant that is filled in."""
        return self._field.chosen


class Selector(Choices):
    """The variants of a field, one of them chosen.

    Args:
        field: What it chooses the variant of.
    """

    def __init__(self, field: VariantField) -> None:
        super().__init__(_Variants(field))
        self._variants = field

    def turn_to_variants(self, field: VariantField) -> None:
        """Chooses the variant of another field."""
        self._variants = field
        self.turn_to(_Variants(field))

    def take(self, place: int) -> None:
        """Chooses the variant at `place`."""
        self._variants.choose(place)
        self.refresh()
        self.post_message(Edited(self._variants))
