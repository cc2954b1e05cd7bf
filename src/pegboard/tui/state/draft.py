"""Draft file that preserves the text of an editor across sessions. Independent of Textual."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from pegboard import storage

_MOST: Final = 100
"""Limit of processes with their own draft."""


@dataclass(frozen=True)
class Draft:
    """The text of an editor."""

    text: str = ""
    name: str = ""
    """Name of the saved script; empty for a new one, and for a message."""
    saved: str = ""
    """Text of the saved script when it was last read or written."""


class DraftFile:
    """File of a draft. Concurrent processes use different files. All methods block, except `keep`.

    Args:
        folder: Folder of the file.
        stem: Name of the file, without its number and suffix.
    """

    def __init__(self, folder: Path, stem: str) -> None:
        self._folder = folder
        self._stem = stem
        self._file: Path | None = None
        self._lock = -1
        self._writing = Lock()
        self._draft = Draft()

    def read(self) -> Draft:
        """Lock and return the first draft with text that no other process uses, or else an empty one."""
        with suppress(OSError):
            self._lock_file()
        if self._file is not None:
            self._draft = _content(self._file)
        return self._draft

    def keep(self, draft: Draft) -> bool:
        """Set the draft for the next `write`; return whether it differs from the previous one."""
        is_new = draft != self._draft
        self._draft = draft
        return is_new

    def write(self) -> None:
        """Replace the file's content with the newest draft.

        Raises:
            OSError: The file can't be written.
        """
        if self._file is None:
            return
        with self._writing:
            storage.write(self._file, json.dumps(vars(self._draft)).encode())

    def close(self) -> None:
        """Unlock the draft."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _lock_file(self) -> None:
        storage.make_folder(self._folder)
        names = [self._stem, *(f"{self._stem}-{number}" for number in range(2, _MOST + 1))]
        # A text of an app that ran beside others would stay hidden if only one app runs from now on.
        for name in sorted(names, key=lambda name: not _content(self._folder / f"{name}.json").text):
            lock = storage.open_lock(self._folder / f"{name}.lock")
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._lock, self._file = lock, self._folder / f"{name}.json"
                return
            os.close(lock)


def _content(file: Path) -> Draft:
    """Return the draft in a file; an empty one if it is missing or unreadable."""
    try:
        found = json.loads(file.read_bytes())
        return Draft(str(found["text"]), str(found["name"]), str(found["saved"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Draft()
