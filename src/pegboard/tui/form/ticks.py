"""Checkboxes of a multiple choice: their values, their order, and their arrangement in lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from pydantic import JsonValue
from rich.cells import cell_len

from pegboard.data.json_text import comparable, write
from pegboard.forms import MultiChoiceField
from pegboard.tui.form.popups import label

GAP = 2
"""Columns between two values."""
_MOST_ROWS = 4
"""Most lines of checkboxes; more values become one line that opens a list."""
_MOST_SHOWN = 40


class Ticks:
    """Options of a field, followed by picked values that aren't options.

    Args:
        field: The field.
        kept: Values to list even if they are no longer picked.
    """

    def __init__(self, field: MultiChoiceField, kept: Sequence[JsonValue] = ()) -> None:
        self._field = field
        options = field.options
        self.values: list[JsonValue] = [*(option.value for option in options), *kept]
        # A list can have thousands of options and values, so that they can't be compared in pairs.
        keys = [comparable(value) for value in self.values]
        first: dict[Hashable, int] = {}
        for index, key in enumerate(keys):
            first.setdefault(key, index)
        positions: list[int] = []
        for value in field.picked:
            key = comparable(value)
            if key not in first:
                first[key] = len(keys)
                keys.append(key)
                self.values.append(value)
            positions.append(first[key])
        self.labels: list[str] = [
            *(label(option.label) for option in options),
            *(label(write(value)) for value in self.values[len(options) :]),
        ]
        counts = Counter(positions)
        self.counts: list[int] = [counts[first[key]] for key in keys]
        self.picked: list[str] = [self.labels[position] for position in positions]
        """Labels of the picked values, in their order."""
        self.shows_order: bool = positions != sorted(set(positions))
        """Whether the order must be shown: it differs from that of the options, or a value is picked twice."""

    def sign(self, index: int) -> str:
        """Return the checkbox before a value."""
        count = self.counts[index]
        if index >= len(self._field.options):
            return "✗ " if count else "☐ "
        return f"☑ {count} × " if count > 1 else "☑ " if count else "☐ "

    def width(self, index: int) -> int:
        """Return the width of a value and its checkbox in columns."""
        return cell_len(f"{self.sign(index)}{self.labels[index]}")

    def rows(self, width: int) -> Sequence[Sequence[int]] | None:
        """Return the indexes of the values per line, or None if they need too many lines.

        Args:
            width: The available columns.
        """
        if len(self.values) > _MOST_SHOWN:
            return None
        rows: list[list[int]] = [[]]
        x = 0
        for index in range(len(self.values)):
            # A box that is selected several times is wider; no columns are reserved for that.
            wide = self.width(index)
            if rows[-1] and x + wide > width:
                rows.append([])
                x = 0
            rows[-1].append(index)
            x += wide + GAP
        return rows if len(rows) <= _MOST_ROWS else None

    def lines(self, width: int) -> int:
        """Return the height in lines, including the line that shows the order.

        Args:
            width: The available columns.
        """
        rows = self.rows(width)
        return 1 if rows is None else len(rows) + self.shows_order + self._field.is_raw
