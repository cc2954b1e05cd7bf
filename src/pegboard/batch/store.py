"""The results of a batch and its journal, kept in step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pegboard.batch.errors import BatchError
from pegboard.batch.journal import Journal, JournalHeader, JournalState, is_replaceable, journal_file
from pegboard.batch.plan import BatchPlan
from pegboard.batch.results import ResultLines, RowResult, remove_unknown, size_without, unknown_rows, write_csv
from pegboard.batch.retry import can_repeat
from pegboard.batch.rows import STDIN
from pegboard.batch.source import PreparedRow
from pegboard.config.files import shown

_MOST_HELD: Final = 64
"""Results that are held at most."""


class ResultStore:
    """The files of one batch: nothing if it keeps no results, and no journal for standard input.

    Each write costs a system call, so those of tools that may be called again are grouped: a killed process then calls
    a few rows again whose results were not written yet. Rows of other tools are written one by one.

    Args:
        plan: Options of the batch.
        batch: Id of the batch; `id` is that of the interrupted one after `open`.
    """

    def __init__(self, plan: BatchPlan, batch: str) -> None:
        self.id = batch
        self.groups = can_repeat(plan.spec)
        """Whether writes are grouped."""
        self._plan = plan
        self._journal: Journal | None = None
        self._lines: ResultLines | None = None
        self._held: list[RowResult] = []
        self._is_table_written = False

    @property
    def is_open(self) -> bool:
        """Whether results are kept."""
        return self._lines is not None

    def open(self) -> Journal | None:
        """Create the files, or open them to resume; return the journal of the interrupted batch. Read the disk.

        Raises:
            BatchError: The files can't be used.
            OSError: They can't be read or written.
        """
        plan = self._plan
        file = plan.lines
        if plan.out is None or file is None:
            return None
        header = JournalHeader(
            batch=self.id,
            tool=plan.spec.name,
            arguments=plan.arguments_hash(),
            source=shown(Path(os.path.abspath(plan.source))),  # noqa: PTH100 - `-` too
        )
        if plan.resume:
            return self._resume(header)
        exists = next((one for one in (plan.out, file) if one.exists() and one.stat().st_size), None)
        if exists is not None and not plan.replace:
            raise BatchError(
                f"{exists} exists. Continue it with --resume, replace it with --force, or choose another --out."
            )
        journal = journal_file(plan.out)
        if plan.source == STDIN:
            self._remove_earlier(journal, header)
        else:
            if not plan.replace and not is_replaceable(journal):
                raise BatchError(
                    f"{journal} exists and is not the journal of a batch. Replace it with --force, or choose another"
                    " --out."
                )
            self._journal = Journal.create(journal, header)
        for one in {plan.out, file}:
            one.unlink(missing_ok=True)
        self._lines = ResultLines(file)
        return None

    def start(self, rows: Sequence[PreparedRow]) -> None:
        """Record that the calls of rows start, before they do.

        Raises:
            OSError: The journal can't be written.
        """
        if self._journal is not None:
            self._journal.start([(one.row.number, one.row.digest) for one in rows if one.is_new])

    def add(self, result: RowResult) -> None:
        """Write a result, or hold it until the next `flush` if writes are grouped.

        Raises:
            OSError: The files can't be written.
        """
        if self._lines is None:
            return
        self._held.append(result)
        if not self.groups or len(self._held) >= _MOST_HELD:
            self._write_held()

    def flush(self) -> None:
        """Write everything that is held.

        Raises:
            OSError: The files can't be written.
        """
        self._write_held()
        if self._journal is not None:
            self._journal.flush()

    def sync(self) -> None:
        """Make the written lines survive a power failure; may run in another thread.

        Raises:
            OSError: The disk fails.
        """
        if self._lines is not None and self._journal is not None:
            self._lines.sync()
            self._journal.sync()

    def write_table(self) -> None:
        """Write the results so far as CSV if that is their format; `close` doesn't write them again. Block.

        Raises:
            OSError: The files can't be written.
        """
        plan = self._plan
        if self._lines is not None and not self._is_table_written:
            self.flush()
            if plan.out is not None and plan.lines is not None and plan.lines != plan.out:
                write_csv(plan.lines, plan.out)
            self._is_table_written = True

    def close(self) -> None:
        """Write, sync and close the files.

        Raises:
            OSError: The files can't be written.
        """
        try:
            if self._lines is not None:
                self.flush()
                self.sync()
                self.write_table()
                self._lines.close()
        finally:
            self._lines = None
            if self._journal is not None:
                self._journal.close()
                self._journal = None

    def _write_held(self) -> None:
        held, self._held = self._held, []
        if self._lines is None or not held:
            return
        lines = [result.line() for result in held]
        size = self._lines.size
        self._lines.append(b"".join(lines))
        if self._journal is not None:
            for result, line in zip(held, lines, strict=True):
                size += len(line)
                self._journal.finish(result.row, size, ok=result.ok)

    @staticmethod
    def _remove_earlier(file: Path, header: JournalHeader) -> None:
        """Remove the journal of an earlier batch, which would continue results that aren't its own."""
        if file.exists() and is_replaceable(file):
            journal = Journal(file, header)
            file.unlink()
            journal.close()

    def _resume(self, header: JournalHeader) -> Journal:
        assert self._plan.out is not None, "only batches with results are resumed"
        journal = Journal.resume(journal_file(self._plan.out), header, aliases=self._plan.spec.aliases)
        try:
            self._reopen(journal)
        except BaseException:  # then nothing is written, and `close` must not do so either
            journal.close()
            if self._lines is not None:
                self._lines.close()
                self._lines = None
            raise
        self._journal = journal
        return journal

    def _reopen(self, journal: Journal) -> None:
        """Open the results of a journal, without those that are to run again."""
        file = self._plan.lines
        assert file is not None, "only batches with results are resumed"
        self.id = journal.header.batch
        state = journal.state
        if state.reopened and file.exists():  # the process ended while it removed them
            remove_unknown(file, state.reopened)
        self._recover(journal, state)
        if self._plan.retry_unknown and (rows := unknown_rows(file)):
            assert self._lines is not None, "it was just opened"
            self._lines.close()
            journal.reopen(rows, size_without(file, frozenset(rows)))
            remove_unknown(file, frozenset(rows))
            self._recover(journal, state)

    def _recover(self, journal: Journal, state: JournalState) -> None:
        """Open the results, and complete the journal with those that it lacks."""
        assert self._plan.lines is not None, "only batches with results are resumed"
        lines = self._lines = ResultLines(self._plan.lines)
        for row, end, ok in lines.recover(state.size, state.open):
            state.finish(row, end, ok=ok)
            journal.finish(row, end, ok=ok)
