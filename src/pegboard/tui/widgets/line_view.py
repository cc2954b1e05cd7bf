"""A scrolling view that renders only its visible rows."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.geometry import Offset, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from pegboard.tui.widgets.double_click import word_at

LineSpan = tuple[int, int, str]
"""Start, end and kind of a span of a row; the component class `line-view--KIND` styles it."""


_WORD_ROWS = 20
"""Rows before and after a double click in which a wrapped word may begin and end."""


class LineView(ScrollView, can_focus=True):
    """Rows of clean text with colors, highlighted search matches and selection with the mouse.

    A subclass provides the number of rows and each row on request; only visible rows are laid out. It calls
    `rows_changed` when the rows or the size of the view change: otherwise, the view doesn't scroll.
    """

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "line-view--key",
        "line-view--string",
        "line-view--number",
        "line-view--constant",
        "line-view--muted",
        "line-view--plain",
        "line-view--warning",
        "line-view--match",
        "line-view--current-match",
        "line-view--cursor",
        "line-view--header",
        "line-view--stripe",
    }
    DEFAULT_CSS = """
    LineView {
        height: 1fr;
        width: 1fr;
        background: $surface;
        color: $foreground;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        &:focus { background-tint: $foreground 3%; }
        & > .line-view--key { color: $text-primary; }
        & > .line-view--string { color: $text-success; }
        & > .line-view--number { color: $text-warning; }
        & > .line-view--constant { color: $text-accent; text-style: italic; }
        & > .line-view--muted { color: $text-muted; }
        & > .line-view--plain { color: $foreground; }
        & > .line-view--warning { color: $text-warning; }
        & > .line-view--match { color: $text-warning; text-style: bold underline; }
        & > .line-view--current-match { color: $text-warning; text-style: bold reverse; }
        & > .line-view--header { color: $text-primary; background: $panel; text-style: bold; }
        & > .line-view--stripe { background: $foreground 4%; }
        & > .line-view--cursor {
            background: $block-cursor-blurred-background;
            text-style: $block-cursor-blurred-text-style;
        }
        &:ansi > .line-view--cursor { text-style: bold underline; }
        &:focus > .line-view--cursor {
            color: $block-cursor-foreground;
            background: $block-cursor-background;
            text-style: $block-cursor-text-style;
        }
    }
    """

    matching: re.Pattern[str] | None = None
    """The search; its matches are highlighted."""
    content: object = None
    """Rows of the view; see `Searchable`."""

    @property
    @abstractmethod
    def row_count(self) -> int:
        """Number of rows."""

    @abstractmethod
    def row(self, index: int) -> tuple[str, Sequence[LineSpan]]:
        """Return the text of a row, clean and no wider than the view, and its colored spans."""

    def row_style(self, index: int) -> str | None:
        """Return the component class of a whole row, such as the cursor's, or None."""
        del index
        return None

    def overlays(self, index: int) -> list[tuple[int, int, str]]:
        """Return styles that cover the colors of a row, as start, end and component class."""
        del index
        return []

    def header(self) -> str | None:
        """Return a fixed line above the rows, or None."""
        return None

    @property
    def row_width(self) -> int:
        """Available width of a row in cells."""
        return self.scrollable_content_region.width

    def mark(self, wanted: re.Pattern[str] | None) -> None:
        """Highlight the matches of a search, or remove the highlights."""
        self.matching = wanted
        self.refresh()

    @property
    def page(self) -> int:
        """Number of visible rows."""
        return max(self.scrollable_content_region.height - self._header_height, 0)

    @property
    def _header_height(self) -> int:
        return self.header() is not None

    def rows_changed(self) -> None:
        """Update the view after a change of the rows."""
        self.virtual_size = Size(self.row_width, self.row_count + self._header_height)
        self.refresh()

    def resize_rows(self) -> None:
        """Update the virtual size after a change of the rows, without a layout of the whole screen."""
        size = Size(self.row_width, self.row_count)
        self.set_reactive(ScrollView.virtual_size, size)
        self._scroll_update(size)

    def show_row(self, index: int) -> None:
        """Scroll as little as possible to make a row visible, with up to two rows around it."""
        height = self.page
        margin = min(2, max(height - 1, 0) // 2)
        # By force: a view that was just laid out may not have its scrollbar yet, without which Textual doesn't scroll.
        if index < self.scroll_offset.y + margin:
            self.scroll_to(y=index - margin, animate=False, immediate=True, force=True)
        elif index >= self.scroll_offset.y + height - margin:
            self.scroll_to(y=index - height + 1 + margin, animate=False, immediate=True, force=True)

    def render_line(self, y: int) -> Strip:
        """Render the row at line `y` of the viewport."""
        width = self.size.width
        header = self.header()
        if header is not None and y == 0:
            base = self.get_component_rich_style("line-view--header")
            return Strip([Segment(header, base)]).crop_extend(0, width, base)
        index = y - self._header_height + self.scroll_offset.y
        if index >= self.row_count:
            return Strip.blank(width, self.rich_style)
        text, spans = self.row(index)
        under = self.row_style(index)
        base = self.get_component_rich_style(under) if under else self.rich_style
        line = Text(text, no_wrap=True, end="")
        line.stylize(base)
        # The other colors of the theme may be unreadable on the cursor's background.
        on_cursor = under == "line-view--cursor" and self.has_focus
        if not on_cursor:
            for start, end, part in spans:
                line.stylize(self._foreground_style(f"line-view--{part}"), start, end)
        if self.matching is not None:
            found = self._foreground_style("line-view--match")
            for match in self.matching.finditer(text):
                line.stylize(found.without_color if on_cursor else found, match.start(), match.end())
        for start, end, name in self.overlays(index):
            line.stylize(self.get_component_rich_style(name), start, end)
        self._stylize_selection(line, index)
        strip = Strip(line.render(self.app.console), cell_len(text))
        return strip.crop_extend(0, width, base).apply_offsets(0, index)

    def _stylize_selection(self, line: Text, index: int) -> None:
        selection = self.text_selection
        span = _selected_span(selection, index, line.plain) if selection else None
        if span is not None:
            style = self.screen.get_component_rich_style("screen--selection")
            if not self.screen.get_component_styles("screen--selection").color.a:
                style = Style(bgcolor=style.bgcolor)  # the theme keeps the colors of the text
            line.stylize(style, *span)

    def _foreground_style(self, name: str) -> Style:
        """Return the style of a component without its background."""
        style = self.get_component_rich_style(name)
        return style.without_color + Style(color=style.color)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the text of the selected rows, without the breaks and margins that only the view has."""
        top = selection.start.y if selection.start else 0
        bottom = selection.end.y if selection.end else self.row_count - 1
        pieces: list[str] = []
        for index in range(max(top, 0), min(bottom, self.row_count - 1) + 1):
            text = self.row(index)[0]
            span = _selected_span(selection, index, text)
            if span is None:
                continue
            begin, end = span
            if pieces and not self.continues(index):
                pieces.append("\n")
            pieces.append(text[max(begin, self.margin(index)) : end])
        return "".join(pieces), "\n"

    def on_click(self, event: events.Click) -> None:
        """Select the word under a double click, or the line under a triple click; Textual would select everything."""
        if event.chain < 2:
            return
        event.prevent_default()
        widget, at = self.screen.get_widget_and_offset_at(event.screen_x, event.screen_y)
        if widget is not self or at is None or not 0 <= at.y < self.row_count:
            return
        first = last = at.y
        limit = _WORD_ROWS if event.chain == 2 else self.row_count
        while self.continues(first) and at.y - first < limit:
            first -= 1
        while last + 1 < self.row_count and self.continues(last + 1) and last - at.y < limit:
            last += 1
        start, end = Offset(self.margin(first), first), Offset(len(self.row(last)[0]), last)
        if event.chain == 2:
            # the text without its wrapping, and the place of each of its characters
            rows = {y: self.row(y)[0] for y in range(first, last + 1)}
            places = [Offset(x, y) for y, row in rows.items() for x in range(self.margin(y), len(row))]
            if at not in places:
                return
            begin, after = word_at("".join(rows[place.y][place.x] for place in places), places.index(at))
            if begin == after:
                return
            start, end = places[begin], places[after - 1] + (1, 0)
        self.screen.selections = {self: Selection(start, end)}

    def continues(self, index: int) -> bool:
        """Return whether a row is the rest of a line that the row before it begins."""
        del index
        return False

    def margin(self, index: int) -> int:
        """Return the number of characters at the beginning of a row that are not part of its text."""
        del index
        return 0

    def selection_updated(self, selection: Selection | None) -> None:
        """Render another selection."""
        del selection
        self.refresh()


def _selected_span(selection: Selection, index: int, text: str) -> tuple[int, int] | None:
    """Return the selected part of a row, up to the end of its last emoji even if that has several characters."""
    span = selection.get_span(index)
    if span is None:
        return None
    start, end = span
    if end == -1:
        return start, len(text)
    if not text.isascii():
        end = next((last for first, last, _ in split_graphemes(text)[0] if first < end <= last), end)
    return start, end
