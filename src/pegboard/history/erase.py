"""Removal of a value from the history database, including its index, its log and its free pages."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from pegboard.errors import StoreError
from pegboard.history.history import History
from pegboard.history.notify import notify
from pegboard.history.reader import Reader
from pegboard.history.schema import EDITED, RUNNING

if TYPE_CHECKING:
    from pegboard.history.database import Database
    from pegboard.history.rows import Column

_JSON: Final = {"calls": ("args", "error", "meta", "data"), "messages": ("message",), "sessions": (), "turns": ()}
_TEXT: Final = {
    "calls": ("tool", "agent", "excerpt"),
    "messages": ("text",),
    "sessions": ("name", "system"),
    "turns": ("model", "text"),
}
_SESSION: Final = {"calls": "session", "messages": "session", "sessions": "id", "turns": "session"}
"""Columns with the id of a session, which may be a text of the user."""
_RUNNING: Final = (
    "Calls or model turns that still run ({:,}) may record the value when they end. Redact it again after that."
)
_AT_ONCE: Final = 200
_SOUGHT_AT_ONCE: Final = 100
"""Number of forms in one query. SQLite allows 1,000 conditions in a row, and there is one per form and column."""
_WAIT_SECONDS: Final = 10.0
"""Time to wait for other processes that read an old state of the database."""


@dataclass(frozen=True)
class Replacement:
    """Replacement of a value in texts and JSON.

    Attributes:
        forms: Every form in which the value may be written.
        text: Returns a text without the value.
        value: Returns a JSON value without the value; the same object if it has none.
    """

    forms: Sequence[str]
    text: Callable[[str], str]
    value: Callable[[JsonValue], JsonValue]


def erase(history: History, replacement: Replacement) -> tuple[dict[str, int], tuple[str, ...]]:
    """Replace a value everywhere in the database; block.

    Returns:
        The number of changed rows by table, where turns count as such, and what could not be done.

    Raises:
        StoreError: The database can't be read or written.
    """
    changed = dict.fromkeys(_JSON, 0)
    if problems := _unwritable(history):
        return changed, problems
    reader = Reader(history)
    running = 0
    sessions: dict[str, str] = {}
    try:
        running = _count_running(reader)
        for table in _JSON:
            for rows in _batches(reader, table, replacement):
                replace = partial(_replace, table=table, rows=rows, replacement=replacement, sessions=sessions)
                for kind in history.act(replace):
                    changed[kind] += 1
        history.act(_forget_unused_tools)
        running = max(running, _count_running(reader))
    finally:
        reader.close()
    problems = _compact(history)
    notify(history.bells)
    return changed, (*problems, _RUNNING.format(running)) if running else problems


def _unwritable(history: History) -> tuple[str, ...]:
    """Return the problem that only a copy of the database can be changed, if so."""
    why = history.act(lambda database: database.why)
    if why is None:
        return ()
    try:
        history.file.stat()
    except FileNotFoundError:
        return ()
    except OSError as error:
        why = error
    reason = getattr(why, "strerror", None) or why
    return (f"{history.file} may still contain the value because it can't be changed: {reason}.",)


def _count_running(reader: Reader) -> int:
    """Return how many calls and turns still run, whose processes write them again at their end."""
    [(number,)] = reader.select(f"SELECT count(*) FROM calls WHERE status = {RUNNING}")  # noqa: S608 - our own number
    return int(number or 0)


def _batches(reader: Reader, table: str, replacement: Replacement) -> Iterator[list[Column]]:
    """Yield the numbers of the rows that may contain the value."""
    columns = (*_JSON[table], *_TEXT[table], _SESSION[table])
    found: dict[Column, None] = {}
    for first in range(0, len(replacement.forms), _SOUGHT_AT_ONCE):
        forms = replacement.forms[first : first + _SOUGHT_AT_ONCE]
        wanted = " OR ".join(f"instr({column}, ?{index + 1})" for column in columns for index in range(len(forms)))
        statement = f"SELECT rowid FROM {table} WHERE {wanted}"  # noqa: S608 - our own names
        found |= dict.fromkeys(row for (row,) in reader.select(statement, list(forms)))
    rows = [*found]
    for start in range(0, len(rows), _AT_ONCE):
        yield rows[start : start + _AT_ONCE]


def _replace(
    database: Database, table: str, rows: Sequence[Column], replacement: Replacement, sessions: dict[str, str]
) -> list[str]:
    """Replace a value in rows; return the kind of each row that was changed.

    Args:
        database: The database.
        table: The table.
        rows: Numbers of the rows.
        replacement: The replacement of the value.
        sessions: New ids of sessions; those of further sessions are added.
    """
    names = (*_JSON[table], *_TEXT[table], _SESSION[table])
    kind = "CASE WHEN turn = id THEN 'turns' ELSE 'calls' END" if table == "calls" else f"'{table}'"
    changed: list[str] = []
    with database.transaction(secure=True) as run:
        for row in rows:
            statement = f"SELECT {kind}, {', '.join(names)} FROM {table} WHERE rowid = ?"  # noqa: S608 - our own names
            [[of, *values], *_] = run(statement, [row]) or [(kind,)]
            kept = [
                _json_without(value, replacement)
                if name in _JSON[table]
                else _session_without(value, replacement, sessions)
                if name == _SESSION[table]
                else _text_without(value, replacement)
                for name, value in zip(names, values, strict=False)
            ]
            if kept != values:
                setting = ", ".join(f"{name} = ?" for name in names)
                run(f"UPDATE {table} SET {setting} WHERE rowid = ?", [*kept, row])  # noqa: S608 - our own names
                changed.append(str(of))
        if changed:
            run(EDITED, [])
    return changed


def _json_without(text: Column, replacement: Replacement) -> Column:
    from pegboard.history.rows import json_of, value_of

    if not isinstance(text, str) or not any(form in text for form in replacement.forms):
        return text
    try:
        value = value_of(text)
        redacted = replacement.value(value)
        return text if redacted is value else json_of(redacted)
    except (ValueError, RecursionError):
        return replacement.text(text)


def _text_without(text: Column, replacement: Replacement) -> Column:
    return replacement.text(text) if isinstance(text, str) else text


def _session_without(session: Column, replacement: Replacement, sessions: dict[str, str]) -> Column:
    """Return the id of a session without the value; different sessions stay different."""
    redacted = _text_without(session, replacement)
    if redacted == session:
        return session
    return sessions.setdefault(str(session), f"{redacted}-{secrets.token_hex(4)}")


def _forget_unused_tools(database: Database) -> None:
    """Remove the counts of tools without a call, whose names may contain the value."""
    with database.transaction(secure=True) as run:
        run("DELETE FROM uses WHERE calls <= 0", [])


def _compact(history: History) -> tuple[str, ...]:
    """Rewrite the database file without its free pages, and empty its log."""
    problems = []
    try:
        history.act(lambda database: database.compact())
    except StoreError as error:
        problems.append(f"The database could not be compacted: {error}. Free pages may still contain the value.")
    end = time.monotonic() + _WAIT_SECONDS
    pause = 0.02
    while not history.act(lambda database: database.empty_log()):
        if time.monotonic() > end:
            problems.append(
                f"{history.file.name}-wal may still contain the value because another process is reading the history."
                " Close it, then redact the value again."
            )
            break
        time.sleep(pause)
        pause = min(pause * 2, 0.5)
    return tuple(problems)
