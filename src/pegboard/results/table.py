"""Tables made of lists of objects."""

from __future__ import annotations

import csv
import io
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import islice

from pydantic import JsonValue
from rich.cells import cell_len

from pegboard.models import JsonObject
from pegboard.results.clean import clean_line
from pegboard.results.paths import JsonPath
from pegboard.results.row_order import matches, order
from pegboard.results.search import find, pattern
from pegboard.results.sizes import count
from pegboard.results.stored.values import StoredList, in_memory
from pegboard.results.text import json_bytes, preview, shortened, shown_key

CELL = 40
"""Maximum width of a cell and its column, in characters, unless there is more space."""
_COLUMNS = 50
_MEASURED_ROWS = 100
_LOOKED_AT = 200
"""Maximum number of values searched for a list. The search runs at every move of a cursor."""
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)*(e[+-]?\d+)?%?", re.IGNORECASE)
_MARKUP = re.compile(r"[\\`*_{}\[\]<>()#+!|~&]")
_SHORT = 6
"""Maximum number of members summarised in a line, and of items examined for a fast check."""


class Table:
    """Rows and columns of a list of objects.

    Rows and columns are counted from 0.

    Attributes:
        path: Path of the list in the value.
        beside: Other members of the object around the list in one line: `success true · count 63`; can be empty.
        columns: Keys of all rows in the order of their first appearance, at most 50.
        columns_left_out: Number of omitted keys.
    """

    def __init__(self, rows: Sequence[JsonObject], path: JsonPath = (), beside: str = "") -> None:
        self._rows = rows
        self._numbers: Sequence[int] = range(len(rows))
        """Index of each row in the list."""
        self.hidden: frozenset[str] = frozenset()
        """Keys of columns that are not shown."""
        self.path = path
        self.beside = beside
        # A list in a file knows its columns; reading a million rows for them would block.
        stored = rows.columns if isinstance(rows, StoredList) else None
        keys = stored or list(dict.fromkeys(key for row in rows for key in row))
        self.columns = tuple(keys[:_COLUMNS])
        self.columns_left_out = len(keys) - len(self.columns)
        self._keys = keys

    @classmethod
    def of(cls, value: JsonValue, path: JsonPath = ()) -> Table | None:
        """Return the table in a value: the value itself, or the only member of an object that is a list of objects.

        Args:
            value: Any JSON value.
            path: Path of the value, if it is part of another.
        """
        rows = _objects(value)
        if rows:
            return cls(rows, path)
        if not isinstance(value, dict):
            return None
        found = [(key, rows) for key, member in value.items() if (rows := _objects(member))]
        if len(found) != 1:
            return None
        key, rows = found[0]
        return cls(rows, (*path, key), _beside(value, key))

    @classmethod
    def of_rows(cls, rows: StoredList, path: JsonPath, beside: str) -> Table:
        """Return the table of a list in a file."""
        return cls(rows, path, beside)  # type: ignore[arg-type] # its columns say that its items are objects

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def total(self) -> int:
        """Number of rows before any were filtered out."""
        return len(self._rows)

    @property
    def numbers(self) -> Sequence[int]:
        """Index of each row in the list."""
        return self._numbers

    @property
    def keys(self) -> Sequence[str]:
        """Keys of all columns, with those that were left out."""
        return self._keys

    @property
    def is_arranged(self) -> bool:
        """Whether rows are sorted, filtered out, or columns hidden."""
        return not isinstance(self._numbers, range) or bool(self.hidden)

    def cell(self, row: int, column: int, most: int = CELL) -> str:
        """Return the text of a cell, sanitized and in one line; empty if the row lacks the key.

        Args:
            row: Number of the row.
            column: Number of the column.
            most: Maximum number of characters; longer texts end with `…`.
        """
        name, values = self.columns[column], self._row(row)
        return _shown(values[name], most) if name in values else ""

    def value(self, row: int, column: int) -> JsonValue:
        """Return the value of a cell, or None if the row lacks the key."""
        return self._row(row).get(self.columns[column])

    def _row(self, row: int) -> JsonObject:
        return self._rows[self._numbers[row]]

    def cell_path(self, row: int, column: int) -> JsonPath:
        """Return the path of a cell in the value that contains the table."""
        return (*self.path, self._numbers[row], self.columns[column])

    def arranged(self, column: str | None, *, descending: bool = False, wanted: str = "") -> Table:
        """Return the table with the rows that match a text, in the order of a column.

        Numbers are first, then texts, then other values; rows without a value are last. Rows with equal values keep
        their order.

        Args:
            column: Key of the column; None keeps the order of the list.
            descending: Whether the largest value comes first.
            wanted: Text that any value of a row must contain; an empty text matches all.
        """
        numbers: Sequence[int] = range(len(self._rows))
        if wanted:
            rule = pattern(wanted)
            numbers = [number for number in numbers if matches(self._rows[number], rule)]
        if column is not None:
            numbers = order(((number, self._rows[number].get(column)) for number in numbers), descending=descending)
        return self.with_rows(numbers)

    def with_rows(self, numbers: Sequence[int]) -> Table:
        """Return the table with these rows of the list, in this order."""
        table = copy(self)
        table._numbers = numbers  # noqa: SLF001 - a copy of this object
        return table

    def without(self, hidden: frozenset[str]) -> Table:
        """Return the table without some of its columns."""
        table = copy(self)
        table.hidden = hidden
        keys = [key for key in self._keys if key not in hidden]
        table.columns = tuple(keys[:_COLUMNS])
        table.columns_left_out = len(keys) - len(table.columns)
        return table

    @property
    def part_of_columns(self) -> str:
        """Number of columns that the table has of all, such as `50 of 80 columns`; empty if it has all."""
        total = len(self.columns) + self.columns_left_out
        return f"{len(self.columns)} of {total:,} columns" if self.columns_left_out else ""

    @property
    def is_part(self) -> bool:
        """Whether rows are filtered out or columns hidden."""
        return bool(len(self) < self.total or self.hidden)

    def facts(self, wanted: str) -> list[str]:
        """Return values beside the list, such as a total, and what of the rows and columns is shown.

        Args:
            wanted: Text that filters the rows; empty if they aren't filtered.
        """
        rows = count(self.total, "row")
        shown = [
            f"{len(self):,} of {rows} with {wanted}" if wanted else rows,
            *filter(None, (self.part_of_columns,)),
            *([f"{len(self.hidden)} hidden"] if self.hidden else []),
        ]
        beside = [self.beside] if self.beside else []
        return [*shown, *beside] if self.is_part else [*beside, *shown]

    def rows(self) -> Iterator[JsonObject]:
        """Yield the rows that are shown, without hidden columns, for encoders."""
        for number in self._numbers:
            yield {key: in_memory(value) for key, value in self._rows[number].items() if key not in self.hidden}

    def find(self, wanted: re.Pattern[str], rows: int | None = None) -> Iterator[tuple[int, int] | None]:
        """Yield the row and column of each cell that contains a match at any depth, and None for the others.

        Args:
            wanted: Pattern from `pattern`.
            rows: Number of rows to search; all of them by default.
        """
        for number, at in enumerate(islice(self._numbers, rows)):
            row = self._rows[at]
            for column, name in enumerate(self.columns):
                found = name in row and any(path is not None for path in find(row[name], wanted))
                yield (number, column) if found else None

    def width(self, column: int, most: int = CELL) -> int:
        """Return the width of a column in cells of the screen, at most `most`.

        It follows from its name, and from the first and last rows both of the list and of those that are shown, because
        sorting moves the widest values to an end, and a filter leaves others.
        """
        name = self.columns[column]
        rows = map(self._rows.__getitem__, {*_ends(range(self.total)), *_ends(self._numbers)})
        cells = (_shown(row[name], most) for row in rows if name in row)
        return min(max(map(cell_len, [clean_line(name), *cells])), most)

    def is_numeric(self, column: int) -> bool:
        """Return True if a column contains only numbers, judging by its first and last rows."""
        values = self.measured_values(column)
        return bool(values) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)

    def measured_values(self, column: int) -> list[JsonValue]:
        """Return the values of a column in its first and last rows, without those that are missing or null."""
        name = self.columns[column]
        rows = map(self._rows.__getitem__, _ends(self._numbers))
        return [row[name] for row in rows if row.get(name) is not None]

    def csv(self) -> Iterator[str]:
        """Yield the rows that are shown as lines of CSV (RFC 4180), with nested values as JSON and null as nothing.

        Spreadsheets run a cell that begins with `=`, `+`, `-` or `@` as a formula. Such texts get an apostrophe in
        front, unless they are numbers.
        """
        keys = [key for key in self._keys if key not in self.hidden]
        yield _csv_line([inert(key) for key in keys])
        for row in self.rows():
            yield _csv_line([_field(row[key]) if key in row else "" for key in keys])

    def markdown(self) -> Iterator[str]:
        """Yield the rows that are shown as lines of a Markdown table."""
        keys = [key for key in self._keys if key not in self.hidden]
        yield _markdown_line(_markdown_cell(key) for key in keys)
        numeric = {key for column, key in enumerate(self.columns) if self.is_numeric(column)}
        yield _markdown_line("---:" if key in numeric else "---" for key in keys)
        for row in self.rows():
            yield _markdown_line(_markdown_cell(row.get(key)) for key in keys)


def _ends(rows: Sequence[int]) -> list[int]:
    """Return the rows that represent a column, because reading all of them would take too long."""
    return [*rows[:_MEASURED_ROWS], *rows[max(_MEASURED_ROWS, len(rows) - _MEASURED_ROWS) :]]


def is_wrapped(value: JsonValue) -> bool:
    """Return True for an object around one list of objects whose other members fit a line."""
    if not isinstance(value, dict):
        return False
    rest = [member for member in value.values() if not _objects(member)]
    return len(rest) == len(value) - 1 and len(rest) < _SHORT and all(map(_is_short, rest))


def _is_short(value: JsonValue) -> bool:
    if isinstance(value, str):
        return len(value) <= CELL and "\n" not in value
    return not isinstance(value, list | dict)


def _beside(value: JsonObject, key: str) -> str:
    others = [(name, item) for name, item in value.items() if name != key and not isinstance(item, list | dict)]
    return " · ".join(f"{shown_key(name, CELL)} {preview(item, CELL)}" for name, item in others[:_SHORT])


def begins_as_table(value: JsonValue) -> bool:
    """Return True for a list that begins with objects and may be a table, a fast check for lists of any length."""
    if isinstance(value, StoredList):
        return bool(value.columns)
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) and item for item in value[:_SHORT])


def nearest_list(value: JsonValue, path: JsonPath = ()) -> tuple[JsonPath, JsonValue] | None:
    """Return the path and value of the first list of objects in a value or a few levels below it, or None.

    Args:
        value: Any JSON value.
        path: Path of the value.
    """
    waiting = deque([(path, value)])
    for _ in range(_LOOKED_AT):
        if not waiting:
            break
        at, found = waiting.popleft()
        if begins_as_table(found):
            return at, found
        members = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
        waiting.extend(((*at, step), item) for step, item in islice(members, _LOOKED_AT))
    return None


def _shown(value: JsonValue, most: int) -> str:
    """Return the text of a cell: strings without quotes, lists of strings joined by commas, other values abridged."""
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value[:most]):
        value = ", ".join(str(item)[: most + 1] for item in value[:most])  # one more shows that it is cut
    if isinstance(value, str):
        return clean_line(shortened(value, most))
    return preview(value, most)


def _field(value: JsonValue) -> str:
    if value is None:
        return ""
    return inert(value) if isinstance(value, str) else json_bytes(value).decode()


def inert(text: str) -> str:
    """Return the text of a CSV cell, with an apostrophe in front if a spreadsheet would run it as a formula."""
    return "'" + text if text.startswith(_FORMULA_SIGNS) and not _NUMBER.fullmatch(text) else text


def _csv_line(fields: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(fields)
    return out.getvalue()


def _markdown_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _markdown_cell(value: JsonValue) -> str:
    """Return a cell that Markdown shows as it is: without markup, and on one line."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json_bytes(value).decode()
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def _objects(value: JsonValue) -> Sequence[JsonObject]:
    """Return a list of objects, or an empty list if any item is not a non-empty object."""
    if not isinstance(value, list):
        return []
    if isinstance(value, StoredList):
        return value if value.columns else []  # type: ignore[return-value] # its items are objects
    rows = [item for item in value if isinstance(item, dict) and item]
    return rows if len(rows) == len(value) else []
