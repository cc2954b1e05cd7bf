"""Access to files inside the allowed roots only, for every built-in pack that accepts a path.

The roots are the working directory, or the list `[packs.NAME] roots` in the configuration; a relative path starts at
the first of them. A path is resolved first, links and `..` included, and then opened from its root downwards without
following any link. So a link that is created meanwhile leads to an error, not out of the root.
"""

# This module uses descriptors and single system calls, which pathlib hides.
# ruff: noqa: PTH111, PTH112, PTH118, PTH206

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from pegboard.sdk import ToolFailed, get_config

_CHUNK = 2**18
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags to open a folder for listing."""
PASSAGE = FOLDER | getattr(os, "O_PATH", 0)
"""Flags to open a folder on the way to another; if the system can distinguish, no right to list it is needed."""
# Without O_NONBLOCK, opening a FIFO that replaced the file would block until a process writes to it.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ResolvedPath(NamedTuple):
    """A resolved path."""

    root: str
    """Its root, resolved."""
    parts: tuple[str, ...]
    """Names below the root."""

    @property
    def path(self) -> str:
        """The complete path."""
        return os.path.join(self.root, *self.parts)

    def below(self, *names: str) -> "ResolvedPath":
        """Return the path of a file below this one; no links are followed."""
        return ResolvedPath(self.root, (*self.parts, *names))


def roots() -> tuple[str, ...]:
    """Return the folders that may be read, resolved."""
    listed = get_config("roots", ["."])
    if isinstance(listed, str):
        listed = listed.split(os.pathsep)
    if not isinstance(listed, list) or not listed or not all(isinstance(root, str) and root for root in listed):
        raise ToolFailed("`roots` in the configuration of this pack must be a list of folders.", code="bad_config")
    return tuple(os.path.realpath(os.path.expanduser(root)) for root in listed)


def resolve(path: str) -> ResolvedPath:
    """Resolve a path.

    Raises:
        ToolFailed: It leads out of the roots, or can't be resolved, or its root doesn't exist.
    """
    try:
        allowed = roots()
        real = os.path.realpath(os.path.join(allowed[0], path))
    except ValueError:
        raise ToolFailed("A path can't contain NUL characters or lone surrogates.", code="not_found") from None
    except FileNotFoundError:
        raise ToolFailed("The working directory no longer exists.", code="not_found") from None
    except OSError as error:  # a link on the path was replaced meanwhile
        raise ToolFailed(f"{path} can't be resolved: {reason(error)}.", code="unreadable") from None
    for root in allowed:
        if is_inside(real, root):
            if not os.path.isdir(root):
                message = f"No folder is at {root}. Create it, or correct `roots` in the configuration of this pack."
                raise ToolFailed(message, code="bad_config")
            return ResolvedPath(root, tuple(part for part in real[len(root) :].split(os.sep) if part))
    raise ToolFailed(f"{path} is outside {' and '.join(allowed)}.", code="outside")


def is_inside(real: str, root: str) -> bool:
    """Return whether a resolved path is a root, or inside it."""
    return real == root or real.startswith(root.rstrip(os.sep) + os.sep)


@contextmanager
def opened(root: str, parts: Sequence[str], flags: int = FOLDER) -> Iterator[int]:
    """Open the folder at `parts` below `root`, step by step and without following links; yield its descriptor."""
    here = os.open(root, PASSAGE if parts else flags)
    try:
        for count, part in enumerate(parts, 1):
            inner = os.open(part, flags if count == len(parts) else PASSAGE, dir_fd=here)
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


def read_text(path: str, max_bytes: int) -> str:
    """Read a text file.

    Args:
        path: The file, inside a root.
        max_bytes: Size limit in bytes; also the name of the tool's parameter, for messages.

    Raises:
        ToolFailed: It is outside the roots, missing, not a file, too large, or not text.
    """
    place = resolve(path)
    with explained(path):
        content = _read(place, path, max_bytes)
    return decoded(content, path)


@contextmanager
def opened_file(place: ResolvedPath, path: str) -> Iterator[int]:
    """Open a regular file without following links; yield its descriptor.

    Args:
        place: The resolved path.
        path: The path for messages.

    Raises:
        ToolFailed: It is a folder, a device, a pipe or a socket.
        OSError: It can't be opened.
    """
    if not place.parts:
        raise ToolFailed(f"{path} is a folder, not a file.", code="not_a_file")
    with opened(place.root, place.parts[:-1], PASSAGE) as folder:
        # Checked before it is opened: opening a device may have an effect.
        require_file(os.stat(place.parts[-1], dir_fd=folder, follow_symlinks=False), path)
        descriptor = os.open(place.parts[-1], _FILE, dir_fd=folder)
    try:
        require_file(os.fstat(descriptor), path)
        yield descriptor
    finally:
        os.close(descriptor)


def read_all(descriptor: int, path: str, max_bytes: int) -> bytes:
    """Read an open file to its end.

    Args:
        descriptor: The file, opened with `opened_file`.
        path: The path for messages.
        max_bytes: Size limit in bytes.

    Raises:
        ToolFailed: It is too large.
    """
    size = os.fstat(descriptor).st_size
    if size > max_bytes:
        raise _too_large(path, f"{size} bytes", max_bytes)
    # A file that grows, or that the system generates (/proc), contains more than its size.
    content = bytearray()
    while chunk := os.read(descriptor, min(_CHUNK, max_bytes + 1 - len(content))):
        content += chunk
        if len(content) > max_bytes:
            raise _too_large(path, f"more than {max_bytes} bytes", max_bytes)
    return bytes(content)


def descriptor_path(descriptor: int) -> str:
    """Return a path by which a library or program reaches an open file, even if it is renamed or deleted."""
    return f"/proc/self/fd/{descriptor}" if os.path.isdir("/proc/self/fd") else f"/dev/fd/{descriptor}"


def decoded(content: bytes, path: str) -> str:
    """Return the text of a file's content.

    Raises:
        ToolFailed: It is not text.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolFailed(f"{path} is not text: byte {error.start} is not UTF-8.", code="not_text") from None
    if "\0" in text:
        raise ToolFailed(f"{path} is not text: it contains NUL bytes.", code="not_text")
    return text


def require_file(status: os.stat_result, path: str) -> None:
    """Check that this is a regular file.

    Raises:
        ToolFailed: It is a folder, a device, a pipe or a socket.
    """
    if stat.S_ISDIR(status.st_mode):
        raise ToolFailed(f"{path} is a folder, not a file.", code="not_a_file")
    if not stat.S_ISREG(status.st_mode):
        raise ToolFailed(f"{path} is a device, a pipe or a socket, not a file.", code="not_a_file")


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Convert system errors about a path into failures with a message."""
    try:
        yield
    except FileNotFoundError:
        raise ToolFailed(f"{path} does not exist.", code="not_found") from None
    except NotADirectoryError:
        raise ToolFailed(f"{path} is not a folder.", code="not_a_folder") from None
    except OSError as error:
        raise ToolFailed(f"{path} can't be read: {reason(error)}.", code="unreadable") from None


def reason(error: OSError) -> str:
    """Return the system's message, for use within a sentence."""
    return (error.strerror or str(error)).lower()


def printable(name: str) -> str:
    r"""Write the bytes of a name that aren't UTF-8 as `\xff`, as JSON can't represent them."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


def _read(place: ResolvedPath, path: str, max_bytes: int) -> bytes:
    with opened_file(place, path) as descriptor:
        return read_all(descriptor, path, max_bytes)


def _too_large(path: str, size: str, limit: int) -> ToolFailed:
    return ToolFailed(f"{path} has {size}; the limit (max_bytes) is {limit}.", code="too_large")
