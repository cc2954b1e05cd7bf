"""The SQLite file: opening it whatever its state, adding rows, keeping it within its size.

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

from pegboard import storage
from pegboard.errors import StoreError
from pegboard.history.rows import Column, Row
from pegboard.models import Problem

VERSION = 1
BUSY_SECONDS = 5.0
"""How long to wait for another process that is writing."""

_COLUMNS = [field.name for field in fields(Row)]
# "OR IGNORE": what was written before a failed commit was reported, and so is tried again, is there already.
_INSERT = f"INSERT OR IGNORE INTO calls ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in _COLUMNS)})"  # noqa: S608 - our own names
_HEADER_BYTES = 100
_PRUNED_AT_ONCE = 2000
_SCHEMA = """
CREATE TABLE calls (
    id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    tool TEXT NOT NULL,
    args TEXT NOT NULL,
    ok INTEGER NOT NULL,
    error TEXT,
    duration_ms REAL NOT NULL,
    source TEXT NOT NULL,
    session TEXT,
    parent TEXT,
    meta TEXT NOT NULL,
    data TEXT,
    file TEXT,
    bytes INTEGER NOT NULL
);
CREATE INDEX calls_by_time ON calls (at);
CREATE INDEX calls_by_tool ON calls (tool, at, ok);
CREATE TABLE total (bytes INTEGER NOT NULL);
INSERT INTO total VALUES (0);
CREATE TRIGGER call_added AFTER INSERT ON calls BEGIN UPDATE total SET bytes = bytes + NEW.bytes; END;
CREATE TRIGGER call_removed AFTER DELETE ON calls BEGIN UPDATE total SET bytes = bytes - OLD.bytes; END;
"""
_SESSIONS_SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    model TEXT NOT NULL,
    system TEXT
);
CREATE TABLE IF NOT EXISTS messages (
    session TEXT NOT NULL,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    message TEXT NOT NULL,
    text TEXT NOT NULL,
    call TEXT,
    PRIMARY KEY (session, position)
);
CREATE TABLE IF NOT EXISTS reusable (key TEXT NOT NULL PRIMARY KEY, at INTEGER NOT NULL, call TEXT NOT NULL);
"""
# Histories that were begun without sessions get them when they are opened; who doesn't know them, leaves them alone.


class BusyError(StoreError):
    """Another process holds the database; it will let go."""


class DamagedError(StoreError):
    """The file is no database, or a broken one."""


class NewerError(StoreError):
    """The database was written by a later Pegboard."""


class Database:
    """An open database. Not for several threads at once."""

    def __init__(self, file: Path | None, why: Exception | None = None) -> None:
        """Opens the database in `file`, made if it isn't there; None keeps it in memory.

        Args:
            file: The file.
            why: Why it is kept in memory.

        Raises:
            StoreError: It can't be used; the subclass says why.
        """
        self.file = file
        self.why = why
        # SQLite writes over a file that is too short to be a database, whatever is in it.
        if file is not None and file.exists() and 0 < file.stat().st_size < _HEADER_BYTES:
            raise DamagedError("it is no database")
        with _store_errors():
            self._connection = sqlite3.connect(
                file or ":memory:", timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        # A damaged text is one record's matter; SQLite's module would refuse all rows that are asked for with it.
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
        """Whether the file was removed, or set aside by another process: what is written here, nobody would find."""
        if self.file is None:
            return False
        try:
            return self.file.stat().st_ino != self.inode
        except OSError:
            return True

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        (version,) = run("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise NewerError(f"it has version {version}, and this Pegboard knows {VERSION}")
        (tables,) = run("SELECT count(*) FROM sqlite_master").fetchone()
        if version == 0 and tables == 0:
            self._connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        run(f"SELECT {', '.join(_COLUMNS)} FROM calls LIMIT 0")  # noqa: S608 - our own names
        run("SELECT bytes FROM total LIMIT 0")
        (kept,) = run(
            "SELECT count(*) FROM sqlite_master WHERE name IN ('sessions', 'messages', 'reusable')"
        ).fetchone()
        if kept < 3:
            self._connection.executescript(f"BEGIN IMMEDIATE; {_SESSIONS_SCHEMA} COMMIT;")
        self._connection.create_function("folded", 1, _folded, deterministic=True)

    def insert(self, rows: Sequence[Row], size_limit: int) -> list[str]:
        """Adds calls, and removes the oldest ones if all together have become too large.

        Args:
            rows: The calls; those whose id is there already are left out.
            size_limit: Bytes.

        Returns:
            The result files that no call has any more.
        """
        with _store_errors():
            run = self._connection.execute
            run("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(_INSERT, [vars(row) for row in rows])
                total, *_ = run("SELECT CAST(bytes AS INTEGER) FROM total").fetchone() or [None]
                if total is None:
                    raise DamagedError("its size is lost")
                files = self._prune(total - size_limit, size_limit) if total > size_limit else []
                run("COMMIT")
            finally:
                if self._connection.in_transaction:
                    run("ROLLBACK")
        return files

    def _prune(self, excess: int, size_limit: int) -> list[str]:
        """Removes the oldest calls but never the newest, and a little more than needed so as not to begin again."""
        excess += size_limit // 20
        oldest = self._connection.execute(
            "SELECT rowid, coalesce(CAST(bytes AS INTEGER), 0), CAST(file AS TEXT) FROM calls"
            " WHERE rowid <> (SELECT max(rowid) FROM calls) ORDER BY at, rowid LIMIT ?",
            (_PRUNED_AT_ONCE,),
        )
        gone: list[tuple[int]] = []
        files: list[str] = []
        for row, size, file in oldest:
            if excess <= 0:
                break
            gone.append((row,))
            files += [file] if file else []
            excess -= size
        oldest.close()
        self._connection.executemany("DELETE FROM calls WHERE rowid = ?", gone)
        return files

    def select(self, query: str, parameters: Sequence[Column] = ()) -> list[tuple[Column, ...]]:
        """Gives all rows of a query."""
        with _store_errors(), closing(self._connection.execute(query, parameters)) as rows:
            return rows.fetchall()

    @contextmanager
    def transaction(self) -> Iterator[Callable[[str, Sequence[Column]], list[tuple[Column, ...]]]]:
        """Gives a function that runs a statement and gives its rows: all of them are done, or none.

        Nobody else writes meanwhile, so that what was read before a write is still so.
        """
        with _store_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.select
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def recorded(self, files: Sequence[str]) -> set[str]:
        """Gives those of some result files, named `*.json`, that a call has."""
        # Nearly all are named after their call, and found by its id; only for the others all calls are looked through.
        ids = [file.removesuffix(".json") for file in files]
        found = self._files("id IN", ids)
        return found | self._files("file IN", [file for file in files if file not in found])

    def _files(self, which: str, values: Sequence[str]) -> set[str]:
        if not values:
            return set()
        query = f"SELECT CAST(file AS TEXT) FROM calls WHERE {which} (SELECT value FROM json_each(?))"  # noqa: S608 - our own text
        return {str(file) for (file,) in self.select(query, [json.dumps(values)])}

    def close(self) -> None:
        """Lets the file go."""
        with _store_errors():
            self._connection.close()


def _folded(text: Column) -> str:
    return str(text).casefold()


def open_database(file: Path, tell: Callable[[Problem], None], damaged: int | None = None) -> Database:
    """Opens the history, whatever it takes: sets a file aside that can't be used, and goes without one if need be.

    Args:
        file: Where it is.
        tell: Takes what a user should know about it, also where no database comes of it.
        damaged: The inode of a file that was seen to be damaged after it had been opened.

    Raises:
        BusyError: Another process holds it for long.
    """
    try:
        storage.make_folder(file.parent)
        with _alone(file.with_name(f"{file.name}.lock")):
            return _open_or_replace(file, tell, damaged)
    except BusyError:
        raise
    except (OSError, StoreError) as error:
        return Database(None, error)


def _open_or_replace(file: Path, tell: Callable[[Problem], None], damaged: int | None) -> Database:
    # Another process may have replaced the damaged file meanwhile.
    if damaged is not None and file.exists() and file.stat().st_ino == damaged:
        tell(_set_aside(file, "damaged", "it is damaged"))
    if not file.exists():
        _make(file)
    for part in ("", "-wal", "-shm"):  # an earlier Pegboard, a copy or a restore may have left them open to others
        storage.tighten(file.with_name(file.name + part))
    if not os.access(file, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only")
    try:
        return Database(file)
    except DamagedError as error:
        tell(_set_aside(file, "damaged", str(error)))
    except NewerError as error:
        tell(_set_aside(file, "newer", str(error)))
    _make(file)
    return Database(file)


def _make(file: Path) -> None:
    """Makes an empty file, whose content, arguments and results, will be nobody else's business.

    An existing one must not be opened: closing it again would take away the locks of every connection that this process
    has to it.
    """
    os.close(storage.open_lock(file))


def _set_aside(file: Path, kind: str, reason: str) -> Problem:
    aside = file.with_name(f"{file.name}.{kind}-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}")
    # The file itself comes last: SQLite must never find a new file beside an old log, which it would play into it.
    for suffix in ("-wal", "-shm", ""):
        part = file.with_name(file.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return Problem(
        message=f"The history could not be used: {reason}.",
        fix=f"It was set aside as {aside.name}, and a new one was begun.",
        severity="warning",
        file=str(file),
    )


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Keeps other processes from opening or replacing the database meanwhile."""
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
    except UnicodeDecodeError as error:  # SQLite's message quotes a broken schema, and the module can't decode it
        raise DamagedError("it contains text that is no UTF-8") from error
    except MemoryError as error:
        raise StoreError("out of memory") from error
    except sqlite3.Error as error:
        # The lower byte is the kind, the others are details; errors of the module itself have no code.
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                raise DamagedError(str(error)) from error
            case sqlite3.SQLITE_ERROR:  # a statement that doesn't fit the schema: our own are right where it is ours
                raise DamagedError(f"it is no history of Pegboard's ({error})") from error
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                raise BusyError(str(error)) from error
            case _:
                raise StoreError(str(error)) from error
