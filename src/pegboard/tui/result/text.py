"""Text and logs of any length: wrapped, searchable, drawn only where they are seen."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from textual import events

from pegboard.results.wrap import wrap
from pegboard.tui.widgets.line_view import LineView, Span


@dataclass(frozen=True, slots=True)
class TextHit:
    """A place that a search found: a line and the characters in it."""

    line: int
    start: int
    end: int


class TextView(LineView):
    """Lines of clean text, broken to the width of the view.

    Args:
        text: Clean text.
        highlight: Gives the coloured pieces of a line.
        keep: How many lines are kept when lines are appended; the oldest go.
        placeholder: What is shown while there is nothing.
    """

    DEFAULT_CSS = "TextView { padding: 0 0 0 1; }"

    def __init__(
        self,
        text: str = "",
        *,
        highlight: Callable[[str], Sequence[Span]] | None = None,
        keep: int | None = None,
        placeholder: str = "",
    ) -> None:
        super().__init__()
        self._lines = text.split("\n") if text else []
        self._highlight = highlight
        self._keep = keep
        self._placeholder = placeholder
        self._rows: list[tuple[int, int, int]] = []
        self._width = 0
        self._ended = 0
        self._following = True
        self._current: TextHit | None = None

    @property
    def text(self) -> str:
        """All of its lines."""
        return "\n".join(self._lines)

    @property
    def row_count(self) -> int:
        """How many rows the lines take at this width."""
        return len(self._rows) or bool(self._placeholder)

    def row(self, index: int) -> tuple[str, list[Span]]:
        """Gives a row and its coloured pieces."""
        if not self._rows:
            return self._placeholder[: self.room], [(0, len(self._placeholder), "muted")]
        number, start, end = self._rows[index]
        line = self._lines[number]
        if self._highlight is None:
            return line[start:end], []
        spans = [
            (max(first, start) - start, min(last, end) - start, part)
            for first, last, part in self._highlight(line)
            if first < end and last > start
        ]
        return line[start:end], spans

    def append(self, lines: Iterable[str], begun: Iterable[str] = ()) -> None:
        """Adds lines at the end, and scrolls there unless the user has scrolled away from it.

        Args:
            lines: Clean lines that are complete.
            begun: Lines that are not complete yet; the next call replaces them.
        """
        del self._lines[self._ended :]
        while self._rows and self._rows[-1][0] >= self._ended:
            self._rows.pop()
        self._lines += lines
        self._ended = len(self._lines)
        self._lines += begun
        # Not at every line, since every row has to be counted anew.
        if self._keep is not None and len(self._lines) > self._keep * 1.2:
            gone = len(self._lines) - self._keep
            del self._lines[:gone]
            self._ended -= gone
            self._rows.clear()
        self._wrap_from(self._rows[-1][0] + 1 if self._rows else 0)
        self.rows_changed()
        if self._following:
            self.call_after_refresh(self._follow)

    def find(self, wanted: re.Pattern[str]) -> Iterator[TextHit | None]:
        """Gives every place `wanted` is found at, and None for each line without."""
        for number, line in enumerate(self._lines):
            yield None
            for match in wanted.finditer(line):
                yield TextHit(number, match.start(), match.end())

    def go(self, hit: TextHit) -> None:
        """Scrolls to a place that was found."""
        self._current = hit
        self.show_row(self._row_of(hit))
        self.refresh()

    def nearest(self, hits: list[TextHit]) -> int:
        """Gives the index of the first of `hits` that is not above what is in sight, or 0."""
        if self.scroll_offset.y >= len(self._rows):
            return 0
        top = self._rows[self.scroll_offset.y][:2]
        index = bisect_left(hits, top, key=lambda hit: (hit.line, hit.start))
        return index if index < len(hits) else 0

    def mark(self, wanted: re.Pattern[str] | None) -> None:
        """Marks whatever `wanted` is found in, or nothing."""
        self._current = None
        super().mark(wanted)

    def overlays(self, index: int) -> list[tuple[int, int, str]]:
        """Marks the part of the current hit that is in a row."""
        hit = self._current
        if hit is None or index >= len(self._rows):
            return []
        number, start, end = self._rows[index]
        if hit.line != number or hit.start >= end or hit.end <= start:
            return []
        return [(max(hit.start, start) - start, min(hit.end, end) - start, "line-view--current-match")]

    def on_resize(self, event: events.Resize) -> None:
        """Breaks the lines anew where the width has changed, and keeps the same line on top."""
        del event
        if self.room == self._width:
            return
        top = self._rows[self.scroll_offset.y] if self.scroll_offset.y < len(self._rows) else None
        self._width = self.room
        self._rows.clear()
        self._wrap_from(0)
        self.rows_changed()
        if self._keep is not None and self._following:
            self.call_after_refresh(self._follow)
        elif top is not None:
            self.scroll_to(y=self._row_at(top[0], top[1]), animate=False, immediate=True)
        if self._current is not None:
            self.show_row(self._row_of(self._current))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follows the end when the user goes there, and no longer when they leave it."""
        super().watch_scroll_y(old_value, new_value)
        self._following = self.is_vertical_scroll_end

    def _follow(self) -> None:
        self.scroll_end(animate=False, immediate=True, x_axis=False)

    def _wrap_from(self, first: int) -> None:
        if self._width < 1:
            return
        width = self._width
        for number in range(first, len(self._lines)):
            line = self._lines[number]
            # Most lines are short, and there may be a hundred thousand of them.
            if len(line) * 2 <= width:
                self._rows.append((number, 0, len(line)))
            else:
                self._rows += [(number, start, end) for start, end in wrap(line, width)]

    def _row_of(self, hit: TextHit) -> int:
        return self._row_at(hit.line, hit.start)

    def _row_at(self, line: int, start: int) -> int:
        return max(bisect_right(self._rows, (line, start), key=lambda row: row[:2]) - 1, 0)
