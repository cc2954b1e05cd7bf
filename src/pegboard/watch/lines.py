"""Splitting of byte streams into lines of bounded size."""

from __future__ import annotations

from collections.abc import Iterator

LONGEST_PARSED = 16 * 2**20
"""Size in bytes of the longest message that is parsed. Longer ones pass through, and only their ends are kept."""
KEPT_ENDS = 4096
"""Size of the start and of the end of a longer message that are kept, to find its id."""


class Clipped(bytes):
    """A line whose middle was left out because it is too long."""

    total: int = 0
    """Size of the whole line."""


class LineCopies:
    """Lines of a stream that is forwarded as it arrives."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._tail = b""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Add bytes, and yield the lines that they finish, without line breaks."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            if self._size:
                self._add(chunk[start:end])
                yield self._line()
            else:
                yield chunk[start:end]
            start = end + 1
        if start < len(chunk):
            self._add(chunk[start:] if start else chunk)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= LONGEST_PARSED:
            self._pieces.append(piece)
        else:
            if not self._tail:
                whole = b"".join(self._pieces)
                start = whole[:KEPT_ENDS] + piece[:KEPT_ENDS]
                self._pieces, self._tail = [start[:KEPT_ENDS]], whole[-KEPT_ENDS:]
            self._tail = (self._tail + piece)[-KEPT_ENDS:]

    def _line(self) -> bytes:
        line = b"".join(self._pieces)
        if self._tail:
            clipped = Clipped(line + self._tail)
            clipped.total = self._size
            line = clipped
        self._pieces, self._size, self._tail = [], 0, b""
        return line
