"""Processes that show pending calls to a person: each holds a lock on a file, which its end releases."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from pegboard import storage


class Presence:
    """Announcement of this process, from its construction to `close`.

    Args:
        folder: Folder of the files.
        kind: What shows the calls, such as `app`.

    Raises:
        OSError: The file can't be written.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        storage.make_folder(folder)
        storage.tighten(folder)
        self._file = folder / f"{os.getpid()}-{os.urandom(4).hex()}.open"
        draft = folder / f".{self._file.name}"
        self._descriptor = storage.open_lock(draft)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        about = {"pid": os.getpid(), "kind": kind, "started": datetime.now(UTC).isoformat(timespec="seconds")}
        os.write(self._descriptor, json.dumps(about).encode())
        draft.rename(self._file)  # Locked first: without a lock, it would look like the file of a killed process.

    def close(self) -> None:
        """Withdraw the announcement."""
        if self._descriptor >= 0:
            self._file.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def is_anyone_present(folder: Path) -> bool:
    """Return whether a process that shows pending calls runs; remove the files of those that were killed."""
    try:
        files = [name for name in os.listdir(folder) if name.endswith(".open")]  # noqa: PTH208 - names suffice
    except OSError:
        return False
    for name in files:
        with suppress(OSError):
            descriptor = os.open(folder / name, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            else:
                (folder / name).unlink(missing_ok=True)
            finally:
                os.close(descriptor)
    return False
