"""Child process of `pegboard.discovery.readers`: receives lists of paths and sends parsed files.

A frame consists of four bytes with the length, and `marshal` data.
"""

from __future__ import annotations

import gc
import marshal
import sys
import warnings
from typing import IO, NamedTuple

from pegboard.discovery.parsed import pack
from pegboard.discovery.project_modules import Seen, digest


class Read(NamedTuple):
    """Result of reading one file."""

    digest: bytes | None
    """Hash of the content; None if the file can't be read."""
    packed: bytes
    """Packed content, see `pegboard.discovery.parsed`."""
    helpers: tuple[Seen, ...] = ()
    """Helper modules that the content depends on."""


_Row = tuple[bytes | None, bytes, tuple[Seen, ...]]
"""`Read` as a plain tuple, which `marshal` supports."""


def read(file: str) -> Read:
    """Read one file, given by its absolute path."""
    from pegboard.discovery.parser import read_file  # late: the process that only receives doesn't need the parser

    source, reading, helpers = read_file(file)
    return Read(None if source is None else digest(source), pack(reading), helpers)


def send(stream: IO[bytes], payload: list[str] | list[_Row]) -> None:
    """Write one frame.

    Raises:
        OSError: The other process has ended.
    """
    data = marshal.dumps(payload)
    stream.write(len(data).to_bytes(4, "big"))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """Return the data of one frame, or None at the end of the stream."""
    size = stream.read(4)
    if len(size) < 4:
        return None
    length = int.from_bytes(size, "big")
    data = stream.read(length)
    return data if len(data) == length else None


def main() -> None:
    """Read files until the end of standard input."""
    warnings.simplefilter("ignore")
    # syntax trees have no cycles, so collecting garbage would waste a third of the time
    gc.disable()
    while (frame := receive(sys.stdin.buffer)) is not None:
        files: list[str] = marshal.loads(frame)  # noqa: S302 - from the process that started this one
        send(sys.stdout.buffer, [(one.digest, one.packed, one.helpers) for one in map(read, files)])
