"""The end of a call's output, for its record."""

from __future__ import annotations

from collections import deque
from itertools import groupby
from typing import Final

from pegboard.models import CallEvent, Log, LogPart, ToolResult

LONGEST: Final = 20_000
"""Characters of output that the record of a call keeps."""


class LogTail:
    """Output of one call, of which the end is kept."""

    def __init__(self) -> None:
        self._logs: deque[Log] = deque()
        self._length = 0
        self._is_cut = False

    def add(self, event: CallEvent) -> None:
        """Add a piece of output; ignore other events."""
        if not isinstance(event, Log):
            return
        self._logs.append(event)
        self._length += len(event.text)
        while self._length - len(self._logs[0].text) >= LONGEST:
            self._length -= len(self._logs.popleft().text)
            self._is_cut = True

    def added(self, result: ToolResult) -> ToolResult:
        """Return a result with the output, unless the result itself contains that."""
        if not self._logs or result.meta.exit_code is not None:  # the result of a script has its output
            return result
        pieces = [(stream, [log.text for log in logs]) for stream, logs in groupby(self._logs, lambda one: one.stream)]
        parts = [LogPart(stream=stream, text="".join(texts)) for stream, texts in pieces]
        surplus = max(0, self._length - LONGEST)
        if self._is_cut or surplus:
            parts[0] = LogPart(stream=parts[0].stream, text=f"…{parts[0].text[surplus:]}")
        return result.model_copy(update={"meta": result.meta.model_copy(update={"log": tuple(parts)})})
