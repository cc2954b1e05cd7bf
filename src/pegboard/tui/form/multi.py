"""Several of many values: side by side with a box to tick each, or as a line that opens a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import JsonValue
from textual import events
from textual.actions import SkipAction
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from pegboard.data.json_text import same
from pegboard.forms import MultiChoiceField
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form.editors import Edited
from pegboard.tui.form.popups import PickSeveral, label
from pegboard.tui.form.ticks import GAP, Ticks
from pegboard.tui.widgets.pick_list import PickLine


class MultiChoices(Widget, can_focus=True):
    """Values to tick, in the order they are ticked.

    Args:
        field: What it edits.
    """

    PAGE = "Several choices"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("multi.toggle", "space,enter", "tick", "Tick", "Pick the marked value or no longer; or list all."),
        Command("multi.more", "plus", "change(1)", "Once more", "Pick the marked value once more."),
        Command("multi.less", "minus", "change(-1)", "Once less", "Take the last pick of the marked value back."),
        Command("multi.list", "ctrl+f", "list", "List", "List all values, to be filtered and ticked."),
        Command("multi.left", "left", "move(-1)", "Left", "Mark the value before."),
        Command("multi.right", "right", "move(1)", "Right", "Mark the next value."),
        Command("multi.up", "up", "row(-1)", "Up", "Mark the value above."),
        Command("multi.down", "down", "row(1)", "Down", "Mark the value below."),
        Command("multi.first", "home", "move(-9999)", "First", "Mark the first value."),
        Command("multi.last", "end", "move(9999)", "Last", "Mark the last value."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "multi-choices--picked",
        "multi-choices--other",
        "multi-choices--cursor",
        "multi-choices--note",
    }
    DEFAULT_CSS = """
    MultiChoices {
        height: auto;
        border-left: outer $border-blurred;
        padding: 0 1;
        background: $surface;
        .multi-choices--picked { color: $text-primary; text-style: bold; }
        .multi-choices--other { color: $text-muted; }
        .multi-choices--cursor {
            color: $block-cursor-foreground;
            background: $block-cursor-background;
            text-style: $block-cursor-text-style;
        }
        .multi-choices--note { color: $text-muted; text-style: italic; }
        &:nocolor .multi-choices--cursor { text-style: reverse; }
        &:focus { border-left: outer $border; background-tint: $foreground 5%; }
        &:ansi { border-left: outer ansi_default; }
        &:ansi:focus { border-left: outer ansi_bright_yellow; }
    }
    """

    cursor: reactive[int] = reactive(0, init=False)
    """Which value is marked."""

    def __init__(self, field: MultiChoiceField) -> None:
        super().__init__()
        self.field = field
        self._ticks = Ticks(field)
        self._height = 1

    def sync(self) -> None:
        """Shows what is in the field."""
        self._show(())

    def _show(self, kept: Sequence[JsonValue]) -> None:
        self._ticks = Ticks(self.field, kept)
        self.cursor = min(self.cursor, max(len(self._ticks.values) - 1, 0))
        height = self._ticks.lines(self._room)
        self.refresh(layout=height != self._height)
        self._height = height

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Gives the lines that the values take, and that which tells their order."""
        self._height = self._ticks.lines(width)
        return self._height

    # What the user does

    def action_tick(self) -> None:
        """Ticks the marked value, or takes its tick away; opens the list where not all are in sight."""
        if self._rows(self._room) is None:
            self.action_list()
        elif self._ticks.values:
            self._change(self.cursor, 0)

    def action_change(self, by: int) -> None:
        """Ticks the marked value once more or less."""
        if self._rows(self._room) is not None and self._ticks.values:
            self._change(self.cursor, by)

    def action_list(self) -> None:
        """Lists all values."""
        self._list("")

    def _list(self, sought: str) -> None:
        self.app.push_screen(
            PickSeveral(
                self.region,
                label(self.field.label),
                [PickLine(text) for text in self._ticks.labels],
                sign=self._sign,
                change=self._change,
                twice=self.field.allows_twice,
                sought=sought,
            )
        )

    def action_move(self, by: int) -> None:
        """Marks a neighbour."""
        self.cursor = min(max(self.cursor + by, 0), max(len(self._ticks.values) - 1, 0))

    def action_row(self, by: int) -> None:
        """Marks the value above or below; from the first and the last row, the key leads out."""
        rows = self._rows(self._room)
        here = next((place for place, row in enumerate(rows or ()) if self.cursor in row), 0)
        if rows is None or not 0 <= here + by < len(rows):
            raise SkipAction
        row, column = rows[here + by], self._column(rows[here], self.cursor)
        self.cursor = min(row, key=lambda index: abs(self._column(row, index) - column))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers to pick once more only where that may be."""
        return self.field.allows_twice if action == "change" else True

    def on_key(self, event: events.Key) -> None:
        """Marks the next value that begins with the letter typed; lists them all where not all are in sight."""
        letter = (event.character or "").lower()
        if not event.is_printable or letter.isspace() or (letter in "+-" and self.field.allows_twice):
            return
        event.stop()
        if self._rows(self._room) is None:
            self._list(event.character or "")
            return
        for offset in range(1, len(self._ticks.labels) + 1):
            place = (self.cursor + offset) % len(self._ticks.labels)
            if self._ticks.labels[place].lower().startswith(letter):
                self.cursor = place
                return

    def on_click(self, event: events.Click) -> None:
        """Ticks the value that was clicked."""
        rows = self._rows(self._room)
        if rows is None:
            self.action_list()
            return
        at = event.get_content_offset_capture(self)
        if not 0 <= at.y < len(rows):
            return
        for index in rows[at.y]:
            start = self._column(rows[at.y], index)
            if start <= at.x < start + self._ticks.width(index):
                self.cursor = index
                self._change(index, 0)
                return

    # What is seen

    def render(self) -> Content:
        """Draws the values with their boxes, or how many are ticked and which."""
        note = self.get_visual_style("multi-choices--note")
        rows = self._rows(self._room)
        picked = ", ".join(self._ticks.picked)
        if rows is None:
            said = f"▾ {len(self._ticks.picked):,} of {len(self.field.options):,}{': ' if picked else ''}"
            style = self.get_visual_style("multi-choices--picked" if picked else "multi-choices--other")
            return Content.styled(said + picked, style).truncate(max(self.content_size.width, 1), ellipsis=True)
        lines = [Content(" " * GAP).join(self._box(index) for index in row) for row in rows]
        if self._ticks.tells_order:
            lines.append(
                Content.styled(f"in this order: {picked}", note).truncate(self.content_size.width, ellipsis=True)
            )
        if self.field.is_raw:
            lines.append(Content.styled(f"holds {label(self.field.text)}", note))
        return Content("\n").join(lines)

    def _box(self, index: int) -> Content:
        text = f"{self._ticks.sign(index)}{self._ticks.labels[index]}"
        if self.has_focus and index == self.cursor:
            return Content.styled(text, self.get_visual_style("multi-choices--cursor"))
        kind = "multi-choices--picked" if self._ticks.counts[index] else "multi-choices--other"
        return Content.styled(text, self.get_visual_style(kind))

    def _sign(self, index: int) -> str:
        return self._ticks.sign(index)

    @property
    def _room(self) -> int:
        """The columns there are; a key may come before the first layout."""
        return self.content_size.width or self.app.size.width

    def _rows(self, width: int) -> Sequence[Sequence[int]] | None:
        return self._ticks.rows(width)

    def _column(self, row: Sequence[int], index: int) -> int:
        before = row[: row.index(index)]
        return sum(self._ticks.width(other) + GAP for other in before)

    # What is in the field

    def _change(self, index: int, by: int) -> None:
        """Ticks a value or takes its tick away (0), or picks it once more (1) or less (-1)."""
        field, picked, value = self.field, self.field.picked, self._ticks.values[index]
        is_option = index < len(field.options)
        places = [place for place, other in enumerate(picked) if same(value, other)]
        if is_option and by == 0:
            field.toggle(index)
        elif is_option and by > 0:
            field.add(index)
        elif not places:
            self._put([*picked, value] if by >= 0 else [*picked])
        else:
            gone = places[-1:] if by < 0 else places
            self._put([other for place, other in enumerate(picked) if place not in gone])
        self._show(self._ticks.values[len(field.options) :])
        self.post_message(Edited(field))

    def _put(self, values: list[JsonValue]) -> None:
        if values or self.field.required:
            self.field.load(values)
        else:
            self.field.unset()
