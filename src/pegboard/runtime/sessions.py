"""Sessions: saved conversations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pegboard.errors import SessionError
from pegboard.history import History, Sessions
from pegboard.models.conversation import Message, ModelMessage
from pegboard.models.session import Session, SessionEntry
from pegboard.runtime.redaction import SecretRedaction


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The end of a session as Markdown.

    Attributes:
        text: The text.
        omitted: Number of earlier messages that it leaves out.
        shortened: Number of messages whose text or arguments it cuts.
    """

    text: str
    omitted: int
    shortened: int


class KeptSessions(Sessions):
    """The sessions in the history, without known secrets, and their export; every method blocks.

    Args:
        history: History whose database holds the sessions.
        locks: Folder of the lock files of sessions in use.
        redaction: The known secrets.
    """

    def __init__(self, history: History, locks: Path, redaction: SecretRedaction) -> None:
        super().__init__(history, locks)
        self._redaction = redaction

    def start(self, session: str, *, model: str = "", system: str | None = None) -> None:
        """Create or update a session; known secrets in the system prompt are redacted. See `Sessions.start`."""
        super().start(session, model=model, system=system and self._redacted(system))

    def append(self, session: str, message: Message, call: str | None = None) -> SessionEntry:
        """Add a message without known secrets; see `Sessions.append`."""
        redacted = self._redacted
        changes: dict[str, object] = {"text": redacted(message.text)}
        if isinstance(message, ModelMessage):
            changes["calls"] = tuple(
                one.model_copy(update={"name": redacted(one.name), "arguments": redacted(one.arguments)})
                for one in message.calls
            )
        return super().append(session, message.model_copy(update=changes), call)

    def rename(self, session: str, name: str) -> None:
        """Rename a session; known secrets in the name are redacted. See `Sessions.rename`."""
        super().rename(session, self._redacted(name))

    def _redacted(self, text: str) -> str:
        self._redaction.renew_now()
        return self._redaction.text(text)

    def export(self, session: str, kind: Literal["markdown", "json"]) -> str:
        """Return a session with all messages as text for a file; read the disk.

        Raises:
            SessionError: The session doesn't exist.
            StoreError: The database can't be read.
        """
        from pegboard.ask.export import as_json, as_markdown

        known, entries = self._whole(session)
        return as_markdown(known, entries) if kind == "markdown" else as_json(known, entries)

    def excerpt(self, session: str, messages: int, longest: int) -> Excerpt:
        """Return the last messages of a session as Markdown; read the disk.

        Args:
            session: Id of the session.
            messages: Highest number of messages.
            longest: Highest number of characters of a message or of a call's arguments.

        Raises:
            SessionError: The session doesn't exist.
            StoreError: The database can't be read.
        """
        from pegboard.ask.export import as_markdown, shortened

        known, entries = self._whole(session)
        last = entries[-messages:]
        shown = [shortened(entry, longest) for entry in last]
        cut = sum(one is not other for one, other in zip(shown, last, strict=True))
        return Excerpt(as_markdown(known, shown), len(entries) - len(last), cut)

    def _whole(self, session: str) -> tuple[Session, tuple[SessionEntry, ...]]:
        """Return a session and its messages.

        Raises:
            SessionError: The session doesn't exist.
            StoreError: The database can't be read.
        """
        known = self.get(session)
        if known is None:
            raise SessionError(f"Session {session!r} doesn't exist.")
        return known, self.entries(session)
