"""Editor of a multiple choice: checkboxes side by side, or one line that opens a list."""

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
from pegboard.tui.form.messages import Edited
from pegboard.tui.form.popups import PickSeveral, label
from pegboard.tui.form.ticks import GAP, Ticks
from pegboard.tui.widgets.pick_list import PickLine


class MultiChoices(Widget, can_focus=True):
    """Checkboxes whose values are sent in the order in which they are selected.

    Args:
        field: The field that it edits.
    """

    PAGE = "Several choices"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "multi.toggle",
            "space,enter",
            "tick",
            "Select",
            "Select or deselect the highlighted value, or open the list.",
        ),
        Command("multi.more", "plus", "change(1)", "Add again", "Add the highlighted value once more."),
        Command("multi.less", "minus", "change(-1)", "Remove one", "Remove the highlighted value once."),
        Command(
            "multi.list",
            "ctrl+f",
            "list",
            "List all",
            "Open a list of all values to filter and select.",
            meaning="Pick",
        ),
        Command("multi.left", "left", "move(-1)", "Left", "Highlight the previous value."),
        Command("multi.right", "right", "move(1)", "Right", "Highlight the next value."),
        Command("multi.up", "up", "row(-1)", "Up", "Highlight the value above."),
        Command("multi.down", "down", "row(1)", "Down", "Highlight the value below."),
        Command("multi.first", "home", "move(-9999)", "First", "Highlight the first value."),
        Command("multi.last", "end", "move(9999)", "Last", "Highlight the last value."),
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
    """Index of the highlighted value."""

    def __init__(self, field: MultiChoiceField) -> None:
        super().__init__()
        self.field = field
        self._ticks = Ticks(field)
        self._height = 1

    def sync(self) -> None:
        """Show the current value of the field."""
        self._show(())

    def _show(self, kept: Sequence[JsonValue]) -> None:
        self._ticks = Ticks(self.field, kept)
        self.cursor = min(self.cursor, max(len(self._ticks.values) - 1, 0))
        height = self._ticks.lines(self._space)
        self.refresh(layout=height != self._height)
        self._height = height

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the height of the checkboxes in lines."""
        self._height = self._ticks.lines(width)
        return self._height

    def action_tick(self) -> None:
        """Select or deselect the highlighted value, or open the list if it is collapsed."""
        if self._rows(self._space) is None:
            self.action_list()
        elif self._ticks.values:
            self._change(self.cursor, 0)

    def action_change(self, by: int) -> None:
        """Add the highlighted value once more, or remove it once."""
        if self._rows(self._space) is not None and self._ticks.values:
            self._change(self.cursor, by)

    def action_list(self) -> None:
        """Open a list of all values."""
        self._list("")

    def _list(self, sought: str) -> None:
        self.app.push_screen(
            PickSeveral(
                self,
                label(self.field.label),
                [PickLine(text) for text in self._ticks.labels],
                sign=self._sign,
                change=self._change,
                twice=self.field.allows_twice,
                sought=sought,
            )
        )

    def action_move(self, by: int) -> None:
        """Move the highlight by a number of values."""
        self.cursor = min(max(self.cursor + by, 0), max(len(self._ticks.values) - 1, 0))

    def action_row(self, by: int) -> None:
        """Highlight the value above or below; in the first and last line, leave the key to the form."""
        rows = self._rows(self._space)
        here = next((position for position, row in enumerate(rows or ()) if self.cursor in row), 0)
        if rows is None or not 0 <= here + by < len(rows):
            raise SkipAction
        row, column = rows[here + by], self._column(rows[here], self.cursor)
        self.cursor = min(row, key=lambda index: abs(self._column(row, index) - column))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable adding a value again where the schema allows duplicates."""
        return self.field.allows_twice if action == "change" else True

    def on_key(self, event: events.Key) -> None:
        """Highlight the next value that starts with the typed letter, or open the filtered list."""
        letter = (event.character or "").lower()
        if not event.is_printable or letter.isspace() or (letter in "+-" and self.field.allows_twice):
            return
        event.stop()
        if self._rows(self._space) is None:
            self._list(event.character or "")
            return
        for offset in range(1, len(self._ticks.labels) + 1):
            position = (self.cursor + offset) % len(self._ticks.labels)
            if self._ticks.labels[position].lower().startswith(letter):
                self.cursor = position
                return

    def on_click(self, event: events.Click) -> None:
        """Select the clicked value."""
        rows = self._rows(self._space)
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

    def render(self) -> Content:
        """Render the checkboxes, or the number of selected values and their labels."""
        note = self.get_visual_style("multi-choices--note")
        rows = self._rows(self._space)
        picked = ", ".join(self._ticks.picked)
        if rows is None:
            count = f"▾ {len(self._ticks.picked):,} of {len(self.field.options):,}{': ' if picked else ''}"
            style = self.get_visual_style("multi-choices--picked" if picked else "multi-choices--other")
            return Content.styled(count + picked, style).truncate(max(self.content_size.width, 1), ellipsis=True)
        lines = [Content(" " * GAP).join(self._box(index) for index in row) for row in rows]
        if self._ticks.shows_order:
            lines.append(Content.styled(f"in this order: {picked}", note))
        if self.field.is_raw:
            lines.append(Content.styled(f"holds {label(self.field.text)}", note))
        # A line that wraps would hide those below it, and a click would select another value.
        return Content("\n").join(line.truncate(max(self.content_size.width, 1), ellipsis=True) for line in lines)

    def _box(self, index: int) -> Content:
        text = f"{self._ticks.sign(index)}{self._ticks.labels[index]}"
        if self.has_focus and index == self.cursor:
            return Content.styled(text, self.get_visual_style("multi-choices--cursor"))
        kind = "multi-choices--picked" if self._ticks.counts[index] else "multi-choices--other"
        return Content.styled(text, self.get_visual_style(kind))

    def _sign(self, index: int) -> str:
        return self._ticks.sign(index)

    @property
    def _space(self) -> int:
        """The available columns, even before the first layout."""
        return self.content_size.width or self.app.size.width

    def _rows(self, width: int) -> Sequence[Sequence[int]] | None:
        return self._ticks.rows(width)

    def _column(self, row: Sequence[int], index: int) -> int:
        before = row[: row.index(index)]
        return sum(self._ticks.width(other) + GAP for other in before)

    def _change(self, index: int, by: int) -> None:
        """Select or deselect a value (0), add it again (1), or remove it once (-1)."""
        field, picked, value = self.field, self.field.picked, self._ticks.values[index]
        is_option = index < len(field.options)
        positions = [position for position, other in enumerate(picked) if same(value, other)]
        if is_option and by == 0:
            field.toggle(index)
        elif is_option and by > 0:
            field.add(index)
        elif not positions:
            self._load([*picked, value] if by >= 0 else [*picked])
        else:
            removed = positions[-1:] if by < 0 else positions
            self._load([other for position, other in enumerate(picked) if position not in removed])
        self._show(self._ticks.values[len(field.options) :])
        self.post_message(Edited(field))

    def _load(self, values: list[JsonValue]) -> None:
        if values or self.field.required:
            self.field.load(values)
        else:
            self.field.unset()
