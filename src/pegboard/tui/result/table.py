"""View of a list of objects as a table."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from pydantic import JsonValue
from rich.cells import cell_len, set_cell_size
from textual import events, work
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import var

from pegboard.results.clean import clean_line
from pegboard.results.paths import JsonPath
from pegboard.results.sizes import count
from pegboard.results.stored.client import StoredResultError
from pegboard.results.table import CELL, Table
from pegboard.results.wrap import fit, truncate
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.line_view import LineSpan, LineView

_GAP = "  "
_NARROWEST = 4
"""Width from which a column that doesn't fit is shown cut."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Order and selection of a table's rows.

    Attributes:
        column: Key of the column by which the rows are sorted; None for their order in the result.
        descending: Whether the largest value comes first.
        wanted: Text that a row must contain.
    """

    column: str | None = None
    descending: bool = False
    wanted: str = ""


Arrange: TypeAlias = Callable[[Table, Arrangement], Awaitable[Sequence[int]]]
"""Function that returns the numbers of a table's rows in an arrangement."""


async def arrange_here(table: Table, wished: Arrangement) -> Sequence[int]:
    """Arrange the rows of a table in memory, in a thread."""
    arranged = await asyncio.to_thread(
        table.arranged, wished.column, descending=wished.descending, wanted=wished.wanted
    )
    return arranged.numbers


class TableView(LineView):
    """Objects as rows and their keys as columns, with a cell cursor. The first column doesn't scroll.

    Columns to the right scroll into view as the cursor moves to them.

    Args:
        table: The table.
        arrange: Function that sorts and filters the rows.
        searched: Number of rows that a search covers.
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
        Command("result.table.hide", "h", "hide", "Hide column", "Hide the column at the cursor."),
        Command("result.table.show_columns", "H", "show_columns", "All columns", "Show the hidden columns again."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    ALLOW_SELECT = False

    cursor: var[tuple[int, int]] = var((0, 0))
    """Row and column of the cell that the cursor is on."""

    class CellChosen(Message):
        """A cell should be shown in the tree."""

        def __init__(self, path: JsonPath) -> None:
            super().__init__()
            self.path = path

    class CursorMoved(Message):
        """The cursor moved to another cell, or the rows have changed."""

    def __init__(self, table: Table, *, arrange: Arrange = arrange_here, searched: int | None = None) -> None:
        super().__init__()
        self._all = self._table = table
        self._arrange = arrange
        self._searched = searched
        self._arrangement = self._wished = Arrangement()
        """Current arrangement, and the requested one while the rows are being sorted."""
        self._problem = ""
        self._is_arranging = False
        self._first = 1
        self._measure()

    def _measure(self) -> None:
        """Measure the columns. Filters don't make them narrower."""
        self.content, table = self._table, self._all
        columns = range(len(table.columns))
        self._widths = [self._table.width(column) for column in columns]
        if self._arrangement.column in table.columns:
            sorted_by = table.columns.index(self._arrangement.column)
            with_sign = cell_len(clean_line(self._arrangement.column)) + 1
            self._widths[sorted_by] = max(self._widths[sorted_by], min(with_sign, CELL))
        self._numeric = [table.is_numeric(column) for column in columns]
        left_out, self.searched_part = table.columns_left_out, table.part_of_columns
        self._rest = f"… {count(left_out, 'more key')}" if left_out else ""
        self._measured = tuple(self._widths)
        self._fit_columns()

    def _fit_columns(self) -> None:
        """Assign the free width to columns with cut cells, or limit the first one, beside which the others scroll."""
        self._widths = list(self._measured)
        if not self._widths or not self.row_width:
            return
        free = self.row_width - self._right_edge(len(self._widths) - 1, first=1)
        if free >= 0:
            self._first = 1
        else:
            self._widths[0] = min(self._widths[0], max(self.row_width // 2, _NARROWEST))
        for column, width in enumerate(self._measured):
            if free > 0 and width == CELL:
                self._widths[column] = self._table.width(column, CELL + free)
                free -= self._widths[column] - CELL

    @property
    def wanted(self) -> str:
        """Text that the rows must contain."""
        return self._arrangement.wanted

    @property
    def table(self) -> Table:
        """The table with the rows and columns that are shown."""
        return self._table

    @property
    def path(self) -> JsonPath:
        """Path of the cell at the cursor; of the list if no row is shown."""
        return self._table.cell_path(*self.cursor) if self.row_count else self._table.path

    @property
    def here(self) -> JsonValue:
        """Complete value of that cell."""
        return self._table.value(*self.cursor) if self.row_count else None

    @property
    def beside(self) -> str:
        """Number of rows, the filter, hidden columns, and values beside the list, such as a total."""
        parts = self._table.facts(self._arrangement.wanted)
        if self._is_arranging:
            parts.append("sorting…")
        if self._problem:
            parts.append(self._problem)
        return " · ".join(parts)

    @property
    def is_part(self) -> bool:
        """Whether rows are filtered out or columns hidden."""
        return self._table.is_part

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return len(self._table)

    def header(self) -> str:
        """Return the titles of the visible columns, and how many columns and keys aren't visible."""
        columns = self._columns()
        last = max(columns, default=0)
        more = f" → {len(self._widths) - 1 - last}" if last < len(self._widths) - 1 else ""
        if more:  # the last heading leaves space for it
            free = self.row_width - sum(columns.values()) - len(_GAP) * len(columns)
            columns[last] = max(columns[last] - max(cell_len(more) - free, 0), 1)
        names = [self._heading(column, width) for column, width in columns.items()]
        line = (" " + _GAP.join([*names, self._rest] if not more else names)).rstrip()
        in_words = self._more_columns(last)
        if in_words and cell_len(line) + len(_GAP) + cell_len(in_words) < self.row_width:
            more = in_words
        return f"{set_cell_size(line, self.row_width - cell_len(more) - 1)}{more}" if more else line

    def _more_columns(self, last: int) -> str:
        """Return how many columns are out of view if `last` is the last visible one; empty if all are visible."""
        left, right = self._first - 1, len(self._widths) - 1 - last
        arrows = " ".join(f"{sign} {number}" for sign, number in (("←", left), ("→", right)) if number > 0)
        return f"{arrows} more {'column' if left + right == 1 else 'columns'}" if arrows else ""

    def _heading(self, column: int, width: int) -> str:
        key = self._table.columns[column]
        name = clean_line(key)
        if self._arrangement.column == key:
            sign = "▼" if self._arrangement.descending else "▲"
            name = f"{sign}{truncate(name, width - 1)}" if width > 1 else sign
        text = fit(name, width)
        if not self._numeric[column]:
            return text
        shown = text.rstrip()
        return " " * (width - cell_len(shown)) + shown

    def row(self, index: int) -> tuple[str, list[LineSpan]]:
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
        """Yield each matching cell of the searched rows, and None for each other cell."""
        return self._table.find(wanted, self._searched)

    def cells_of(self, paths: Iterable[JsonPath]) -> list[tuple[int, int]]:
        """Return the cells that contain the values at paths, each once; those that are not shown are left out."""
        at, numbers = len(self._table.path), self._table.numbers
        columns: dict[str | int, int] = {key: column for column, key in enumerate(self._table.columns)}
        rows: dict[str | int, int] | None
        rows = None if isinstance(numbers, range) else {number: row for row, number in enumerate(numbers)}
        cells: dict[tuple[int, int], None] = {}
        for path in paths:
            if path[:at] == self._table.path and len(path) > at + 1 and path[at + 1] in columns:
                with suppress(KeyError, ValueError):
                    row = numbers.index(path[at]) if rows is None else rows[path[at]]
                    cells[row, columns[path[at + 1]]] = None
        return list(cells)

    def go(self, hit: tuple[int, int]) -> None:
        """Move the cursor to a hit."""
        self.cursor = hit

    def nearest(self, hits: list[tuple[int, int]]) -> int:
        """Return the index of the first hit at or after the cursor, or 0."""
        return next((index for index, hit in enumerate(hits) if hit >= self.cursor), 0)

    def on_resize(self, event: events.Resize) -> None:
        """Fit the columns and keep the cursor visible."""
        del event
        self._fit_columns()
        self.rows_changed()
        self._show_cursor()

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """Scroll a column to the right."""
        event.stop()
        self._scroll_columns(1)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """Scroll a column to the left."""
        event.stop()
        self._scroll_columns(-1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """With shift or ctrl, scroll a column to the right, as wheels of one direction do elsewhere."""
        if event.shift or event.ctrl:
            event.stop()
            self._scroll_columns(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """With shift or ctrl, scroll a column to the left."""
        if event.shift or event.ctrl:
            event.stop()
            self._scroll_columns(-1)

    def _scroll_columns(self, by: int) -> None:
        """Scroll by columns, as far as the last one is visible; the cursor stays at its cell."""
        last = len(self._widths) - 1
        if by > 0 and self._right_edge(last) <= self.row_width:
            return
        first = max(min(self._first + by, last), 1)
        if first != self._first:
            self._first = first
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the cell, show it in the tree on a second click, or sort by the clicked heading."""
        event.prevent_default()  # a double click selects no text
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
        shown = self._columns()
        last, header, page = max(shown, default=0), self.header(), max(len(shown) - 2, 1)
        if last < len(self._widths) - 1:
            before_sign, _, _ = header.rpartition("→ ")
            if x >= cell_len(before_sign):
                self._scroll_columns(page)
                return
        in_words = self._more_columns(last)
        if self._first > 1 and header.endswith(in_words) and x >= cell_len(header) - cell_len(in_words):
            self._scroll_columns(-page)
            return
        end = 1
        for column, width in shown.items():
            end += width + len(_GAP)
            if x < end:
                self._sort_by(column)
                return

    def _sort_by(self, column: int) -> None:
        """Sort by a column: ascending, then descending, then as in the result."""
        key, before = self._table.columns[column], self._wished
        if before.column != key:
            wished = replace(before, column=key, descending=False)
        elif before.descending:
            wished = replace(before, column=None, descending=False)
        else:
            wished = replace(before, descending=True)
        self._wished = wished
        self.arrange_rows(wished, column)

    def filter_rows(self, wanted: str) -> None:
        """Show only rows that contain a text; all rows if it is empty."""
        self._wished = replace(self._wished, wanted=wanted)
        self.arrange_rows(self._wished, self.cursor[1])

    @work(exclusive=True, group="arrange")
    async def arrange_rows(self, wished: Arrangement, column: int) -> None:
        """Sort and filter the rows without blocking, and move the cursor to the first one.

        Args:
            wished: The new order and selection.
            column: Number of the column for the cursor.
        """
        self._problem, self._is_arranging = "", True
        self.post_message(self.CursorMoved())
        try:
            numbers: Sequence[int] = range(self._all.total)
            if wished.column is not None or wished.wanted:
                numbers = await self._arrange(self._all, wished)
            self._arrangement = wished
            self._table = self._all.with_rows(numbers)
            self._measure()
        except StoredResultError as error:
            self._problem, self._wished = clean_line(str(error)), self._arrangement
        finally:
            self._is_arranging = False
        self.rows_changed()
        self.cursor = (0, column)
        self.post_message(self.CursorMoved())

    def adopt(self, other: TableView) -> None:
        """Show the columns, the order, the selection and the cell of another view of the same list."""
        self._set_hidden(other.table.hidden)
        if other._wished != Arrangement():
            self._wished = other._wished
            self.arrange_rows(self._wished, other.cursor[1])
        elif other.row_count and (cells := self.cells_of([other.path])):
            self.cursor = cells[0]

    def watch_cursor(self) -> None:
        """Keep the cursor visible and post `CursorMoved`."""
        self._show_cursor()
        self.refresh()
        self.post_message(self.CursorMoved())

    def validate_cursor(self, cursor: tuple[int, int]) -> tuple[int, int]:
        """Clamp the cursor to the table."""
        row, column = cursor
        return max(min(row, self.row_count - 1), 0), max(min(column, len(self._widths) - 1), 0)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the commands for columns that exist."""
        del parameters
        match action:
            case "hide":
                return len(self._widths) > 1
            case "show_columns":
                return bool(self._all.hidden)
            case "open":
                return self.row_count > 0
            case _:
                return True

    def action_open(self) -> None:
        """Post `CellChosen` for the cell at the cursor."""
        self.post_message(self.CellChosen(self.path))

    def action_sort(self) -> None:
        """Sort by the column at the cursor."""
        self._sort_by(self.cursor[1])

    def action_hide(self) -> None:
        """Hide the column at the cursor."""
        self._set_hidden(self._all.hidden | {self._table.columns[self.cursor[1]]})

    def action_show_columns(self) -> None:
        """Show the hidden columns again."""
        self._set_hidden(frozenset())

    def _set_hidden(self, hidden: frozenset[str]) -> None:
        self._all, self._table = self._all.without(hidden), self._table.without(hidden)
        self._first = 1
        self._measure()
        self.cursor = self.validate_cursor(self.cursor)
        self._show_cursor()
        self.refresh()
        self.refresh_bindings()
        self.post_message(self.CursorMoved())

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
        """Yield the number and the padded text of each visible cell of a row."""
        for column, width in self._columns().items():
            text = self._table.cell(row, column, max(width, CELL))
            if self._numeric[column]:
                text = " " * max(width - cell_len(text), 0) + text
            yield column, f" {fit(text, width)} "

    def _columns(self) -> dict[int, int]:
        """Return the visible columns with their widths: the first, and those from the scroll position on.

        The last one may be narrower than its cells.
        """
        if not self._widths:
            return {}
        shown = {0: min(self._widths[0], max(self.row_width - 1, 1))}
        used = self._frozen_width
        for column in range(self._first, len(self._widths)):
            width = min(self._widths[column], self.row_width - used - 1)
            if width < min(self._widths[column], _NARROWEST):
                break
            shown[column] = width
            used += width + len(_GAP)
        return shown

    @property
    def _frozen_width(self) -> int:
        return self._widths[0] + len(_GAP) if self._widths else 0

    def _show_cursor(self) -> None:
        row, column = self.cursor
        self.show_row(row)
        if column == 0:
            return
        self._first = min(self._first, column)
        while self._first < column and self._right_edge(column) > self.row_width:
            self._first += 1

    def _right_edge(self, column: int, first: int | None = None) -> int:
        """Return where a column ends if the columns are scrolled to `first`; by default as they are."""
        rest = len(self._rest) + 1 if self._rest and column == len(self._widths) - 1 else 0
        widths = self._widths[self._first if first is None else first : column + 1]
        return self._frozen_width + sum(width + len(_GAP) for width in widths) + rest
