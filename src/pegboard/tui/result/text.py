"""View of text and logs of any length: wrapped, searchable, rendered only where visible."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rich.cells import cell_len
from textual import events

from pegboard.results.wrap import wrap
from pegboard.tui.widgets.line_view import LineSpan, LineView


@dataclass(frozen=True, slots=True)
class TextHit:
    """Search hit: a line, counted from the first one even if that was removed, and a range of characters."""

    line: int
    start: int
    end: int


class TextView(LineView):
    """Lines of cleaned text, wrapped to the width of the view.

    Args:
        text: Cleaned text.
        highlight: Returns the styled spans of a line.
        lead: Returns the beginning of each row that continues a line. At most half of a row shows the end of it.
        keep: Maximum number of lines when lines are appended; the oldest are removed.
        placeholder: Text to show while there are no lines.
    """

    DEFAULT_CSS = "TextView { padding: 0 0 0 1; }"

    def __init__(
        self,
        text: str = "",
        *,
        highlight: Callable[[str], Sequence[LineSpan]] | None = None,
        lead: Callable[[str], str] | None = None,
        keep: int | None = None,
        placeholder: str = "",
    ) -> None:
        super().__init__()
        self._lines = text.split("\n") if text else []
        self.highlight = highlight
        """Returns the styled spans of a line."""
        self._line_spans: Sequence[Sequence[LineSpan]] = ()
        self._lead = lead
        self._keep = keep
        self._placeholder = placeholder
        self._rows: list[tuple[int, int, int]] = []
        self._width = 0
        self._ended = 0
        self._gone = 0
        self._following = True
        self._current: TextHit | None = None

    @property
    def text(self) -> str:
        """All lines as text."""
        return "\n".join(self._lines)

    @property
    def row_count(self) -> int:
        """Number of rows at the current width."""
        return len(self._rows) or bool(self._placeholder)

    def row(self, index: int) -> tuple[str, list[LineSpan]]:
        """Return a row and its styled spans."""
        if not self._rows:
            return self._placeholder[: self.row_width], [(0, len(self._placeholder), "muted")]
        number, start, end = self._rows[index]
        line = self._lines[number]
        found = self._line_spans[number] if number < len(self._line_spans) else ()
        if self.highlight is not None:
            found = self.highlight(line)
        lead = self._lead_of(line) if start else ""
        left = start - len(lead)
        spans = [
            (max(first, start) - left, min(last, end) - left, part)
            for first, last, part in found
            if first < end and last > start
        ]
        return lead + line[start:end], [(0, len(lead), "muted"), *spans] if lead else spans

    def margin(self, index: int) -> int:
        """Return the length of the beginning of a row that continues a line."""
        number, start, _ = self._rows[index] if index < len(self._rows) else (0, 0, 0)
        return len(self._lead_of(self._lines[number])) if start else 0

    def _lead_of(self, line: str) -> str:
        most = self._width // 2
        return self._lead(line)[-most:] if self._lead is not None and most else ""

    def continues(self, index: int) -> bool:
        """Return whether a row is the rest of a line that the row before it begins."""
        return 0 < index < len(self._rows) and self._rows[index][0] == self._rows[index - 1][0]

    def set_spans(self, spans: Sequence[Sequence[LineSpan]]) -> None:
        """Set the styled spans of each line."""
        self._line_spans = spans
        self.refresh()

    def replace_text(self, text: str) -> None:
        """Show another text from its beginning."""
        self._lines = text.split("\n") if text else []
        self._line_spans = ()
        self._rows.clear()
        self._current = None
        self._wrap_from(0)
        self.rows_changed()
        self.scroll_to(y=0, animate=False, immediate=True)

    @property
    def first_line(self) -> int:
        """Number of the first line that was not removed."""
        return self._gone

    def append(self, lines: Iterable[str], begun: Iterable[str] = ()) -> int:
        """Append lines and return the number of the first one; scroll to the end unless the user has scrolled away.

        Args:
            lines: Cleaned, complete lines.
            begun: Incomplete lines, which the next call replaces.
        """
        top = self._rows[self.scroll_offset.y] if self.scroll_offset.y < len(self._rows) else None
        first = self._gone + self._ended
        del self._lines[self._ended :]
        while self._rows and self._rows[-1][0] >= self._ended:
            self._rows.pop()
        self._lines += lines
        self._ended = len(self._lines)
        self._lines += begun
        # Not for every line, because trimming wraps all rows again.
        gone = 0
        if self._keep is not None and len(self._lines) > self._keep * 1.2:
            gone = len(self._lines) - self._keep
            del self._lines[:gone]
            self._ended -= gone
            self._gone += gone
            self._rows.clear()
        self._wrap_from(self._rows[-1][0] + 1 if self._rows else 0)
        self.rows_changed()
        if self._following:
            self.call_after_refresh(self._follow)
        elif gone and top is not None:
            self.scroll_to(y=self._row_at(top[0] - gone, top[1]), animate=False, immediate=True)
        return first

    def find(self, wanted: re.Pattern[str], first: int = 0) -> Iterator[TextHit | None]:
        """Yield each match, and None for each line.

        Args:
            wanted: Pattern from `pattern`.
            first: Number of the line from which to search.
        """
        for number, line in enumerate(islice(self._lines, max(first - self._gone, 0), None), max(first, self._gone)):
            yield None
            for match in wanted.finditer(line):
                yield TextHit(number, match.start(), match.end())

    def go(self, hit: TextHit) -> None:
        """Scroll to a hit."""
        self._current = hit
        self.show_row(self._row_of(hit))
        self.refresh()

    def nearest(self, hits: list[TextHit]) -> int:
        """Return the index of the first hit below the top of the viewport, or 0."""
        if self.scroll_offset.y >= len(self._rows):
            return 0
        line, start, _ = self._rows[self.scroll_offset.y]
        index = bisect_left(hits, (line + self._gone, start), key=lambda hit: (hit.line, hit.start))
        return index if index < len(hits) else 0

    def mark(self, wanted: re.Pattern[str] | None) -> None:
        """Highlight the matches of `wanted`, or nothing."""
        self._current = None
        super().mark(wanted)

    def overlays(self, index: int) -> list[tuple[int, int, str]]:
        """Return the span of the current hit in a row."""
        hit = self._current
        if hit is None or index >= len(self._rows):
            return []
        number, start, end = self._rows[index]
        if hit.line - self._gone != number or hit.start >= end or hit.end <= start:
            return []
        left = start - self.margin(index)
        return [(max(hit.start, start) - left, min(hit.end, end) - left, "line-view--current-match")]

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the lines again if the width has changed, keeping the top line in place."""
        del event
        if self.row_width == self._width:
            return
        top = self._rows[self.scroll_offset.y] if self.scroll_offset.y < len(self._rows) else None
        self._width = self.row_width
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
        """Follow new lines only while the view is scrolled to the end."""
        super().watch_scroll_y(old_value, new_value)
        self._following = self.is_vertical_scroll_end

    def _follow(self) -> None:
        if self._following:  # a search or a key may have scrolled meanwhile
            self.scroll_end(animate=False, immediate=True, x_axis=False)

    def _wrap_from(self, first: int) -> None:
        if self._width < 1:
            return
        width = self._width
        for number in range(first, len(self._lines)):
            line = self._lines[number]
            # A fast path: most lines are short, and there may be a hundred thousand.
            if len(line) * 2 <= width:
                self._rows.append((number, 0, len(line)))
            else:
                available = width - cell_len(self._lead_of(line))
                self._rows += [(number, start, end) for start, end in wrap(line, available)]

    def _row_of(self, hit: TextHit) -> int:
        return self._row_at(hit.line - self._gone, hit.start)

    def _row_at(self, line: int, start: int) -> int:
        return max(bisect_right(self._rows, (line, start), key=lambda row: row[:2]) - 1, 0)
