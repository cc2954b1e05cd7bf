"""A text input that shows its cursor."""

from __future__ import annotations

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
