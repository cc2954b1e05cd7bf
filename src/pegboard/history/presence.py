"""Lock files that show which processes with running calls are alive.

The system releases a lock when its process ends, however it ends. Unlike process ids, locks are never reused and work
across containers that share the folder.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.history.schema import RUNNING
from pegboard.storage import make_folder, open_lock

if TYPE_CHECKING:
    from pegboard.history.database import Database


class HistoryLock:
    """Lock file of one history that is in use; created when it is first needed.

    Args:
        folder: Folder of the lock files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self._token: str | None = None

    def token(self) -> str | None:
        """Return the name that others pass to `is_alive`, or None if no lock file can be created."""
        if self._token is None:
            token = f"{os.getpid()}-{os.urandom(8).hex()}"
            draft = self._folder / f".{token}"
            try:
                make_folder(self._folder)
                descriptor = open_lock(draft)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                draft.rename(self._folder / token)  # others never find it unlocked
            except OSError:
                return None
            self._descriptor, self._token = descriptor, token
        return self._token

    def end(self) -> None:
        """Release and delete the lock file."""
        if self._token is not None and self._descriptor is not None:
            with suppress(OSError):
                (self._folder / self._token).unlink(missing_ok=True)
            with suppress(OSError):
                os.close(self._descriptor)
        self._descriptor = self._token = None

    def sweep(self) -> None:
        """Delete the lock files of processes that were killed; never raise."""
        with suppress(OSError):
            for name in os.listdir(self._folder):  # noqa: PTH208 - names suffice
                if not name.startswith("."):  # a draft, which isn't locked yet
                    is_alive(self._folder, name)

    def mark_interrupted(self, database: Database) -> int:
        """Mark the calls of processes that ended without finishing them; return their number."""
        running = [
            str(process or "")
            for (process,) in database.select(
                f"SELECT DISTINCT CAST(process AS TEXT) FROM calls WHERE status = {RUNNING}"  # noqa: S608 - our own number
            )
        ]
        return database.interrupt(
            [process for process in running if not process or not is_alive(self._folder, process)]
        )


def is_alive(folder: Path, token: str) -> bool:
    """Return whether the process with this token runs; delete the lock file of one that has ended."""
    file = folder / Path(token).name
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        file.unlink(missing_ok=True)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
