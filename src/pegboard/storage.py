"""Files and folders that only their owner can read, and atomic writes.

Every writer of Pegboard's own files uses this module. It imports little more than `os`, because workers and discovery
load it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

# This module works with descriptors and single system calls, which pathlib hides; pathlib is too heavy for a worker.
# ruff: noqa: PTH101, PTH102, PTH105, PTH108, PTH112, PTH114, PTH115, PTH116, PTH118, PTH120

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700

_LONGEST_NAME = 200
"""Limit in bytes. File systems accept 255, and the name of a draft is longer than the file's."""

Path = str | os.PathLike[str]


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, readable by their owner only.

    Folders that exist keep their permissions.

    Raises:
        OSError: One of them can't be created.
    """
    path = os.fspath(folder)
    missing = []
    while path and not os.path.isdir(path):
        missing.append(path)
        parent = os.path.dirname(path.rstrip(os.sep))
        if parent == path:
            break
        path = parent
    for one in reversed(missing):
        try:
            os.mkdir(one, PRIVATE_FOLDER)
        except FileExistsError as error:
            if not os.path.isdir(one):  # Another process may have created it meanwhile.
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), one) from error


def open_lock(file: Path) -> int:
    """Open a lock file, create it if it is missing, and return its descriptor.

    Raises:
        OSError: The file can't be opened.
    """
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Lock a file against changes by other Pegboard processes; create its folder if it is missing.

    The folder is locked, because a write replaces the file. All files of a folder share its lock. Of a symbolic link,
    the target is locked.

    Args:
        file: The file to read, change and write within the block.

    Raises:
        OSError: The folder can't be created or opened.
    """
    import fcntl  # most programs that load this module lock nothing

    folder = os.path.dirname(os.path.realpath(file))
    make_folder(folder)
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def tighten(path: Path) -> None:
    """Remove other users' permissions from a file or folder that may hold secrets; ignore a missing one."""
    with suppress(OSError):  # The file belongs to another user, or the file system has no permissions.
        mode = os.stat(path).st_mode & 0o7777
        if mode & 0o077:
            os.chmod(path, mode & ~0o077)


def is_open_to_others(path: Path) -> bool:
    """Return whether other users may read or write a regular file; False if it's missing."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o066)


@contextmanager
def replacing(
    file: Path, *, replace: bool = True, mode: int = PRIVATE_FILE, durable: bool = True
) -> Iterator[IO[bytes]]:
    """Open a draft that replaces a file when the block ends, and is deleted if the block raises.

    Readers see either the old or the new content. A symbolic link is replaced by the file.

    Args:
        file: The file to write; its folder must exist.
        replace: Whether to replace an existing file.
        mode: Permissions, less those of the umask.
        durable: Whether the content must survive a power failure. Caches don't need it, and it is slower.

    Raises:
        FileExistsError: The file exists and `replace` is False.
        OSError: The file can't be written, or it is a device, a FIFO or a socket.
    """
    _check_replaceable(file)
    folder, name = os.path.split(os.fspath(file))
    short = name if len(os.fsencode(name)) <= _LONGEST_NAME else "long-name"
    draft = os.path.join(folder, f".{short}.{os.urandom(4).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    try:  # around the opening, too: a signal may end the program as soon as the draft exists
        with open(draft, "xb", opener=lambda path, _flags: os.open(path, flags, mode)) as out:
            yield out
            out.flush()
            if durable:
                os.fsync(out.fileno())
            if replace:
                os.replace(draft, file)
            else:
                rename_to_new(draft, file)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    if durable:
        _sync(folder or os.curdir)


def write(file: Path, data: bytes, *, replace: bool = True, mode: int = PRIVATE_FILE, durable: bool = True) -> None:
    """Write a file atomically; see `replacing`.

    Raises:
        FileExistsError: The file exists and `replace` is False.
        OSError: The file can't be written.
    """
    with replacing(file, replace=replace, mode=mode, durable=durable) as out:
        out.write(data)


@contextmanager
def rewriting(file: Path) -> Iterator[IO[bytes]]:
    """Open a draft that replaces a user's file when the block ends; see `replacing`.

    Unlike there, the target of a symbolic link is replaced, and an existing file keeps its permissions.

    Args:
        file: The file; a new one is readable by its owner only. The folder must exist.

    Raises:
        OSError: The file can't be written.
    """
    target = os.path.realpath(file)  # pathlib's `resolve` raises another error if links form a loop
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        mode = PRIVATE_FILE
    with replacing(target, mode=mode) as out:
        with suppress(OSError):  # the file system has no permissions
            os.fchmod(out.fileno(), mode)  # those that the umask removed
        yield out


def rewrite(file: Path, data: bytes) -> None:
    """Replace a user's file atomically; see `rewriting`.

    Raises:
        OSError: The file can't be written.
    """
    with rewriting(file) as out:
        out.write(data)


def append(descriptor: int, data: bytes) -> None:
    """Write to the end of a file, or leave it as it was.

    Args:
        descriptor: The file, opened with `O_APPEND`; no other process may write to it.
        data: What to write.

    Raises:
        OSError: The file can't be written.
    """
    before = os.fstat(descriptor).st_size
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except BaseException:
        os.ftruncate(descriptor, before)
        raise


def _check_replaceable(file: Path) -> None:
    """Reject what only looks like a file: root could replace `/dev/null`, on which all other programs depend.

    Raises:
        OSError: The file, or the target of a link, is a device, a FIFO, a socket, or an open file as `/dev/stdout` is.
    """
    target = os.path.join(os.path.dirname(file), os.readlink(file)) if os.path.islink(file) else ""
    try:
        mode = os.stat(file).st_mode
    except OSError:  # it is missing, or writing reports the error
        mode = stat.S_IFREG
    is_open_file = target.startswith(("/proc/", "/dev/fd/", "/dev/std"))
    if is_open_file or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "Not a regular file", os.fspath(file))


def check_writable(file: Path) -> None:
    """Check that a file can be written by `write`, for a result that takes long to compute.

    Raises:
        OSError: Its folder is missing or read-only, or it isn't a regular file.
    """
    _check_replaceable(file)
    folder = os.path.dirname(os.fspath(file)) or os.curdir
    if not os.access(folder, os.W_OK):
        code = errno.EACCES if os.path.isdir(folder) else errno.ENOENT
        raise OSError(code, os.strerror(code), folder)


def rename_to_new(file: Path, target: Path) -> None:
    """Rename a file, unless the target exists.

    Raises:
        FileExistsError: The target exists, even if another process has just written it.
        OSError: The file can't be renamed.
    """
    try:
        os.link(file, target)
    except FileExistsError:
        raise
    except OSError:  # the file system has no hard links
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))
        try:
            os.replace(file, target)
        except OSError:  # such as that the file is missing
            os.unlink(target)
            raise
    else:
        os.unlink(file)


def _sync(folder: str) -> None:
    """Make a rename survive a power failure if the file system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def no_temporary_file(failed: str, error: OSError) -> str:
    """Return that something failed because a temporary file can't be written, why, and what to do.

    Args:
        failed: A clause that says what failed.
        error: The error of `tempfile`.
    """
    reason = error.strerror or error
    return (
        f"{failed} because no temporary file can be written: {reason}."
        " Free space on the disk, or set TMPDIR to a writable folder."
    )
