"""An app whose screens know their size from the start."""

from __future__ import annotations

from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget

from pegboard.tui.shell.signals import EndingApp
from pegboard.tui.shell.too_small import COLUMNS, LINES


class SizedApp(EndingApp):
    """An app whose screens have classes for their width and height."""

    # mypy takes what Textual declares as `ClassVar[…] | None` for instance variables.
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (COLUMNS, "-narrow"), (100, "-wide")]  # noqa: RUF012 - see above
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (LINES, "-high-enough")]  # noqa: RUF012 - see above

    def _register_child(self, parent: DOMNode, child: Widget, before: int | None, after: int | None) -> None:
        """Register a widget; a screen gets the classes of its size.

        Textual sets them after the first layout, and then styles and arranges all widgets of the screen again.
        """
        if isinstance(child, Screen):
            columns, lines = self.size
            for length, breakpoints in ((columns, self.HORIZONTAL_BREAKPOINTS), (lines, self.VERTICAL_BREAKPOINTS)):
                names = child._get_breakpoint_classes(length, breakpoints)  # noqa: SLF001 - as on a resize
                child.add_class(*names, update=False)
        super()._register_child(parent, child, before, after)
