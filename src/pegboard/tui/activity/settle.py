"""Quick repetition of an expensive action."""

from __future__ import annotations

from collections.abc import Callable

from textual.timer import Timer
from textual.widget import Widget


class FirstAndLast:
    """Runs an action for the first of several quick requests, and once more after the last.

    Args:
        widget: Widget whose timers are used.
        seconds: Pause after which a request counts as a first one.
        act: The action.
    """

    def __init__(self, widget: Widget, seconds: float, act: Callable[[], object]) -> None:
        self._widget = widget
        self._seconds = seconds
        self._act = act
        self._timer: Timer | None = None
        self.is_due = False
        """Whether the action still runs for the last request."""

    def request(self) -> None:
        """Run the action now, or after a pause in the requests."""
        if self._timer is None:
            self._act()
        else:
            self._timer.stop()
            self.is_due = True
        self._timer = self._widget.set_timer(self._seconds, self._end)

    def _end(self) -> None:
        self._timer = None
        if self.is_due:
            self.is_due = False
            self._act()
