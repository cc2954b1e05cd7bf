"""Text that ends in an ellipsis if it doesn't fit."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget


class CutText(Widget):
    """Wrapped text, as high as its lines; `max-height` cuts it, and an ellipsis ends the last line."""

    DEFAULT_CSS = "CutText { height: auto; }"

    text: reactive[Content] = reactive(Content(), layout=True)
    """The text."""

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines."""
        del container, viewport
        return len(self._lines(width))

    def render(self) -> Content:
        """Return the lines that fit."""
        width, height = self.content_size
        lines = self._lines(width)
        if 0 < height < len(lines):
            last = lines[height - 1].rstrip().truncate(max(width - 1, 0)) + Content("…")
            lines = [*lines[: height - 1], last]
        return Content("\n").join(lines)

    def _lines(self, width: int) -> list[Content]:
        return self.text.wrap(max(width, 1)) if self.text else []
