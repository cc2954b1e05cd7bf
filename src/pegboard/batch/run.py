"""Run of a batch."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import aclosing, suppress

from pegboard.batch.engine import Engine
from pegboard.batch.errors import BatchError, JournalError, RowsError
from pegboard.batch.journal import Journal, JournalHeader, journal_file
from pegboard.batch.mapping import ColumnMap
from pegboard.batch.plan import BatchPlan
from pegboard.batch.progress import BatchProgress
from pegboard.batch.record import BatchRecord, Ended
from pegboard.batch.results import UNKNOWN, ResultLines, RowResult, write_csv
from pegboard.batch.retry import can_repeat, is_worth_repeating, pause
from pegboard.batch.rows import STDIN, Row, Rows, read_some
from pegboard.errors import FormFaults
from pegboard.models import Finished, JsonObject, ToolCall, ToolResult
from pegboard.ports import Calls, Recorder
from pegboard.results.export import whole

_READ_AHEAD = 32
"""Rows that are read and converted at a time, in a thread."""
_SYNC_SECONDS = 1.0


class Batch:
    """Calls of one tool with every row of a file.

    At most `jobs` calls run at the same time, and as many rows are in memory, plus a few that are read ahead. Results
    are written in the order in which they finish; each has its row's number.

    The batch itself is recorded as a call of `batch.run`, the parent of the rows' calls.

    Args:
        plan: What to do.
        engine: Where to run the calls; `run` starts and closes it.
        recorder: Storage of the record; None to record only the rows.

    Attributes:
        id: The batch's call.
        progress: The counts so far.
    """

    def __init__(self, plan: BatchPlan, engine: Engine, recorder: Recorder | None = None) -> None:
        self.plan = plan
        self._recorder = recorder
        self.id = os.urandom(8).hex()
        self.progress = BatchProgress()
        self.ignored: tuple[str, ...] = ()
        """Columns of the file that fill no parameter, once it runs."""
        self._engine = engine
        self._calls: Calls | None = None
        self._on_result: Callable[[RowResult], object] = _ignore
        self._ready: deque[_Prepared] = deque()
        self._reading = asyncio.Lock()
        self._source: _Source | None = None
        self._journal: Journal | None = None
        self._lines: ResultLines | None = None
        self._pace = _Pace(plan.rate)
        self._stopping: Ended | None = None
        self._failure: BaseException | None = None
        self._wake = asyncio.Event()

    async def run(self, on_result: Callable[[RowResult], object] | None = None) -> Ended:
        """Run the batch.

        If it is cancelled, running calls end without a result, and the batch can be resumed.

        Args:
            on_result: Called with each result after it was written.

        Raises:
            BatchError: The batch can't start or continue. What finished before is kept.
        """
        plan = self.plan
        self._on_result = on_result or _ignore
        plan.check()
        record: BatchRecord | None = None
        ended: Ended = "stopped"
        try:
            self._source = await asyncio.to_thread(_Source, plan)
            self.ignored = self._source.map.ignored
            self.progress.size = self._source.rows.size
            await asyncio.to_thread(self._open_files)
            self._calls = await self._engine.start(plan.spec)
            if self._recorder is not None:
                record = BatchRecord(self._recorder, self.id, plan)
            self.progress.started = time.monotonic()
            await self._run_all()
            ended = self._stopping or "complete"
        except BrokenPipeError:  # the reader of printed results has ended
            raise
        except OSError as error:
            where = error.filename or plan.out or plan.source
            raise BatchError(f"{where} can't be used: {error.strerror or error}.") from error
        finally:
            # Synchronously, so that a cancelled batch leaves complete files too.
            self._close_files()
            await self._engine.close()
            if record is not None:
                record.finish(self.progress, ended, self._failure)
        if self._failure is not None:
            raise self._failure
        return ended

    def stop(self) -> None:
        """Start no more rows; `run` returns when the running calls have finished."""
        self._stopping = self._stopping or "stopped"
        self._wake.set()

    def _is_stopping(self) -> bool:
        """Whether no more rows start."""
        return self._stopping is not None

    # Files

    def _open_files(self) -> None:
        plan = self.plan
        file = plan.lines
        if plan.out is None or file is None:
            return
        header = JournalHeader(
            batch=self.id,
            tool=plan.spec.name,
            arguments=plan.arguments_hash(),
            source=os.path.abspath(plan.source),  # noqa: PTH100 - `-` too
        )
        if plan.resume:
            self._resume(file, header)
            return
        exists = next((one for one in (plan.out, file) if one.exists() and one.stat().st_size), None)
        if exists is not None and not plan.replace:
            raise BatchError(
                f"{exists} exists. Continue it with --resume, replace it with --force, or choose another --out."
            )
        if plan.source != STDIN:
            self._journal = Journal.create(journal_file(plan.out), header)
        for one in {plan.out, file}:
            one.unlink(missing_ok=True)
        self._lines = ResultLines(file)

    def _resume(self, file: os.PathLike[str], header: JournalHeader) -> None:
        plan = self.plan
        assert plan.out is not None, "only batches with results are resumed"
        assert plan.lines is not None, "only batches with results are resumed"
        assert self._source is not None, "it is opened before"
        journal = self._journal = Journal.resume(journal_file(plan.out), header)
        self.id = journal.header.batch
        lines = self._lines = ResultLines(plan.lines)
        state = journal.state
        for row, end, ok in lines.recover(state.size):
            if row not in state.open:
                raise JournalError(f"{plan.lines} has a result of row {row} that its journal doesn't expect.")
            state.finish(row, end, ok=ok)
            journal.finish(row, end, ok=ok)
        self.progress.before = state.succeeded + state.failed
        self.progress.failed_before = state.failed
        self._source.expect(journal)

    def _sync(self) -> None:
        if self._lines is not None and self._journal is not None:
            self._lines.sync()
            self._journal.sync()

    def _close_files(self) -> None:
        plan = self.plan
        if self._source is not None:
            self._source.rows.close()
        try:
            if self._journal is not None:
                self._journal.flush()
            if self._lines is not None:
                self._sync()
                self._lines.close()
                if plan.out is not None and plan.lines is not None and plan.lines != plan.out:
                    write_csv(plan.lines, plan.out)
        finally:
            self._lines = None
            if self._journal is not None:
                self._journal.close()
                self._journal = None

    # Calls

    async def _run_all(self) -> None:
        syncing = asyncio.create_task(self._sync_often()) if self._journal is not None else None
        workers = [asyncio.create_task(self._work()) for _ in range(max(1, self.plan.jobs or self._engine.jobs))]
        try:
            done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            for task in (*workers, *([syncing] if syncing else [])):
                task.cancel()
            await asyncio.gather(*workers, *([syncing] if syncing else []), return_exceptions=True)

    async def _sync_often(self) -> None:
        while True:
            await asyncio.sleep(_SYNC_SECONDS)
            try:
                if self._journal is not None:
                    self._journal.flush()
                await asyncio.to_thread(self._sync)
            except OSError as error:
                self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Stop because of an error that the batch can't continue after."""
        self._failure = self._failure or error
        self.stop()

    async def _work(self) -> None:
        try:
            while (prepared := await self._next()) is not None:
                await self._run_row(prepared)
        except (BatchError, OSError) as error:
            if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                where = error.filename or self.plan.out or "The results"
                wrapped = BatchError(f"{where} can't be written: {error.strerror or error}. Free space and resume.")
                wrapped.__cause__ = error
                error = wrapped
            self._fail(error)

    async def _next(self) -> _Prepared | None:
        """Return the next row, recorded as started; None if no more rows are to start."""
        if not await self._pace.wait(self._wake):
            return None
        while not self._is_stopping():
            if self._ready:
                prepared = self._ready.popleft()
                if self._journal is not None and prepared.is_new:
                    self._journal.start(prepared.row.number, prepared.row.digest)
                return prepared
            if self.progress.is_read:
                return None
            await self._read()
        return None

    async def _read(self) -> None:
        """Read some rows, unless another caller has just done so."""
        async with self._reading:
            if not self._ready and not self.progress.is_read and not self._is_stopping():
                await self._read_some()

    async def _read_some(self) -> None:
        source = self._source
        assert source is not None, "`run` opens it"
        try:
            found, is_over = await asyncio.to_thread(source.read)
        except BatchError as error:
            self._fail(error)
            return
        self.progress.position = source.rows.position
        self.progress.is_read = is_over
        self.progress.waiting += len(found)
        self._ready.extend(found)

    async def _run_row(self, prepared: _Prepared) -> None:
        row, plan = prepared.row, self.plan
        if prepared.problem:
            self._write(RowResult.failed(row.number, f"Row {row.number} (line {row.line}) {prepared.problem}."))
            return
        if prepared.was_open and not (can_repeat(plan.spec) or plan.retry_unknown):
            why = (
                f"The batch was interrupted during this call of {plan.spec.name}, which is not marked idempotent or"
                " read-only, so the outcome is unknown. --retry-unknown calls it again."
            )
            self._write(RowResult.failed(row.number, why, UNKNOWN, attempts=1))
            return
        attempt = 0
        while True:
            attempt += 1
            call, result = await self._call(prepared.arguments)
            if result.ok or attempt > plan.retry or self._is_stopping() or not is_worth_repeating(plan.spec, result):
                break
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause(attempt))
            if self._is_stopping() or not await self._pace.wait(self._wake):
                break
        self._write(await self._row_result(row.number, call, result, attempt))

    async def _call(self, arguments: JsonObject) -> tuple[ToolCall, ToolResult]:
        calls = self._calls
        assert calls is not None, "`run` starts the engine"
        plan = self.plan
        call = ToolCall(name=plan.spec.name, args=arguments, source="batch", parent=self.id, timeout=plan.timeout)
        async with aclosing(calls.call(call)) as events:
            async for event in events:
                if isinstance(event, Finished) and event.owner == call.id:
                    return event.call, event.result
        raise AssertionError("a call always ends with Finished")

    async def _row_result(self, row: int, call: ToolCall, result: ToolResult, attempts: int) -> RowResult:
        data, error = result.data, result.error
        if result.meta.truncated is not None:
            try:
                data = await asyncio.to_thread(whole, result)
            except (OSError, ValueError) as reason:
                error = ToolResult.failed("execution_error", f"The result can't be read: {reason}.", "not_kept").error
        return RowResult.model_construct(
            row=row,
            ok=error is None,
            data=data,
            error=error,
            duration_ms=result.meta.duration_ms,
            attempts=attempts,
            call=call.id,
        )

    def _write(self, result: RowResult) -> None:
        if self._lines is not None:
            size = self._lines.append(result.line())
            if self._journal is not None:
                self._journal.finish(result.row, size, ok=result.ok)
        progress = self.progress
        progress.waiting -= 1
        progress.succeeded += result.ok
        progress.failed += not result.ok
        progress.unknown += result.is_unknown
        self._on_result(result)
        limit = self.plan.stop_after
        if limit is not None and progress.failed >= limit and not self._is_stopping():
            self._stopping = "failures"
            self._wake.set()


class _Prepared:
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


class _Source:
    """The rows of a batch with their arguments; used in threads, one at a time.

    Args:
        plan: What to do.

    Raises:
        BatchError: The rows can't be read, or don't match the tool.
    """

    def __init__(self, plan: BatchPlan) -> None:
        self._plan = plan
        self.rows = Rows(plan.source, encoding=plan.encoding)
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

    def read(self) -> tuple[list[_Prepared], bool]:
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

    def _prepare(self, row: Row) -> _Prepared:
        was_open = row.number in self._open
        if row.problem:
            return _Prepared(row, {}, row.problem, was_open=was_open)
        try:
            return _Prepared(row, self.map.arguments(row), "", was_open=was_open)
        except FormFaults as faults:
            return _Prepared(row, {}, f"has invalid values: {faults}", was_open=was_open)


class _Pace:
    """Limit on the number of calls that start per second.

    Args:
        rate: The limit; None for none.
    """

    def __init__(self, rate: float | None) -> None:
        self._interval = 1 / rate if rate else 0.0
        self._free = 0.0

    async def wait(self, stop: asyncio.Event) -> bool:
        """Wait for the next start; return False if the batch stops meanwhile."""
        if stop.is_set():
            return False
        if not self._interval:
            return True
        now = time.monotonic()
        start = max(now, self._free)
        self._free = start + self._interval
        if start <= now:
            return True
        try:
            await asyncio.wait_for(stop.wait(), start - now)
        except TimeoutError:
            return True
        return False


def _ignore(_: RowResult) -> None:
    """Ignore a result."""
