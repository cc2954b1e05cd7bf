"""The history as everybody else sees it."""

from __future__ import annotations

import atexit
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pegboard import storage
from pegboard.errors import StoreError
from pegboard.history.losses import Losses
from pegboard.models import CallRecord, JsonObject, Problem, ToolCall, ToolResult, ToolUses

if TYPE_CHECKING:
    from pegboard.history.database import Database
    from pegboard.history.rows import Column, Row

INLINE_LIMIT: Final = 64_000
"""Bytes of JSON of a result that is kept in the database; a larger one gets a file."""
SIZE_LIMIT: Final = 500_000_000

_WRITTEN_AT_ONCE: Final = 500
_KEPT_UNWRITTEN: Final = 1000
_RETRY_SECONDS: Final = 1.0
_GATHER_SECONDS: Final = 0.005
"""Between two writes: calls in quick succession are written together, so that writing doesn't slow them down. A killed
process loses no more than what finished within this time."""
_CLOSE_SECONDS: Final = 20.0
"""The longest that the end of the program waits for the disk, and for other processes that hold the database."""
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")

_NO_FAILURES: Final = ('"detail":"cancelled"', '"detail":"denied"')
"""How errors are kept that are the user's doing and none of the tool's."""
_UNREADABLE: Final = (TypeError, ValueError, OverflowError, RecursionError)
"""What reading a damaged row may raise, or making one of what is no JSON."""

_Answer = TypeVar("_Answer")


class History:
    """Every call from every source; safe with several threads and processes.

    Building it costs nothing. What is recorded is written by a thread of its own, at once, and everything that was
    recorded before is seen by every read. Reads block; they don't raise: what is wrong is in `problems`.
    """

    def __init__(self, database: Path, results: Path, *, size_limit: int = SIZE_LIMIT) -> None:
        """Says where the history is.

        Args:
            database: The SQLite file. One that is damaged, or made by a later Pegboard, is set aside.
            results: The folder of results too large for the database.
            size_limit: Bytes of calls and results to keep; the oldest go first.
        """
        self._file = database
        self._results = results
        self._size_limit = size_limit
        self._waiting: deque[tuple[ToolCall, ToolResult, datetime]] = deque()
        self._unwritten: list[Row] = []
        self._wake = threading.Event()
        self._starting = threading.Lock()
        self._writer: threading.Thread | None = None
        self._stopping = False
        self._using = threading.Lock()  # the database, `_unwritten` and the problems
        self._database: Database | None = None
        self._problems: dict[str, Problem] = {}
        self._losses = Losses(str(database))
        self.on_trouble: Callable[[], object] | None = None
        """Called whenever `problems` may have changed, on any thread; it must not block."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the history: a database that was set aside, a full disk."""
        lost = self.unrecorded
        return (*self._problems.copy().values(), *([lost] if lost else []))

    @property
    def unrecorded(self) -> Problem | None:
        """What isn't recorded, why, and what to do about it; None if everything is."""
        return self._losses.problem(len(self._waiting) + len(self._unwritten))

    # Writing

    def record(self, call: ToolCall, result: ToolResult, at: datetime) -> None:
        """Keeps a finished call, asked for at `at`; returns at once, never raises."""
        self._waiting.append((call, result, at))
        if self._writer is None:
            self._start()
        self._wake.set()

    def flush(self) -> None:
        """Writes what was recorded and isn't written yet; what can't be written is a problem."""
        with self._using:
            self._write()

    def close(self) -> None:
        """Writes what is left, ends the thread and lets the database go; whatever is asked later opens it again."""
        with self._starting:
            writer, self._writer = self._writer, None
            if writer is not None:
                self._stopping = True
                self._wake.set()
                writer.join(_CLOSE_SECONDS)
                self._stopping = writer.is_alive()
            atexit.unregister(self.close)
        # a disk that doesn't answer holds the writer, and must not hold the end of the program
        if not self._using.acquire(timeout=0 if self._stopping else _CLOSE_SECONDS):
            self._fail("written", TimeoutError(f"the disk gave no answer within {_CLOSE_SECONDS:g} seconds"))
            return
        try:
            self._write()
            database, self._database = self._database, None
            try:
                if database is not None:
                    database.close()
            except StoreError as error:
                self._note("closed", error)
        finally:
            self._using.release()

    def _start(self) -> None:
        with self._starting:
            if self._writer is not None:
                return
            writer = threading.Thread(target=self._keep_writing, name="pegboard-history", daemon=True)
            try:
                writer.start()
            except RuntimeError as error:  # too many threads: the next read, record or close writes
                self._note("written at once", error)
            else:
                self._problems.pop("written at once", None)
                self._writer = writer
            atexit.unregister(self.close)
            atexit.register(self.close)

    def _keep_writing(self) -> None:
        while not self._stopping:
            self._wake.wait(_RETRY_SECONDS if self._unwritten else None)
            self._wake.clear()
            self.flush()
            time.sleep(_GATHER_SECONDS)

    def _write(self) -> None:
        """Writes all that waits; what fails is tried again with what comes next."""
        while self._waiting or self._unwritten:
            try:
                self._take(self._open())
                files = self._insert(self._unwritten)
            except StoreError as error:
                while len(self._waiting) > _KEPT_UNWRITTEN:
                    self._waiting.popleft()
                    self._losses.calls += 1
                self._fail("written", error)
                return
            self._succeed(len(self._unwritten))
            self._unwritten.clear()
            for file in files:
                with suppress(OSError, ValueError):
                    self._result_file(file).unlink()

    def _insert(self, rows: Sequence[Row]) -> list[str]:
        return self._with_database(lambda database: database.insert(rows, self._size_limit))

    def _take(self, database: Database) -> None:
        """Makes rows of the calls that wait, some at a time."""
        while self._waiting and len(self._unwritten) < _WRITTEN_AT_ONCE:
            call, result, at = self._waiting.popleft()
            try:
                self._unwritten.append(self._row(call, result, at, has_files=database.file is not None))
            except _UNREADABLE as error:  # it isn't JSON, which no tool's result should be
                self._losses.calls += 1
                self._fail("kept complete", error)

    def _row(self, call: ToolCall, result: ToolResult, at: datetime, *, has_files: bool) -> Row:
        from pegboard.history.rows import json_of, row_of

        data = json_of(result.data)
        truncated = result.meta.truncated
        if truncated is not None:
            # The whole is on disk already. What is kept here is what the caller saw.
            whole = Path(truncated.file)
            file = whole.name if whole.parent == self._results else None
            return row_of(call, result, at, data, file, truncated.total_bytes if file else 0)
        if len(data) <= INLINE_LIMIT or not has_files:
            return row_of(call, result, at, data, None, 0)
        name = f"{call.id}.json" if _PLAIN_NAME.fullmatch(call.id) else f"{os.urandom(16).hex()}.json"
        content = data.encode()
        try:
            storage.make_folder(self._results)
            storage.write(self._results / name, content)
        except OSError as error:
            self._note("kept complete", error)
            return row_of(call, result, at, data, None, 0)
        return row_of(call, result, at, None, name, len(content))

    def _result_file(self, name: str) -> Path:
        """Gives the file of a result, which is nowhere but in the folder of results, whatever the database says."""
        return self._results / Path(name).name

    # Sweeping

    def sweep(self) -> None:
        """Deletes result files that belong to no call, a week after they were written; blocks, never raises.

        They come from processes that were killed while a call ran. Those of a database that was set aside stay: it is
        the only one that knows them.
        """
        from pegboard.history.cleanup import unfinished, whole

        with suppress(OSError):
            for name in [*unfinished(self._results), *self._unrecorded(whole(self._results))]:
                self._result_file(name).unlink(missing_ok=True)

    def _unrecorded(self, names: Sequence[str]) -> list[str]:
        """Gives those of some result files that no call has; none of them where that can't be said for sure."""
        if not names:
            return []
        with self._using:
            self._write()
            try:
                recorded = self._with_database(lambda database: database.recorded(names))
            except StoreError as error:
                self._note("swept", error)
                return []
            is_whole = self._database is not None and self._database.file is not None
        if not is_whole or any(self._file.parent.glob(f"{self._file.name}.*-[0-9]*")):
            return []
        return [name for name in names if name not in recorded]

    # Reading

    def records(
        self, *, tool: str | None = None, limit: int = 100, source: str | None = None
    ) -> tuple[CallRecord, ...]:
        """Gives the newest records first.

        Args:
            tool: Only those of this tool.
            limit: How many at most.
            source: Only those from this source.
        """
        from pegboard.history.rows import LARGEST, RECORD_COLUMNS, record_of

        wanted = {"tool": tool, "source": source}
        given = {column: value for column, value in wanted.items() if value is not None}
        where = f"WHERE {' AND '.join(f'{column} = ?' for column in given)}" if given else ""
        rows = self._select(
            f"SELECT {RECORD_COLUMNS} FROM calls {where} ORDER BY at DESC, rowid DESC LIMIT ?",  # noqa: S608 - our own names
            [*given.values(), min(max(0, limit), LARGEST)],
        )
        records = []
        for row in rows:
            try:
                records.append(record_of(row))
            except _UNREADABLE:
                self._note_damage()
        return tuple(records)

    def result(self, call_id: str) -> ToolResult | None:
        """Gives the result of a call as its caller got it, or None if it isn't kept (any more).

        A truncated one comes back truncated; `meta.truncated` names the file with the whole.
        """
        from pegboard.history.rows import RESULT_COLUMNS, result_of, value_of

        rows = self._select(f"SELECT {RESULT_COLUMNS} FROM calls WHERE id = ?", [call_id])  # noqa: S608 - our own names
        if not rows:
            return None
        ok, error, meta, data, file = rows[0]
        try:
            content = str(data) if data is not None else self._result_file(str(file)).read_bytes()
            return result_of(ok, error, meta, value_of(content))
        except OSError as reason:
            self._note("read completely", reason)
        except _UNREADABLE:
            self._note_damage()
        return None

    def uses(self, tool: str) -> ToolUses:
        """Gives how often a tool was called, as far back as the history goes."""
        return self._uses("WHERE tool = ?3", [tool]).get(tool, ToolUses())

    def all_uses(self) -> dict[str, ToolUses]:
        """Gives how often each tool was called that the history knows."""
        return self._uses()

    def last_arguments(self, tool: str) -> JsonObject | None:
        """Gives the arguments of the last call of a tool, or None if there was none."""
        # Where the last one is damaged, one of those before it will do.
        records = self.records(tool=tool, limit=1) or self.records(tool=tool)
        return records[0].args if records else None

    def _uses(self, where: str = "", parameters: Sequence[Column] = ()) -> dict[str, ToolUses]:
        failed = "NOT ok AND instr(coalesce(error, ''), ?1) = 0 AND instr(coalesce(error, ''), ?2) = 0"
        rows = self._select(
            f"SELECT tool, count(*), sum({failed}), max(at) FROM calls {where} GROUP BY tool",  # noqa: S608 - our own text
            [*_NO_FAILURES, *parameters],
        )
        return {
            str(tool): ToolUses(calls=int(calls or 0), failures=int(failures or 0), last_at=self._moment(last))
            for tool, calls, failures, last in rows
        }

    def _moment(self, at: Column) -> datetime | None:
        from pegboard.history.rows import moment

        try:
            return moment(at)
        except _UNREADABLE:
            self._note_damage()
            return None

    def _select(self, query: str, parameters: Sequence[Column]) -> list[tuple[Column, ...]]:
        from pegboard.history.rows import unicode_of

        clean = [unicode_of(value) if isinstance(value, str) else value for value in parameters]
        with self._using:
            self._write()
            try:
                return self._with_database(lambda database: database.select(query, clean))
            except StoreError as error:
                self._note("read", error)
                return []

    # Results that may be used again

    def keep_for_reuse(self, key: str, call_id: str) -> None:
        """Remembers under a key that the result of a call may be used again; blocks, never raises."""
        from pegboard.history.rows import microseconds

        now = microseconds(datetime.now(UTC))

        def keep(database: Database) -> None:
            with database.transaction() as run:
                # a call that is recorded right now is not there yet; it may only be missed
                run("DELETE FROM reusable WHERE at < ? AND call NOT IN (SELECT id FROM calls)", [now - 60_000_000])
                run("INSERT OR REPLACE INTO reusable (key, at, call) VALUES (?, ?, ?)", [key, now, call_id])

        try:
            self.act(keep)
        except StoreError as error:
            self._note("used for results again", error)

    def kept_for_reuse(self, key: str) -> tuple[float, ToolResult | None]:
        """Gives when a key was last kept, in seconds since 1970, and the result, if there is one; blocks."""
        rows = self._select("SELECT at, call FROM reusable WHERE key = ?", [key])
        if not rows:
            return 0.0, None
        at, call = rows[0]
        return float(at or 0) / 1e6, self.result(str(call))

    # The database

    def act(self, act: Callable[[Database], _Answer], *, says: bool = False) -> _Answer:
        """Does something else with the database, alone, after what was recorded is written.

        Args:
            act: What to do.
            says: Whether it keeps a part of a conversation.

        Raises:
            StoreError: It can't be done.
        """
        with self._using:
            self._write()
            answer = self._with_database(act)
            if says and self._database is not None and self._database.why is not None:
                self._losses.conversation = True
                self._fail("kept", self._database.why)
            return answer

    def _with_database(self, act: Callable[[Database], _Answer]) -> _Answer:
        """Does something with the database, opened if need be; with a new one if it turns out to be damaged."""
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
            storage.tighten(self._results)  # an earlier Pegboard left it open to others
            self._database = open_database(self._file, self._tell, damaged)
            if self._database.why is not None:
                self._fail("kept", self._database.why)
        return self._database

    def _tell(self, problem: Problem) -> None:
        # One of two databases that were set aside for the same reason is as worth telling as the other.
        self._problems[str(problem)] = problem
        self._changed()

    def _succeed(self, count: int) -> None:
        """Note that calls were written, which in memory means that they are lost at the end."""
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
        if self.on_trouble is not None:
            self.on_trouble()

    def _note_damage(self) -> None:
        self._note("read completely", ValueError("a record is damaged"))

    def _note(self, wanted: str, error: Exception) -> None:
        reason = getattr(error, "strerror", None) or error
        message = f"The history can't be {wanted}: {reason}."
        self._problems[wanted] = Problem(message=message, severity="warning", file=str(self._file))
        self._changed()
