"""Output of a running tool, split into lines."""

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
    """Sanitized line that a tool printed or logged."""

    stream: Stream
    text: str


class LogLines:
    """Splitter of output into lines, separate for each stream.

    A carriage return ends a line too, so that no output is overwritten. Lines are split after 2,000 characters.
    """

    def __init__(self) -> None:
        self._begun: dict[Stream, str] = {}

    def feed(self, stream: Stream, text: str) -> list[LogLine]:
        """Add a piece of output and return the lines that it completes."""
        begun = self._begun.get(stream, "") + text
        # A final carriage return can be the first half of a line break.
        held = "\r" if begun.endswith("\r") else ""
        *whole, rest = _ENDS.split(begun.removesuffix(held))
        *full, rest = _pieces(rest)
        self._begun[stream] = rest + held
        return [LogLine(stream, clean_line(piece)) for line in whole for piece in _pieces(line)] + [
            LogLine(stream, clean_line(piece)) for piece in full
        ]

    def begun(self) -> list[LogLine]:
        """Return the incomplete lines."""
        texts = ((stream, text.removesuffix("\r")) for stream, text in self._begun.items())
        return [LogLine(stream, clean_line(text)) for stream, text in texts if text]


def _pieces(line: str) -> list[str]:
    return [line[start : start + _LONGEST] for start in range(0, len(line), _LONGEST)] or [""]
