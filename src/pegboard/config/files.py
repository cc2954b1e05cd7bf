"""Readers of small text files that users write, and a writer of private files."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard import models, storage

if TYPE_CHECKING:
    from pegboard.models import Problem


LONGEST_FILE = 10_000_000
"""Size limit in bytes; larger files are mistakes."""

UNUSED = "Nothing of this file is used."
"""Consequence of a file that can't be read, for problems."""

# Without O_NONBLOCK, opening a FIFO waits for its writer.
_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def read_text(file: Path) -> str | Problem:
    """Return a file's UTF-8 text, empty if the file is missing, or the problem that makes it unusable."""
    raw = read_bytes(file)
    return decoded(file, raw or b"") if raw is None or isinstance(raw, bytes) else raw


def read_bytes(file: Path, *, private: bool = False) -> bytes | Problem | None:
    """Return a file's bytes, None if the file is missing, or the problem that makes it unusable.

    Never hangs: FIFOs and devices (except `/dev/null`) are problems.

    Args:
        file: The file.
        private: Whether a file that other users can read or write, or that belongs to another user, is unusable.
    """
    try:
        # Opening some devices has an effect, so look before as well as after.
        if not _is_readable(file.stat()):
            return unusable(file, "This is not a regular file.")
        descriptor = os.open(file, _READING)
        with open(descriptor, "rb") as opened:  # noqa: PTH123 - a descriptor is not a path
            status = os.fstat(descriptor)
            if not _is_readable(status):
                return unusable(file, "This is not a regular file.")
            if private and (status.st_uid not in {0, os.geteuid()} or status.st_mode & 0o077):
                return unusable(file, f"Other users have access to this file (mode {status.st_mode & 0o777:03o}).")
            raw = opened.read(LONGEST_FILE + 1)
    except FileNotFoundError:
        if file.is_symlink():
            return unusable(file, "This symbolic link points to a file that does not exist.")
        return None
    except OSError as error:
        return unusable(file, f"This file can't be read: {error.strerror or error}.")
    except ValueError:  # a NUL character in the path
        return unusable(file, "This file can't be read: its path is invalid.")
    if len(raw) > LONGEST_FILE:
        return unusable(file, f"This file is longer than {LONGEST_FILE:,} bytes.")
    return raw


def decoded(file: Path, raw: bytes) -> str | Problem:
    """Return the text of a file's bytes, or a problem with the line that is not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return unusable(file, "This file is not UTF-8 text.", raw.count(b"\n", 0, error.start) + 1)


def encoded(text: str, file: Path) -> bytes:
    """Return the new text of a file as bytes, with a byte order mark and Windows line ends if the file has them."""
    raw = read_bytes(file)
    if not isinstance(raw, bytes):
        return text.encode()
    if b"\r\n" in raw and raw.count(b"\r\n") == raw.count(b"\n"):
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return text.encode("utf-8-sig" if raw.startswith(codecs.BOM_UTF8) else "utf-8")


def write_private(file: Path, data: bytes) -> None:
    """Write a file atomically so that only the user can read it; create missing folders, private as well.

    Raises:
        OSError: It can't be written.
    """
    storage.make_folder(file.parent)
    storage.write(file, data)


def unusable(file: Path, message: str, line: int | None = None) -> Problem:
    """Build the problem of a file of which nothing is used."""
    return models.Problem(message=message, fix=UNUSED, file=shown(file), line=line)


def shown(file: Path | None) -> str:
    """Return a path as text, also if its bytes are not UTF-8; empty for None."""
    return os.fsencode(file or "").decode("utf-8", "replace")


def _is_readable(status: os.stat_result) -> bool:
    if stat.S_ISREG(status.st_mode):
        return True
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == os.stat(os.devnull).st_rdev  # noqa: PTH116 - a name
