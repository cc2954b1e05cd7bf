"""View of a list of objects as a table."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import ClassVar

from pydantic import JsonValue
from rich.cells import cell_len, set_cell_size
from textual import events, work
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import var

from pegboard.results.clean import clean_line
from pegboard.results.paths import Path
from pegboard.results.sizes import count
from pegboard.results.table import Table
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.line_view import LineView, Span

_GAP = "  "


class TableView(LineView):
    """Objects as rows and their keys as columns, with a cell cursor.

    Hidden columns scroll into view as the cursor moves to them.

    Args:
        table: The table.
    """

    PAGE = "Table"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("result.table.open", "enter", "open", "Show in tree", "Show this cell's value in the tree."),
        Command("result.table.up", "up", "move(-1, 0)", "Up", "Move up a row."),
        Command("result.table.down", "down", "move(1, 0)", "Down", "Move down a row."),
        Command("result.table.left", "left", "move(0, -1)", "Left", "Move a column to the left."),
        Command("result.table.right", "right", "move(0, 1)", "Right", "Move a column to the right."),
        Command("result.table.page_up", "pageup", "page(-1)", "Page up", "Move up a page."),
        Command("result.table.page_down", "pagedown", "page(1)", "Page down", "Move down a page."),
        Command("result.table.home", "home", "edge(-1)", "Top", "Move to the first row."),
        Command("result.table.end", "end", "edge(1)", "Bottom", "Move to the last row."),
        Command("result.table.sort", "o", "sort", "Sort", "Sort by this column; again: descending, then unsorted."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    ALLOW_SELECT = False

    cursor: var[tuple[int, int]] = var((0, 0))
    """Row and column of the cell that the cursor is on."""

    class CellChosen(Message):
        """A cell should be shown in the tree."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path

    class CursorMoved(Message):
        """The cursor moved to another cell."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self._table = self._unsorted = table
        self._sorting: tuple[int, bool] | None = None
        """Column by which the rows are sorted, and whether they are in descending order."""
        columns = range(len(table.columns))
        self._widths = [table.width(column) for column in columns]
        self._numeric = [table.is_numeric(column) for column in columns]
        left_out = table.columns_left_out
        self._rest = f"… {count(left_out, 'more key')}" if left_out else ""
        self._first = 0

    @property
    def path(self) -> Path:
        """Path of the cell at the cursor."""
        return self._table.cell_path(*self.cursor)

    @property
    def here(self) -> JsonValue:
        """Complete value of that cell."""
        return self._table.value(*self.cursor)

    @property
    def beside(self) -> str:
        """Values beside the list, such as a total."""
        return self._table.beside

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return len(self._table)

    def header(self) -> str:
        """Return the titles of the visible columns, and the number of keys without a column."""
        names = [self._heading(column) for column in self._columns()]
        if self._columns().stop == len(self._widths):
            names.append(self._rest)
        return " " + _GAP.join(names)

    def _heading(self, column: int) -> str:
        name, width = clean_line(self._table.columns[column]), self._widths[column]
        if self._sorting is None or self._sorting[0] != column:
            return _fitted(name, width)
        sign = "▼" if self._sorting[1] else "▲"
        return f"{sign}{_fitted(name, width - 1)}" if width > 1 else sign

    def row(self, index: int) -> tuple[str, list[Span]]:
        """Return the visible cells of a row."""
        return "".join(text for _, text in self._cells(index)), []

    def overlays(self, index: int) -> list[tuple[int, int, str]]:
        """Return the span of the cell at the cursor."""
        row, column = self.cursor
        if index != row:
            return []
        start = 0
        for number, text in self._cells(index):
            if number == column:
                return [(start, start + len(text), "line-view--cursor")]
            start += len(text)
        return []

    def row_style(self, index: int) -> str | None:
        """Return the style of every second row."""
        return "line-view--stripe" if index % 2 else None

    def find(self, wanted: re.Pattern[str]) -> Iterator[tuple[int, int] | None]:
        """Yield each matching cell, and None for each other cell."""
        return self._table.find(wanted)

    def go(self, hit: tuple[int, int]) -> None:
        """Move the cursor to a hit."""
        self.cursor = hit

    def nearest(self, hits: list[tuple[int, int]]) -> int:
        """Return the index of the first hit at or after the cursor, or 0."""
        return next((index for index, hit in enumerate(hits) if hit >= self.cursor), 0)

    def on_resize(self, event: events.Resize) -> None:
        """Keep the cursor visible."""
        del event
        self.rows_changed()
        self._show_cursor()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the cell, show it in the tree on a second click, or sort by the clicked heading."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.y == 0:
            event.stop()
            self._click_heading(offset.x)
            return
        if offset is None or not 1 <= offset.y <= self.row_count - self.scroll_offset.y:
            return
        event.stop()
        row = offset.y - 1 + self.scroll_offset.y
        x = 0
        for column, text in self._cells(row):
            x += cell_len(text)
            if offset.x < x:
                self.cursor = (row, column)
                break
        if event.chain > 1:
            self.action_open()

    def _click_heading(self, x: int) -> None:
        end = 1
        for column in self._columns():
            end += self._widths[column] + len(_GAP)
            if x < end:
                self._sort_by(column)
                return

    @work(exclusive=True, group="sort")
    async def _sort_by(self, column: int) -> None:
        """Sort by a column: ascending, then descending, then as in the result."""
        before = self._sorting
        descending = before is not None and before[0] == column
        table, sorting = self._unsorted, None
        if before != (column, True):
            table = await asyncio.to_thread(self._unsorted.sorted_by, column, descending=descending)
            sorting = (column, descending)
        self._table, self._sorting = table, sorting
        self.cursor = (0, column)
        self.refresh()
        self.post_message(self.CursorMoved())

    def watch_cursor(self) -> None:
        """Keep the cursor visible and post `CursorMoved`."""
        self._show_cursor()
        self.refresh()
        self.post_message(self.CursorMoved())

    def validate_cursor(self, cursor: tuple[int, int]) -> tuple[int, int]:
        """Clamp the cursor to the table."""
        row, column = cursor
        return min(max(row, 0), self.row_count - 1), min(max(column, 0), len(self._widths) - 1)

    def action_open(self) -> None:
        """Post `CellChosen` for the cell at the cursor."""
        self.post_message(self.CellChosen(self.path))

    def action_sort(self) -> None:
        """Sort by the column at the cursor."""
        self._sort_by(self.cursor[1])

    def action_move(self, rows: int, columns: int) -> None:
        """Move the cursor by rows and columns."""
        row, column = self.cursor
        self.cursor = (row + rows, column + columns)

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self.action_move(pages * max(self.page - 1, 1), 0)

    def action_edge(self, direction: int) -> None:
        """Move the cursor to the first or last row."""
        self.action_move(direction * self.row_count, 0)

    def _cells(self, row: int) -> Iterator[tuple[int, str]]:
        """Yield the start and the padded text of each visible cell of a row."""
        for column in self._columns():
            text, width = self._table.cell(row, column), self._widths[column]
            if self._numeric[column]:
                text = " " * max(width - cell_len(text), 0) + text
            yield column, f" {_fitted(text, width)} "

    def _columns(self) -> range:
        """Return the visible columns; the last one may be cut."""
        used, end = 0, self._first
        while end < len(self._widths) and used < self.row_width:
            used += self._widths[end] + len(_GAP)
            end += 1
        return range(self._first, end)

    def _show_cursor(self) -> None:
        row, column = self.cursor
        self.show_row(row)
        self._first = min(self._first, column)
        while self._first < column and self._right_edge(column) > self.row_width:
            self._first += 1

    def _right_edge(self, column: int) -> int:
        rest = len(self._rest) + 1 if self._rest and column == len(self._widths) - 1 else 0
        return sum(width + len(_GAP) for width in self._widths[self._first : column + 1]) + rest


def _fitted(text: str, width: int) -> str:
    """Pad or truncate a text to a width in cells."""
    return set_cell_size(text, width) if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"
