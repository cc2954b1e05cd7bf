"""Long Markdown text in pieces for incremental rendering."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINES = 80
_MOST_LINES = 300
_MOST_CHARACTERS = 20_000
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def pieces(text: str) -> Iterator[str]:
    """Yield pieces of about 80 lines that end at blank lines outside fenced code.

    A piece without such an end is cut after 300 lines or 20,000 characters.
    """
    piece: list[str] = []
    size = 0
    fence = ""
    for line in _short_lines(text):
        piece.append(line)
        size += len(line) + 1
        fence = _fence_after(line, fence)
        at_rest = not fence and not line.strip() and len(piece) >= _LINES
        if at_rest or len(piece) >= _MOST_LINES or size >= _MOST_CHARACTERS:
            yield "\n".join(piece)
            piece, size, fence = [], 0, ""
    if piece:
        yield "\n".join(piece)


def _short_lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        for start in range(0, max(len(line), 1), _MOST_CHARACTERS):
            yield line[start : start + _MOST_CHARACTERS]


def _fence_after(line: str, fence: str) -> str:
    """Return the fence that is open after `line`, given the one open before it; empty for none."""
    match = _FENCE.match(line)
    if match is None:
        return fence
    if not fence:
        return match[1]
    return "" if match[1].startswith(fence) else fence
