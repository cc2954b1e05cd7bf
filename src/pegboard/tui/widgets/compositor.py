"""The arrangement of a screen's widgets, which reports each change of a size."""

from __future__ import annotations

from textual._compositor import Compositor, CompositorMap, ReflowResult
from textual.geometry import Size
from textual.widget import Widget


class ReportingCompositor(Compositor):
    """A compositor whose layouts report every widget that is new, or has another size, since the last one.

    Textual compares with a map that it may have made in between, because a widget's place was read after a scroll. A
    widget that was mounted before that gets no `Resize`: a text area keeps its lines unwrapped.
    """

    def __init__(self) -> None:
        super().__init__()
        self._reported: CompositorMap = {}
        """The widgets of the last layout, with their places."""

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Arrange all widgets; return those that are hidden, shown or resized since the last time."""
        self._full_map = self._reported
        result = super().reflow(parent, size)
        self._reported = self._full_map
        self._full_map_invalidated = False
        return result
