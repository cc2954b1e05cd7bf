"""What is left in the folder of results by processes that were killed."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

_LEFT_AFTER = 7 * 86_400.0
"""Seconds without a change after which nobody can be about to finish a file, or to record the call that it is of."""
_LOOKED_AT = 20_000
"""Files that one sweep looks at, at most."""
_WHOLE = re.compile(r"[A-Za-z0-9_-]{1,100}\.json\Z")
_UNFINISHED = re.compile(r"[A-Za-z0-9_-]{1,100}\.json\.[0-9]+\Z|\.[A-Za-z0-9_-]{1,100}\.json\.[A-Za-z0-9_]{8}\Z")
"""What a worker writes before it renames it, and what the history does."""


def unfinished(folder: Path) -> list[str]:
    """Gives the names of result files in a folder whose writers didn't come to their end.

    Raises:
        OSError: The folder can't be read.
    """
    return [name for name in _old(folder) if _UNFINISHED.match(name)]


def whole(folder: Path) -> list[str]:
    """Gives the names of result files in a folder that are old enough to have been recorded long ago.

    Raises:
        OSError: The folder can't be read.
    """
    return [name for name in _old(folder) if _WHOLE.match(name)]


def _old(folder: Path) -> Iterator[str]:
    now = time.time()
    with os.scandir(folder) as entries:
        for entry in islice(entries, _LOOKED_AT):
            status = entry.stat(follow_symlinks=False)
            if now - status.st_mtime > _LEFT_AFTER and entry.is_file(follow_symlinks=False):
                yield entry.name
