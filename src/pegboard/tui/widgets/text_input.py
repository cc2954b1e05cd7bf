"""A text input that shows its cursor, and puts it where the mouse clicks."""

from __future__ import annotations

from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import Input

_NARROWEST = 5
"""Width in cells below which an ellipsis would leave too little of the text."""


class TextInput(Input):
    """A text input that scrolls to its cursor also when it gets the focus or another size.

    An ellipsis at an end of the line shows that the text continues there.
    """

    def render_line(self, y: int) -> Strip:
        """Return a line, with an ellipsis at an end that hides text, except over the cursor."""
        strip = super().render_line(y)
        width, left = self.scrollable_content_region.width, round(self.scroll_offset.x)
        if y or not self.value or width < _NARROWEST:
            return strip
        cursor = self._cursor_offset - left if self.has_focus else -1
        more = Strip([Segment("…", self.get_component_rich_style("input--placeholder"))], 1)
        if left and cursor != 0:
            strip = Strip.join([more, strip.crop(1)])
        if cell_len(self._value.plain) - left > width and cursor != width - 1:
            strip = Strip.join([strip.crop(0, width - 1), more, strip.crop(width)])
        return strip

    def on_focus(self) -> None:
        """Scroll to the cursor once the size is known."""
        self.call_after_refresh(self._show_cursor)

    def on_resize(self) -> None:
        """Scroll to the cursor."""
        if self.has_focus:
            self._show_cursor()

    def _show_cursor(self) -> None:
        self.scroll_to_region(Region(self._cursor_offset, 0, 1, 1), force=True, animate=False)

    def _position_to_cell(self, position: int) -> int:
        """Return the cell of a character as it is shown.

        Textual counts tabs and line breaks otherwise than they are shown, and needs quadratic time for a long line
        before a line break.
        """
        return cell_len(self._value.plain[:position])

    def _cell_offset_to_index(self, offset: int) -> int:
        """Return the index of the character that is shown at a cell, or the end of the text.

        Textual adds the widths of single characters, also of those that are shown as others, and takes a cell after the
        end for an index, which may be within a text with accents.
        """
        end = -round(self.scroll_offset.x)
        for start, _, width in split_graphemes(self._value.plain)[0]:
            end += width
            if offset < end:
                return start
        return len(self.value)
