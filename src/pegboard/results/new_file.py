"""Texts written to files of their own, which were not there before."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from pegboard import storage

_LONGEST_NAME: Final = 120
"""Bytes; file systems take 255, of which a suffix and a number need some."""


def write_new(folder: Path, name: str, suffix: str, text: str) -> Path:
    """Writes a text to a file that isn't there yet, all of it or nothing, and gives the file.

    Args:
        folder: Where; it must exist.
        name: What the file is for: untrusted text. What a file name shouldn't hold becomes `_`; where the name is
            taken, ` (2)` and so on follows it.
        suffix: Such as `.md`.
        text: What is written, as UTF-8.

    Raises:
        OSError: It can't be written.
    """
    stem, content = _file_name(name), text.encode(errors="backslashreplace")
    for number in count(1):
        file = folder / (f"{stem}{suffix}" if number == 1 else f"{stem} ({number}){suffix}")
        if file.exists():
            continue
        with suppress(FileExistsError):
            storage.write(file, content, replace=False)
            return file
    raise AssertionError("there is always another number")


def _file_name(name: str) -> str:
    safe = "".join(sign if sign.isalnum() or sign in "._- " else "_" for sign in name)
    return safe.encode("utf-8", "replace")[:_LONGEST_NAME].decode("utf-8", "ignore").strip(". ") or "session"
