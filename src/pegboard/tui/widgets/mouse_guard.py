"""The mouse over a widget that was just removed, over text with emoji, and while another screen opens."""

from __future__ import annotations

from typing import TypeVar

from rich.cells import split_graphemes
from rich.style import Style
from textual.errors import NoWidget
from textual.geometry import Offset
from textual.widget import Widget

from pegboard.tui.widgets.keymap_screen import KeymapScreen

ResultT = TypeVar("ResultT")


class MouseGuard(KeymapScreen[ResultT]):
    """A screen on which the mouse may be over a removed widget.

    Until the next layout, Textual still finds such a widget. It would draw it, and end the app with an error, since the
    widget has neither a screen nor styles; and a click would focus it.
    """

    def on_screen_suspend(self) -> None:
        """End the selection of text by dragging; the release of the button goes to the screen that opens."""
        self._selecting = False

    def get_style_at(self, x: int, y: int) -> Style:
        """Return the style at a position."""
        return Style.null() if self._is_removed_at(x, y) else super().get_style_at(x, y)

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """Return the widget at a position, and the position within its text."""
        if self._is_removed_at(x, y):
            return None, None
        widget, offset = super().get_widget_and_offset_at(x, y)
        if widget is None or offset is None:
            return widget, offset
        return widget, _character_at(widget, Offset(x, y) - widget.content_region.offset, offset)

    def get_focusable_widget_at(self, x: int, y: int) -> Widget | None:
        """Return the widget that a click at a position focuses."""
        return None if self._is_removed_at(x, y) else super().get_focusable_widget_at(x, y)

    def _is_removed_at(self, x: int, y: int) -> bool:
        try:
            widget, _region = self.get_widget_at(x, y)
        except NoWidget:
            return False
        return not widget.is_attached


def _character_at(widget: Widget, cell: Offset, offset: Offset) -> Offset:
    """Return the position in the text of the character at a cell of a widget.

    Textual adds the widths of single characters, so that its `offset` is wrong after an emoji of several. For the right
    half of a wide character, it returns the next one.
    """
    if not 0 <= cell.y < widget.content_size.height:
        return offset
    end = 0
    for segment in widget.render_line(cell.y):
        start, end = end, end + segment.cell_length
        if start <= cell.x < end:
            if segment.text.isascii() or segment.style is None or "offset" not in segment.style.meta:
                return offset
            before, row = segment.style.meta["offset"]
            for first, _, width in split_graphemes(segment.text)[0]:
                start += width
                if cell.x < start:
                    return Offset(before + first, row)
    return offset
