"""Sessions: saved conversations."""

from __future__ import annotations

from typing import Literal

from pegboard.errors import SessionError
from pegboard.history import Sessions


class KeptSessions(Sessions):
    """The sessions in the history, and their export; every method blocks."""

    def export(self, session: str, kind: Literal["markdown", "json"]) -> str:
        """Return a session with all messages as text for a file; read the disk.

        Raises:
            SessionError: The session doesn't exist.
            StoreError: The database can't be read.
        """
        from pegboard.ask.export import as_json, as_markdown

        known = self.get(session)
        if known is None:
            raise SessionError(f"Session {session!r} doesn't exist.")
        entries = self.entries(session)
        return as_markdown(known, entries) if kind == "markdown" else as_json(known, entries)
