"""Notification of other processes about changes of the history.

Each watching process has a Unix datagram socket in one folder. Writers send an empty message to all of them; what has
changed is read from the database, which remains the only source of truth. Where no socket can be created, or a message
is lost, watchers notice changes by polling.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Self

from pegboard.storage import PRIVATE_FILE, make_folder

_SUFFIX = ".sock"
_LONGEST_ADDRESS = 100
"""Bytes of a path that every system accepts as the address of a socket."""


def notify(folder: Path) -> None:
    """Wake all watchers; never block, never raise. Delete the sockets of watchers that have ended."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(_SUFFIX)]  # noqa: PTH208 - runs after every write
    except OSError:
        return
    if not names:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        with SocketAddresses(folder) as addresses:
            for name in names:
                try:
                    sender.sendto(b"\0", addresses.of(name))
                except ConnectionRefusedError:
                    with suppress(OSError):
                        (folder / name).unlink()
                except OSError:  # its buffer is full, so it will wake anyway
                    pass


class Bell:
    """Socket that other processes ring when they have changed the history.

    Args:
        folder: Folder of the sockets.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / f"{os.getpid()}-{os.urandom(6).hex()}{_SUFFIX}"
        self._socket: socket.socket | None = None
        try:
            make_folder(folder)
            bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        except OSError:
            return
        try:
            bell.setblocking(False)
            with SocketAddresses(folder) as addresses:
                address = addresses.of(self._file.name)
                bell.bind(address)
                os.chmod(address, PRIVATE_FILE)  # noqa: PTH101 - the umask would apply to every thread
        except OSError:
            bell.close()
        else:
            self._socket = bell

    def fileno(self) -> int | None:
        """Return the descriptor to wait for, or None without a socket."""
        return None if self._socket is None else self._socket.fileno()

    def clear(self) -> None:
        """Drop all messages that have arrived."""
        if self._socket is not None:
            with suppress(BlockingIOError, OSError):
                while True:
                    self._socket.recv(16)

    def close(self) -> None:
        """Close and delete the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            with suppress(OSError):
                self._file.unlink()


class SocketAddresses:
    """Addresses of sockets in a folder whose path may be too long for an address.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = os.fspath(folder)
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        if len(os.fsencode(self._folder)) > _LONGEST_ADDRESS - 40 and os.path.isdir("/proc/self/fd"):  # noqa: PTH112
            self._descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return self

    def __exit__(self, *error: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def of(self, name: str) -> str:
        """Return the address of a socket."""
        folder = self._folder if self._descriptor is None else f"/proc/self/fd/{self._descriptor}"
        return f"{folder}/{name}"
