"""A text input that shows its cursor, and puts it where the mouse clicks."""

from __future__ import annotations

from rich.cells import split_graphemes
from textual.geometry import Region
from textual.widgets import Input


class TextInput(Input):
    """A text input that scrolls to its cursor also when it gets the focus or another size."""

    def on_focus(self) -> None:
        """Scroll to the cursor once the size is known."""
        self.call_after_refresh(self._show_cursor)

    def on_resize(self) -> None:
        """Scroll to the cursor."""
        if self.has_focus:
            self._show_cursor()

    def _show_cursor(self) -> None:
        self.scroll_to_region(Region(self._cursor_offset, 0, 1, 1), force=True, animate=False)

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
