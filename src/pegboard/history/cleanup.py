"""Leftover files of killed processes in the results folder."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pegboard.models.call import FILE_STEM

_LEFT_AFTER = 7 * 86_400.0
"""Seconds without a change after which no process can still be writing a file or recording its call."""
_LOOKED_AT = 20_000
"""Maximum number of files one sweep looks at."""
_WHOLE = re.compile(rf"{FILE_STEM}\.json\Z")
_MEDIA = re.compile(rf"(?P<call>{FILE_STEM})-[0-9]{{1,6}}\.[a-z0-9]{{1,5}}\Z")
"""Images, audio and other binary content of MCP servers, numbered within the call."""
_UNFINISHED = re.compile(rf"\.{FILE_STEM}(-[0-9]{{1,6}})?\.[a-z0-9]{{1,5}}\.[A-Za-z0-9_]{{8}}\Z")
"""Drafts of `storage`, which are renamed when a file is complete."""


def unfinished(folder: Path) -> list[str]:
    """Return the names of temporary result files whose writers ended before renaming them.

    Raises:
        OSError: The folder can't be read.
    """
    return [name for name in _old(folder) if _UNFINISHED.match(name)]


def whole(folder: Path) -> list[str]:
    """Return the names of complete result files whose calls must have been recorded by now, if at all.

    Raises:
        OSError: The folder can't be read.
    """
    return [name for name in _old(folder) if _WHOLE.match(name)]


def media(folder: Path) -> list[str]:
    """Return the names of images and other files in results, whose calls must have been recorded by now, if at all.

    Raises:
        OSError: The folder can't be read.
    """
    return [name for name in _old(folder) if _MEDIA.match(name) and not name.endswith(".json")]


def call_of(name: str) -> str:
    """Return the id of the call that a file of `media` belongs to."""
    found = _MEDIA.match(name)
    return found["call"] if found else ""


def _old(folder: Path) -> Iterator[str]:
    now = time.time()
    with os.scandir(folder) as entries:
        for entry in islice(entries, _LOOKED_AT):
            status = entry.stat(follow_symlinks=False)
            if now - status.st_mtime > _LEFT_AFTER and entry.is_file(follow_symlinks=False):
                yield entry.name
