"""The tree of a JSON value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from pydantic import JsonValue
from rich.cells import cell_len
from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import var

from pegboard.results.paths import Path
from pegboard.results.search import find
from pegboard.results.table import Table, begins_as_table, nearest_list
from pegboard.results.tree import Tree, TreeRow
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.line_view import LineView, Span

_OPEN, _CLOSED, _LEAF = "▾ ", "▸ ", "  "
_LEAST_ROOM = 24


class TreeView(LineView):
    """A JSON value, opened and closed by keys or mouse, with a cursor."""

    PLACE = "Tree"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("result.tree.toggle", "enter,space", "open_or_close", "Open or close", "Open or close the value here."),
        Command("result.tree.open", "right", "open", "Open", "Open the value here, or step into it."),
        Command("result.tree.close", "left", "close", "Close", "Close the value here, or step out of it."),
        Command(
            "result.tree.open_all", "asterisk", "open_all", "Open all below", "Open everything below the value here."
        ),
        Command(
            "result.tree.table",
            "t",
            "table",
            "As table",
            "Show the list of objects here, or next below, as a table.",
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
    """The index of the row that the cursor is on."""

    class CursorMoved(Message):
        """The cursor stands at another value."""

    class TableChosen(Message):
        """A list of objects is wanted as a table."""

        def __init__(self, table: Table) -> None:
            super().__init__()
            self.table = table

    def __init__(self, value: JsonValue) -> None:
        super().__init__()
        self._tree = Tree(value)

    @property
    def path(self) -> Path:
        """The path of the value that the cursor is on."""
        return self._current.path

    @property
    def here(self) -> JsonValue:
        """That value; on a line of a string, the whole string."""
        row = self._current
        return row.value if row.kind == "value" or row.parent is None else row.parent.value

    @property
    def _current(self) -> TreeRow:
        return self._tree.rows[self.cursor]

    @property
    def row_count(self) -> int:
        """How many rows are open."""
        return len(self._tree.rows)

    def row(self, index: int) -> tuple[str, list[Span]]:
        """Gives a row with its indentation and sign, and its coloured pieces."""
        row = self._tree.rows[index]
        room = self.room
        indent = min(2 * row.depth, max(room - _LEAST_ROOM, 0))
        text = " " * indent + (_OPEN if row.open else _CLOSED if row.can_open or row.kind == "more" else _LEAF)
        spans: list[Span] = [(indent, len(text), "muted")]
        for piece, part in row.label(room - len(text)):
            spans.append((len(text), len(text) + len(piece), part))
            text += piece
        return (text, spans) if cell_len(text) <= room else (_cut(text, room), spans)

    def row_style(self, index: int) -> str | None:
        """Lays the cursor under its row."""
        return "line-view--cursor" if index == self.cursor else None

    def find(self, wanted: re.Pattern[str]) -> Iterator[Path | None]:
        """Gives the path of each key or scalar `wanted` is found in, opened or not, and None for each without."""
        return find(self._tree.rows[0].value, wanted)

    def go(self, hit: Path) -> None:
        """Opens what is above the place that was found and puts the cursor there."""
        index = self._tree.reveal(hit)
        row = self._tree.rows[index]
        if isinstance(row.value, str) and self.matching and row.can_open:
            index = self._line_with(self.matching, index)
        self.rows_changed()
        self.cursor = index

    def nearest(self, hits: list[Path]) -> int:
        """Gives the index of the hit to go to first."""
        here = self._current.path
        return hits.index(here) if here in hits else 0

    def on_mount(self) -> None:
        """Lays out the first rows."""
        self.rows_changed()

    def on_resize(self, event: events.Resize) -> None:
        """Abridges the rows anew and keeps the cursor in sight."""
        del event
        self.rows_changed()
        self.show_row(self.cursor)

    def on_click(self, event: events.Click) -> None:
        """Moves the cursor to the row clicked; a click on its sign, or a second one, opens or closes it."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        index = offset.y + self.scroll_offset.y
        if index >= self.row_count:
            return
        event.stop()
        on_sign = offset.x < min(2 * self._tree.rows[index].depth, max(self.room - _LEAST_ROOM, 0)) + len(_OPEN)
        again = index == self.cursor and event.chain > 1
        self.cursor = index
        if on_sign or again or self._current.kind == "more":
            self.action_open_or_close()

    def watch_cursor(self, cursor: int) -> None:
        """Keeps the cursor in sight and tells of its value."""
        self.show_row(cursor)
        self.refresh()
        self.post_message(self.CursorMoved())

    def validate_cursor(self, cursor: int) -> int:
        """Keeps the cursor within the rows."""
        return min(max(cursor, 0), self.row_count - 1)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Says that there is a table only where there may be one."""
        del parameters
        return action != "table" or self._list_here is not None

    def action_table(self) -> None:
        """Asks for the list at the cursor, around it or below it as a table."""
        path, value = self._list_here or ((), None)
        table = Table.of(value, path)
        if table is not None:
            self.post_message(self.TableChosen(table))

    @property
    def _list_here(self) -> tuple[Path, JsonValue] | None:
        """The nearest list that begins as a table, with its path: at the cursor or around it, else below it."""
        row: TreeRow | None = self._current
        while row is not None:
            if begins_as_table(row.value):
                return row.path, row.value
            row = row.parent
        return nearest_list(self._current.value, self._current.path)

    def action_open_or_close(self) -> None:
        """Opens or closes the value at the cursor; for a line of text, closes the text."""
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
        """Opens the value at the cursor, or steps to its first child."""
        if self._current.open:
            self.cursor += 1
        elif self._tree.open(self.cursor):
            self.rows_changed()

    def action_close(self) -> None:
        """Closes the value at the cursor, or steps to its container."""
        if self._tree.close(self.cursor):
            self.rows_changed()
        else:
            self.cursor = self._tree.parent(self.cursor)

    def action_open_all(self) -> None:
        """Opens everything below the cursor, up to a limit that the user is told of."""
        left = self._tree.open_all(self.cursor)
        self.rows_changed()
        if left:
            self.notify(
                f"Too much to open all of it: {self.row_count:,} rows are open.", severity="warning", markup=False
            )

    def action_move(self, rows: int) -> None:
        """Moves the cursor by some rows."""
        self.cursor += rows

    def action_page(self, pages: int) -> None:
        """Moves the cursor by some pages."""
        self.cursor += pages * max(self.page - 1, 1)

    def action_edge(self, direction: int) -> None:
        """Moves the cursor to the first or the last row."""
        self.cursor = 0 if direction < 0 else self.row_count - 1

    def _line_with(self, wanted: re.Pattern[str], index: int) -> int:
        """The index of the first line of the long string at `index` that has `wanted`, or `index` where none has."""
        row = self._tree.rows[index]
        if any(wanted.search(piece) for piece, _ in row.label(self.room)):
            return index
        self._tree.open(index)
        at = index + 1
        while at < self.row_count and self._tree.rows[at].parent is row:
            found = self._tree.rows[at]
            if found.kind == "more":
                self._tree.open(at)
            elif isinstance(found.value, str) and wanted.search(found.value):
                return at
            else:
                at += 1
        return index


def _cut(text: str, room: int) -> str:
    """Cuts a text that is too wide, with an ellipsis."""
    while text and cell_len(text) > room - 1:
        text = text[: max(len(text) - max((cell_len(text) - room + 1) // 2, 1), 0)]
    return text + "…"
