"""The process that reads files for `pegboard.discovery.readers`: lists of paths in, readings out, until its input ends.

Both ways go frames: four bytes of length, then `marshal` data. It loads only what reading takes.
"""

from __future__ import annotations

import gc
import marshal
import sys
import warnings
from typing import IO, NamedTuple

from pegboard.discovery.parsed import pack
from pegboard.discovery.parser import read_file
from pegboard.discovery.sibling_modules import Seen, digest


class Read(NamedTuple):
    """One file that was read."""

    digest: bytes | None
    """Of its content; None where that couldn't be had."""
    packed: bytes
    """What it holds, packed."""
    helpers: tuple[Seen, ...] = ()
    """The helpers that it took types from."""


_Row = tuple[bytes | None, bytes, tuple[Seen, ...]]
"""The same as a plain tuple."""


def read(file: str) -> Read:
    """Reads one file, given by its absolute path."""
    source, reading, helpers = read_file(file)
    return Read(None if source is None else digest(source), pack(reading), helpers)


def send(stream: IO[bytes], payload: list[str] | list[_Row]) -> None:
    """Writes one frame.

    Raises:
        OSError: The other side is gone.
    """
    data = marshal.dumps(payload)
    stream.write(len(data).to_bytes(4, "big"))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """Gives the data of one frame, or None if the stream ended."""
    size = stream.read(4)
    if len(size) < 4:
        return None
    length = int.from_bytes(size, "big")
    data = stream.read(length)
    return data if len(data) == length else None


def main() -> None:
    """Serves until the standard input ends."""
    warnings.simplefilter("ignore")
    # Syntax trees have no cycles: collecting would only cost a third of the time.
    gc.disable()
    while (frame := receive(sys.stdin.buffer)) is not None:
        files: list[str] = marshal.loads(frame)  # noqa: S302 - from the process that started this one
        send(sys.stdout.buffer, [(one.digest, one.packed, one.helpers) for one in map(read, files)])
