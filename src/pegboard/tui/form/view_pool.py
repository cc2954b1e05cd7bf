"""Mounted views of a form's items, and spare ones for the next form."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from textual.widget import Widget

from pegboard.tui.form.field_view import FieldView, view_kind, view_of
from pegboard.tui.form.item_list import ItemList
from pegboard.tui.form.items import FormItem, ItemKey

_MOST_SPARE = 24
"""Most spare views of one kind. Mounting is slow, so views are reused."""


class ViewPool:
    """Views of items, mounted in a parent widget.

    Args:
        parent: The widget in which views are mounted.
        items: The items.
    """

    def __init__(self, parent: Widget, items: ItemList) -> None:
        self._parent = parent
        self._items = items
        self._views: dict[ItemKey, FieldView] = {}
        self._spare: list[FieldView] = []
        """Hidden views that wait for an item of their kind."""

    def __iter__(self) -> Iterator[FieldView]:
        return iter([*self._views.values()])

    def __contains__(self, key: ItemKey) -> bool:
        return key in self._views

    def get(self, key: ItemKey) -> FieldView | None:
        """Return the view of an item, or None if it isn't mounted."""
        return self._views.get(key)

    @property
    def in_order(self) -> Sequence[FieldView]:
        """The views from top to bottom."""
        return [self._views[key] for key in sorted(self._views, key=self._items.position)]

    def missing(self, positions: Iterable[int]) -> list[int]:
        """Return which of some items have no view, in their order."""
        return sorted(position for position in positions if self._items.items[position].key not in self._views)

    def beyond(self, positions: set[int]) -> list[FieldView]:
        """Return the views of all items except those at some positions."""
        return [view for key, view in self._views.items() if self._items.position(key) not in positions]

    def mount(self, positions: Sequence[int]) -> None:
        """Mount the items at some positions, in order among those already mounted."""
        mounted = sorted(self._items.position(key) for key in self._views)
        for run in _runs(positions, mounted):
            views = [self._make_view(self._items.items[position]) for position in run]
            after = bisect_right(mounted, run[-1])
            before = self._views[self._items.items[mounted[after]].key] if after < len(mounted) else None
            self._views.update((view.item.key, view) for view in views)
            new = [view for view in views if view.parent is None]
            if new:
                self._parent.mount(*new, before=before)

    def remove(self, views: Sequence[FieldView]) -> None:
        """Remove views from the screen."""
        for view in views:
            self._views.pop(view.item.key, None)
        if views:
            self._parent.remove_children(views)

    def update_items(self) -> list[FieldView]:
        """Show the current items in the existing views; return the views whose items no longer exist."""
        outdated = []
        for key, view in self._views.items():
            if key in self._items:
                view.update_item(self._items.items[self._items.position(key)], self._items.space)
            else:
                outdated.append(view)
        return outdated

    def sort(self) -> None:
        """Put the children of the parent into the order of their items."""
        ordered = self.in_order
        wanted = set(ordered)
        if [view for view in self._parent.children if view in wanted] == ordered:
            return
        for before, view in pairwise(ordered):
            self._parent.move_child(view, after=before)

    def redraw(self) -> None:
        """Redraw status and validation errors of every view."""
        for view in self._views.values():
            view.redraw()

    # Reuse

    def release(self, typed_in: FieldView | None) -> list[FieldView]:
        """Make the views available for another form; return those that can't be reused.

        Args:
            typed_in: The focused view, which isn't reused, since typed keys may still be on their way to it.
        """
        views = self.in_order
        self._views = {}
        self._spare += [view for view in views if view.is_mounted and view is not typed_in]
        return [view for view in views if not view.is_mounted and view is not typed_in]

    def hide_spare(self, typed_in: FieldView | None) -> list[FieldView]:
        """Hide the views that are still spare, and `typed_in`; return those above the limit."""
        if typed_in is not None:
            self._spare.append(typed_in)
        kinds: Counter[object] = Counter()
        kept, surplus = [], []
        for view in self._spare:
            kinds[view.kind] += 1
            if view.kind is None or kinds[view.kind] > _MOST_SPARE:
                surplus.append(view)
            else:
                view.display = False
                kept.append(view)
        self._spare = kept
        return surplus

    def _make_view(self, item: FormItem) -> FieldView:
        """Return a view of an item: a spare one, or a new one that still has to be mounted."""
        wanted = view_kind(item)
        found = next((view for view in self._spare if view.kind is wanted), None) if wanted is not None else None
        if found is None:
            return view_of(item, self._items.space)
        self._spare.remove(found)
        found.show_item(item, self._items.space)
        found.display = True
        return found


def _runs(positions: Sequence[int], mounted: Sequence[int]) -> Iterator[list[int]]:
    """Split sorted positions into runs between the same mounted neighbors."""
    run: list[int] = []
    for position in positions:
        if run and bisect_right(mounted, run[-1]) != bisect_right(mounted, position):
            yield run
            run = []
        run.append(position)
    if run:
        yield run
