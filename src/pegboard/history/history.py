"""Public interface of the history of calls."""

from __future__ import annotations

import atexit
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from pegboard import storage
from pegboard.data.unicode import encodable
from pegboard.errors import StoreError
from pegboard.history.losses import Losses
from pegboard.history.notify import notify
from pegboard.history.presence import HistoryLock
from pegboard.history.result_files import ResultFiles
from pegboard.history.schema import NOT_A_TURN, RUNNING, UNREADABLE
from pegboard.models import JsonObject, Problem, ToolUses

if TYPE_CHECKING:
    from pegboard.history.database import Database
    from pegboard.history.rows import Column, StoredCall
    from pegboard.models import CallRecord, ToolCall, ToolResult

SIZE_LIMIT: Final = 500_000_000

_WRITTEN_AT_ONCE: Final = 500
_KEPT_UNWRITTEN: Final = 1000
_RECENT_CALLS: Final = 20
_RETRY_SECONDS: Final = 1.0
_GATHER_SECONDS: Final = 0.005
"""Pause between two writes: calls in quick succession are batched, because writing delays the calls that run meanwhile.
A killed process loses at most the calls of this interval."""
_START_SECONDS: Final = 0.05
"""Time after which the start of a call that still runs is written."""
_CLOSE_SECONDS: Final = 20.0
"""Maximum time that shutdown waits for the disk and for other processes that lock the database."""

_Answer = TypeVar("_Answer")


class _Start(NamedTuple):
    """The start of a call, or of its wait for approval, and the monotonic time at which it is written."""

    call: ToolCall
    at: datetime
    due: float
    waits: bool


class History:
    """Every call from every source; safe to use from several threads and processes.

    Constructing it does no I/O. A background thread writes recorded calls; every read sees all calls recorded before
    it. Reads block and never raise; `problems` holds their errors.
    """

    def __init__(self, database: Path, results: Path, *, size_limit: int = SIZE_LIMIT) -> None:
        """Set the paths; nothing is opened yet.

        Args:
            database: The SQLite file. A damaged one, or one of a later version, is set aside.
            results: Folder of results too large for the database.
            size_limit: Maximum size of calls and results, in bytes. The oldest are removed first.
        """
        self.file = database
        """The database."""
        self._files = ResultFiles(results)
        self.size_limit = size_limit
        self._waiting: deque[tuple[ToolCall, ToolResult | None, datetime]] = deque()
        self._started: dict[str, _Start] = {}
        """Starts that aren't written yet, by call."""
        self._presence = HistoryLock(database.parent / "running")
        self._unwritten: list[StoredCall] = []
        self._wake = threading.Event()
        self._starting = threading.Lock()
        self._writer: threading.Thread | None = None
        self._stopping = False
        self._using = threading.Lock()  # the database, `_unwritten` and the problems
        self._database: Database | None = None
        self._problems: dict[str, Problem] = {}
        self._losses = Losses(str(database))
        self.on_problem_changed: Callable[[], object] | None = None
        """Called on any thread whenever `problems` may have changed. It must not block."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems of the history, such as a database that was set aside or a full disk."""
        lost = self.unrecorded
        return (*self._problems.copy().values(), *([lost] if lost else []))

    @property
    def unrecorded(self) -> Problem | None:
        """The calls or conversations that were not recorded, the reason and the remedy; None if nothing is lost."""
        waiting = sum(result is not None and not call.is_turn for call, result, _ in self._waiting.copy())
        return self._losses.problem(waiting + sum(row.is_finished_call for row in self._unwritten))

    @property
    def results(self) -> Path:
        """Folder of large results."""
        return self._files.folder

    @property
    def bells(self) -> Path:
        """Folder of the sockets through which watchers are notified of changes."""
        return self.file.parent / "watching"

    # Writing

    def start(self, call: ToolCall, at: datetime, *, waits: bool = False) -> None:
        """Queue the start of a call, or of its wait for approval, requested at `at`. Return immediately; never raise.

        It is written only if the call hasn't finished a moment later, to save a write; that of a turn before its calls.
        """
        is_urgent = not self._started or call.turn == call.id
        self._started[call.id] = _Start(call, at, time.monotonic() + _START_SECONDS * (call.turn != call.id), waits)
        if self._writer is None:
            self._start()
        if is_urgent:
            self._wake.set()

    def record(self, call: ToolCall, result: ToolResult, at: datetime) -> None:
        """Queue a finished call, requested at `at`, for recording. Return immediately; never raise."""
        self._queue_start(call.parent)
        self._waiting.append((call, result, at))
        self._started.pop(call.id, None)
        if self._writer is None:
            self._start()
        if not self._wake.is_set():  # setting it again takes several times as long
            self._wake.set()

    def _queue_start(self, call_id: str | None) -> None:
        """Queue the start of a call whose inner call has finished, so that it is recorded before that."""
        if call_id is not None and (start := self._started.pop(call_id, None)) is not None:
            self._queue_start(start.call.parent)
            self._waiting.append((start.call, None, start.at))

    def flush(self) -> None:
        """Write all queued calls. Report failures in `problems`."""
        with self._using:
            self._write()

    def close(self) -> None:
        """Write the queue, end the thread and close the database. Later use reopens it."""
        with self._starting:
            writer, self._writer = self._writer, None
            if writer is not None:
                self._stopping = True
                self._wake.set()
                writer.join(_CLOSE_SECONDS)
                self._stopping = writer.is_alive()
            atexit.unregister(self.close)
        # An unresponsive disk blocks the writer thread; it must not block the end of the program too.
        if not self._using.acquire(timeout=0 if self._stopping else _CLOSE_SECONDS):
            self._fail("written", TimeoutError(f"the disk did not respond within {_CLOSE_SECONDS:g} seconds"))
            return
        try:
            self._write()
            self._presence.end()
            database, self._database = self._database, None
            try:
                if database is not None:
                    database.close()
            except StoreError as error:
                self._report_failure("closed", error)
        finally:
            self._using.release()

    def _start(self) -> None:
        with self._starting:
            if self._writer is not None:
                return
            writer = threading.Thread(target=self._keep_writing, name="pegboard-history", daemon=True)
            try:
                writer.start()
            except RuntimeError as error:  # too many threads: the next read, record or close writes instead
                self._report_failure("written in the background", error)
            else:
                self._problems.pop("written in the background", None)
                self._writer = writer
            atexit.unregister(self.close)
            atexit.register(self.close)

    def _keep_writing(self) -> None:
        while not self._stopping:
            self._wake.wait(self._pause())
            self._wake.clear()
            with self._using:
                has_written = self._write(time.monotonic())
            if has_written and not self._stopping:
                time.sleep(_GATHER_SECONDS)

    def _pause(self) -> float | None:
        """Return the seconds until something is to be written, or None if nothing is queued."""
        if self._unwritten:
            return _RETRY_SECONDS
        due = [start.due for start in self._started.copy().values()]
        return max(min(due) - time.monotonic(), 0.0) if due else None

    def _write(self, now: float = math.inf) -> bool:
        """Write the whole queue; return whether there was any. Calls that can't be written are retried next time.

        Args:
            now: Time that decides which starts of calls are due; by default all of them.
        """
        has_any = False
        while self._waiting or self._unwritten or self._is_start_due(now):
            has_any = True
            try:
                database = self._open()
                self._convert_starts(database, now)
                self._convert_queue(database)
                removed = self._with_database(lambda database: database.insert(self._unwritten, self.size_limit))
            except StoreError as error:
                # Starts are only for others to see; the finished calls are what must not be lost.
                self._unwritten = [row for row in self._unwritten if row.status != RUNNING]
                while len(self._waiting) > _KEPT_UNWRITTEN:
                    call, result, _ = self._waiting.popleft()
                    self._losses.calls += result is not None and not call.is_turn
                self._fail("written", error)
                return True
            self._succeed(sum(row.is_finished_call for row in self._unwritten))
            self._unwritten.clear()
            self._files.delete(removed)
            notify(self.bells)
        return has_any

    def _is_start_due(self, now: float) -> bool:
        return any(start.due <= now for start in self._started.copy().values()) if self._started else False

    def _convert_starts(self, database: Database, now: float) -> None:
        if database.file is None:
            self._started.clear()  # no other process sees a history in memory
        for call, at, due, waits in [*self._started.copy().values()]:
            if due <= now and self._started.pop(call.id, None) is not None:
                self._convert_start(call, at, waits=waits)

    def _convert_start(self, call: ToolCall, at: datetime, *, waits: bool = False) -> None:
        from pegboard.history.rows import started_row

        with suppress(*UNREADABLE):
            self._unwritten.append(started_row(call, at, self._presence.token(), waits=waits))

    def _convert_queue(self, database: Database) -> None:
        """Convert queued calls to rows, in batches."""
        report_incomplete = partial(self._report_failure, "kept complete")
        while self._waiting and len(self._unwritten) < _WRITTEN_AT_ONCE:
            call, result, at = self._waiting.popleft()
            if result is None:
                self._convert_start(call, at)
                continue
            try:
                has_files = database.file is not None
                self._unwritten.append(self._files.row(call, result, at, report_incomplete, has_files=has_files))
            except UNREADABLE as error:  # the result isn't JSON, which is a bug of its tool
                self._losses.calls += 1
                self._fail("kept complete", error)

    # Sweeping

    def sweep(self) -> None:
        """Delete result files without a call a week after they were written, and old lock files. Block; never raise.

        Processes that were killed leave them. Those of a database that was set aside are kept: only it refers to them.
        """
        from pegboard.history.cleanup import media, unfinished, whole

        self._presence.sweep()
        with suppress(OSError):
            results, others = whole(self._files.folder), media(self._files.folder)
            unrecorded = [
                *self._unrecorded(results, lambda database: database.recorded(results)),
                *self._unrecorded(others, lambda database: database.recorded_media(others)),
            ]
            for name in [*unfinished(self._files.folder), *unrecorded]:
                self._files.path(name).unlink(missing_ok=True)

    def _unrecorded(self, names: Sequence[str], find: Callable[[Database], set[str]]) -> list[str]:
        """Return the files that belong to no call; none if the database can't be read completely.

        Args:
            names: The files.
            find: Returns those that belong to a call.
        """
        if not names:
            return []
        with self._using:
            self._write()
            try:
                recorded = self._with_database(find)
            except StoreError as error:
                self._report_failure("swept", error)
                return []
            is_whole = self._database is not None and self._database.file is not None
        if not is_whole or any(self.file.parent.glob(f"{self.file.name}.*-[0-9]*")):
            return []
        return [name for name in names if name not in recorded]

    # Reading

    def mark_interrupted(self) -> None:
        """Mark the calls of processes that ended without finishing them. Block; never raise."""
        try:
            if self.act(self._presence.mark_interrupted):
                notify(self.bells)
        except StoreError as error:
            self._report_failure("written", error)

    def records(
        self, *, tool: str | None = None, limit: int = 100, source: str | None = None
    ) -> tuple[CallRecord, ...]:
        """Return records, newest first.

        Args:
            tool: Qualified name of the tool; None for all tools.
            limit: Maximum number of records.
            source: Source of the calls; None for all sources.
        """
        from pegboard.history.rows import LARGEST, RECORD_COLUMNS, record_of

        wanted = {"tool": tool, "source": source}
        given = {column: value for column, value in wanted.items() if value is not None}
        where = "".join(f" AND {column} = ?" for column in given)
        rows = self._select(
            f"SELECT {RECORD_COLUMNS} FROM calls WHERE status <> {RUNNING} AND {NOT_A_TURN}{where}"  # noqa: S608 - our own names
            " AND deleted_at IS NULL ORDER BY at DESC, n DESC LIMIT ?",
            [*given.values(), min(max(0, limit), LARGEST)],
        )
        records = []
        for row in rows:
            try:
                records.append(record_of(row))
            except UNREADABLE:
                self.report_damage()
        return tuple(records)

    def result(self, call_id: str) -> ToolResult | None:
        """Return the result of a call as its caller received it, or None if it is not stored, or deleted.

        A truncated result is returned truncated; `meta.truncated` names the file with the complete one.
        """
        from pegboard.history.rows import RESULT_COLUMNS, result_of, value_of

        rows = self._select(
            f"SELECT {RESULT_COLUMNS} FROM calls WHERE id = ? AND status <> {RUNNING} AND deleted_at IS NULL",  # noqa: S608
            [call_id],
        )
        if not rows:
            return None
        ok, error, meta, data, file = rows[0]
        try:
            if data is None and file is None:  # an interrupted call
                return result_of(ok, error, meta, None)
            content = str(data) if data is not None else self._files.path(str(file)).read_bytes()
            return result_of(ok, error, meta, value_of(content))
        except OSError as reason:
            self._report_failure("read completely", reason)
        except UNREADABLE:
            self.report_damage()
        return None

    def uses(self, tool: str) -> ToolUses:
        """Return the number of recorded calls of a tool."""
        from pegboard.history.rows import moment

        rows = self._select("SELECT calls, failures, last_at FROM uses WHERE tool = ?", [tool])
        calls, failures, last = rows[0] if rows else (0, 0, None)
        last_at: datetime | None = None
        if calls:
            try:
                last_at = moment(last)
            except UNREADABLE:
                self.report_damage()
        return ToolUses(calls=int(calls or 0), failures=int(failures or 0), last_at=last_at)

    def last_arguments(self, tool: str) -> JsonObject | None:
        """Return the arguments of a tool's last call, or None if it was never called."""
        # If the last record is damaged, use the newest readable one.
        records = self.records(tool=tool, limit=1) or self.records(tool=tool)
        return records[0].args if records else None

    def recent_arguments(self, tool: str) -> tuple[JsonObject, ...]:
        """Return the arguments of the last calls of a tool that the user started in its form, newest first."""
        return tuple(record.args for record in self.records(tool=tool, limit=_RECENT_CALLS, source="form"))

    def _select(self, query: str, parameters: Sequence[Column]) -> list[tuple[Column, ...]]:
        clean = [encodable(value) if isinstance(value, str) else value for value in parameters]
        with self._using:
            self._write()
            try:
                return self._with_database(lambda database: database.select(query, clean))
            except StoreError as error:
                self._report_failure("read", error)
                return []

    # Results that may be used again

    def keep_for_reuse(self, key: str, call_id: str) -> None:
        """Store under a key that a call's result may be reused. Block; never raise."""
        try:
            self.act(lambda database: database.keep_for_reuse(key, call_id))
        except StoreError as error:
            self._report_failure("used for results again", error)

    def kept_for_reuse(self, key: str) -> tuple[float, ToolResult | None]:
        """Return the time a key was last stored (seconds since 1970) and its result, if any. Block."""
        rows = self._select("SELECT at, call FROM reusable WHERE key = ?", [key])
        at, call = rows[0] if rows else (0, None)
        return float(at or 0) / 1e6, None if call is None else self.result(str(call))

    # The database

    def act(self, act: Callable[[Database], _Answer], *, says: bool = False) -> _Answer:
        """Run a function on the database, exclusively, after writing the queue.

        Args:
            act: Function to run.
            says: Whether it stores part of a conversation.

        Raises:
            StoreError: The function failed.
        """
        with self._using:
            self._write()
            answer = self._with_database(act)
            if says and self._database is not None and self._database.why is not None:
                self._losses.conversation = True
                self._fail("kept", self._database.why)
            return answer

    def _with_database(self, act: Callable[[Database], _Answer]) -> _Answer:
        """Run a function on the database; open it first if necessary, and replace it if it is damaged."""
        from pegboard.history.database import DamagedError

        database = self._open()
        try:
            return act(database)
        except DamagedError:
            inode = database.inode
            database.close()
            self._database = None
            return act(self._open(damaged=inode))

    def _open(self, damaged: int | None = None) -> Database:
        from pegboard.history.database import open_database

        if self._database is not None and self._database.is_elsewhere:
            self._database.close()
            self._database = None
        if self._database is None:
            storage.tighten(self._files.folder)  # an earlier Pegboard left it open to others
            self._database = open_database(self.file, self._report, damaged)
            if self._database.why is not None:
                self._fail("kept", self._database.why)
            else:
                with suppress(StoreError):  # the next statement reports it
                    self._presence.mark_interrupted(self._database)
        return self._database

    def _report(self, problem: Problem) -> None:
        # Two databases may be set aside for the same reason; both are reported.
        self._problems[str(problem)] = problem
        self._changed()

    def _succeed(self, count: int) -> None:
        """Note that calls were written. In memory they are lost when the program ends."""
        why = None if self._database is None else self._database.why
        if why is not None:
            self._losses.calls += count
            self._fail("kept", why)
        elif self._losses.recover():
            self._changed()

    def _fail(self, wanted: str, error: Exception) -> None:
        self._losses.wanted, self._losses.why = wanted, error
        self._changed()

    def _changed(self) -> None:
        if self.on_problem_changed is not None:
            self.on_problem_changed()

    def report_damage(self) -> None:
        """Report that a record can't be read."""
        self._report_failure("read completely", ValueError("a record is damaged"))

    def _report_failure(self, wanted: str, error: Exception) -> None:
        message = f"The history can't be {wanted}: {getattr(error, 'strerror', None) or error}."
        self._problems[wanted] = Problem(message=message, severity="warning", file=str(self.file))
        self._changed()
