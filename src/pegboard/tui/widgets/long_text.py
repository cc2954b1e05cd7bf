"""A text that scrolls if it doesn't fit."""

from __future__ import annotations

from textual.containers import VerticalScroll


class LongText(VerticalScroll):
    """A container of a text, which tab focuses if there is anything to scroll; a click leaves the focus elsewhere."""

    DEFAULT_CSS = """
    LongText {
        height: auto;
        scrollbar-size-vertical: 1;
        & > Static { height: auto; }
        &:focus { scrollbar-color: $primary; }
    }
    """

    FOCUS_ON_CLICK = False

    def allow_focus(self) -> bool:
        """Return whether there is anything to scroll."""
        return super().allow_focus() and self.max_scroll_y > 0
