"""Which files there are to read, how each of them looks from outside, and its bytes."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from pegboard.discovery.parsed import PlainProblem


LARGEST = 5_000_000
"""Bytes of the largest file that is read: the parser takes a hundred times as much memory."""


class Stamp(NamedTuple):
    """What changes when a file is changed or replaced; times in nanoseconds."""

    modified: int
    changed: int
    size: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """Gives the stamp of a file that has this status."""
        return cls(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


class Candidate(NamedTuple):
    """A file that may be a pack."""

    file: str
    folder: str
    stamp: Stamp


def candidates(paths: Iterable[Path | str]) -> tuple[list[Candidate], list[PlainProblem]]:
    """Lists the files of all packs folders, in order of precedence; within a folder by name.

    Helpers (`_x.py`) and hidden files (what editors and file managers leave beside a file) are left out.

    Args:
        paths: Packs folders, or single `.py` files; one that is given twice counts once.
    """
    found: list[Candidate] = []
    problems: list[PlainProblem] = []
    seen: set[str] = set()
    for path in paths:
        place = absolute(path)
        real = os.path.realpath(place)
        if real in seen:
            continue
        seen.add(real)
        if place.endswith(".py") and not Path(place).is_dir():
            _add(place, str(Path(place).parent), found, problems)
        else:
            _add_folder(place, found, problems)
    # A folder and a file in it may both be given.
    once: dict[str, Candidate] = {}
    for candidate in found:
        once.setdefault(candidate.file, candidate)
    return list(once.values()), problems


def absolute(path: Path | str) -> str:
    """Gives the absolute path, links not resolved: the user should see a folder under the name they gave it."""
    return os.path.abspath(path)  # noqa: PTH100 - `Path.absolute` keeps `..`


def is_pack_file(name: str) -> bool:
    """Tells whether a file of this name, directly in a packs folder, is a pack."""
    return name.endswith(".py") and not name.startswith(("_", "."))


def _add_folder(folder: str, found: list[Candidate], problems: list[PlainProblem]) -> None:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if is_pack_file(entry.name))
    except OSError as error:
        problems.append(_folder_problem(folder, error))
        return
    for name in names:
        _add(f"{folder}{os.sep}{name}", folder, found, problems)


def _add(file: str, folder: str, found: list[Candidate], problems: list[PlainProblem]) -> None:
    if not file.isascii() and not _is_text(file):
        readable = os.fsencode(file).decode("utf-8", "replace")
        problems.append(_problem(readable, "Its path is no valid text.", "Rename the file."))
        return
    try:
        status = os.stat(file)  # noqa: PTH116 - called a thousand times in a scan, and `Path` doubles its time
    except OSError as error:
        problems.append(_problem(file, f"It can't be read: {error.strerror or error}."))
        return
    if not stat.S_ISREG(status.st_mode):
        problems.append(_problem(file, "It is no regular file.", severity="warning"))
        return
    found.append(Candidate(file, folder, Stamp.of(status)))


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _folder_problem(folder: str, error: OSError) -> PlainProblem:
    readable = os.fsencode(folder).decode("utf-8", "replace")
    if error.errno == errno.ENOENT:
        return _problem(readable, "This packs folder doesn't exist.", "Make it, or take it out.", "warning")
    if error.errno == errno.ENOTDIR:
        return _problem(readable, "This is no packs folder and no Python file.", "Name a folder or a `.py` file.")
    return _problem(readable, f"This packs folder can't be read: {error.strerror or error}.")


def _problem(file: str, message: str, fix: str = "", severity: Literal["error", "warning"] = "error") -> PlainProblem:
    return {
        "message": message,
        "fix": fix,
        "severity": severity,
        "file": file,
        "line": None,
        "pack": None,
        "tool": None,
    }


def content(file: str) -> bytes | str:
    """Gives the bytes of a file, or a sentence that says why they aren't read.

    Raises:
        OSError: It can't be opened or read.
    """
    # Opening a pipe or a device for reading could wait for ever.
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as opened:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return "It is no regular file."
        if status.st_size > LARGEST:
            return f"It is too large: {status.st_size:,} bytes, the limit is {LARGEST:,}."
        return opened.read(LARGEST + 1)
