"""Temporary folder of a process of a cluster, which is deleted however the process ends."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = "pegboard-node-"
_LOCK: Final = ".lock"
_UNLOCKED_SECONDS: Final = 60.0
"""Age after which a folder without a lock counts as left behind: its process has not just created it."""


class NodeFolder:
    """A new folder, locked while its process runs. It also deletes the folders of this user's killed processes."""

    def __init__(self) -> None:
        _sweep(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        unlocked = self.path / f"{_LOCK}.new"  # others delete a folder whose lock they can take
        self._lock = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        unlocked.rename(self.path / _LOCK)
        self._process = os.getpid()
        atexit.register(self.delete)

    def delete(self) -> None:
        """Delete the folder; a forked process leaves it to its parent."""
        if self._process != os.getpid() or self._lock < 0:
            return
        atexit.unregister(self.delete)
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)
        self._lock = -1


def _sweep(parent: Path) -> None:
    """Delete the folders whose processes have ended without doing so."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            status = folder.lstat()
            if status.st_uid == os.getuid() and folder.is_dir() and not folder.is_symlink():
                _delete_unused(folder, time.time() - status.st_mtime)


def _delete_unused(folder: Path, age: float) -> None:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        if age > _UNLOCKED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
