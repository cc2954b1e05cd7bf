"""A list of objects as a table."""

from __future__ import annotations

import csv
import io
import re
from collections import deque
from collections.abc import Iterator
from itertools import islice

from pydantic import JsonValue
from rich.cells import cell_len

from pegboard.models import JsonObject
from pegboard.results.clean import clean_line
from pegboard.results.paths import Path
from pegboard.results.search import find
from pegboard.results.text import json_bytes, preview

CELL = 40
"""Characters of a cell, and so of a column; what is longer is cut with an ellipsis."""
_COLUMNS = 50
_MEASURED_ROWS = 100
_LOOKED_AT = 200
"""Values that are looked at for a list: it is done at every step of a cursor."""
_SHORT = 6
"""Members of an answer that can be told in a line."""


class Table:
    """The rows and columns of a list of objects.

    Attributes:
        path: Where the list stands in the value.
        beside: What else the answer around the list says, in a line: `success true · count 63`; empty where nothing.
        columns: The keys of all rows in the order they first appear, at most 50.
        columns_left_out: How many keys that leaves out.

    A place in it is a row and a column, both from 0.
    """

    def __init__(self, rows: list[JsonObject], path: Path = (), beside: str = "") -> None:
        self._rows = rows
        self.path = path
        self.beside = beside
        keys = list(dict.fromkeys(key for row in rows for key in row))
        self.columns = tuple(keys[:_COLUMNS])
        self.columns_left_out = len(keys) - len(self.columns)
        self._keys = keys

    @classmethod
    def of(cls, value: JsonValue, path: Path = ()) -> Table | None:
        """Finds the table in a value: itself, or the one member of an object that is a list of objects.

        Args:
            value: Any JSON value.
            path: Where it stands, if it is a part of another.
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

    def __len__(self) -> int:
        return len(self._rows)

    def cell(self, row: int, column: int) -> str:
        """Gives a cell's text, clean, in one line and cut; empty where the row doesn't have it."""
        name = self.columns[column]
        return _shown(self._rows[row][name]) if name in self._rows[row] else ""

    def value(self, row: int, column: int) -> JsonValue:
        """Gives the whole value of a cell, None where the row doesn't have it."""
        return self._rows[row].get(self.columns[column])

    def cell_path(self, row: int, column: int) -> Path:
        """Gives the path of a cell in the value that the table was found in."""
        return (*self.path, row, self.columns[column])

    def find(self, wanted: re.Pattern[str]) -> Iterator[tuple[int, int] | None]:
        """Gives row and column of each cell `wanted` is found in, however deep, and None for each without."""
        for number, row in enumerate(self._rows):
            for column, name in enumerate(self.columns):
                found = name in row and any(path is not None for path in find(row[name], wanted))
                yield (number, column) if found else None

    def width(self, column: int) -> int:
        """Gives the cells of the screen a column needs, by its name, its first rows and its last, at most 40."""
        cells = (self.cell(row, column) for row in self._measured())
        return min(max(cell_len(clean_line(self.columns[column])), *map(cell_len, cells)), CELL)

    def is_numeric(self, column: int) -> bool:
        """Says whether a column has nothing but numbers, by its first rows and its last."""
        name = self.columns[column]
        rows = (self._rows[row] for row in self._measured())
        values = [row[name] for row in rows if row.get(name) is not None]
        return bool(values) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)

    def _measured(self) -> list[int]:
        """The rows that a column is judged by: looking at all of them would take too long."""
        rows = range(len(self))
        return [*rows[:_MEASURED_ROWS], *rows[max(_MEASURED_ROWS, len(self) - _MEASURED_ROWS) :]]

    def csv(self) -> str:
        """Gives the whole table as CSV (RFC 4180): every row, every column, nested values as JSON, null as nothing."""
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(self._keys)
        writer.writerows([_field(row[key]) if key in row else "" for key in self._keys] for row in self._rows)
        return out.getvalue()


def is_wrapped(value: JsonValue) -> bool:
    """Tells whether a value is an answer around one list of objects, and says no more than a line beside it."""
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
    return " · ".join(f"{clean_line(name[:CELL])} {preview(item, CELL)}" for name, item in others[:_SHORT])


def begins_as_table(value: JsonValue) -> bool:
    """Tells whether a value is a list whose first item is an object, which is quick to tell of any list."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def nearest_list(value: JsonValue, path: Path = ()) -> tuple[Path, JsonValue] | None:
    """Finds the first list that begins as a table, in a value or a few levels below it, and gives its path too.

    Args:
        value: Any JSON value.
        path: Where it stands.
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


def _shown(value: JsonValue) -> str:
    """A value in a cell: text without quotes, lists of texts parted by commas, other nested values abridged."""
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value[:CELL]):
        value = ", ".join(str(item)[:CELL] for item in value[:CELL])
    if isinstance(value, str):
        return clean_line(value if len(value) <= CELL else value[: CELL - 1] + "…")
    return preview(value, CELL)


def _field(value: JsonValue) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json_bytes(value).decode()


def _objects(value: JsonValue) -> list[JsonObject]:
    """The list as one of objects, empty if it holds anything else."""
    if not isinstance(value, list):
        return []
    rows = [item for item in value if isinstance(item, dict) and item]
    return rows if len(rows) == len(value) else []
