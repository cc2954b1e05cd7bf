"""The mouse over a widget that was just removed."""

from __future__ import annotations

from typing import TypeVar

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

    def get_style_at(self, x: int, y: int) -> Style:
        """Return the style at a position."""
        return Style.null() if self._is_removed_at(x, y) else super().get_style_at(x, y)

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """Return the widget at a position, and the position within its text."""
        return (None, None) if self._is_removed_at(x, y) else super().get_widget_and_offset_at(x, y)

    def get_focusable_widget_at(self, x: int, y: int) -> Widget | None:
        """Return the widget that a click at a position focuses."""
        return None if self._is_removed_at(x, y) else super().get_focusable_widget_at(x, y)

    def _is_removed_at(self, x: int, y: int) -> bool:
        try:
            widget, _region = self.get_widget_at(x, y)
        except NoWidget:
            return False
        return not widget.is_attached
