"""Lock of one login while its token is refreshed, across processes."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

_ATTEMPTS: Final = 200
_PAUSE_SECONDS: Final = 0.05


@asynccontextmanager
async def refreshing(file: Path) -> AsyncGenerator[None]:
    """Hold the lock of a login: most servers accept a refresh token once, and some end the login if it comes twice.

    A process that holds the lock for too long, or a folder that can't be written, doesn't prevent a refresh.

    Args:
        file: The file that is locked; it is created with its folder if necessary.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        for _ in range(_ATTEMPTS):
            if _lock(descriptor):
                break
            await asyncio.sleep(_PAUSE_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system has no locks
        return True
    return True
