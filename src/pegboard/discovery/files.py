"""Pack files on disk: listing, stamps and contents."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from pegboard.discovery.parsed import PlainProblem


LARGEST = 5_000_000
"""Maximum size of a pack in bytes; parsing needs a hundred times as much memory."""


class Stamp(NamedTuple):
    """Attributes that differ after a file is changed or replaced; times are in nanoseconds."""

    modified: int
    changed: int
    size: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """Return the stamp of a file with this status."""
        return cls(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def stamp_of(file: str) -> Stamp | None:
    """Return the stamp of a file or folder, or None if it is missing."""
    try:
        return Stamp.of(os.stat(file))  # noqa: PTH116 - called for every file again and again, `Path` doubles its time
    except OSError:
        return None


FileMark = tuple[int, int]
"""Modification time of a file in nanoseconds, and its size in bytes; differs after most changes."""


def mark_of(file: str) -> FileMark | None:
    """Return the mark of a file, or None if it is missing."""
    try:
        status = os.stat(file)  # noqa: PTH116 - asked at every call, and `Path` costs three times as much
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


class Candidate(NamedTuple):
    """A file that may be a pack."""

    file: str
    folder: str
    stamp: Stamp


def candidates(paths: Iterable[Path | str]) -> tuple[list[Candidate], list[PlainProblem]]:
    """Return the pack files of all folders in order of precedence, and problems with files and folders.

    The files of a folder are sorted by name. Helper modules (`_x.py`) and hidden files are skipped.

    Args:
        paths: Packs folders or single `.py` files. Duplicates are ignored.
    """
    found: list[Candidate] = []
    problems: list[PlainProblem] = []
    seen: set[str] = set()
    for path in paths:
        folder = absolute(path)
        real = os.path.realpath(folder)
        if real in seen:
            continue
        seen.add(real)
        if folder.endswith(".py") and not os.path.isdir(folder):  # noqa: PTH112 - pathlib raises without permission
            _add(folder, str(Path(folder).parent), found, problems)
        else:
            _add_folder(folder, found, problems)
    # `paths` may contain both a folder and a file in it
    once: dict[str, Candidate] = {}
    for candidate in found:
        once.setdefault(candidate.file, candidate)
    return list(once.values()), problems


def absolute(path: Path | str) -> str:
    """Return the absolute path without resolving links, so that users recognize the folder."""
    return os.path.abspath(path)  # noqa: PTH100 - `Path.absolute` keeps `..`


def is_pack_file(name: str) -> bool:
    """Return whether a file with this name in a packs folder is a pack."""
    return name.endswith(".py") and not name.startswith(("_", "."))


def _add_folder(folder: str, found: list[Candidate], problems: list[PlainProblem]) -> None:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if is_pack_file(entry.name))
    except OSError as error:
        problems.append(_folder_problem(folder, error))
        return
    if not names and _is_text(folder) and (within := _folders_with_packs(folder)):
        message = (
            f"This packs folder contains no Python file. Those of its subfolders, such as {within[0]}, are not read."
        )
        problems.append(
            _problem(folder, message, f"Specify the folder of the files: {folder}{os.sep}{within[0]}.", "hint")
        )
    for name in names:
        _add(f"{folder}{os.sep}{name}", folder, found, problems)


def _folders_with_packs(folder: str) -> list[str]:
    """Return the names of the subfolders that contain files of packs."""
    found: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if os.path.isdir(entry.path) and not entry.name.startswith(("_", ".")) and entry.name.isprintable():  # noqa: PTH112
                with suppress(OSError), os.scandir(entry.path) as files:
                    found += [entry.name] if any(is_pack_file(file.name) for file in files) else []
    return sorted(found)


def _add(file: str, folder: str, found: list[Candidate], problems: list[PlainProblem]) -> None:
    if not file.isascii() and not _is_text(file):
        readable = os.fsencode(file).decode("utf-8", "replace")
        problems.append(_problem(readable, "The path of the file is not valid Unicode.", "Rename the file."))
        return
    try:
        status = os.stat(file)  # noqa: PTH116 - called a thousand times in a scan, and `Path` doubles its time
    except OSError as error:
        problems.append(_problem(file, f"The file could not be read: {error.strerror or error}."))
        return
    if not stat.S_ISREG(status.st_mode):
        problems.append(_problem(file, "It is not a regular file.", severity="warning"))
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
        return _problem(
            readable,
            "This packs folder doesn't exist.",
            "Create it, or correct the path in --packs, PEGBOARD_PACKS or the configuration.",
            "warning",
        )
    if error.errno == errno.ENOTDIR:
        return _problem(readable, "This is neither a folder nor a Python file.", "Specify a folder or a `.py` file.")
    return _problem(readable, f"This packs folder could not be read: {error.strerror or error}.")


def _problem(
    file: str, message: str, fix: str = "", severity: Literal["error", "warning", "hint"] = "error"
) -> PlainProblem:
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
    """Return the bytes of a file, or a sentence with the reason why it is not read.

    Raises:
        OSError: The file can't be opened or read.
    """
    # opening a pipe or a device could otherwise block
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as opened:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return "It is not a regular file."
        if status.st_size > LARGEST:
            return f"The file is too large: it has {status.st_size:,} bytes, and the limit is {LARGEST:,}."
        return opened.read(LARGEST + 1)
