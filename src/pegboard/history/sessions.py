"""Conversations in the history database, with messages in order."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from pegboard.data.unicode import beginning, encodable
from pegboard.errors import SessionError
from pegboard.history.history import History
from pegboard.models.conversation import Message, ModelMessage, UserMessage
from pegboard.models.session import Session, SessionEntry
from pegboard.storage import make_folder, open_lock

if TYPE_CHECKING:
    from pegboard.history.database import Database
    from pegboard.history.rows import Column

LONGEST_NAME: Final = 200
"""Maximum length of a session's name and id, in characters."""
_NAME_WORDS: Final = 60
"""Length of the excerpt of the first message that names a new session, in characters."""
_COLUMNS: Final = (
    "id, name, created, changed, (SELECT count(*) FROM messages WHERE session = sessions.id), model, system"
)
_UNREADABLE: Final = (TypeError, ValueError, OverflowError, ValidationError)

_MESSAGE: Final[TypeAdapter[Message]] = TypeAdapter(Message, config=ConfigDict(defer_build=True))

Run: TypeAlias = "Callable[[str, Sequence[Column]], Sequence[tuple[Column, ...]]]"
_Answer = TypeVar("_Answer")


class Sessions:
    """All conversations of the user; safe to use from several threads and processes.

    Every method blocks on the disk and on other writing processes.

    Args:
        history: History whose database holds the sessions.
        locks: Folder of the lock files of sessions in use. It is created when needed.
    """

    def __init__(self, history: History, locks: Path) -> None:
        self._history = history
        self._locks = locks

    # Read

    def list(self, search: str = "", *, limit: int = 1000) -> tuple[Session, ...]:
        """Return sessions, most recently changed first.

        Args:
            search: Text to find in names and messages, ignoring case.
            limit: Maximum number of sessions.

        Raises:
            StoreError: The database can't be read.
        """
        found = (
            "WHERE instr(folded(name), ?) OR id IN (SELECT session FROM messages WHERE instr(folded(text), ?))"
            if search
            else ""
        )
        wanted = [encodable(search.casefold())] * 2 if search else []
        query = f"SELECT {_COLUMNS} FROM sessions {found} ORDER BY changed DESC, rowid DESC LIMIT ?"  # noqa: S608 - our own text
        rows = self._history.act(lambda database: database.select(query, [*wanted, limit]))
        return tuple(map(_session_of, rows))

    def get(self, session: str) -> Session | None:
        """Return a session without its messages, or None if the id is unknown.

        Raises:
            StoreError: The database can't be read.
        """
        query = f"SELECT {_COLUMNS} FROM sessions WHERE id = ?"  # noqa: S608 - our own text
        rows = self._history.act(lambda database: database.select(query, [encodable(session)]))
        return _session_of(rows[0]) if rows else None

    def entries(self, session: str) -> tuple[SessionEntry, ...]:
        """Return the messages of a session in order, without damaged ones; empty if the id is unknown.

        Raises:
            StoreError: The database can't be read.
        """
        query = "SELECT position, at, message, call FROM messages WHERE session = ? ORDER BY position"
        rows = self._history.act(lambda database: database.select(query, [encodable(session)]))
        return tuple(_entries_of(rows))

    def version(self) -> int:
        """Return a number that changes when another process changes the history.

        Raises:
            StoreError: The database can't be read.
        """
        [(version,)] = self._history.act(lambda database: database.select("PRAGMA data_version"))
        return int(version or 0)

    # Write

    def start(self, session: str, *, model: str = "", system: str | None = None) -> None:
        """Create a session, or update the model and system prompt of an existing one.

        Args:
            session: Session id, 1 to 200 printable characters.
            model: Model that will answer.
            system: System prompt, or None to keep the current one.

        Raises:
            SessionError: The id is invalid.
            StoreError: It can't be written.
        """
        if not session.strip() or not session.isprintable() or len(session) > LONGEST_NAME:
            raise SessionError(f"The session was not created: an id has 1 to {LONGEST_NAME} printable characters.")
        now = _now()
        self._change(
            "INSERT INTO sessions (id, name, created, changed, model, system) VALUES (?, '', ?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET model = excluded.model, system = coalesce(excluded.system, system)",
            [encodable(session), now, now, encodable(model), None if system is None else encodable(system)],
        )

    def append(self, session: str, message: Message, call: str | None = None) -> SessionEntry:
        """Add a message to an existing session.

        Args:
            session: Session id.
            message: Message to add.
            call: Call id, if the message is the result of a tool call.

        Raises:
            SessionError: The session was deleted in the meantime.
            StoreError: It can't be written.
        """
        from pegboard.history.rows import json_of, moment

        now, key = _now(), encodable(session)
        text = _text_of(message)
        content = json_of(message.model_dump(mode="json", by_alias=False))

        def add(run: Run) -> int:
            if not _changed(run, "UPDATE sessions SET changed = ? WHERE id = ?", [now, key]):
                raise SessionError(f"Session {session!r} was deleted.")
            [(last,)] = run("SELECT coalesce(max(position), -1) FROM messages WHERE session = ?", [key])
            position = int(last or 0) + 1
            run(
                "INSERT INTO messages (session, position, at, message, text, call) VALUES (?, ?, ?, ?, ?, ?)",
                [key, position, now, content, encodable(text), call],
            )
            if isinstance(message, UserMessage):
                name = encodable(_beginning(message.text))
                run("UPDATE sessions SET name = ? WHERE id = ? AND name = ''", [name, key])
            return position

        return SessionEntry(position=self._transact(add), at=moment(now), message=message, call=call)

    def rename(self, session: str, name: str) -> None:
        """Rename a session.

        Raises:
            SessionError: The session does not exist, or the name is invalid.
            StoreError: It can't be written.
        """
        name = name.strip()
        if not name or not (name.isprintable() or _is_shown(name)) or len(name) > LONGEST_NAME:
            raise SessionError(f"The session was not renamed: a name has 1 to {LONGEST_NAME} printable characters.")
        statement = "UPDATE sessions SET name = ? WHERE id = ?"
        if not self._change(statement, [encodable(name), encodable(session)], in_file=True):
            raise SessionError(f"Session {session!r} doesn't exist.")

    def delete(self, session: str) -> None:
        """Delete a session and its messages. The records of its calls are kept, and those of its turns without text.

        Raises:
            SessionError: The session does not exist, or is in use.
            StoreError: It can't be written.
        """
        key = encodable(session)
        with self.held(session) as free:
            if not free:
                raise SessionError(f"The session {session!r} is in use. Try again when its run has ended.")

            def drop(run: Run) -> bool:
                run("DELETE FROM messages WHERE session = ?", [key])
                _forget_texts(run, key, 0)
                return _changed(run, "DELETE FROM sessions WHERE id = ?", [key])

            if not self._transact(drop, in_file=True):
                raise SessionError(f"Session {session!r} doesn't exist.")

    def branch(self, session: str, new: str, before: int) -> None:
        """Copy the beginning of a session to a new one.

        Args:
            session: Session to copy; it is not changed.
            new: Id of the new session.
            before: Position of the first message to leave out.

        Raises:
            SessionError: The session does not exist, or the new id is in use.
            StoreError: It can't be written.
        """
        old, key, now = encodable(session), encodable(new), _now()

        def copy(run: Run) -> None:
            if run("SELECT id FROM sessions WHERE id = ?", [key]):
                raise SessionError(f"Session {new!r} already exists.")
            if not _changed(
                run,
                "INSERT INTO sessions (id, name, created, changed, model, system)"
                " SELECT ?, name, ?, ?, model, system FROM sessions WHERE id = ?",
                [key, now, now, old],
            ):
                raise SessionError(f"Session {session!r} doesn't exist.")
            run(
                "INSERT INTO messages (session, position, at, message, text, call)"
                " SELECT ?, position, at, message, text, call FROM messages WHERE session = ? AND position < ?",
                [key, old, before],
            )

        self._transact(copy)

    def cut(self, session: str, before: int) -> None:
        """Delete the end of a session. The records of its calls are kept, and those of its turns without text.

        Args:
            session: Session id.
            before: Position of the first message to delete.

        Raises:
            SessionError: The session does not exist, or is in use.
            StoreError: It can't be written.
        """
        key = encodable(session)
        with self.held(session) as free:
            if not free:
                raise SessionError(f"The session {session!r} is in use. Try again when its run has ended.")

            def drop(run: Run) -> bool:
                run("DELETE FROM messages WHERE session = ? AND position >= ?", [key, before])
                _forget_texts(run, key, before)
                return _changed(run, "UPDATE sessions SET changed = ? WHERE id = ?", [_now(), key])

            if not self._transact(drop):
                raise SessionError(f"Session {session!r} doesn't exist.")

    @contextmanager
    def held(self, session: str) -> Iterator[bool]:
        """Lock a session against other threads and processes; yield False if it is locked already.

        The lock ends with the process. If no lock file can be created, yield True.
        """
        file = self._locks / f"{sha256(session.encode('utf-8', 'replace')).hexdigest()[:32]}.lock"
        try:
            make_folder(self._locks)
            descriptor = _locked(file)
        except BlockingIOError:
            yield False
            return
        except OSError:
            yield True
            return
        try:
            yield True
        finally:
            with suppress(OSError):
                file.unlink(missing_ok=True)
            with suppress(OSError):
                os.close(descriptor)

    def _change(self, statement: str, values: Sequence[Column], *, in_file: bool = False) -> bool:
        return self._transact(lambda run: _changed(run, statement, values), in_file=in_file)

    def _transact(self, act: Callable[[Run], _Answer], *, in_file: bool = False) -> _Answer:
        def within(database: Database) -> _Answer:
            if in_file:
                database.require_file()
            with database.transaction() as run:
                return act(run)

        return self._history.act(within, says=not in_file)


def _locked(file: Path) -> int:
    """Lock a file, which the last one to hold the lock deletes; return its descriptor.

    Raises:
        BlockingIOError: It is locked already.
        OSError: It can't be created.
    """
    while True:
        descriptor = open_lock(file)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:  # otherwise it was deleted after it was opened
                return descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _changed(run: Run, statement: str, values: Sequence[Column]) -> bool:
    """Run a statement; return whether it changed a row."""
    run(statement, values)
    [(count,)] = run("SELECT changes()", [])
    return bool(count)


def _forget_texts(run: Run, session: str, before: int) -> None:
    """Remove the texts of deleted messages from the records of their turns."""
    from pegboard.history.schema import EDITED

    position = "CASE WHEN json_valid(args) THEN json_extract(args, '$.message') END"
    without = "CASE WHEN json_valid(args) THEN json_remove(args, '$.text', '$.message') ELSE '{}' END"
    if _changed(
        run,
        f"UPDATE calls SET args = {without} WHERE session = ? AND turn = id AND coalesce({position}, ?) >= ?",  # noqa: S608 - our own text
        [session, before, before],
    ):
        run(EDITED, [])


def _text_of(message: Message) -> str:
    """Return the searchable text of a message, including proposed calls."""
    if isinstance(message, ModelMessage):
        return "\n".join([message.text, *(f"{call.name} {call.arguments}" for call in message.calls)])
    return message.text


def _is_shown(text: str) -> bool:
    """Return whether a text is shown as it is, in one line; `str.isprintable` rejects wide spaces and joined emoji."""
    from pegboard.results.clean import clean_line

    return clean_line(text) == text == encodable(text)


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    line = "".join(sign for sign in line if sign.isprintable())
    return beginning(line, _NAME_WORDS)


def _now() -> int:
    from pegboard.history.rows import microseconds

    return microseconds(datetime.now(UTC))


def _session_of(row: tuple[Column, ...]) -> Session:
    from pegboard.history.rows import moment

    id_, name, created, changed, messages, model, system = row
    return Session(
        id=str(id_),
        name=str(name),
        created=moment(created),
        changed=moment(changed),
        messages=int(messages or 0),
        model=str(model or ""),
        system=None if system is None else str(system),
    )


def _entries_of(rows: Sequence[tuple[Column, ...]]) -> Iterator[SessionEntry]:
    from pegboard.history.rows import moment

    for position, at, message, call in rows:
        with suppress(*_UNREADABLE):
            yield SessionEntry(
                position=int(position or 0),
                at=moment(at),
                message=_MESSAGE.validate_json(str(message)),
                call=None if call is None else str(call),
            )
