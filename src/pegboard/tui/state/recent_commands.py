"""The commands that were run last from the palette."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pegboard import storage

_RECENT = 8
"""Most commands that are remembered."""


class RecentCommands:
    """Ids of the commands that were run last, kept in a file.

    Args:
        file: The file.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._ids: Sequence[str] | None = None

    def read(self) -> Sequence[str]:
        """Return the ids, the last one first."""
        if self._ids is None:
            try:
                self._ids = self._file.read_text("utf-8").split()[:_RECENT]
            except (OSError, UnicodeDecodeError):
                self._ids = ()
        return self._ids

    def add(self, command_id: str) -> None:
        """Put a command first."""
        self._ids = [command_id, *(one for one in self.read() if one != command_id)][:_RECENT]
        with suppress(OSError):  # the order of the palette is only a convenience
            storage.make_folder(self._file.parent)
            storage.write(self._file, "\n".join(self._ids).encode(), durable=False)
