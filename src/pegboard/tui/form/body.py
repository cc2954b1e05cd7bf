"""The fields of a form on the screen: a long row of items, of which those in sight and next to it are mounted."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise

from textual import events
from textual.await_remove import AwaitRemove
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.message import Message
from textual.reactive import Reactive
from textual.widget import AwaitMount, Widget

from pegboard.forms import Container, Field, Form, ListField, MapField, MultiChoiceField, SectionField
from pegboard.models import Fault
from pegboard.results.clean import clean, clean_line
from pegboard.tui.form.editors import Edited, Entered
from pegboard.tui.form.field_view import FieldView, RowView, kind, view_of
from pegboard.tui.form.frame import Room, lines_of
from pegboard.tui.form.items import Folds, Item, Key, is_folding, items_of
from pegboard.tui.form.rows import AddLine, Fold

_AT_ONCE = 6
"""Items out of sight that are mounted in one go; more would keep the keys waiting."""
_REST_SECONDS = 0.05
"""After which what is next to what is in sight is mounted."""
_LONGEST_WAIT = 0.5
"""Seconds that a key may wait for the field that it goes to."""
_SPARE = 24
"""Views of one kind that are kept for the next form: mounting takes long."""
_KEPT = 3
"""Heights of the form above and below what is in sight within which items stay mounted."""


@dataclass(frozen=True)
class Sight:
    """What of the form is in sight: its lines from `top` on, so many of them."""

    top: int = 0
    height: int = 0


class FormBody(Widget):
    """Shows the items of a form.

    Only those in sight, those next to it, and the one with the focus are mounted. How many lines the others take is
    computed, so that the form is as long as it is from the start.

    Args:
        form: The form.
        folds: Which of its containers are folded.
        room: What there is to draw in.
        sight: What of it is in sight.
    """

    DEFAULT_CSS = "FormBody { width: 1fr; height: auto; }"

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), repaint=False)
    """Textual's own, which lays the screen out once more whenever it changes; this doesn't scroll."""

    class Changed(Message):
        """Somebody changed what is in the form."""

    class Filled(Message):
        """All that is in sight at first has been put on the screen."""

    class Reached(Message):
        """Something in the view of an item has the focus."""

        def __init__(self, view: FieldView) -> None:
            super().__init__()
            self.view = view

    def __init__(self, form: Form, folds: Folds, room: Room, sight: Sight) -> None:
        super().__init__()
        self._form = form
        self._folds = folds
        self._room = room
        self._sight = sight
        self._items: list[Item] = []
        self._places: dict[Key, int] = {}
        self._shown: dict[Field, int] = {}
        self._views: dict[Key, FieldView] = {}
        self._spare: list[FieldView] = []
        """Views that show nothing now and wait for an item of their kind."""
        self._heights: list[int] = []
        self._tops: list[int] = [0]
        self._faults: Sequence[Fault] = ()
        self._goal: tuple[Key, bool] | None = None
        self._goal_from: Widget | None = None
        self._is_leaving = False
        self._is_filled = False
        self._column = _Column()
        self._list()

    @property
    def layout(self) -> Layout:
        """Every item stands where all that are above it end."""
        return self._column

    @property
    def items(self) -> Sequence[Item]:
        """All items, mounted or not."""
        return self._items

    @property
    def views(self) -> Sequence[FieldView]:
        """The views of the items that are mounted, from top to bottom."""
        return [self._views[key] for key in sorted(self._views, key=self._places.__getitem__)]

    @property
    def focused(self) -> FieldView | None:
        """The view that has the focus, or is about to have it."""
        return self._views.get(self._goal[0]) if self._goal is not None else self.with_focus()

    @property
    def is_filled(self) -> bool:
        """Whether all that was in sight at first has been put on the screen."""
        return self._is_filled

    @property
    def is_going(self) -> bool:
        """Whether something in it is about to have the focus."""
        return self._goal is not None

    def with_focus(self) -> FieldView | None:
        """Gives the view that has the focus already."""
        node = self.screen.focused if self.is_attached else None
        while node is not None and not isinstance(node, FieldView):
            node = node.parent if isinstance(node.parent, Widget) else None
        return node if node is not None and self._views.get(node.item.key) is node else None

    @property
    def focused_path(self) -> str | None:
        """A JSON Pointer to what has the focus, or is about to have it; None if nothing in the form has."""
        if self._goal is not None:
            return self._items[self._places[self._goal[0]]].field.path
        view = self.focused
        return view.item.field.path if view is not None else None

    def lines_at(self, view: FieldView) -> Region:
        """Gives the lines of a view, from the top of the form on."""
        place = self._places[view.item.key]
        return Region(0, self._tops[place], self._room.width, self._heights[place])

    # What is in sight

    def turn_to(self, form: Form, folds: Folds, room: Room, sight: Sight, typed_in: FieldView | None) -> None:
        """Shows another form, in the views that are there as far as they suit: new ones take their time.

        Args:
            form: The form.
            folds: Which of its containers are folded.
            room: What it has to draw in.
            sight: What of it is in sight.
            typed_in: The view that had the focus: what was typed may still be on its way to it, so it shows nothing
                of this form.
        """
        left = [view for view in self.views if view.is_mounted and view is not typed_in]
        gone = [view for view in self._views.values() if view not in left and view is not typed_in]
        self._form, self._folds, self._room, self._sight = form, folds, room, sight
        self._faults, self._goal, self._is_filled = (), None, False
        self._views = {}
        self._list()
        self._spare += left
        self._mount(sorted({*self._between(sight.top, sight.top + sight.height), *self._pinned()}))
        self._spare += [typed_in] if typed_in is not None else []
        gone += self._put_aside()
        if gone:
            self.remove_children(gone)
        self._lay_out()
        self._tell_filled()
        if not self._is_filled:
            self._settle()

    def _put_aside(self) -> list[FieldView]:
        """Hides the views that show nothing now, so that another form can have them; gives those that are too many."""
        kinds: Counter[object] = Counter()
        kept, gone = [], []
        for view in self._spare:
            kinds[view.kind] += 1
            if view.kind is None or kinds[view.kind] > _SPARE:
                gone.append(view)
            else:
                view.display = False
                kept.append(view)
        self._spare = kept
        return gone

    def _view(self, item: Item) -> FieldView:
        """Gives a view of an item: one that is to spare, or a new one, which is still to be mounted."""
        wanted = kind(item)
        found = next((view for view in self._spare if view.kind is wanted), None) if wanted is not None else None
        if found is None:
            return view_of(item, self._room)
        self._spare.remove(found)
        found.turn_to(item, self._room)
        found.display = True
        return found

    def look(self, room: Room, sight: Sight) -> None:
        """Shows another part of the form, or the same in other room."""
        if room != self._room:
            self._room = room
            for view in self._views.values():
                view.take(view.item, room)
            self._heights = [lines_of(item, room) for item in self._items]
            self._lay_out()
        self._sight = sight
        self._settle()

    def on_mount(self) -> None:
        """Mounts what is in sight."""
        self._settle()

    def remove(self) -> AwaitRemove:
        """Leaves the screen, and the focus to what takes its place."""
        self._is_leaving, self._goal = True, None
        return super().remove()

    def rest(self) -> None:
        """Leaves the sight, and the focus to what takes its place, until `turn_to`."""
        self._goal = None
        self.display = False

    def measure(self) -> int:
        """Finds where every item stands; gives the lines of all."""
        for key, view in self._views.items():
            if view.is_mounted:
                self._heights[self._places[key]] = view.lines(self._room.width)
        self._tops = [*accumulate(self._heights, initial=0)]
        return self._tops[-1]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Gives the lines of all items."""
        return self.measure()

    def place(self, children: Iterable[Widget]) -> ArrangeResult:
        """Places the views of items."""
        self.measure()
        found: ArrangeResult = []
        for child in children:
            if not isinstance(child, FieldView) or self._views.get(child.item.key) is not child:
                continue
            region = self.lines_at(child)
            found.append(WidgetPlacement(region, NULL_OFFSET, NULL_SPACING, child))
        return found

    def _settle(self) -> None:
        """Mounts what is in sight at once, what is next to it a little later, and lets go of what is far off."""
        if not self.is_attached or not self._items:
            return
        top, height = self._sight.top, self._sight.height
        pinned = self._pinned()
        missing = self._missing({*self._between(top, top + height), *pinned})
        near = self._missing(self._between(top - height // 2, top + height + height // 2))
        is_time = near and not missing and self._is_filled
        soon = self._missing(self._between(top - height, top + 2 * height)) if is_time else []
        self._mount(missing or soon[:_AT_ONCE])
        if missing or soon:
            self.call_after_refresh(self._settle)
            return
        kept = {*self._between(top - _KEPT * height, top + (_KEPT + 1) * height), *pinned}
        far = [view for key, view in self._views.items() if self._places[key] not in kept]
        # One at a time they would cost a layout each.
        if len(far) > _AT_ONCE:
            self._let_go(far)

    def _between(self, top: int, bottom: int) -> range:
        """Gives the places of the items that have lines from `top` up to `bottom`."""
        first = max(bisect_right(self._tops, top) - 1, 0)
        last = bisect_right(self._tops, max(bottom - 1, 0))
        return range(min(first, len(self._items)), min(last, len(self._items)))

    def _pinned(self) -> set[int]:
        """Gives the places that are mounted wherever they are: the focus and its neighbours, both ends."""
        ends = (self._next_stop(-1, 1), self._next_stop(len(self._items), -1))
        view = self.focused
        around: tuple[int | None, ...] = ()
        if view is not None:
            place = self._places[view.item.key]
            around = (place, self._next_stop(place, 1), self._next_stop(place, -1))
        return {place for place in (*ends, *around) if place is not None}

    def _next_stop(self, place: int, by: int) -> int | None:
        """Gives the place of the next item that can have the focus; None if there is none."""
        place += by
        while 0 <= place < len(self._items):
            if self._items[place].is_stop:
                return place
            place += by
        return None

    def _missing(self, places: Iterable[int]) -> list[int]:
        return sorted(place for place in places if self._items[place].key not in self._views)

    def _mount(self, places: Sequence[int]) -> list[AwaitMount]:
        """Mounts the items at some places, in their order among those that are mounted already."""
        standing = sorted(self._places[key] for key in self._views)
        mounts: list[AwaitMount] = []
        for run in _runs(places, standing):
            views = [self._view(self._items[place]) for place in run]
            after = bisect_right(standing, run[-1])
            before = self._views[self._items[standing[after]].key] if after < len(standing) else None
            self._views.update((view.item.key, view) for view in views)
            new = [view for view in views if view.parent is None]
            if new:
                mounts.append(self.mount(*new, before=before))
        return mounts

    def _let_go(self, views: Sequence[FieldView]) -> None:
        for view in views:
            self._views.pop(view.item.key, None)
        if views:
            self.remove_children(views)

    def _lay_out(self) -> None:
        self._clear_arrangement_cache()
        self.refresh(layout=True)

    # What there is

    def rebuild(self) -> None:
        """Shows the items there are now; what stays keeps its view, and the focus the place nearest to where it was."""
        before = self.focused
        self._list()
        gone = [view for key, view in self._views.items() if key not in self._places]
        if self._goal is not None and self._goal[0] not in self._places:
            self._goal = None
        if before in gone and self.screen.focused is not None and before in self.screen.focused.ancestors_with_self:
            # Textual would give the focus to some neighbour, and tell of it after the next is asked for.
            self.screen.set_focus(None)
        for key, view in self._views.items():
            if key in self._places:
                view.take(self._items[self._places[key]], self._room)
        self._let_go(gone)
        self._order()
        self.show_faults(self._faults)
        self._settle()
        if before is not None and before in gone and self._goal is None:
            self._focus_like(before.item)

    def _sync(self) -> None:
        """Shows what is in the fields, but for the editor that is being typed in."""
        focused = self.focused
        for view in self._views.values():
            if view is not focused:
                view.sync()

    def commit(self) -> None:
        """Gives entries the keys that are being typed."""
        view = self.focused
        if view is not None and view.key is not None:
            view.key.commit()

    def show_faults(self, faults: Sequence[Fault]) -> list[Fault]:
        """Shows what is wrong, each at its item; gives what has none."""
        self._faults = faults
        for item in self._items:
            item.messages, item.hidden_faults = (), 0
        rest = [fault for fault in self._faults_of_keys(faults) if not self._tell(fault)] if faults else []
        self._heights = [lines_of(item, self._room) for item in self._items]
        for view in self._views.values():
            view.redraw()
        self._lay_out()
        return rest

    def _list(self) -> None:
        known = {item.key: item.lines for item in self._items}
        self._items = items_of(self._form, self._folds)
        self._places = {item.key: place for place, item in enumerate(self._items)}
        self._shown = {}
        for place, item in enumerate(self._items):
            item.lines = known.get(item.key, item.lines)
            if item.part != "add" or item.is_named or item.holder is not None:
                self._shown.setdefault(item.field, place)
        self._shown.update((item.field, place) for place, item in enumerate(self._items) if item.part == "raw")
        self._heights = [lines_of(item, self._room) for item in self._items]
        self._tops = [*accumulate(self._heights, initial=0)]

    def _order(self) -> None:
        """Puts the views into the order of their items."""
        ordered = self.views
        standing = [view for view in self.children if view in set(ordered)]
        if standing == ordered:
            return
        for before, view in pairwise(ordered):
            self.move_child(view, after=before)

    def _faults_of_keys(self, faults: Sequence[Fault]) -> Iterator[Fault]:
        """Shows what is wrong with the keys of entries; gives the rest."""
        told = set()
        for item in self._items:
            if item.entry is None or not isinstance(item.holder, MapField):
                continue
            message = item.holder.key_fault(item.index)
            fault = Fault(path=item.field.path, message=message)
            if message and fault in faults:
                item.messages += (clean(message),)
                told.add(fault)
        return (fault for fault in faults if fault not in told)

    def _tell(self, fault: Fault) -> bool:
        """Shows a fault at its item, or counts it at the container that hides it; says whether there is one."""
        one = self.field_at(fault.path)
        if one is None:
            return False
        inner, place = one, self._shown.get(one)
        while place is None and inner.parent is not None:
            inner = inner.parent
            place = self._shown.get(inner)
        if place is None:
            return False
        item = self._items[place]
        if not item.is_open and inner is not one:
            item.hidden_faults += 1
        else:
            item.messages += (_told(fault, inner.path),)
        return True

    def field_at(self, path: str) -> Field | None:
        """Gives the field that a JSON Pointer leads to or into; builds the sections on the way."""
        one = self._form.field_at(path)
        while isinstance(one, SectionField) and not one.is_built and one.path != path and one.names:
            one.children  # noqa: B018 - asking for them builds them
            one = self._form.field_at(path)
        return one

    # Where the focus goes

    def focus_field(self, path: str | None) -> None:
        """Unfolds what a JSON Pointer leads into and focuses it, or the first field there is.

        What is asked for last is what gets the focus, even where it has to be put on the screen first.
        """
        one = self.field_at(path) if path else None
        if one is None:
            first = self._next_stop(-1, 1)
            if first is not None:
                self._go_to(first)
            return
        around = one.parent
        folded = False
        while around is not None:
            if is_folding(around) and not self._folds.is_open(around) and around.state != "null":
                self._folds.put(around, True)
                folded = True
            around = around.parent
        if folded:
            self.rebuild()
        self._focus_shown(one)

    def _focus_shown(self, one: Field) -> None:
        """Focuses a field, or the nearest around it that is in sight; of entries with the same key a faulty one."""
        inner: Field | None = one
        while inner is not None and inner not in self._shown:
            inner = inner.parent
        if inner is None:
            return
        place = self._shown[inner]
        if self._items[place].entry is not None:
            same = (other for other, item in enumerate(self._items) if item.messages and item.field.path == inner.path)
            place = next(same, place)
        stop = place if self._items[place].is_stop else self._next_stop(place, 1)
        if stop is not None:
            self._go_to(stop)

    def _focus_like(self, item: Item) -> None:
        """Focuses what has taken the place of an item, or what it is folded away in."""
        for place, other in enumerate(self._items):
            if other.part == item.part and other.field is item.field and other.is_stop:
                self._go_to(place)
                return
        one = self.field_at(item.field.path)
        if one is None:
            self.focus_field(None)
        else:
            self._focus_shown(one)

    async def focus_next(self, by: int) -> bool:
        """Moves the focus by one, mounting what it goes to first; says whether there was anything to go to."""
        view = self.focused
        if view is None:
            return False
        stops = view.stops
        here = next((place for place, stop in enumerate(stops) if stop is self.screen.focused), None)
        if here is not None and 0 <= here + by < len(stops):
            self.screen.set_focus(stops[here + by], scroll_visible=False)
            return True
        place = self._next_stop(self._places[view.item.key], by)
        if place is None:
            return False
        self._go_to(place, from_end=by < 0)
        view = self._views[self._items[place].key]
        if not view.is_mounted:
            # The next key may be typed already, and is meant for the field that the focus is on its way to.
            with suppress(TimeoutError):
                await asyncio.wait_for(view.stands.wait(), _LONGEST_WAIT)
            if self._goal is not None and self._goal[0] == view.item.key:
                self._reach(view)
        return True

    def _go_to(self, place: int, *, from_end: bool = False) -> None:
        """Focuses something in an item, as soon as it stands."""
        if self._is_leaving:
            return
        key = self._items[place].key
        self._goal, self._goal_from = (key, from_end), self.screen.focused if self.is_attached else None
        if not self.is_attached:
            return
        if key not in self._views:
            self._mount([place])
        if self._views[key].is_mounted:
            self._reach(self._views[key])

    def _reach(self, view: FieldView) -> None:
        assert self._goal is not None, "it was asked for"
        stops = view.stops
        from_end, self._goal = self._goal[1], None
        if stops:
            self.screen.set_focus(stops[-1 if from_end else 0], scroll_visible=False)
            self._mark()
            self.post_message(self.Reached(view))

    def _mark(self) -> None:
        """Lets the view with the focus, and no other, say all there is to say."""
        focused = self.with_focus()
        for view in self._views.values():
            view.show_focus(view is focused)

    def on_field_view_stands(self, event: FieldView.Stands) -> None:
        """Focuses what was waited for."""
        event.stop()
        if self._goal is not None and self._goal[0] == event.view.item.key:
            self._reach(event.view)
        if not self._is_filled:
            self._tell_filled()

    def _tell_filled(self) -> None:
        """Tells that all in sight is there, if it is."""
        sight = self._between(self._sight.top, self._sight.top + self._sight.height)
        views = [self._views.get(self._items[place].key) for place in sight]
        if all(view is not None and view.is_mounted for view in views):
            self._is_filled = True
            self.post_message(self.Filled())
            self.set_timer(_REST_SECONDS, self._settle)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Forgets what was to have the focus if the user has gone elsewhere since."""
        if event.widget is self.screen.focused and event.widget is not self._goal_from:
            self._goal = None
        self._mark()
        view = self.focused
        if view is None:
            return
        self.post_message(self.Reached(view))
        self._settle()
        as_json = view.item.field if view.item.part == "raw" else None
        if as_json is not self._folds.as_json:
            self._folds.as_json = as_json
            self.rebuild()

    def on_descendant_blur(self) -> None:
        """Shows that the focus has gone."""
        self._mark()

    # What the user does

    def on_edited(self, event: Edited) -> None:
        """Shows what follows from it."""
        event.stop()
        event.field.touched = True
        if isinstance(event.field, Container) and not isinstance(event.field, MultiChoiceField):
            self.rebuild()
            self._sync()
        else:
            for view in self._views.values():
                view.redraw()
        self.post_message(self.Changed())

    def on_fold_asked(self, event: Fold.Asked) -> None:
        """Folds or unfolds; folded already, goes to what is around."""
        event.stop()
        one = event.item.field
        if one.state == "null" and event.is_open:
            if one.can_recall:
                one.recall()
            else:
                one.unset()
            self._folds.put(one, True)
            self.post_message(Edited(one))
            return
        if event.is_open == event.item.is_open:
            around = one.parent
            while around is not None and around not in self._shown:
                around = around.parent
            if around is not None:
                self._go_to(self._shown[around])
            return
        self._folds.put(one, event.is_open)
        self.rebuild()

    def fold_all(self, is_open: bool) -> None:
        """Folds or unfolds every container."""
        self._folds.put_all(self._form, is_open)
        self.rebuild()

    def on_add_line_pressed(self, event: AddLine.Pressed) -> None:
        """Adds a row at the end."""
        event.stop()
        if isinstance(event.field, ListField):
            self._insert(event.field, len(event.field.rows))
        elif isinstance(event.field, MapField):
            self._added(event.field, event.field.add().field)

    async def on_entered(self, event: Entered) -> None:
        """Adds a row below the one in which Enter was pressed, or goes to the next field."""
        event.stop()
        row, holder = event.field, event.field.parent
        while holder is not None and not isinstance(holder, ListField | MapField) and holder.path == row.path:
            row, holder = holder, holder.parent
        at_key = self.focused is not None and self.focused.key is self.screen.focused
        if isinstance(holder, ListField) and int(row.name) >= holder.fixed - (not holder.can_add) and holder.can_add:
            self._insert(holder, int(row.name) + 1)
        elif isinstance(holder, MapField) and holder.entries and holder.entries[-1].field is row and not at_key:
            self._added(holder, holder.add().field)
        elif not await self.focus_next(1):
            self.screen.focus_next()

    def on_row_view_asked(self, event: RowView.Asked) -> None:
        """Moves or removes a row."""
        event.stop()
        holder, index = event.item.holder, event.item.index
        assert isinstance(holder, ListField | MapField), "rows are of one of them"
        if event.by is not None:
            if holder.move(index, event.by) != index:
                self._tell_changed(holder)
            return
        holder.remove(index)
        self._goal = None
        self.screen.set_focus(None)
        self._tell_changed(holder)
        rows = holder.children
        if rows:
            self._go_to(self._shown[rows[min(index, len(rows) - 1)]])
        else:
            self._go_to(self._shown[holder])

    def _insert(self, holder: ListField, index: int) -> None:
        self._added(holder, holder.add(index))

    def _added(self, holder: Container, row: Field) -> None:
        self._folds.put(holder, True)
        self._folds.put(row, True)
        self._tell_changed(holder)
        place = self._shown[row]
        if self._items[place].part == "header" and self._items[place].entry is None:
            inside = self._next_stop(place, 1)
            place = inside if inside is not None else place
        self._go_to(place)

    def _tell_changed(self, holder: Container) -> None:
        holder.touched = True
        self.rebuild()
        for view in self._views.values():
            view.redraw()
        self.post_message(self.Changed())


class _Column(Layout):
    """Leaves a form to say where its items stand."""

    name = "column"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        """Places the items."""
        assert isinstance(parent, FormBody), "the layout of those"
        return parent.place(children)


def _runs(places: Sequence[int], standing: Sequence[int]) -> Iterator[list[int]]:
    """Parts places, in their order, into those that have the same neighbours."""
    run: list[int] = []
    for place in places:
        if run and bisect_right(standing, run[-1]) != bisect_right(standing, place):
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _told(fault: Fault, path: str) -> str:
    inner = fault.path.removeprefix(path).removeprefix("/") if fault.path != path else ""
    return f"{clean_line(inner)}: {clean(fault.message)}" if inner else clean(fault.message)
