"""Events of a streamed response: the messages in it, and what resuming it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pegboard.watch.lines import KEPT_ENDS, LONGEST_PARSED, Clipped

_LINE_END = re.compile(rb"\r\n|\n|\r")


class EventReader:
    """Reader of server-sent events.

    Args:
        longest: Size of the longest message to return; longer ones are clipped. None for no limit.
    """

    def __init__(self, longest: int | None = LONGEST_PARSED) -> None:
        self._longest = longest
        self._rest = bytearray()
        self._may_end_line = False
        """Whether the last byte was a carriage return, so that a line feed belongs to it."""
        self._data: list[bytes] = []
        self._size = 0
        self._kind = b""
        self._id = b""
        self.last_id = b""
        """The id of the last complete event; empty if it has none."""
        self.retry_seconds: float | None = None
        """The server's wish for the pause before a reconnection."""

    def resume(self) -> None:
        """Drop an event that the end of a stream has left incomplete: the next stream has it again."""
        self._rest.clear()
        self._may_end_line = False
        self._data, self._size, self._kind, self._id = [], 0, b"", self.last_id

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Add bytes, and yield the data of the events that they finish."""
        if self._may_end_line and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._may_end_line = False
        self._may_end_line |= chunk.endswith(b"\r")
        start, at = 0, len(self._rest)
        self._rest += chunk
        while (found := _LINE_END.search(self._rest, at)) is not None:
            line, start = bytes(self._rest[start : found.start()]), found.end()
            at = start
            if line:
                self._read_field(line)
            elif (event := self._event()) is not None:
                yield event
        del self._rest[:start]
        if self._longest is not None and len(self._rest) > self._longest:
            self._read_field(bytes(self._rest))
            self._rest = bytearray(b"data:")

    def _read_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._size += len(value)
                if self._longest is None or self._size <= self._longest:
                    self._data.append(value)
                elif self._data:
                    self._data = [b"\n".join(self._data)[:KEPT_ENDS], value[-KEPT_ENDS:]]
                else:
                    self._data = [value[:KEPT_ENDS], value[-KEPT_ENDS:]]
            case b"id":
                self._id = value
            case b"event":
                self._kind = value
            case b"retry" if value.isdigit():
                self.retry_seconds = int(value[:7]) / 1000

    def _event(self) -> bytes | None:
        data, size, kind = b"\n".join(self._data), self._size, self._kind
        self._data, self._size, self._kind = [], 0, b""
        self.last_id = self._id
        if kind not in (b"", b"message") or not data:
            return None
        if self._longest is not None and size > self._longest:
            clipped = Clipped(data)
            clipped.total = size
            return clipped
        return data
