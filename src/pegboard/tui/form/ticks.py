"""Which of many values are ticked, in what order, and how they stand side by side."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue
from rich.cells import cell_len

from pegboard.data.json_text import same, write
from pegboard.forms import MultiChoiceField
from pegboard.tui.form.popups import label

GAP = 2
"""Columns between two values."""
_MOST_ROWS = 4
"""Lines that the values may take side by side; more of them are one line that opens a list."""
_MOST_SHOWN = 40


class Ticks:
    """The options of a field, then what is picked and is none of them.

    Args:
        field: The field.
        kept: Values that stay listed though they may be picked no longer.
    """

    def __init__(self, field: MultiChoiceField, kept: Sequence[JsonValue] = ()) -> None:
        self._field = field
        options = field.options
        foreign = [*kept]
        for value in field.picked:
            if not any(same(value, other) for other in (*foreign, *(option.value for option in options))):
                foreign.append(value)
        self.values: list[JsonValue] = [*(option.value for option in options), *foreign]
        self.labels: list[str] = [
            *(label(option.label) for option in options),
            *(label(write(value)) for value in foreign),
        ]
        self.counts: list[int] = [sum(same(value, other) for other in field.picked) for value in self.values]
        places = [next(at for at, other in enumerate(self.values) if same(value, other)) for value in field.picked]
        self.picked: list[str] = [self.labels[place] for place in places]
        """The labels of what is picked, in its order."""
        self.tells_order: bool = places != sorted(set(places))
        """Whether the boxes don't tell all: the order is another than theirs, or a value is there twice."""

    def sign(self, index: int) -> str:
        """Gives the box before a value."""
        count = self.counts[index]
        if index >= len(self._field.options):
            return "✗ " if count else "☐ "
        return f"☑ {count} × " if count > 1 else "☑ " if count else "☐ "

    def width(self, index: int) -> int:
        """Gives the columns of a value with its box."""
        return cell_len(f"{self.sign(index)}{self.labels[index]}")

    def rows(self, width: int) -> Sequence[Sequence[int]] | None:
        """Gives the indexes of the values line by line; None where they take too many lines.

        Args:
            width: The columns there are.
        """
        if len(self.values) > _MOST_SHOWN:
            return None
        rows: list[list[int]] = [[]]
        x = 0
        for index in range(len(self.values)):
            # A box that is ticked several times is wider; the room for that is not kept free.
            wide = self.width(index)
            if rows[-1] and x + wide > width:
                rows.append([])
                x = 0
            rows[-1].append(index)
            x += wide + GAP
        return rows if len(rows) <= _MOST_ROWS else None

    def lines(self, width: int) -> int:
        """Gives the lines that the values take, and that which tells their order.

        Args:
            width: The columns there are.
        """
        rows = self.rows(width)
        return 1 if rows is None else len(rows) + self.tells_order + self._field.is_raw
