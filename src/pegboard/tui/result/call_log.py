"""Log of one call in the result pane."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from pegboard.models import LogPart
from pegboard.results.log import LogLine, LogLines, Stream
from pegboard.tui.result.text import TextView
from pegboard.tui.widgets.line_view import LineSpan

LOG_LINES: Final = 5_000
"""Maximum number of lines kept; the oldest are removed."""
_SIGNS: Final = {"stdout": "  ", "stderr": "! ", "log": "· "}


class CallLog:
    """Output of one call and the view that shows it. Lines reach the view only when `update_view` is called."""

    def __init__(self) -> None:
        self.view = TextView(highlight=_spans, keep=LOG_LINES, placeholder="No output yet.")
        self.count = 0
        """Number of complete lines so far."""
        self._lines = LogLines()
        self._pending: deque[LogLine] = deque(maxlen=LOG_LINES)
        self._kept: deque[LogLine] = deque(maxlen=LOG_LINES)

    def feed(self, stream: Stream, text: str) -> None:
        """Add a piece of output."""
        self._add(self._lines.feed(stream, text))

    @property
    def lines(self) -> list[LogLine]:
        """The last lines, at most `LOG_LINES`, including those without a line break."""
        return [*self._kept, *self._lines.begun()]

    def restore(self, lines: Iterable[LogLine], recorded: Iterable[LogPart]) -> None:
        """Add lines of the same call that were kept elsewhere; without any, the output that its record has."""
        self._add(list(lines))
        if not self.count:
            for part in recorded:
                self.feed(part.stream, part.text)

    def finish(self) -> None:
        """Complete the lines without a line break, as there will be no more output."""
        self._add(self._lines.begun())
        self._lines = LogLines()

    def update_view(self) -> int | None:
        """Append new lines to the view and return the number of the first one; None if none was appended."""
        begun = self._lines.begun()
        if not self._pending and not begun:
            return None
        first = self.view.append([_text(line) for line in self._pending], [_text(line) for line in begun])
        self._pending.clear()
        return first

    def _add(self, lines: list[LogLine]) -> None:
        self._pending += lines
        self._kept += lines
        self.count += len(lines)


def _text(line: LogLine) -> str:
    return _SIGNS[line.stream] + line.text


def _spans(line: str) -> list[LineSpan]:
    return [(0, len(line), "warning")] if line.startswith(_SIGNS["stderr"]) else [(0, len(_SIGNS["log"]), "muted")]
