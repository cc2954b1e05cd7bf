"""The first calls of a batch, before any of them runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice

from pegboard.batch.errors import RowsError
from pegboard.batch.mapping import ColumnMap
from pegboard.batch.plan import BatchPlan
from pegboard.batch.rows import InputRows, RowsFormat
from pegboard.errors import FormFaults
from pegboard.models import JsonObject

_SAMPLED = 100
"""Number of JSON rows whose keys are read."""


@dataclass(frozen=True, slots=True)
class PreviewCall:
    """The call of one row.

    Attributes:
        row: Number of the row.
        arguments: Its arguments, or the values of the row if they can't be converted.
        problem: Why it can't be called; empty if it can.
    """

    row: int
    arguments: JsonObject
    problem: str = ""


@dataclass(frozen=True, slots=True)
class BatchPreview:
    """The first calls of a batch.

    Attributes:
        format: Format of the file.
        columns: Columns of a CSV file, or the keys of the first JSON rows.
        mapping: Parameter → column, where known before a row is read.
        ignored: Columns of a CSV file that fill no parameter.
        calls: The first calls.
    """

    format: RowsFormat
    columns: tuple[str, ...]
    mapping: dict[str, str]
    ignored: tuple[str, ...]
    calls: tuple[PreviewCall, ...]


def preview(plan: BatchPlan, most: int = 3) -> BatchPreview:
    """Read the first rows of a batch's file and return their calls; block for a moment.

    Raises:
        BatchError: The file can't be read, or its columns don't match the tool.
    """
    if os.path.exists(plan.source) and not os.path.isfile(plan.source):  # noqa: PTH110, PTH113 - pathlib may raise
        raise RowsError(
            f"{plan.source} has no preview because it is not a regular file. Save the rows to a file, or run the batch"
            " with `pegboard batch`."
        )
    rows = InputRows(plan.source, encoding=plan.encoding)
    try:
        columns = ColumnMap(plan.spec, plan.maps, given=plan.given, format=rows.format, columns=rows.columns)
        calls: list[PreviewCall] = []
        names = dict.fromkeys(rows.columns)
        for row in islice(rows, most if rows.format == "csv" else _SAMPLED):
            names |= dict.fromkeys(row.values)
            if len(calls) == most:
                continue
            try:
                arguments = {} if row.problem else columns.arguments(row)
                problem = row.problem or columns.check(arguments)
            except FormFaults as faults:
                arguments, problem = row.values, str(faults)
            calls.append(PreviewCall(row.number, arguments, problem))
        return BatchPreview(rows.format, tuple(names), dict(columns.columns), columns.ignored, tuple(calls))
    finally:
        rows.close()
