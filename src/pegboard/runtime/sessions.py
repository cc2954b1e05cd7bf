"""Sessions: conversations that are kept."""

from __future__ import annotations

from typing import Literal

from pegboard.errors import SessionError
from pegboard.history import Sessions


class KeptSessions(Sessions):
    """The sessions in the history, and their export; every method blocks."""

    def export(self, session: str, kind: Literal["markdown", "json"]) -> str:
        """Gives a session with all that was said as a text for a file; reads the disk.

        Raises:
            SessionError: There is no such session.
            StoreError: The database can't be read.
        """
        from pegboard.ask.export import as_json, as_markdown

        known = self.get(session)
        if known is None:
            raise SessionError(f"There is no session {session!r}.")
        entries = self.entries(session)
        return as_markdown(known, entries) if kind == "markdown" else as_json(known, entries)
