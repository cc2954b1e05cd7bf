"""Editor of a choice: options side by side, or the chosen one of a list."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget

from pegboard.data.json_text import write
from pegboard.forms import ChoiceField
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form.messages import Edited
from pegboard.tui.form.popups import PickOne, label
from pegboard.tui.widgets.pick_list import PickLine

_MOST_INLINE = 40
"""Most options that are shown side by side."""


class Choices(Widget, can_focus=True):
    """Choice of one value, including unset and null where they are allowed.

    Args:
        field: The field that it edits.
    """

    PAGE = "Choice"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("choice.previous", "left", "step(-1)", "Previous", "Choose the previous option."),
        Command("choice.next", "right", "step(1)", "Next", "Choose the next option."),
        Command(
            "choice.open",
            "enter,space,ctrl+f",
            "open",
            "Choose",
            "List all options, or choose the next of a few.",
            meaning="Pick",
        ),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"choices--chosen", "choices--other"}
    DEFAULT_CSS = """
    Choices {
        height: 1;
        border-left: outer $border-blurred;
        padding: 0 1;
        background: $surface;
        .choices--chosen { color: $text-primary; text-style: bold; }
        .choices--other { color: $text-muted; }
        &:focus { border-left: outer $border; background-tint: $foreground 5%; }
        &:ansi { border-left: outer ansi_default; }
        &:ansi:focus { border-left: outer ansi_bright_yellow; }
    }
    """

    def __init__(self, field: ChoiceField) -> None:
        super().__init__()
        self.field = field
        self.entries = _entries(field)
        """Label and option index of each entry; -1 is null, None is unset. Options with those names are quoted."""
        self.can_focus = self._has_choice()

    def show_field(self, field: ChoiceField) -> None:
        """Edit another field."""
        self.field = field
        self.entries = _entries(field)
        self.sync()

    @property
    def current(self) -> int | None:
        """Index of the chosen entry, or None if the value is none of them."""
        wanted = {"unset": None, "null": -1, "value": self.field.chosen}[self.field.state]
        if self.field.state == "value" and wanted is None:
            return None
        return next((position for position, entry in enumerate(self.entries) if entry[1] == wanted), None)

    def sync(self) -> None:
        """Show the current value of the field."""
        self.can_focus = self._has_choice()
        self.refresh()

    def choose(self, position: int) -> None:
        """Choose an entry by its index."""
        match self.entries[position][1]:
            case None:
                self.field.unset()
            case -1:
                self.field.set_null()
            case index:
                self.field.choose(index)
        self.refresh()
        self.post_message(Edited(self.field))

    def action_step(self, by: int) -> None:
        """Choose the previous or next entry."""
        current = self.current
        first = 0 if by > 0 else len(self.entries) - 1
        self.choose(first if current is None else min(max(current + by, 0), len(self.entries) - 1))

    def action_open(self) -> None:
        """Open a list of the entries; if they fit side by side, choose the next one instead."""
        if self._fits():
            self.choose(0 if self.current is None else (self.current + 1) % len(self.entries))
        else:
            self._open_list()

    def on_key(self, event: events.Key) -> None:
        """Choose the next entry that starts with the typed letter, or open the filtered list."""
        letter = (event.character or "").lower()
        if not event.is_printable or letter.isspace():
            return
        event.stop()
        if not self._fits():
            self._open_list(event.character or "")
            return
        start = -1 if self.current is None else self.current
        for offset in range(1, len(self.entries) + 1):
            position = (start + offset) % len(self.entries)
            if self.entries[position][0].lower().startswith(letter):
                self.choose(position)
                return

    def on_click(self, event: events.Click) -> None:
        """Choose the clicked entry."""
        if not self._fits():
            self._open_list()
            return
        x = event.get_content_offset_capture(self).x
        for position, (text, _) in enumerate(self.entries):
            width = Content(text).cell_length + 4
            if x < width:
                self.choose(position)
                return
            x -= width

    def render(self) -> Content:
        """Render the entries side by side, or the chosen one."""
        chosen, other = self.get_visual_style("choices--chosen"), self.get_visual_style("choices--other")
        current = self.current
        if self._fits():
            parts = [
                Content.styled(
                    f"{'●' if position == current else '○'} {text}", chosen if position == current else other
                )
                for position, (text, _) in enumerate(self.entries)
            ]
            return Content("  ").join(parts)
        if current is None:
            shown = clean_line(self.field.text) if self.field.state == "value" else "choose one"
            return self._line(Content.styled(f"▾ {shown}", other), Content.styled(f"  ({len(self.entries):,})", other))
        count = f"  {current + 1:,} of {len(self.entries):,}"
        return self._line(Content.styled(f"▾ {self.entries[current][0]}", chosen), Content.styled(count, other))

    def _line(self, shown: Content, count: Content) -> Content:
        """Return a text and a count in one line; the text is truncated if both don't fit."""
        return shown.truncate(max(self.content_size.width - count.cell_length, 1), ellipsis=True) + count

    def _open_list(self, sought: str = "") -> None:
        def pick(position: int | None) -> None:
            if position is not None:
                self.choose(position)

        lines = [PickLine(text, "" if index is not None and index >= 0 else "state") for text, index in self.entries]
        title = label(self.field.label)
        self.app.push_screen(PickOne(self, title, lines, self.current or 0, sought), pick)

    def _has_choice(self) -> bool:
        return len(self.entries) > 1 or self.current is None

    def _fits(self) -> bool:
        width = sum(Content(text).cell_length + 4 for text, _ in self.entries[:_MOST_INLINE]) - 2
        # A key may arrive before the first layout.
        available = self.content_size.width or self.app.size.width
        return len(self.entries) <= _MOST_INLINE and width <= max(available, 20)


def _entries(field: ChoiceField) -> list[tuple[str, int | None]]:
    states = {"unset", "null"}
    entries: list[tuple[str, int | None]] = [
        (label(write(option.value) if option.label in states else option.label), index)
        for index, option in enumerate(field.options)
    ]
    if field.nullable:
        entries.append(("null", -1))
    if not field.required:
        entries.insert(0, ("unset", None))
    return entries
