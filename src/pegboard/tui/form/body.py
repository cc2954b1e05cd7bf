"""Fields of a form, of which only those in and near the viewport are mounted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from textual import events
from textual.await_remove import AwaitRemove
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.message import Message
from textual.reactive import Reactive
from textual.widget import Widget

from pegboard.forms import Container, Field, Form, ListField, MapField, MultiChoiceField
from pegboard.models import Fault
from pegboard.tui.form.editors import TextBox, TextLine
from pegboard.tui.form.field_view import FieldView, RowView
from pegboard.tui.form.focus import FormFocus
from pegboard.tui.form.frame import Space
from pegboard.tui.form.item_list import ItemList
from pegboard.tui.form.items import Folds, FormItem
from pegboard.tui.form.messages import Edited, LineSubmitted
from pegboard.tui.form.rows import AddLine, Fold, KeyLine, Selector
from pegboard.tui.form.view_pool import ViewPool

_BATCH = 6
"""Most items outside the viewport that are mounted or removed in one step, so that keys don't wait."""
_REST_SECONDS = 0.05
"""Delay before items next to the viewport are mounted."""
_KEPT = 3
"""Viewport heights above and below the viewport within which items stay mounted."""


@dataclass(frozen=True)
class Viewport:
    """Visible part of the form.

    Args:
        top: The first visible line.
        height: The number of visible lines.
    """

    top: int = 0
    height: int = 0


class FormBody(Widget):
    """Items of a form.

    Only items in the viewport, items next to it and the focused one are mounted. The height of the others is computed,
    so that the form has its full height from the start.

    Args:
        form: The form.
        folds: Which of its containers are collapsed.
        space: The space available to items.
        viewport: The visible part.
    """

    DEFAULT_CSS = "FormBody { width: 1fr; height: auto; }"

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), repaint=False)
    """Textual's reactive without its second layout on change, since the body doesn't scroll."""

    class Changed(Message):
        """The user changed a value of the form."""

    class Filled(Message):
        """The initial viewport is completely mounted."""

    class Focused(Message):
        """A view of the form was focused."""

        def __init__(self, view: FieldView) -> None:
            super().__init__()
            self.view = view

    def __init__(self, form: Form, folds: Folds, space: Space, viewport: Viewport) -> None:
        super().__init__()
        self._viewport = viewport
        self._is_filled = False
        self._added: Field | None = None
        """The row that was just added, until the focus leaves it."""
        self._column = _ColumnLayout()
        self._items = ItemList(form, folds, space)
        self._views = ViewPool(self, self._items)
        self._form_focus = FormFocus(self, self._items, self._views, rebuild=self.rebuild, announce=self._announce)

    @property
    def layout(self) -> Layout:
        """A layout that places items below each other."""
        return self._column

    @property
    def items(self) -> Sequence[FormItem]:
        """All items, mounted or not."""
        return self._items.items

    @property
    def views(self) -> Sequence[FieldView]:
        """The mounted views from top to bottom."""
        return self._views.in_order

    @property
    def focused(self) -> FieldView | None:
        """The view that is focused or about to be focused."""
        return self._form_focus.view

    @property
    def focused_path(self) -> str | None:
        """JSON Pointer to the field that is focused or about to be focused."""
        return self._form_focus.path

    @property
    def is_filled(self) -> bool:
        """Whether the initial viewport is completely mounted."""
        return self._is_filled

    @property
    def is_moving_focus(self) -> bool:
        """Whether a field is about to be focused."""
        return self._form_focus.is_moving

    def with_focus(self) -> FieldView | None:
        """Return the view that contains the focused widget."""
        return self._form_focus.current()

    def lines_at(self, view: FieldView) -> Region:
        """Return the region of a view, relative to the body."""
        top, height = self._items.lines_at(view.item.key)
        return Region(0, top, self._items.space.width, height)

    def lines_to_reveal(self, view: FieldView) -> Region:
        """Return the region to scroll to for a focused view: that of the whole row in a row that was just added."""
        row = self._added
        if row is None or not _is_inside(view.item.field, row):
            self._added = None
            return self.lines_at(view)
        lines = [self._items.lines_at(item.key) for item in self._items.items if _is_inside(item.field, row)]
        top, bottom = lines[0][0], max(first + height for first, height in lines)
        return Region(0, top, self._items.space.width, bottom - top)

    def field_at(self, path: str) -> Field | None:
        """Return the field at or around a JSON Pointer."""
        return self._items.field_at(path)

    # Viewport

    def show_form(self, form: Form, folds: Folds, space: Space, viewport: Viewport, typed_in: FieldView | None) -> None:
        """Show another form, reusing existing views where possible, since mounting new ones is slow.

        Args:
            form: The form.
            folds: Which of its containers are collapsed.
            space: The space available to items.
            viewport: The visible part.
            typed_in: The view that was focused, which isn't reused, since typed keys may still be on their way to it.
        """
        removed = self._views.release(typed_in)
        self._form_focus.cancel()
        self._items.show_form(form, folds, space)
        self._viewport, self._is_filled = viewport, False
        self._views.mount(sorted({*self._items.between(viewport.top, viewport.top + viewport.height), *self._pinned()}))
        removed += self._views.hide_spare(typed_in)
        if removed:
            self.remove_children(removed)
        self._request_layout()
        self._check_filled()
        if not self._is_filled:
            self._update_mounted()

    def set_viewport(self, space: Space, viewport: Viewport) -> None:
        """Show another part of the form, or the same part in a different space."""
        if space != self._items.space:
            for view in self._views:
                view.update_item(view.item, space)
            self._items.resize(space)
            self._request_layout()
        self._viewport = viewport
        self._update_mounted()

    def on_mount(self) -> None:
        """Mount the items in the viewport."""
        self._update_mounted()

    def remove(self) -> AwaitRemove:
        """Remove the body; it no longer focuses fields."""
        self._form_focus.is_closed = True
        self._form_focus.cancel()
        return super().remove()

    def hide(self) -> None:
        """Hide the body until the next `show_form`."""
        self._form_focus.cancel()
        self.display = False

    def measure(self) -> int:
        """Update the positions of all items, and return the total height in lines."""
        for view in self._views:
            if view.is_mounted:
                self._items.set_height(view.item.key, view.lines(self._items.space.width))
        return self._items.update_tops()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the height of all items in lines."""
        return self.measure()

    def place(self, children: Iterable[Widget]) -> ArrangeResult:
        """Place the views at the lines of their items."""
        self.measure()
        found: ArrangeResult = []
        for child in children:
            if not isinstance(child, FieldView) or self._views.get(child.item.key) is not child:
                continue
            found.append(WidgetPlacement(self.lines_at(child), NULL_OFFSET, NULL_SPACING, child))
        return found

    def _update_mounted(self) -> None:
        """Mount items in the viewport immediately and those next to it later; remove distant ones."""
        if not self.is_attached or not self._items.items:
            return
        top, height = self._viewport.top, self._viewport.height
        between, views = self._items.between, self._views
        pinned = self._pinned()
        missing = views.missing({*between(top, top + height), *pinned})
        near = views.missing(between(top - height // 2, top + height + height // 2))
        is_idle = near and not missing and self._is_filled
        soon = views.missing(between(top - height, top + 2 * height)) if is_idle else []
        views.mount(missing or soon[:_BATCH])
        if missing or soon:
            self.call_after_refresh(self._update_mounted)
            return
        distant = views.beyond({*between(top - _KEPT * height, top + (_KEPT + 1) * height), *pinned})
        # Removing them one at a time would cost a layout each.
        if len(distant) > _BATCH:
            views.remove(distant)

    def _pinned(self) -> set[int]:
        """Return the indexes of the items that are always mounted: the focused one, its neighbors, and both ends."""
        next_stop = self._items.next_stop
        ends = (next_stop(-1, 1), next_stop(len(self._items.items), -1))
        view = self.focused
        around: tuple[int | None, ...] = ()
        if view is not None:
            position = self._items.position(view.item.key)
            around = (position, next_stop(position, 1), next_stop(position, -1))
        return {position for position in (*ends, *around) if position is not None}

    def _request_layout(self) -> None:
        self._clear_arrangement_cache()
        self.refresh(layout=True)

    def _check_filled(self) -> None:
        """Announce that the viewport is completely mounted, if it is."""
        visible = self._items.between(self._viewport.top, self._viewport.top + self._viewport.height)
        views = [self._views.get(self._items.items[position].key) for position in visible]
        if all(view is not None and view.is_mounted for view in views):
            self._is_filled = True
            self.post_message(self.Filled())
            self.set_timer(_REST_SECONDS, self._update_mounted)

    # Items

    def rebuild(self) -> None:
        """Show the current items; if the focused one is gone, focus its replacement."""
        before = self.focused
        self._items.rebuild()
        self._form_focus.cancel_removed()
        outdated = self._views.update_items()
        if before is not None and before in outdated:
            self._form_focus.leave(before)
        self._views.remove(outdated)
        self._views.sort()
        self.show_faults(self._items.faults)
        self._update_mounted()
        if before is not None and before in outdated and not self.is_moving_focus:
            self._form_focus.move_to_replacement(before.item)

    def _sync(self) -> None:
        """Show the current values everywhere but in the focused editor."""
        focused = self.focused
        for view in self._views:
            if view is not focused:
                view.sync()

    def commit(self) -> None:
        """Rename the entry whose key is being typed."""
        view = self.focused
        if view is not None and view.key is not None:
            view.key.commit()

    def show_faults(self, faults: Sequence[Fault]) -> list[Fault]:
        """Show validation errors at their items, and return those without an item."""
        rest = self._items.show_faults(faults)
        self._views.redraw()
        self._request_layout()
        return rest

    def fold_all(self, is_open: bool) -> None:
        """Expand or collapse every container."""
        self._items.fold_all(is_open)
        self.rebuild()

    # Focus

    def focus_field(self, path: str | None) -> None:
        """Expand and focus the field at a JSON Pointer, or the first field; the last request wins."""
        self._form_focus.move_to_field(path)

    async def focus_next(self, by: int) -> bool:
        """Focus the next or previous widget; return False at the end of the form."""
        return await self._form_focus.move_by(by)

    def _announce(self, view: FieldView) -> None:
        self.post_message(self.Focused(view))

    def on_field_view_mounted(self, event: FieldView.Mounted) -> None:
        """Focus the view if it is awaited."""
        event.stop()
        self._form_focus.view_mounted(event.view)
        if not self._is_filled:
            self._check_filled()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Mount the neighbors of the focused view, and show a container as JSON while its JSON is edited."""
        self._form_focus.widget_focused(event.widget)
        view = self.focused
        if view is None:
            return
        self._announce(view)
        self._update_mounted()
        as_json = view.item.field if view.item.part == "raw" else None
        if as_json is not self._items.folds.as_json:
            self._items.folds.as_json = as_json
            self.rebuild()

    def on_descendant_blur(self) -> None:
        """Show that the focus is gone."""
        self._form_focus.mark()

    # Edits

    def on_edited(self, event: Edited) -> None:
        """Update views after an edit."""
        event.stop()
        event.field.touched = True
        if isinstance(event.field, Container) and not isinstance(event.field, MultiChoiceField):
            self.rebuild()
            self._sync()
        else:
            self._views.redraw()
        self.post_message(self.Changed())

    def on_fold_toggled(self, event: Fold.Toggled) -> None:
        """Expand or collapse a container; if it is already collapsed, focus the enclosing one."""
        event.stop()
        one = event.item.field
        if one.state == "null" and event.is_open:
            if one.can_recall:
                one.recall()
            else:
                one.unset()
            self._items.folds.set_open(one, True)
            self.post_message(Edited(one))
            return
        if event.is_open == event.item.is_open:
            around = self._items.position_around(one.parent)
            if around is not None:
                self._form_focus.move_to(around)
            return
        self._items.folds.set_open(one, event.is_open)
        self.rebuild()

    def on_selector_typed(self, event: Selector.Typed) -> None:
        """Insert the text into the editor of the variant, and focus it."""
        event.stop()
        position = self._items.position_of_field(event.field)
        if position is None:
            return
        self._form_focus.move_to(position)
        view = self._views.get(self._items.items[position].key)
        _type(view.main if view is not None else None, event.text)

    async def on_add_line_pressed(self, event: AddLine.Pressed) -> None:
        """Add a row at the end, and type into it."""
        event.stop()
        if isinstance(event.field, ListField):
            self._insert_row(event.field, len(event.field.rows))
        elif isinstance(event.field, MapField):
            self._show_row(event.field, event.field.add().field)
        await self._form_focus.wait()
        if event.text:
            _type(self.screen.focused, event.text)

    async def on_line_submitted(self, event: LineSubmitted) -> None:
        """Add a row below the current one, or focus the next field."""
        event.stop()
        row, holder = event.field, event.field.parent
        while holder is not None and not isinstance(holder, ListField | MapField) and holder.path == row.path:
            row, holder = holder, holder.parent
        at_key = self.focused is not None and self.focused.key is self.screen.focused
        if isinstance(holder, ListField) and int(row.name) >= holder.fixed - (not holder.can_add) and holder.can_add:
            self._insert_row(holder, int(row.name) + 1)
        elif isinstance(holder, MapField) and holder.entries and holder.entries[-1].field is row and not at_key:
            self._show_row(holder, holder.add().field)
        elif not await self.focus_next(1):
            self.screen.focus_next()
        await self._form_focus.wait()

    def on_row_view_moved(self, event: RowView.Moved) -> None:
        """Move a row."""
        event.stop()
        holder, index = _row_of(event.item)
        if holder.move(index, event.by) != index:
            self._show_rows(holder)

    async def on_row_view_removed(self, event: RowView.Removed) -> None:
        """Remove a row, and focus the next one."""
        event.stop()
        holder, index = _row_of(event.item)
        holder.remove(index)
        self._form_focus.cancel()
        self.screen.set_focus(None)
        self._show_rows(holder)
        rows = holder.children
        position = self._items.position_of_field(rows[min(index, len(rows) - 1)] if rows else holder)
        assert position is not None, "the list is unfolded"
        self._form_focus.move_to(position)
        await self._form_focus.wait()

    def _insert_row(self, holder: ListField, index: int) -> None:
        self._show_row(holder, holder.add(index))

    def _show_row(self, holder: Container, row: Field) -> None:
        """Show and focus a row that was added."""
        self._added = row
        self._items.folds.set_open(holder, True)
        self._items.folds.set_open(row, True)
        self._show_rows(holder)
        position = self._items.position_of_field(row)
        assert position is not None, "the list is unfolded"
        if self._items.items[position].part == "header" and self._items.items[position].entry is None:
            inside = self._items.next_stop(position, 1)
            position = inside if inside is not None else position
        self._form_focus.move_to(position)

    def _show_rows(self, holder: Container) -> None:
        """Show a list or map after its rows changed."""
        holder.touched = True
        self.rebuild()
        self._views.redraw()
        self.post_message(self.Changed())


def _type(editor: Widget | None, text: str) -> None:
    """Insert a typed or pasted text into an editor; do nothing with other widgets."""
    if isinstance(editor, TextLine):
        editor.insert_text(text)
    elif isinstance(editor, KeyLine):
        editor.insert_text_at_cursor(text.splitlines()[0])  # as Textual does with a text that is pasted into a line
    elif isinstance(editor, TextBox):
        editor.insert(text)


class _ColumnLayout(Layout):
    """Layout that delegates to `FormBody.place`."""

    name = "column"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        """Place the items."""
        assert isinstance(parent, FormBody), "used by FormBody only"
        return parent.place(children)


def _is_inside(field: Field, row: Field) -> bool:
    while field is not row and field.parent is not None:
        field = field.parent
    return field is row


def _row_of(item: FormItem) -> tuple[ListField | MapField, int]:
    assert item.holder is not None, "only rows are moved and removed"
    return item.holder, item.index
