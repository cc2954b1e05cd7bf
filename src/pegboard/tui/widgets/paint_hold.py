"""A pause in painting while much of the screen changes."""

from __future__ import annotations

from contextlib import ExitStack

from textual.timer import Timer
from textual.widget import Widget

_LONGEST_SECONDS = 0.2


class PaintHold:
    """Layout and painting of one screen, paused between `hold` and `release`.

    Args:
        widget: Any widget of the screen.
    """

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._held = ExitStack()
        self._timer: Timer | None = None

    def hold(self) -> None:
        """Pause layout and painting for 0.2 seconds at most."""
        if self._timer is None:
            self._held.enter_context(self._widget.app.batch_update())
            self._timer = self._widget.set_timer(_LONGEST_SECONDS, self.release)

    def release(self) -> None:
        """Resume layout and painting."""
        if self._timer is None:
            return
        self._timer.stop()
        self._timer = None
        self._held.close()
        # Textual notifies only the app that the batch has ended; the screen would wait for its next message.
        if self._widget.is_attached:
            self._widget.screen.check_idle()
