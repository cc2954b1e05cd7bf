"""Run of a batch."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import aclosing, suppress
from functools import partial
from itertools import count
from typing import TypeVar

from pegboard.batch.detached import detached
from pegboard.batch.engine import Engine
from pegboard.batch.errors import BatchError
from pegboard.batch.plan import BatchPlan
from pegboard.batch.progress import BatchProgress
from pegboard.batch.record import BatchRecord, Ended
from pegboard.batch.results import UNKNOWN, RowResult
from pegboard.batch.retry import can_repeat, is_worth_repeating, pause
from pegboard.batch.rows import STDIN
from pegboard.batch.source import PreparedRow, Source
from pegboard.batch.store import ResultStore
from pegboard.models import Finished, JsonObject, ToolCall, ToolResult
from pegboard.ports import Calls, Recorder
from pegboard.results.export import whole
from pegboard.until_done import until_done

T = TypeVar("T")

_FLUSH_SECONDS = 0.1
_FLUSHES_PER_SYNC = 10


class Batch:
    """Calls of one tool with every row of a file.

    At most `jobs` calls run at the same time, and as many rows are in memory, plus those that wait in the engine and a
    few that are read ahead. Results are written in the order in which they finish; each has its row's number.

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
        self._ready: deque[PreparedRow] = deque()
        self._taking = asyncio.Lock()
        self._source: Source | None = None
        self._is_input_blocked = False
        self._store = ResultStore(plan, self.id)
        self._pace = _Pace(plan.rate)
        self._stopping: Ended | None = None
        self._failure: BaseException | None = None
        self._wake = asyncio.Event()
        self._callers: set[asyncio.Task[None]] = set()
        self._calling = 0

    async def run(self, on_result: Callable[[RowResult], object] | None = None) -> Ended:
        """Run the batch.

        If it is cancelled, running calls end without a result, and the batch can be resumed.

        Args:
            on_result: Called with each result after it was handed over to be written.

        Raises:
            BatchError: The batch can't start or continue. What finished before is kept.
        """
        plan = self.plan
        self._on_result = on_result or _ignore
        record: BatchRecord | None = None
        ended: Ended = "stopped"
        try:
            plan.check()
            self._source = await self._from_input(partial(Source, plan), waits=True)
            if self._source is None:
                return ended
            self.ignored = self._source.map.ignored
            self.progress.size = self._source.rows.size
            await asyncio.to_thread(self._open_files)
            self._calls = await self._engine.start(plan.spec)
            if self._recorder is not None:
                record = BatchRecord(self._recorder, self.id, plan)
            self.progress.started = time.monotonic()
            await self._run_all()
            ended = self._stopping or "complete"
            await self._write_table()
        except BrokenPipeError:  # the reader of printed results has ended
            raise
        except OSError as error:
            where = error.filename or plan.out or plan.source
            raise BatchError(f"{where} can't be used: {error.strerror or error}.") from error
        finally:
            try:
                # Synchronously, so that a cancelled batch leaves complete files too.
                self._close_files()
            except OSError as error:
                self._fail(self._unwritable(error))
            finally:
                try:
                    await until_done(self._engine.close())
                finally:
                    if record is not None:
                        record.finish(self.progress, ended, self._failure)
        if self._failure is not None:
            raise self._failure
        return ended

    @property
    def has_started(self) -> bool:
        """Whether its input and its files were opened, so that a file can be resumed."""
        return self._calls is not None

    def stop(self) -> None:
        """Start no more rows; `run` returns when the running calls have finished."""
        self._stopping = self._stopping or "stopped"
        self._wake.set()

    def _is_stopping(self) -> bool:
        """Whether no more rows start."""
        return self._stopping is not None

    # Files

    def _open_files(self) -> None:
        journal = self._store.open()
        if journal is None:
            return
        assert self._source is not None, "it is opened before"
        self.id = self._store.id
        self.progress.before = journal.state.succeeded + journal.state.failed
        self.progress.failed_before = journal.state.failed
        self._source.expect(journal)

    async def _write_table(self) -> None:
        try:
            await asyncio.to_thread(self._store.write_table)
        except OSError as error:
            self._fail(self._unwritable(error))

    def _close_files(self) -> None:
        if self._source is not None and not self._is_input_blocked:
            self._source.rows.close()
        self._store.close()

    # Calls

    async def _run_all(self) -> None:
        syncing = [asyncio.create_task(self._write_often())] if self._store.is_open else []
        try:
            self._start_callers()
            while self._callers:
                done, _ = await asyncio.wait(self._callers, return_when=asyncio.FIRST_COMPLETED)
                self._callers -= done
                for task in done:
                    task.result()
        finally:
            for task in (*self._callers, *syncing):
                task.cancel()
            await until_done(asyncio.gather(*self._callers, *syncing, return_exceptions=True))

    def _most(self) -> int:
        """Return how many calls may run or wait in the engine."""
        fitting = self._engine.jobs
        jobs = max(1, self.plan.jobs or fitting)
        # A waiting call is already started: it counts for the rate, and runs although a failure stops the batch.
        may_wait = self._store.groups and not self.plan.rate and self.plan.stop_after is None and jobs >= fitting
        return jobs + self._engine.ahead if may_wait else jobs

    async def _write_often(self) -> None:
        for tick in count(1):
            await asyncio.sleep(_FLUSH_SECONDS)
            try:
                self._store.flush()
                if tick % _FLUSHES_PER_SYNC == 0:
                    await asyncio.to_thread(self._store.sync)
            except OSError as error:
                self._fail(self._unwritable(error))

    def _unwritable(self, error: OSError) -> OSError | BatchError:
        """Return the error to end with because the results can't be written."""
        if isinstance(error, BrokenPipeError):  # the reader of printed results has ended
            return error
        where = error.filename or self.plan.out or "The results"
        then = "resume" if self.plan.out is not None and self.plan.source != STDIN else "run the batch again"
        wrapped = BatchError(
            f"{where} can't be written: {error.strerror or error}. Check the disk space and permissions, then {then}."
        )
        wrapped.__cause__ = error
        return wrapped

    def _fail(self, error: BaseException) -> None:
        """Stop because of an error that the batch can't continue after."""
        self._failure = self._failure or error
        self.stop()

    def _start_callers(self) -> None:
        """Start as many tasks that run rows as there may be now, which the engine changes.

        On Python 3.12 and later a task of the app may end before `create_task` returns.
        """
        while self._calling < self._most() and (self._ready or not self.progress.is_read) and not self._is_stopping():
            self._calling += 1
            self._callers.add(asyncio.create_task(self._work()))

    async def _work(self) -> None:
        try:
            while self._calling <= self._most() and (prepared := await self._next()) is not None:
                await self._run_row(prepared)
                self._start_callers()
        except BatchError as error:
            self._fail(error)
        except OSError as error:
            self._fail(self._unwritable(error))
        finally:
            self._calling -= 1

    async def _next(self) -> PreparedRow | None:
        """Return the next row, recorded as started; None if no more rows are to start."""
        async with self._taking:  # in the order of the file, as the journal needs it
            while not self._is_stopping():
                if not self._ready:
                    if self.progress.is_read:
                        return None
                    await self._read_some()
                elif self._why_uncalled(self._ready[0]) is None and not await self._pace.wait(self._wake):
                    return None
                else:
                    prepared = self._ready.popleft()
                    if not self._store.groups:
                        self._store.start((prepared,))
                    return prepared
        return None

    async def _read_some(self) -> None:
        source = self._source
        assert source is not None, "`run` opens it"
        try:
            read = await self._from_input(source.read, waits=not source.rows.is_regular)
        except BatchError as error:
            self._fail(error)
            return
        if read is None:
            return
        found, is_over = read
        self.progress.position = source.rows.position
        self.progress.is_read = is_over
        self.progress.waiting += len(found)
        self._ready.extend(found)
        if self._store.groups:
            self._store.start(found)

    async def _from_input(self, function: Callable[[], T], *, waits: bool) -> T | None:
        """Return the result of a function that reads the rows, or None if the batch stops while it waits for a pipe."""
        if not waits:
            return await asyncio.to_thread(function)
        reading = asyncio.ensure_future(detached(function))
        stopping = asyncio.ensure_future(self._wake.wait())
        try:
            await asyncio.wait((reading, stopping), return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() else None
        finally:
            self._is_input_blocked = not reading.done()  # to close it would block as well
            reading.cancel()
            stopping.cancel()

    def _why_uncalled(self, prepared: PreparedRow) -> RowResult | None:
        """Return the result of a row that isn't called; None if it is."""
        row, plan = prepared.row, self.plan
        if prepared.problem:
            return RowResult.failed(row.number, f"Line {row.line} {prepared.problem}.")
        if prepared.was_open and not (can_repeat(plan.spec) or plan.retry_unknown):
            why = (
                f"The batch was interrupted during this call of {plan.spec.name}, which is not marked idempotent or"
                " read-only, so the outcome is unknown. --retry-unknown calls it again."
            )
            return RowResult.failed(row.number, why, UNKNOWN, attempts=1)
        return None

    async def _run_row(self, prepared: PreparedRow) -> None:
        row, plan = prepared.row, self.plan
        if (uncalled := self._why_uncalled(prepared)) is not None:
            self._write(uncalled)
            return
        attempt = 0
        while True:
            attempt += 1
            call, result = await self._call(prepared.arguments)
            if result.ok or attempt > plan.retry or self._is_stopping() or not is_worth_repeating(plan.spec, result):
                break
            with suppress(TimeoutError):
                async with asyncio.timeout(pause(attempt)):
                    await self._wake.wait()
            if self._is_stopping() or not await self._pace.wait(self._wake):
                break
        self._write(await self._row_result(row.number, call, result, attempt))

    async def _call(self, arguments: JsonObject) -> tuple[ToolCall, ToolResult]:
        calls = self._calls
        assert calls is not None, "`run` starts the engine"
        plan = self.plan
        call = ToolCall(name=plan.spec.name, args=arguments, source="batch", parent=self.id, timeout=plan.timeout)
        finished: Finished | None = None
        async with aclosing(calls.call(call)) as events:
            async for event in events:  # to its end, because that costs less than to close it early
                if isinstance(event, Finished) and event.owner == call.id:
                    finished = event
        assert finished is not None, "a call always ends with Finished"
        return finished.call, finished.result

    async def _row_result(self, row: int, call: ToolCall, result: ToolResult, attempts: int) -> RowResult:
        data, error = result.data, result.error
        if result.meta.truncated is not None:
            try:
                data = await asyncio.to_thread(whole, result)
            except (OSError, ValueError) as reason:
                error = ToolResult.failed("execution_error", f"The result can't be read: {reason}.", "not_kept").error
        return RowResult(
            row=row,
            ok=error is None,
            data=data,
            error=error,
            duration_ms=result.meta.duration_ms,
            attempts=attempts,
            call=call.id,
        )

    def _write(self, result: RowResult) -> None:
        self._store.add(result)
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
            async with asyncio.timeout(start - now):
                await stop.wait()
        except TimeoutError:
            return True
        return False


def _ignore(_: RowResult) -> None:
    """Ignore a result."""
