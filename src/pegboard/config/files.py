"""Reading the small text files that users write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pegboard.models import Problem

LONGEST_FILE = 10_000_000
"""Bytes; whatever is longer was not written as settings."""

UNUSED = "Nothing of this file is used."
"""What follows from a file that can't be read."""


def read_text(file: Path) -> str | Problem:
    """Reads a file as UTF-8; a missing one counts as empty, and what makes another unusable is given as a problem."""
    raw = b""
    try:
        # Opening a FIFO would wait for its writer for ever, and some devices never end.
        if not stat.S_ISREG(file.stat().st_mode) and not file.samefile(os.devnull):
            return unusable(file, "This is no regular file.")
        with file.open("rb") as opened:
            raw = opened.read(LONGEST_FILE + 1)
        if len(raw) > LONGEST_FILE:
            return unusable(file, f"This file is longer than {LONGEST_FILE:,} bytes.")
        return raw.decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except OSError as error:
        return unusable(file, f"This file can't be read: {error.strerror or error}.")
    except UnicodeDecodeError as error:
        return unusable(file, "This file is not UTF-8 text.", raw.count(b"\n", 0, error.start) + 1)


def unusable(file: Path, message: str, line: int | None = None) -> Problem:
    """Builds the problem of a file of which nothing is used."""
    return Problem(message=message, fix=UNUSED, file=shown(file), line=line)


def shown(file: Path | None) -> str:
    """Gives a path as text, also where its bytes are no UTF-8; empty for none."""
    return os.fsencode(file or "").decode("utf-8", "replace")
