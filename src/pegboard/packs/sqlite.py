"""Query SQLite databases and list their tables. Read-only."""

import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import (  # Any: values of a database may be anything
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    TypedDict,
)
from urllib.parse import quote

from annotated_types import Ge, Gt, Le

from pegboard.sdk import ToolFailed, aliases, hints

from ._roots import PASSAGE, ResolvedPath, explained, opened, opened_file, resolve

_LONGEST_VALUE = 10_000_000
_SHOWN_BYTES = 64
_STEPS = 2000
"""Steps of SQLite's virtual machine between two checks of the time limit."""
_LONGEST_WAIT = 5.0
"""Seconds to wait while another process locks a database."""
_ATTEMPTS = 5
_CHUNK = 2**20
_INTERNAL = 1
"""How SQLite marks a column of a virtual table that `SELECT *` omits; generated columns have higher numbers."""
_Identity = tuple[int, int]
_LOOKING = {
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_TRANSACTION,
}  # fmt: skip
_PRAGMAS = {
    "collation_list", "compile_options", "data_version", "encoding", "foreign_key_check", "foreign_key_list",
    "freelist_count", "function_list", "index_info", "index_list", "index_xinfo", "integrity_check", "journal_mode",
    "module_list", "page_count", "page_size", "pragma_list", "quick_check", "schema_version", "table_info",
    "table_list", "table_xinfo", "user_version",
}  # fmt: skip
"""Pragmas that only return information; some would set a value if they had an argument."""
_PARTS_OF_R_TREES = ("_node", "_parent", "_rowid")
_TAKE_A_NAME = {name for name in _PRAGMAS if name.startswith(("foreign_key", "index_", "table_"))}

Parameters = Sequence[Any] | Mapping[str, Any]
Seconds = Annotated[float, Gt(0), Le(60)]


class Column(TypedDict):
    """A column of a table."""

    name: str
    type: str
    not_null: bool
    default: str | None
    """SQL expression."""
    primary_key: int
    """Position in the primary key, counted from 1; 0 if it isn't part of it."""


class Reference(TypedDict):
    """A foreign key."""

    columns: list[str]
    table: str
    to: list[str]


class TableInfo(TypedDict):
    """A table or a view."""

    name: str
    kind: Literal["table", "view", "virtual"]
    columns: list[Column]
    references: list[Reference]
    indexes: list[str]
    sql: str | None
    """The statement that created it."""
    rows: NotRequired[int]
    error: NotRequired[str]
    """Why it can't be read."""


class Rows(TypedDict):
    """Result of a query."""

    columns: list[str]
    rows: list[dict[str, Any]]
    """If two columns have one name, the second is called `NAME_2`. Blobs are returned as `x'…'`."""
    truncated: bool
    """Whether there are more rows."""


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=70)
@aliases(max_rows="maxRows")
def query(
    *,
    database: str,
    sql: str,
    parameters: Parameters = (),
    max_rows: Annotated[int, Ge(1), Le(100_000)] = 200,
    seconds: Seconds = 10.0,
) -> Rows:
    """Run a read-only query: `SELECT`, `WITH`, `EXPLAIN`, or a `PRAGMA` that returns information.

    Args:
        database: Database file, inside the working directory.
        sql: One statement; use `?` and `:name` for parameters.
        parameters: A list for `?`, an object for `:name`.
        max_rows: Maximum number of rows to return.
        seconds: Time limit.
    """
    bound = dict(parameters) if isinstance(parameters, Mapping) else tuple(parameters)
    with _opened(database, seconds) as connection, closing(connection.execute(sql, bound)) as cursor:
        columns = _distinct([column[0] for column in cursor.description or ()])
        found = cursor.fetchmany(max_rows + 1)
    rows = [dict(zip(columns, map(_shown, row), strict=True)) for row in found[:max_rows]]
    return {"columns": columns, "rows": rows, "truncated": len(found) > max_rows}


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=70)
@aliases(count_rows="countRows")
def tables(*, database: str, count_rows: bool = False, seconds: Seconds = 10.0) -> list[TableInfo]:
    """List the tables and views of a database, with their columns, foreign keys and indexes.

    Args:
        database: Database file, inside the working directory.
        count_rows: Whether to count the rows of each table, which is slow for large tables.
        seconds: Time limit.
    """
    with _opened(database, seconds) as connection:
        return [
            _table(connection, name, kind, sql, count_rows=count_rows)
            for name, kind, sql in connection.execute(
                "SELECT name, CASE WHEN sql LIKE 'CREATE VIRTUAL%' THEN 'virtual' ELSE type END, sql FROM sqlite_master"
                " WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite^_%' ESCAPE '^' ORDER BY name"
            ).fetchall()
        ]


def _table(
    connection: sqlite3.Connection,
    name: str,
    kind: Literal["table", "view", "virtual"],
    sql: str | None,
    *,
    count_rows: bool,
) -> TableInfo:
    table: TableInfo = {"name": name, "kind": kind, "columns": [], "references": [], "indexes": [], "sql": sql}
    try:
        table["columns"] = [
            {"name": column, "type": type_, "not_null": bool(not_null), "default": default, "primary_key": key}
            for _, column, type_, not_null, default, key, hidden in connection.execute(
                f"PRAGMA table_xinfo({_quoted(name)})"
            )
            if hidden != _INTERNAL
        ]
        keys: dict[int, Reference] = {}
        for number, _, target, source, to, *_ in connection.execute(f"PRAGMA foreign_key_list({_quoted(name)})"):
            key = keys.setdefault(number, {"columns": [], "table": target, "to": []})
            key["columns"].append(source)
            key["to"] += [to] if to else []
        table["references"] = [keys[number] for number in sorted(keys)]
        table["indexes"] = [row[1] for row in connection.execute(f"PRAGMA index_list({_quoted(name)})")]
        if count_rows:
            counted = connection.execute(f"SELECT count(*) FROM {_quoted(name)}")  # noqa: S608 - quoted
            table["rows"] = counted.fetchone()[0]
    except sqlite3.Error as error:
        if _was_interrupted(error):
            raise
        table["error"] = str(error)
    return table


class _Files(NamedTuple):
    """The files of a database, by device and inode."""

    main: _Identity
    log: _Identity | None
    """The write-ahead log."""
    shared: _Identity | None
    """Index of the log, shared by all connections."""
    has_log_format: bool
    """Whether changes are written to a log first."""


@contextmanager
def _opened(database: str, seconds: float) -> Iterator[sqlite3.Connection]:
    """Open a database read-only, for a limited time."""
    with TemporaryDirectory(prefix="pegboard-sqlite-") as scratch:
        connection = _connected(resolve(database), database, Path(scratch), seconds)
        deadline = time.monotonic() + seconds
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            connection.set_authorizer(_only_looking)
            connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            yield connection
        # Raised by Python's module itself: a second statement, a number that is too large, a lone surrogate.
        except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
            raise _failure(error, database, seconds) from None
        finally:
            connection.close()


def _connected(place: ResolvedPath, database: str, scratch: Path, seconds: float) -> sqlite3.Connection:
    """Open a database, and check by inode that SQLite opened the files that are inside the roots.

    SQLite opens files only by path, and another process may swap in a link at any time. A connection keeps the files
    that it has opened, so once they are checked no other file is read.

    Raises:
        ToolFailed: The database is missing, or was replaced repeatedly.
    """
    for _ in range(_ATTEMPTS):
        with explained(database):
            files = _files(place, database)
        before = _open_files()
        # Without its index, no process has the log open. SQLite may reuse a file that this process already has open,
        # which looks like a file that was swapped in.
        if (files.log and not files.shared) or files.main in before.values():
            return _started(_copied(place, database, scratch), "mode=ro", database, seconds)
        # Opening a log without a writer in the usual way would create files beside the database, and leave them.
        is_at_rest = files.has_log_format and not files.log
        try:
            options = "mode=ro&immutable=1" if is_at_rest else "mode=ro&readonly_shm=1"
            connection = _started(place.path, options, database, seconds)
        except ToolFailed as failed:
            with explained(database):
                if _files(place, database) == files:
                    raise failed from None
            continue
        new = {identity for file, identity in _open_files().items() if before.get(file) != identity}
        if files.main in new and new <= {files.main, files.log, files.shared}:
            return connection
        connection.close()
    raise ToolFailed(f"{database} was not read because it was replaced while it was opened.", code="unreadable")


def _started(path: str, options: str, database: str, seconds: float) -> sqlite3.Connection:
    """Connect to a database and start a read transaction, which opens all of its files.

    Args:
        path: Path of the database.
        options: Options of SQLite's URI.
        database: The path for messages.
        seconds: How long to wait at most while another process locks the database.

    Raises:
        ToolFailed: It is locked, damaged, or no database.
    """
    uri = f"file:{quote(os.fsencode(path))}?{options}"
    try:
        connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, timeout=min(seconds, _LONGEST_WAIT)
        )
    except sqlite3.Error as error:
        raise _failure(error, database, seconds) from None
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except sqlite3.Error as error:
        connection.close()
        raise _failure(error, database, seconds) from None
    return connection


def _copied(place: ResolvedPath, database: str, scratch: Path) -> str:
    """Copy a database and its log; return the path of the copy."""
    copy = scratch / "copy.db"
    for suffix in ("", "-wal"):
        part = ResolvedPath(place.root, (*place.parts[:-1], place.parts[-1] + suffix))
        with (
            explained(database),
            suppress(*([FileNotFoundError] if suffix else [])),
            opened_file(part, database) as source,
            Path(f"{copy}{suffix}").open("wb") as target,
        ):
            while chunk := os.read(source, _CHUNK):
                target.write(chunk)
    return str(copy)


def _files(place: ResolvedPath, database: str) -> _Files:
    with opened_file(place, database) as file:
        status = os.fstat(file)
        has_log_format = os.pread(file, 2, 18) == b"\2\2"
    with opened(place.root, place.parts[:-1], PASSAGE) as folder:
        log, shared = (_identity_of(place.parts[-1] + suffix, folder) for suffix in ("-wal", "-shm"))
    return _Files((status.st_dev, status.st_ino), log, shared, has_log_format)


def _identity_of(name: str, folder: int) -> _Identity | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _open_files() -> dict[int, _Identity]:
    """Return the regular files that this process has open, by descriptor."""
    found: dict[int, _Identity] = {}
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - only names are needed
        with suppress(OSError):  # the descriptor of the listing itself
            status = os.fstat(int(name))
            if stat.S_ISREG(status.st_mode):
                found[int(name)] = status.st_dev, status.st_ino
    return found


def _only_looking(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action == sqlite3.SQLITE_PRAGMA:
        name = (first or "").lower()
        allowed = name in _PRAGMAS and (second is None or name in _TAKE_A_NAME)
    elif action == sqlite3.SQLITE_FUNCTION:
        allowed = second not in {"load_extension", "fts3_tokenizer"}
    elif action == sqlite3.SQLITE_UPDATE:
        # SQLite requests this to set up a table-valued function, whose table can't be changed anyway.
        allowed = first == "sqlite_master"
    elif action in {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_DELETE}:
        # An R*Tree prepares statements that change its own tables when it is opened. The connection can't run them.
        allowed = (first or "").endswith(_PARTS_OF_R_TREES)
    else:
        allowed = action in _LOOKING
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _failure(error: Exception, database: str, seconds: float) -> ToolFailed:
    if _was_interrupted(error):
        return ToolFailed(f"The query was stopped because it took longer than {seconds:g} s.", code="too_slow")
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_NOTADB:
        return ToolFailed(f"{database} is not a SQLite database.", code="not_a_database")
    if code == sqlite3.SQLITE_READONLY_ROLLBACK:
        message = (
            f"{database} was not read because a change of it was interrupted, and must be undone first. Open it once "
            "with a program that may write to it, such as `sqlite3`, then retry."
        )
        return ToolFailed(message, code="interrupted")
    if code == sqlite3.SQLITE_BUSY:
        return ToolFailed(f"{database} was not read because another process is changing it. Retry.", code="locked")
    if code in {sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY} or "within a transaction" in str(error):
        return ToolFailed(f"Only read-only queries are allowed: {error}.", code="read_only")
    return ToolFailed(f"SQLite: {error}.", code="sql_failed")


def _was_interrupted(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _distinct(names: Sequence[str]) -> list[str]:
    distinct: dict[str, None] = {}
    for name in names:
        free, count = name, 1
        while free in distinct:
            count += 1
            free = f"{name}_{count}"
        distinct[free] = None
    return list(distinct)


def _shown(value: Any) -> Any:  # noqa: ANN401 - see above
    """Return a JSON value for a value of SQLite."""
    if not isinstance(value, bytes):
        return value
    more = f"… ({len(value)} bytes)" if len(value) > _SHOWN_BYTES else ""
    return f"x'{value[:_SHOWN_BYTES].hex()}'{more}"
