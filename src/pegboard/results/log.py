"""What a running tool prints, line by line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from pegboard.results.clean import clean_line

Stream = Literal["stdout", "stderr", "log"]

_ENDS = re.compile(r"\r\n|\n|\r")
_LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a tool printed or logged, clean."""

    stream: Stream
    text: str


class LogLines:
    """Puts pieces of output together to lines, each stream for itself.

    A carriage return ends a line too, so that nothing printed is overwritten; lines are cut at 2,000 characters.
    """

    def __init__(self) -> None:
        self._begun: dict[Stream, str] = {}

    def feed(self, stream: Stream, text: str) -> list[LogLine]:
        """Takes a piece of output and gives the lines it completes."""
        begun = self._begun.get(stream, "") + text
        # A carriage return at the very end may be the first half of a line break.
        held = "\r" if begun.endswith("\r") else ""
        *whole, rest = _ENDS.split(begun.removesuffix(held))
        *full, rest = _pieces(rest)
        self._begun[stream] = rest + held
        return [LogLine(stream, clean_line(piece)) for line in whole for piece in _pieces(line)] + [
            LogLine(stream, clean_line(piece)) for piece in full
        ]

    def begun(self) -> list[LogLine]:
        """Gives the lines that have begun and not ended."""
        texts = ((stream, text.removesuffix("\r")) for stream, text in self._begun.items())
        return [LogLine(stream, clean_line(text)) for stream, text in texts if text]


def _pieces(line: str) -> list[str]:
    return [line[start : start + _LONGEST] for start in range(0, len(line), _LONGEST)] or [""]
