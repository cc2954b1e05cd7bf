"""Text saved to new files."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from pegboard import storage

_LONGEST_NAME: Final = 120
"""Maximum bytes of a name. File systems allow 255, including the suffix and a number."""


def write_new(folder: Path, name: str, suffix: str, text: str) -> Path:
    """Write a text atomically to a new file and return the file.

    Args:
        folder: Existing folder for the file.
        name: Untrusted text that describes the file. Characters unsuitable for a file name become `_`; ` (2)` and so on
            follows if the name exists.
        suffix: Suffix, such as `.md`.
        text: Content, written as UTF-8.

    Raises:
        OSError: The file can't be written.
    """
    stem, content = _file_name(name), text.encode(errors="backslashreplace")
    for number in count(1):
        file = folder / (f"{stem}{suffix}" if number == 1 else f"{stem} ({number}){suffix}")
        if file.exists():
            continue
        with suppress(FileExistsError):
            storage.write(file, content, replace=False)
            return file
    raise AssertionError("the loop ends only with a new file")


def _file_name(name: str) -> str:
    safe = "".join(sign if sign.isalnum() or sign in "._- " else "_" for sign in name)
    return safe.encode("utf-8", "replace")[:_LONGEST_NAME].decode("utf-8", "ignore").strip(". ") or "session"
