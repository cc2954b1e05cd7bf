"""Holding the screen back while much of it changes, so that it is laid out and painted once and not in between."""

from __future__ import annotations

from contextlib import ExitStack

from textual.timer import Timer
from textual.widget import Widget

_LONGEST_SECONDS = 0.2
"""After which it rises whatever is still to come."""


class Curtain:
    """Is down between `fall` and `rise`.

    Args:
        widget: Whose screen is held back.
    """

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._held = ExitStack()
        self._timer: Timer | None = None

    def fall(self) -> None:
        """Holds the screen back, for a fifth of a second at most."""
        if self._timer is None:
            self._held.enter_context(self._widget.app.batch_update())
            self._timer = self._widget.set_timer(_LONGEST_SECONDS, self.rise)

    def rise(self) -> None:
        """Lets the screen go on."""
        if self._timer is None:
            return
        self._timer.stop()
        self._timer = None
        self._held.close()
        # Textual tells only the app that the batch is over; the screen would wait for its next message.
        if self._widget.is_attached:
            self._widget.screen.check_idle()
