"""What is in the editor, kept in a file so that nothing typed is lost. Knows nothing of Textual."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Final

from pegboard import storage

_MOST: Final = 100
"""Processes that may each have a draft of their own."""


@dataclass(frozen=True)
class Draft:
    """A script as it is being written."""

    text: str = ""
    name: str = ""
    """That of the saved script which it came from or went to; empty for a new one."""
    saved: str = ""
    """The text of that script when it was last read or written."""


class DraftFile:
    """The file of a draft; a second process that runs at the same time gets another one.

    All that it does blocks.

    Args:
        folder: Where it is.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: Path | None = None
        self._lock = -1
        self._writing = Lock()
        self._draft = Draft()

    def read(self) -> Draft:
        """Takes the first draft that no other process has, and gives it; an empty one where it can't be read."""
        try:
            self._take()
            if self._file is None:
                return self._draft
            found = json.loads(self._file.read_bytes())
            self._draft = Draft(str(found["text"]), str(found["name"]), str(found["saved"]))
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return self._draft

    def keep(self, draft: Draft) -> bool:
        """Takes what the next `write` is to keep, at once; gives whether that is anything new."""
        is_new = draft != self._draft
        self._draft = draft
        return is_new

    def write(self) -> None:
        """Puts the newest draft into the file, in the place of the one before.

        Raises:
            OSError: It can't be written.
        """
        if self._file is None:
            return
        with self._writing:
            storage.write(self._file, json.dumps(vars(self._draft)).encode())

    def close(self) -> None:
        """Lets another process have the draft."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _take(self) -> None:
        storage.make_folder(self._folder)
        for number in count(1):
            name = "script-draft" if number == 1 else f"script-draft-{number}"
            lock = storage.open_lock(self._folder / f"{name}.lock")
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._lock, self._file = lock, self._folder / f"{name}.json"
                return
            os.close(lock)
            if number == _MOST:
                return
