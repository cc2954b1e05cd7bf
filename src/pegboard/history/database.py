"""The SQLite file: open it in any state, add rows, limit its size.

Every error of SQLite leaves this module as a `StoreError`.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from pegboard import storage
from pegboard.errors import ReadOnlyError, StoreError
from pegboard.history.result_files import RemovedCall
from pegboard.history.rows import Column, StoredCall
from pegboard.history.schema import (
    EDITED,
    INTERRUPTED,
    IS_CURRENT,
    MIGRATION_1,
    MIGRATION_2,
    NEW_TRIGGERS,
    RUNNING,
    SCHEMA,
    SESSIONS_SCHEMA,
    TERMS,
    VERSION,
)
from pegboard.models import Problem

BUSY_SECONDS = 5.0
"""Seconds to wait for another process that is writing."""
UNDO_SECONDS = 3600
"""Time during which a deleted call can be restored."""

_COLUMNS = [field.name for field in fields(StoredCall)]
# A finished call replaces the row that was written at its start, and a running one that of its wait for approval. Rows
# written by a commit that reported failure are inserted again with the next batch, which changes nothing. The record of
# a batch is replaced when the batch has been resumed.
_INTO = f"INSERT INTO calls ({', '.join(_COLUMNS)}) VALUES "  # noqa: S608 - our own names
_VALUES = f"({', '.join('?' for _ in _COLUMNS)})"
_REPLACING = (
    f" ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _COLUMNS if name != 'id')}"
    f" WHERE status = {RUNNING} OR excluded.status <> {RUNNING}"
    f" AND (status = {INTERRUPTED} OR source = 'batch' AND parent IS NULL)"
)
_INSERT = f"{_INTO}{_VALUES}{_REPLACING}"
_RESUMED = f"SELECT 1 FROM calls WHERE id IN (SELECT value FROM json_each(?)) AND status <> {RUNNING}"  # noqa: S608 - our own text
_ENDED = json.dumps(
    {
        "code": "execution_error",
        "message": "The process that ran this call ended before it finished.",
        "detail": "interrupted",
    }
)
_NOT_RUN = json.dumps(
    {
        "code": "execution_error",
        "message": "The call was not run: its process ended while it waited for approval.",
        "detail": "not_run",
    }
)
_GROUP = 32
_INSERT_GROUP = f"{_INTO}{', '.join([_VALUES] * _GROUP)}{_REPLACING}"
"""Adds many rows in one step. SQLite runs a step without the interpreter's lock, so the event loop isn't held up."""
_HEADER_BYTES = 100
_PRUNED_AT_ONCE = 2000


class BusyError(StoreError):
    """Another process has locked the database."""


class DamagedError(StoreError):
    """The file is damaged, or isn't a Pegboard database."""


class NewerError(StoreError):
    """The database was written by a later version of Pegboard."""


class Database:
    """Open database connection. Not thread-safe."""

    def __init__(self, file: Path | None, why: Exception | None = None) -> None:
        """Open the database in `file`; create it if it is missing.

        Args:
            file: Path of the database, or None for a database in memory.
            why: Reason for keeping the database in memory.

        Raises:
            StoreError: The database can't be used. `BusyError`, `DamagedError` and `NewerError` name the reason.
        """
        self.file = file
        self.why = why
        # SQLite overwrites any file that is too short to be a database.
        if file is not None and file.exists() and 0 < file.stat().st_size < _HEADER_BYTES:
            raise DamagedError("it is not a database")
        with _store_errors():
            self._connection = sqlite3.connect(
                file or ":memory:", timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        # Without this, sqlite3 fails the whole query when a single text is not UTF-8.
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        try:
            with _store_errors():
                self._prepare()
        except StoreError:
            self.close()
            raise
        self.inode = file.stat().st_ino if file else 0

    @property
    def is_elsewhere(self) -> bool:
        """Whether another process removed or replaced the file, so that writes to it would be lost."""
        if self.file is None:
            return False
        try:
            return self.file.stat().st_ino != self.inode
        except OSError:
            return True

    def require_file(self) -> None:
        """Raise `ReadOnlyError` if the database is in memory, because a change of recorded data would not last."""
        if self.why is not None:
            reason = str(getattr(self.why, "strerror", None) or self.why).rstrip(".")
            raise ReadOnlyError(f"Nothing was changed because the history can't be written: {reason}.")

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        (version,) = run("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise NewerError(f"it has version {version}, and this Pegboard knows {VERSION}")
        (tables,) = run("SELECT count(*) FROM sqlite_master").fetchone()
        if version == 0 and tables == 0:
            self._connection.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        elif 0 < version < VERSION:
            steps = MIGRATION_1 if version == 1 else MIGRATION_2
            self._connection.executescript(f"BEGIN IMMEDIATE; {steps} PRAGMA user_version = {VERSION}; COMMIT;")
        run(f"SELECT {', '.join(_COLUMNS)} FROM calls LIMIT 0")  # noqa: S608 - our own names
        run("SELECT bytes FROM total LIMIT 0")
        run("SELECT rowid FROM calls_text LIMIT 0")
        if not run(IS_CURRENT).fetchone():
            self._connection.executescript(f"BEGIN IMMEDIATE; {NEW_TRIGGERS} COMMIT;")
        (kept,) = run(
            "SELECT count(*) FROM sqlite_master WHERE name IN ('sessions', 'messages', 'reusable', 'turns')"
        ).fetchone()
        if kept < 4:
            self._connection.executescript(f"BEGIN IMMEDIATE; {SESSIONS_SCHEMA} COMMIT;")
        if self.file is None:  # it is read through this connection
            run(TERMS)
        self._connection.create_function("folded", 1, _folded, deterministic=True)

    def fill(self, source: sqlite3.Connection) -> None:
        """Replace the content of a database in memory.

        Args:
            source: An open database.

        Raises:
            StoreError: It isn't a history of this version.
            sqlite3.Error: It can't be read.
        """
        if source.execute("PRAGMA user_version").fetchone() != (VERSION,):
            raise StoreError("it has another version")
        source.backup(self._connection)
        with _store_errors():
            self._prepare()

    def insert(self, rows: Sequence[StoredCall], size_limit: int) -> list[RemovedCall]:
        """Add calls; remove the oldest ones if the database exceeds its limit.

        Args:
            rows: Calls to add. Calls whose end is already recorded are skipped; running and interrupted ones, and
                batches, are replaced.
            size_limit: Maximum size of all calls and results, in bytes.

        Returns:
            The removed calls, whose files are to be deleted.
        """
        with _store_errors():
            run = self._connection.execute
            run("BEGIN IMMEDIATE")
            try:
                batches = json.dumps([row.id for row in rows if row.is_finished_batch])
                if batches != "[]" and run(_RESUMED, [batches]).fetchone():
                    run(EDITED)
                whole = len(rows) - len(rows) % _GROUP
                for start in range(0, whole, _GROUP):
                    run(_INSERT_GROUP, [value for row in rows[start : start + _GROUP] for value in vars(row).values()])
                self._connection.executemany(_INSERT, [(*vars(row).values(),) for row in rows[whole:]])
                total, *_ = run("SELECT CAST(bytes AS INTEGER) FROM total").fetchone() or [None]
                if total is None:
                    raise DamagedError("its recorded size is missing")
                removed = self._purge() + (self._prune(total - size_limit, size_limit) if total > size_limit else [])
                run("COMMIT")
            finally:
                if self._connection.in_transaction:
                    run("ROLLBACK")
        return removed

    def interrupt(self, processes: Sequence[str]) -> int:
        """Mark unfinished calls as interrupted, those that waited for approval as not run; return how many there were.

        Args:
            processes: Tokens of the processes that ran them; empty for calls without one, which are given a day.
        """
        if not processes:
            return 0
        day_ago = int((time.time() - 86_400) * 1e6)
        with _store_errors():
            changed = self._connection.execute(
                f"UPDATE calls SET status = {INTERRUPTED}, ok = 0, error = iif(error IS NULL, ?, ?), process = NULL"  # noqa: S608 - our own numbers
                f" WHERE status = {RUNNING} AND coalesce(process, '') IN (SELECT value FROM json_each(?))"
                " AND (process IS NOT NULL OR at < ?)",
                [_ENDED, _NOT_RUN, json.dumps(processes), day_ago],
            )
            return changed.rowcount

    def keep_for_reuse(self, key: str, call_id: str) -> None:
        """Store under a key that a call's result may be reused."""
        now = int(time.time() * 1e6)
        with self.transaction() as run:
            # A call that is being recorded right now is missing from `calls`; a minute's grace keeps its key.
            run("DELETE FROM reusable WHERE at < ? AND call NOT IN (SELECT id FROM calls)", [now - 60_000_000])
            run("INSERT OR REPLACE INTO reusable (key, at, call) VALUES (?, ?, ?)", [key, now, call_id])

    def _purge(self) -> list[RemovedCall]:
        """Remove the calls whose deletion can no longer be undone."""
        before = int((time.time() - UNDO_SECONDS) * 1e6)
        run = self._connection.execute
        found = run("SELECT CAST(id AS TEXT), CAST(file AS TEXT) FROM calls WHERE deleted_at < ?", [before]).fetchall()
        if found:
            run("DELETE FROM calls WHERE deleted_at < ?", [before])
        return [RemovedCall(*row) for row in found]

    def _prune(self, excess: int, size_limit: int) -> list[RemovedCall]:
        """Remove the oldest calls except the newest one, until 5 % of the limit are free, to prune less often.

        A call that made others remains as long as one of them does, because lists show them only below it.
        """
        excess += size_limit // 20
        oldest = self._connection.execute(
            "SELECT n, coalesce(CAST(bytes AS INTEGER), 0), CAST(id AS TEXT), CAST(file AS TEXT), at FROM calls"  # noqa: S608 - our own text
            f" WHERE n <> (SELECT max(n) FROM calls) AND NOT pinned AND status <> {RUNNING}"
            " AND NOT EXISTS (SELECT 1 FROM calls AS made WHERE made.parent = calls.id) ORDER BY at, n LIMIT ?",
            (_PRUNED_AT_ONCE,),
        )
        removed: list[tuple[int]] = []
        calls: list[RemovedCall] = []
        until: Column = 0
        for row, size, call, file, at in oldest:
            if excess <= 0:
                break
            removed.append((row,))
            until = at
            calls.append(RemovedCall(call, file))
            excess -= size
        oldest.close()
        if removed:
            self._connection.executemany("DELETE FROM calls WHERE n = ?", removed)
            self._connection.execute(EDITED)
        self._connection.execute(
            "INSERT INTO facts VALUES ('dropped', ?), ('dropped_until', ?) ON CONFLICT (name) DO UPDATE SET value ="
            " CASE name WHEN 'dropped' THEN value + excluded.value ELSE max(value, excluded.value) END",
            [len(removed), until],
        )
        return calls

    def select(self, query: str, parameters: Sequence[Column] = ()) -> list[tuple[Column, ...]]:
        """Return all rows of a query."""
        with _store_errors(), closing(self._connection.execute(query, parameters)) as rows:
            return rows.fetchall()

    @contextmanager
    def transaction(
        self, *, secure: bool = False
    ) -> Iterator[Callable[[str, Sequence[Column]], list[tuple[Column, ...]]]]:
        """Run statements in one transaction that excludes other writers.

        Args:
            secure: Whether to overwrite deleted content with zeros.

        Yields:
            A function that runs one statement and returns its rows.
        """
        with _store_errors():
            if secure:
                self._connection.execute("PRAGMA secure_delete = ON")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.select
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if secure:
                    self._connection.execute("PRAGMA secure_delete = OFF")

    def compact(self) -> None:
        """Rewrite the file and the full-text index, so that nothing remains of deleted texts."""
        with _store_errors():
            self._connection.execute("INSERT INTO calls_text (calls_text) VALUES ('optimize')")
            self._connection.execute("VACUUM")

    def empty_log(self) -> bool:
        """Move the write-ahead log to the file and empty it; return False while another process needs it."""
        with _store_errors():
            busy, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    def recorded(self, files: Sequence[str]) -> set[str]:
        """Return the result files among `files` (named `*.json`) that belong to a recorded call."""
        # Nearly every file is named after its call's id, which is indexed. Only the rest need a full scan.
        ids = [file.removesuffix(".json") for file in files]
        found = self._files("id IN", ids)
        return found | self._files("file IN", [file for file in files if file not in found])

    def recorded_media(self, files: Sequence[str]) -> set[str]:
        """Return the images and other files among `files` that belong to a recorded call."""
        from pegboard.history.cleanup import call_of

        query = "SELECT CAST(id AS TEXT) FROM calls WHERE id IN (SELECT value FROM json_each(?))"
        ids = {str(found) for (found,) in self.select(query, [json.dumps([call_of(file) for file in files])])}
        return {file for file in files if call_of(file) in ids}

    def _files(self, which: str, values: Sequence[str]) -> set[str]:
        if not values:
            return set()
        query = f"SELECT CAST(file AS TEXT) FROM calls WHERE {which} (SELECT value FROM json_each(?))"  # noqa: S608 - our own text
        return {str(file) for (file,) in self.select(query, [json.dumps(values)])}

    def close(self) -> None:
        """Close the connection."""
        with _store_errors():
            self._connection.close()


def _folded(text: Column) -> str:
    return str(text).casefold()


def open_database(file: Path, report: Callable[[Problem], None], damaged: int | None = None) -> Database:
    """Open the history; set an unusable file aside, and fall back to memory if none can be created.

    Args:
        file: Path of the database.
        report: Called with each problem that users should know about.
        damaged: Inode of a file that turned out to be damaged after it was opened.

    Raises:
        BusyError: Another process has kept it locked for too long.
    """
    try:
        storage.make_folder(file.parent)
        with _alone(file.with_name(f"{file.name}.lock")):
            return _open_or_replace(file, report, damaged)
    except BusyError:
        raise
    except (OSError, StoreError) as error:
        return _copy(file, error)


def _copy(file: Path, why: Exception) -> Database:
    """Return a database in memory with the calls and sessions of a file that can't be written, if it can be read.

    Args:
        file: Path of the database.
        why: Why it can't be written.
    """
    # On a read-only file system, SQLite can't create the files that it shares with writers.
    for access in ("mode=ro", "immutable=1"):
        database = Database(None, why)
        try:
            with closing(sqlite3.connect(f"file:{quote(os.fsencode(file))}?{access}", uri=True)) as source:
                database.fill(source)
                return database
        except (sqlite3.Error, StoreError):
            database.close()
    return Database(None, why)


def _open_or_replace(file: Path, report: Callable[[Problem], None], damaged: int | None) -> Database:
    # Another process may have replaced the damaged file in the meantime.
    if damaged is not None and file.exists() and file.stat().st_ino == damaged:
        report(_set_aside(file, "damaged", "it is damaged"))
    if not file.exists():
        _make(file)
    for part in ("", "-wal", "-shm"):  # an earlier version, a copy or a restore may have left them readable by others
        storage.tighten(file.with_name(file.name + part))
    if file.is_dir():  # some versions of SQLite would say that it is a damaged database
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not os.access(file, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only")
    try:
        return Database(file)
    except DamagedError as error:
        report(_set_aside(file, "damaged", str(error)))
    except NewerError as error:
        report(_set_aside(file, "newer", str(error)))
    _make(file)
    return Database(file)


def _make(file: Path) -> None:
    """Create an empty file that only the current user can read.

    Never open an existing one: closing it would release the locks of every other connection of this process to it.
    """
    os.close(storage.open_lock(file))


def _set_aside(file: Path, kind: str, reason: str) -> Problem:
    aside = file.with_name(f"{file.name}.{kind}-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}")
    # Move the file itself last: SQLite would replay an old log into a new file beside it.
    for suffix in ("-wal", "-shm", ""):
        part = file.with_name(file.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return Problem(
        message=f"The history could not be used: {reason}.",
        fix=f"It was set aside as {aside.name}, and a new one was created.",
        severity="warning",
        file=str(file),
    )


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Keep other processes from opening or replacing the database."""
    end = time.monotonic() + BUSY_SECONDS
    held = storage.open_lock(lock)
    try:
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise BusyError("another process is opening it") from None
                time.sleep(0.005)
        yield
    finally:
        os.close(held)


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite's message quotes a damaged schema
        raise DamagedError("it contains text that is not UTF-8") from error
    except MemoryError as error:
        raise StoreError("out of memory") from error
    except sqlite3.Error as error:
        # The lower byte is the primary result code. Errors raised by the sqlite3 module itself have none.
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                raise DamagedError(str(error)) from error
            case sqlite3.SQLITE_ERROR:  # our statements fail only on a foreign schema
                raise DamagedError(f"it is not a history of Pegboard ({error})") from error
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                raise BusyError(str(error)) from error
            case _:
                raise StoreError(str(error)) from error
