"""Rows of a batch with their arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pegboard.batch.errors import JournalError, RowsError
from pegboard.batch.journal import Journal
from pegboard.batch.mapping import ColumnMap
from pegboard.batch.plan import BatchPlan
from pegboard.batch.rows import InputRows, Row, read_some
from pegboard.errors import FormFaults
from pegboard.models import JsonObject

_READ_AHEAD: Final = 64
"""Rows that are read and converted at a time."""


class PreparedRow:
    """A row with its arguments.

    Args:
        row: The row.
        arguments: Arguments of its call.
        problem: Why it can't be called, as the end of a sentence; empty if it can.
        was_open: Whether an earlier run started it and left no result.
    """

    __slots__ = ("arguments", "problem", "row", "was_open")

    def __init__(self, row: Row, arguments: JsonObject, problem: str, *, was_open: bool) -> None:
        self.row = row
        self.arguments = arguments
        self.problem = problem
        self.was_open = was_open

    @property
    def is_new(self) -> bool:
        """Whether the journal doesn't list it as started yet."""
        return not self.was_open


class Source:
    """The rows of a batch with their arguments; used in threads, one at a time.

    Args:
        plan: What to do.

    Raises:
        BatchError: The rows can't be read, or don't match the tool.
    """

    def __init__(self, plan: BatchPlan) -> None:
        self._plan = plan
        self.rows = InputRows(plan.source, encoding=plan.encoding)
        try:
            self.map = ColumnMap(
                plan.spec, plan.maps, given=plan.given, format=self.rows.format, columns=self.rows.columns
            )
        except BaseException:
            self.rows.close()
            raise
        self._unread = iter(self.rows)
        self._error: RowsError | None = None
        self._open: dict[int, str] = {}
        self._last = 0
        self._hashes: Iterator[tuple[int, str]] = iter(())
        # Whatever writes to a pipe may wait for the results of its rows.
        self._most = _READ_AHEAD if self.rows.is_regular else 1

    def expect(self, journal: Journal) -> None:
        """Skip the finished rows of a journal, and check that no row has changed."""
        self._open = dict(journal.state.open)
        self._last = journal.state.last
        self._hashes = journal.hashes()

    def read(self) -> tuple[list[PreparedRow], bool]:
        """Return some rows, and whether they are the last ones.

        Raises:
            BatchError: The rest can't be read, or a row isn't that of the interrupted batch.
        """
        while True:
            if self._error is not None:
                raise self._error
            rows, self._error = read_some(self._unread, self._most)
            if not rows and self._error is None:
                self._check_end()
                return [], True
            if found := [self._prepare(row) for row in rows if self._is_wanted(row)]:
                return found, False

    def _is_wanted(self, row: Row) -> bool:
        if self._plan.only is not None and row.number not in self._plan.only:
            return False
        if row.number > self._last:
            return True
        number, digest = next(self._hashes, (row.number, ""))
        if (number, digest) != (row.number, row.digest):
            raise JournalError(
                f"The batch can't be resumed because row {row.number} (line {row.line}) of {self._plan.source} has"
                " changed since it ran. Restore the file, or start again with another --out."
            )
        return row.number in self._open

    def _check_end(self) -> None:
        missing = next(self._hashes, None)
        if missing is not None:
            raise JournalError(
                f"The batch can't be resumed because {self._plan.source} now ends before row {missing[0]}, which ran"
                " before. Restore the file, or start again with another --out."
            )

    def _prepare(self, row: Row) -> PreparedRow:
        was_open = row.number in self._open
        if row.problem:
            return PreparedRow(row, {}, row.problem, was_open=was_open)
        try:
            return PreparedRow(row, self.map.arguments(row), "", was_open=was_open)
        except FormFaults as faults:
            return PreparedRow(row, {}, f"has invalid values: {faults}", was_open=was_open)
