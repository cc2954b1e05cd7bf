"""Focus of a form, also on fields that aren't mounted yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from textual.widget import Widget

from pegboard.forms import Field
from pegboard.tui.form.field_view import FieldView
from pegboard.tui.form.item_list import ItemList
from pegboard.tui.form.items import FormItem, ItemKey
from pegboard.tui.form.view_pool import ViewPool

_MOUNT_TIMEOUT = 0.5
"""Seconds that a key waits for the field to which it moves the focus."""


class FormFocus:
    """Focused item of a form, or the item that is focused as soon as it is mounted.

    Args:
        body: The widget in which views are mounted.
        items: The items.
        views: Their views.
        rebuild: Called after containers were expanded.
        announce: Called with the view that was focused.
    """

    def __init__(
        self,
        body: Widget,
        items: ItemList,
        views: ViewPool,
        *,
        rebuild: Callable[[], None],
        announce: Callable[[FieldView], None],
    ) -> None:
        self.is_closed = False
        """Whether the body is being removed and never focuses a field again."""
        self._body = body
        self._items = items
        self._views = views
        self._rebuild = rebuild
        self._announce = announce
        self._target: tuple[ItemKey, bool] | None = None
        """The item to focus once it is mounted, and whether to focus its last widget."""
        self._previous: Widget | None = None
        """The widget that was focused when the target was set."""

    @property
    def is_moving(self) -> bool:
        """Whether a field is about to be focused."""
        return self._target is not None

    @property
    def view(self) -> FieldView | None:
        """The view that is focused or about to be focused."""
        return self._views.get(self._target[0]) if self._target is not None else self.current()

    @property
    def path(self) -> str | None:
        """JSON Pointer to the field that is focused or about to be focused."""
        if self._target is not None:
            return self._items.items[self._items.position(self._target[0])].field.path
        view = self.current()
        return view.item.field.path if view is not None else None

    def current(self) -> FieldView | None:
        """Return the view that contains the focused widget."""
        node = self._body.screen.focused if self._body.is_attached else None
        while node is not None and not isinstance(node, FieldView):
            node = node.parent if isinstance(node.parent, Widget) else None
        return node if node is not None and self._views.get(node.item.key) is node else None

    def cancel(self) -> None:
        """Stop waiting for a field to be mounted."""
        self._target = None

    def cancel_removed(self) -> None:
        """Stop waiting for a field that no longer has an item."""
        if self._target is not None and self._target[0] not in self._items:
            self._target = None

    def leave(self, view: FieldView) -> None:
        """Clear the focus if it is in a view that is about to be removed.

        Otherwise Textual would focus a neighbor, and announce that after the next field was requested.
        """
        screen = self._body.screen
        if screen.focused is not None and view in screen.focused.ancestors_with_self:
            screen.set_focus(None)

    def widget_focused(self, widget: Widget) -> None:
        """Cancel the target if the user focused another widget meanwhile."""
        if widget is self._body.screen.focused and widget is not self._previous:
            self._target = None
        self.mark()

    def view_mounted(self, view: FieldView) -> None:
        """Focus a view if it is the target."""
        if self._target is not None and self._target[0] == view.item.key:
            self._reach(view)

    def mark(self) -> None:
        """Show all notes in the focused view only."""
        focused = self.current()
        for view in self._views:
            view.show_focus(view is focused)

    # Moving

    def move_to_field(self, path: str | None) -> None:
        """Expand and focus the field at a JSON Pointer, or the first field with an editor."""
        one = self._items.field_at(path) if path else None
        if one is None:
            first = self._items.first_editor()
            if first is not None:
                self.move_to(first)
            return
        if self._items.unfold_around(one):
            self._rebuild()
        self.move_to_shown(one)

    def move_to_shown(self, one: Field) -> None:
        """Focus a field or its nearest visible ancestor; of entries with the same key, prefer one with an error."""
        position = self._items.position_around(one)
        if position is None:
            return
        item = self._items.items[position]
        if item.entry is not None:
            same = (
                other for other, entry in enumerate(self._items.items) if entry.messages and _has_path_of(entry, item)
            )
            position = next(same, position)
        stop = position if self._items.items[position].is_stop else self._items.next_stop(position, 1)
        if stop is not None:
            self.move_to(stop)

    def move_to_replacement(self, item: FormItem) -> None:
        """Focus the item that replaced another, or the container in which it is collapsed."""
        for position, other in enumerate(self._items.items):
            if other.part == item.part and other.field is item.field and other.is_stop:
                self.move_to(position)
                return
        one = self._items.field_at(item.field.path)
        if one is None:
            self.move_to_field(None)
        else:
            self.move_to_shown(one)

    async def move_by(self, by: int) -> bool:
        """Focus the next or previous widget, mounting it first; return False at the end of the form."""
        view, screen = self.view, self._body.screen
        if view is None:
            return False
        stops = view.stops
        here = next((index for index, stop in enumerate(stops) if stop is screen.focused), None)
        if here is not None and 0 <= here + by < len(stops):
            screen.set_focus(stops[here + by], scroll_visible=False)
            return True
        position = self._items.next_stop(self._items.position(view.item.key), by)
        if position is None:
            return False
        self.move_to(position, from_end=by < 0)
        await self.wait()
        return True

    async def wait(self) -> None:
        """Wait until the item to focus is mounted: the next key may already be typed, and belongs to it."""
        view = self._views.get(self._target[0]) if self._target is not None else None
        if view is None or view.is_mounted:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_MOUNT_TIMEOUT):
                await view.mounted.wait()
        self.view_mounted(view)

    def move_to(self, position: int, *, from_end: bool = False) -> None:
        """Focus an item as soon as it is mounted."""
        if self.is_closed:
            return
        key = self._items.items[position].key
        is_attached = self._body.is_attached
        self._target, self._previous = (key, from_end), self._body.screen.focused if is_attached else None
        if not is_attached:
            return
        if key not in self._views:
            self._views.mount([position])
        view = self._views.get(key)
        if view is not None and view.is_mounted:
            self._reach(view)

    def _reach(self, view: FieldView) -> None:
        assert self._target is not None, "a view is focused on request"
        stops = view.stops
        from_end, self._target = self._target[1], None
        if stops:
            self._body.screen.set_focus(stops[-1 if from_end else 0], scroll_visible=False)
            self.mark()
            self._announce(view)


def _has_path_of(one: FormItem, other: FormItem) -> bool:
    return one.field.path == other.field.path
