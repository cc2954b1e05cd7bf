"""Result pane: follows a call and shows its result."""

from pegboard.tui.result.pane import ResultPane

__all__ = ["ResultPane"]
