"""Clicks on the widget and the line that were under the mouse at the press, even if a new layout has moved them since.

A press may focus a pane, which then grows, or a field, which then shows its whole description. The release, and the
second press of a double click, would otherwise be over something else.
"""

from __future__ import annotations

from textual import events
from textual.app import App
from textual.errors import NoWidget
from textual.geometry import Offset
from textual.widget import Widget


class SteadyClicks:
    """The last press of the mouse button, which its release and the next press at the same cell follow.

    Args:
        app: The app that handles the events.
    """

    def __init__(self, app: App[None]) -> None:
        self._app = app
        self._at, self._origin = Offset(), Offset()
        self._widget: Widget | None = None
        self._time = 0.0

    def moved(self, event: events.MouseEvent) -> events.MouseEvent:
        """Return a press or release at the new place of the pressed line; other events are returned unchanged."""
        if not isinstance(event, events.MouseDown | events.MouseUp):
            if not isinstance(event, events.MouseMove):
                self._widget = None  # the user has scrolled to something else
            return event
        is_late = event.time - self._time > self._app.CLICK_CHAIN_TIME_THRESHOLD
        if isinstance(event, events.MouseDown) and (is_late or event.screen_offset != self._at):
            self._press(event)
            return event
        widget = self._widget
        if event.screen_offset != self._at or widget is None or not widget.is_attached:
            return event
        at = self._at + _origin(widget) - self._origin
        if isinstance(event, events.MouseDown):
            self._time = event.time
        if at == self._at or self._widget_at(at) is not widget:
            return event
        self._app.clear_selection()
        return type(event)(
            None, at.x, at.y, 0, 0, event.button, event.shift, event.meta, event.ctrl, screen_x=at.x, screen_y=at.y
        )

    def _press(self, event: events.MouseDown) -> None:
        self._at, self._time = event.screen_offset, event.time
        self._widget = self._widget_at(self._at)
        self._origin = Offset() if self._widget is None else _origin(self._widget)

    def _widget_at(self, at: Offset) -> Widget | None:
        try:
            return self._app.get_widget_at(*at)[0]
        except NoWidget:
            return None


def _origin(widget: Widget) -> Offset:
    """Return the position on the screen of the start of a widget's content, of which a part may be scrolled away."""
    return widget.region.offset - widget.scroll_offset
