"""Wrapping and truncation of lines to a width in cells, fast enough for a megabyte."""

from __future__ import annotations

import re

from rich.cells import cell_len, get_character_cell_size, set_cell_size

# Characters of one cell: Latin, Greek, Cyrillic and Hebrew letters, punctuation, arrows, lines and blocks.
_NARROW = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u052f\u05d0-\u05ea"
    "\u2010-\u2027\u2030-\u205e\u2190-\u2199\u2400-\u2421\u2500-\u259f]*"
)

_JOINED = re.compile("[\u200d\ufe0f\U0001f1e6-\U0001f1ff]")
_SYMBOL = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}|(?s:.)[\ufe0f\u20e3\U0001f3fb-\U0001f3ff]*(?:\u200d(?s:.)[\ufe0f\U0001f3fb-\U0001f3ff]*)*"
)
"""A flag, or a character with those that change its width or are joined to it."""


def wrap(line: str, width: int) -> list[tuple[int, int]]:
    """Return the start and end of each row of a line in characters, at least one row.

    Rows end after a space in their second half if there is one, and after any character otherwise.

    Args:
        line: One sanitized line.
        width: Cells of a row, at least 1.
    """
    if len(line) * 2 <= width or (len(line) <= width and _NARROW.fullmatch(line)):
        return [(0, len(line))]
    if _NARROW.fullmatch(line):
        return _wrap_plain(line, width)
    return _wrap_cells(line, width)


def truncate(line: str, width: int) -> str:
    """Return a line of at most `width` cells; an ellipsis is the last one if the line is longer."""
    if cell_len(line) <= width:
        return line
    return f"{set_cell_size(line, width - 1).rstrip()}…" if width > 0 else ""


def fit(line: str, width: int) -> str:
    """Return a line of exactly `width` cells: truncated, or with spaces at its end."""
    return set_cell_size(truncate(line, width), width)


def _wrap_plain(line: str, width: int) -> list[tuple[int, int]]:
    rows: list[tuple[int, int]] = []
    start, length = 0, len(line)
    while length - start > width:
        space = line.rfind(" ", start + width // 2, start + width)
        end = space + 1 if space >= 0 else start + width
        rows.append((start, end))
        start = end
    rows.append((start, length))
    return rows


def _wrap_cells(line: str, width: int) -> list[tuple[int, int]]:
    rows: list[tuple[int, int]] = []
    start = cells = index = 0
    space = -1
    cells_at_space = 0
    for symbol in _SYMBOL.findall(line) if _JOINED.search(line) else line:
        size = get_character_cell_size(symbol) if len(symbol) == 1 else cell_len(symbol)
        cells += size
        while cells > width and index > start:
            end = space if space - start > (index - start) // 2 else index
            cells -= cells_at_space if end == space else cells - size
            rows.append((start, end))
            start, space = end, -1
        index += len(symbol)
        if symbol == " ":
            space, cells_at_space = index, cells
    rows.append((start, len(line)))
    return rows
