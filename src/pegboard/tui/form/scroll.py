"""Scroll position of a form pane: which items are visible, and how the focused one becomes visible."""

from __future__ import annotations

from collections.abc import Callable

from textual.widget import Widget

from pegboard.tui.form.body import FormBody, Viewport
from pegboard.tui.form.frame import Space

_FRAME_SECONDS = 1 / 60
_TRIES = 60
_EXTRA_LINES = 4
"""Lines mounted below the last known height of the viewport, which grows if the header above it shrinks."""
_COMFORTABLE, _LOW = 20, 14
"""Height from which fields are separated by empty lines, and height below which notes have one line."""


class FormScroll:
    """Scroll position of a form pane.

    Args:
        pane: The pane, which scrolls.
        header: The widget above the fields.
        fields: Return the fields, or None if the pane shows none.
    """

    def __init__(self, pane: Widget, header: Widget, fields: Callable[[], FormBody | None]) -> None:
        self._pane = pane
        self._header = header
        self._fields = fields
        self._was_bare = False
        self._last_height = 0
        self._wanted_top = 0
        """Position to scroll to once the form is long enough."""
        self.most = 0
        """Maximum height of a pane that is as high as its fields; 0 if its height doesn't depend on them."""

    @property
    def space(self) -> Space:
        """The space available to items."""
        width, height = self._pane.scrollable_content_region.width, self._height
        # The column next to the scroll bar stays free.
        return Space(max(width - 1, 1), 1 if height < _LOW else 3, height >= _COMFORTABLE)

    @property
    def top(self) -> int:
        """The first visible line, or the one to restore."""
        return self._wanted_top or round(self._pane.scroll_y)

    def viewport_at(self, top: int) -> Viewport:
        """Return the viewport of a form that is about to be shown."""
        return Viewport(top, self._height + _EXTRA_LINES)

    def resized(self, *, is_bare: bool) -> None:
        """Record the height of the pane; a pane without fields keeps the last height that had some."""
        self._was_bare = is_bare
        if not is_bare:
            self._last_height = self._pane.scrollable_content_region.height

    def update_viewport(self) -> None:
        """Pass the visible part to the fields."""
        fields = self._fields()
        if fields is not None:
            top = round(self._pane.scroll_y) - self._lines_above
            fields.set_viewport(self.space, Viewport(max(top, 0), self._pane.scrollable_content_region.height))

    def restore_later(self, top: int) -> None:
        """Scroll to a line as soon as the form is long enough (see `restore`)."""
        self._wanted_top = top

    def restore(self) -> None:
        """Scroll to the line set by `restore_later`, if the form is long enough now."""
        fields = self._fields()
        if not self._wanted_top or fields is None:
            return
        top = min(self._wanted_top, max(fields.measure() - self._pane.scrollable_content_region.height, 0))
        if self._pane.max_scroll_y >= top:
            self._scroll_to(top)
            self._wanted_top = 0

    def reveal_focus(self, tries: int = _TRIES) -> None:
        """Scroll the focused item into view; if it is higher than the viewport, show its start.

        Args:
            tries: How often to retry while the layout of the form is outdated.
        """
        fields = self._fields()
        view = fields.focused if fields is not None else None
        if fields is None or view is None:
            return
        fields.measure()
        height = self._pane.scrollable_content_region.height
        region = fields.lines_to_reveal(view)
        if region.height > height:
            region = fields.lines_at(view)
        top = region.y + self._lines_above
        if region.height > height:
            region = view.main.region
            top = round(self._pane.scroll_y) + region.y - self._pane.scrollable_content_region.y
        bottom, now = top + region.height, round(self._pane.scroll_y)
        if top < now or region.height > height:
            self._scroll_to(top)
        elif bottom > now + height:
            self._scroll_to(bottom - height)
            if round(self._pane.scroll_y) + height < bottom and tries:
                self._pane.set_timer(_FRAME_SECONDS, lambda: self.reveal_focus(tries - 1))

    def _scroll_to(self, top: int) -> None:
        self._pane.scroll_to(y=top, animate=False, force=True, immediate=True)

    @property
    def _height(self) -> int:
        """Height of the viewport, or its maximum; before fields are laid out, the last known one."""
        if self.most:
            return self.most
        return self._last_height if self._was_bare else self._pane.scrollable_content_region.height

    @property
    def _lines_above(self) -> int:
        return self._header.outer_size.height if self._header.display else 0
