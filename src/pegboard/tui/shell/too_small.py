"""The message for a terminal that is too small."""

from __future__ import annotations

from typing import Final

from textual.geometry import Size
from textual.widgets import Static

COLUMNS: Final = 60
LINES: Final = 16
"""Size that a page needs."""


def is_too_small(size: Size) -> bool:
    """Return whether a page doesn't fit into a terminal of this size."""
    return size.width < COLUMNS or size.height < LINES


class TooSmall(Static):
    """A message that replaces the `#body` of a page below the minimum size."""

    SCOPED_CSS = False  # the screen has the class
    DEFAULT_CSS = """
    TooSmall { display: none; width: 1fr; height: 1fr; content-align: center middle; text-align: center; }
    Screen.-tiny TooSmall, Screen.-flat TooSmall { display: block; }
    Screen.-tiny #body, Screen.-flat #body { display: none; }
    """

    def __init__(self) -> None:
        super().__init__(
            f"Pegboard needs {COLUMNS} columns and {LINES} lines.\nMake the terminal larger.", id="too-small"
        )
