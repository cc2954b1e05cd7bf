"""The message for a terminal that is too small."""

from __future__ import annotations

from textual.widgets import Static


class TooSmall(Static):
    """A message that replaces the `#body` of a page below the minimum size."""

    SCOPED_CSS = False  # the screen has the class
    DEFAULT_CSS = """
    TooSmall { display: none; width: 1fr; height: 1fr; content-align: center middle; text-align: center; }
    Screen.-tiny TooSmall, Screen.-flat TooSmall { display: block; }
    Screen.-tiny #body, Screen.-flat #body { display: none; }
    """

    def __init__(self) -> None:
        super().__init__("Pegboard needs 60 columns and 16 lines.\nMake the terminal larger.", id="too-small")
