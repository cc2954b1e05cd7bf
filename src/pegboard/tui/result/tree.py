"""View of a JSON value as a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from pydantic import JsonValue
from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import var

from pegboard.results.clean import clean_line
from pegboard.results.paths import JsonPath, jq_path
from pegboard.results.search import find
from pegboard.results.table import Table, begins_as_table, nearest_list
from pegboard.results.tree import Tree, TreeRow
from pegboard.results.wrap import truncate
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.line_view import LineSpan, LineView

_OPEN, _CLOSED, _LEAF = "▾ ", "▸ ", "  "
_LEAST_ROOM = 24


class TreeView(LineView):
    """JSON value as a tree with a cursor.

    Args:
        value: The value.
        searched: The part of it that a search covers; all of it by default.
    """

    PAGE = "Tree"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "result.tree.toggle",
            "enter,space",
            "open_or_close",
            "Expand or collapse",
            "Expand or collapse the value at the cursor.",
        ),
        Command("result.tree.open", "right", "open", "Expand", "Expand the value at the cursor, or move into it."),
        Command(
            "result.tree.close", "left", "close", "Collapse", "Collapse the value at the cursor, or move out of it."
        ),
        Command(
            "result.tree.open_all", "asterisk", "open_all", "Expand all below", "Expand everything below the cursor."
        ),
        Command(
            "result.tree.table",
            "t",
            "table",
            "Show as table",
            "Show the nearest list of objects as a table.",
            footer=True,
        ),
        Command("result.tree.up", "up", "move(-1)", "Up", "Move up a row."),
        Command("result.tree.down", "down", "move(1)", "Down", "Move down a row."),
        Command("result.tree.page_up", "pageup", "page(-1)", "Page up", "Move up a page."),
        Command("result.tree.page_down", "pagedown", "page(1)", "Page down", "Move down a page."),
        Command("result.tree.home", "home", "edge(-1)", "Top", "Move to the first row."),
        Command("result.tree.end", "end", "edge(1)", "Bottom", "Move to the last row."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    DEFAULT_CSS = "TreeView { padding: 0 0 0 1; }"
    ALLOW_SELECT = False

    cursor: var[int] = var(0)
    """Index of the row at the cursor."""

    class CursorMoved(Message):
        """The cursor moved to another value."""

    class TableChosen(Message):
        """A list of objects should be shown as a table."""

        def __init__(self, table: Table) -> None:
            super().__init__()
            self.table = table

    def __init__(self, value: JsonValue, *, searched: JsonValue = None) -> None:
        super().__init__()
        self._tree = Tree(value)
        self._searched = value if searched is None else searched

    def replace_value(self, value: JsonValue, *, searched: JsonValue = None) -> None:
        """Show another value from its beginning; the arguments are those of the class."""
        self._tree = Tree(value)
        self._searched = value if searched is None else searched
        self.cursor = 0
        self.rows_changed()
        self.scroll_to(y=0, animate=False, immediate=True)

    @property
    def path(self) -> JsonPath:
        """Path of the value at the cursor."""
        return self._current.path

    @property
    def here(self) -> JsonValue:
        """That value; for a line of a string, the whole string."""
        row = self._current
        return row.value if row.kind == "value" or row.parent is None else row.parent.value

    @property
    def _current(self) -> TreeRow:
        return self._tree.rows[self.cursor]

    @property
    def row_count(self) -> int:
        """Number of visible rows."""
        return len(self._tree.rows)

    def row(self, index: int) -> tuple[str, list[LineSpan]]:
        """Return an indented row with its marker, and its styled spans."""
        row = self._tree.rows[index]
        room = self.row_width
        indent = min(2 * row.depth, max(room - _LEAST_ROOM, 0))
        text = " " * indent + (_OPEN if row.open else _CLOSED if row.can_open or row.kind == "more" else _LEAF)
        spans: list[LineSpan] = [(indent, len(text), "muted")]
        for piece, part in row.label(room - len(text)):
            spans.append((len(text), len(text) + len(piece), part))
            text += piece
        return truncate(text, room), spans

    def row_style(self, index: int) -> str | None:
        """Return the style of the row at the cursor."""
        return "line-view--cursor" if index == self.cursor else None

    def find(self, wanted: re.Pattern[str]) -> Iterator[JsonPath | None]:
        """Yield the path of each matching key or scalar, open or not, and None for each other one."""
        return find(self._searched, wanted)

    def go(self, hit: JsonPath) -> None:
        """Open the ancestors of a hit and move the cursor there."""
        index = self._tree.reveal(hit)
        row = self._tree.rows[index]
        if isinstance(row.value, str) and self.matching and row.can_open:
            index = self._line_with(self.matching, index)
        self.rows_changed()
        self.cursor = index

    def nearest(self, hits: list[JsonPath]) -> int:
        """Return the index of the hit to show first."""
        here = self._current.path
        return hits.index(here) if here in hits else 0

    def on_mount(self) -> None:
        """Lay out the first rows."""
        self.rows_changed()

    def on_resize(self, event: events.Resize) -> None:
        """Truncate the rows again and keep the cursor visible."""
        del event
        self.rows_changed()
        self.show_row(self.cursor)

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the row; open or close it on a click on its marker or a second click."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        index = offset.y + self.scroll_offset.y
        if index >= self.row_count:
            return
        event.stop()
        on_sign = offset.x < min(2 * self._tree.rows[index].depth, max(self.row_width - _LEAST_ROOM, 0)) + len(_OPEN)
        again = index == self.cursor and event.chain > 1
        self.cursor = index
        if on_sign or again or self._current.kind == "more":
            self.action_open_or_close()

    def watch_cursor(self, cursor: int) -> None:
        """Keep the cursor visible and post `CursorMoved`."""
        self.show_row(cursor)
        self.refresh()
        self.post_message(self.CursorMoved())

    def validate_cursor(self, cursor: int) -> int:
        """Clamp the cursor to the rows."""
        return min(max(cursor, 0), self.row_count - 1)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the table command only near a list of objects."""
        del parameters
        return action != "table" or self._list_here is not None

    def action_table(self) -> None:
        """Post `TableChosen` for the list at, around or below the cursor."""
        path, value = self._list_here or ((), None)
        table = Table.of(value, path)
        if table is not None:
            self.post_message(self.TableChosen(table))
        else:
            name = clean_line(jq_path(path))
            self.notify(f"{name} can't be a table: not all of its items are objects.", severity="warning", markup=False)

    @property
    def _list_here(self) -> tuple[JsonPath, JsonValue] | None:
        """The nearest list that could be a table, with its path: at or around the cursor, else below it."""
        row: TreeRow | None = self._current
        while row is not None:
            if begins_as_table(row.value):
                return row.path, row.value
            row = row.parent
        return nearest_list(self._current.value, self._current.path)

    def action_open_or_close(self) -> None:
        """Expand or collapse the value at the cursor; on a line of a string, close the string."""
        row = self._current
        if row.kind == "line":
            self.action_close()
        elif row.open:
            self._tree.close(self.cursor)
            self.rows_changed()
        else:
            self._tree.open(self.cursor)
            self.rows_changed()

    def action_open(self) -> None:
        """Open the value at the cursor, or move to its first child."""
        if self._current.open:
            self.cursor += 1
        elif self._tree.open(self.cursor):
            self.rows_changed()

    def action_close(self) -> None:
        """Close the value at the cursor, or move to its container."""
        if self._tree.close(self.cursor):
            self.rows_changed()
        else:
            self.cursor = self._tree.parent(self.cursor)

    def action_open_all(self) -> None:
        """Open everything below the cursor, up to a limit that is reported."""
        left = self._tree.open_all(self.cursor)
        self.rows_changed()
        if left:
            self.notify(
                f"Too large to open completely: {self.row_count:,} rows are open.", severity="warning", markup=False
            )

    def action_move(self, rows: int) -> None:
        """Move the cursor by rows."""
        self.cursor += rows

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self.cursor += pages * max(self.page - 1, 1)

    def action_edge(self, direction: int) -> None:
        """Move the cursor to the first or last row."""
        self.cursor = 0 if direction < 0 else self.row_count - 1

    def _line_with(self, wanted: re.Pattern[str], index: int) -> int:
        """Return the index of the first line matching `wanted` in the long string at `index`, or `index`."""
        row = self._tree.rows[index]
        found = wanted.search(row.value) if isinstance(row.value, str) else None
        if found is None or any(wanted.search(piece) for piece, _ in row.label(self.row_width)):
            return index
        return self._tree.reveal_line(index, found.start())
