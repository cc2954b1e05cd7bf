"""Markdown as lines that are rendered only when visible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual import events
from textual.geometry import Size

from pegboard.results.markdown_lines import MarkdownLine, MarkdownRow, lines_of, rows_of
from pegboard.tui.widgets.line_view import LineSpan, LineView


class MarkedLines(LineView):
    """Rows of text with the styles of Markdown."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "line-view--heading",
        "line-view--strong",
        "line-view--emphasis",
        "line-view--code",
        "line-view--link",
        "line-view--error",
        "line-view--ok",
        "line-view--running",
        "line-view--under-code",
    }
    DEFAULT_CSS = """
    MarkedLines {
        scrollbar-size-vertical: 1;
        & > .line-view--heading { color: $text-primary; text-style: bold; }
        & > .line-view--strong { text-style: bold; }
        & > .line-view--emphasis { text-style: italic; }
        & > .line-view--code { color: $text-accent; }
        & > .line-view--link { color: $text-primary; text-style: underline; }
        & > .line-view--error { color: $text-error; }
        & > .line-view--ok { color: $text-success; }
        & > .line-view--running { color: $text-primary; text-style: bold; }
        & > .line-view--under-code { background: $foreground 6%; }
    }
    """


class MarkedView(MarkedLines):
    """Markdown text, as high as its rows."""

    DEFAULT_CSS = "MarkedView { height: auto; background: transparent; scrollbar-gutter: auto; }"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._lines: list[MarkdownLine] = []
        self._rows: list[MarkdownRow] = []
        self._width = 0

    def show(self, text: str) -> None:
        """Show another text from its beginning.

        Args:
            text: Untrusted text.
        """
        self._lines = lines_of(text)
        width, self._width = self._width, 0
        # At the same height, nothing else would report that the rows changed.
        self._break(width)
        self.scroll_home(animate=False, immediate=True)
        self.rows_changed()
        self.refresh(layout=True)
        self.call_after_refresh(self._settle_scrollbar)

    def _settle_scrollbar(self) -> None:
        """Show or hide the scroll bar for the final height."""
        self._scroll_update(self.virtual_size)

    @property
    def row_count(self) -> int:
        """Number of rows at the current width."""
        return len(self._rows)

    def row(self, index: int) -> tuple[str, Sequence[LineSpan]]:
        """Return a row and its styled spans; the last visible one ends in an ellipsis if rows are hidden below it."""
        row = self._rows[index]
        if index + 1 < len(self._rows) and index == self.scroll_offset.y + self.page - 1:
            shown = set_cell_size(row.text.rstrip(), min(cell_len(row.text.rstrip()), max(self.row_width - 2, 0)))
            return f"{shown} …", row.pieces
        return row.text, row.pieces

    def continues(self, index: int) -> bool:
        """Return whether a row is the rest of a line that the row before it begins."""
        return self._rows[index].margin is not None

    def margin(self, index: int) -> int:
        """Return the number of characters before the text of a row that continues a line."""
        return self._rows[index].margin or 0

    def row_style(self, index: int) -> str | None:
        """Return the style of code rows."""
        return "line-view--under-code" if self._rows[index].is_code else None

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of rows."""
        del container, viewport
        self._break(width)
        return len(self._rows)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the lines again if the width has changed."""
        del event
        self._break(self.row_width)
        self.rows_changed()

    def _break(self, width: int) -> None:
        if width != self._width and width > 0:
            self._width = width
            self._rows = [row for line in self._lines for row in rows_of(line, width)]
