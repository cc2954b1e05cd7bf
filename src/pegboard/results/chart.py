"""Numbers of a result as a chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from pegboard.results.clean import clean_line
from pegboard.results.table import Table
from pegboard.results.text import shortened

_MOST_BARS = 30
_MOST_POINTS = 1_000
_LABEL = 24
_LOOKED_AT = 200
_NUMBERING = {"id", "index", "number", "no", "nr", "row", "#", "pid", "line"}
"""Names of columns that number the rows."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Chart of one series of numbers.

    Attributes:
        title: Name of the column; empty for a list.
        labels: Sanitized label of each value, for a bar chart; empty for a line chart.
        positions: Position of each value in the list.
        values: The values; a long series is represented by the least and greatest of each part.
        total: Number of values in the result.
    """

    title: str
    labels: tuple[str, ...]
    positions: tuple[int, ...]
    values: tuple[float, ...]
    total: int


def chart(value: JsonValue) -> Chart | None:
    """Return the chart of a list of numbers or of a table with one column of numbers, or None."""
    if isinstance(value, list) and len(value) > 1 and not isinstance(value[0], dict):
        return _chart("", (), [_number(item) for item in value]) if can_chart(value, None) else None
    table = Table.of(value)
    return None if table is None else _table_chart(table)


def can_chart(value: JsonValue, table: Table | None) -> bool:
    """Return True if a value probably has a chart. It looks at few values, because it decides which views exist.

    Args:
        value: The value.
        table: The table in the value, if there is one.
    """
    if table is not None:
        return _numeric_column(table) is not None
    return isinstance(value, list) and len(value) > 1 and all(_number(item) is not None for item in value[:_LOOKED_AT])


def _numeric_column(table: Table) -> int | None:
    """Return the only column of at least two numbers, or None. Columns that number the rows don't count."""
    numeric = [column for column in range(len(table.columns)) if table.is_numeric(column)]
    if len(numeric) > 1:
        numeric = [column for column in numeric if table.columns[column].casefold() not in _NUMBERING]
    if len(numeric) != 1:
        return None
    points = [value for value in table.measured_values(numeric[0]) if _number(value) is not None]
    return numeric[0] if len(points) > 1 else None


def _table_chart(table: Table) -> Chart | None:
    numeric = _numeric_column(table)
    if numeric is None:
        return None
    rows = range(len(table))
    labels: tuple[str, ...] = ()
    named = next((column for column in range(len(table.columns)) if column != numeric), None)
    if len(table) <= _MOST_BARS and named is not None:
        labels = tuple(shortened(clean_line(table.cell(row, named)), _LABEL) or str(row) for row in rows)
    values = [_number(table.value(row, numeric)) for row in rows]
    return _chart(clean_line(table.columns[numeric]), labels, values)


def _chart(title: str, labels: tuple[str, ...], values: Sequence[float | None]) -> Chart | None:
    points = [(at, value) for at, value in enumerate(values) if value is not None]
    if len(points) < 2:
        return None
    total = len(points)
    if len(points) > _MOST_POINTS:
        points = _thinned(points)
    return Chart(
        title=title,
        labels=tuple(labels[at] for at, _ in points) if labels else (),
        positions=tuple(at for at, _ in points),
        values=tuple(value for _, value in points),
        total=total,
    )


def _thinned(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the least and the greatest value of each part of a series, which keeps its outline."""
    size = math.ceil(len(points) / (_MOST_POINTS // 2))
    kept: list[tuple[int, float]] = []
    for start in range(0, len(points), size):
        part = points[start : start + size]
        ends = {min(part, key=_value), max(part, key=_value)}
        kept += sorted(ends)
    return kept


def _value(point: tuple[int, float]) -> float:
    return point[1]


def _number(value: JsonValue) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
