"""Items of a form with their positions and heights, mounted or not."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from pegboard.forms import Field, Form, MapField
from pegboard.models import Fault
from pegboard.models.readable_path import readable
from pegboard.results.clean import clean, clean_line
from pegboard.tui.form.frame import Space, lines_of
from pegboard.tui.form.items import Folds, FormItem, ItemKey, is_folding, items_of


class ItemList:
    """Items of the expanded part of a form. It never touches a widget.

    Args:
        form: The form.
        folds: Which of its containers are collapsed.
        space: The space available to items.
    """

    def __init__(self, form: Form, folds: Folds, space: Space) -> None:
        self.folds = folds
        self.space = space
        self.items: list[FormItem] = []
        self.faults: Sequence[Fault] = ()
        """The validation errors that are shown."""
        self._form = form
        self._positions: dict[ItemKey, int] = {}
        self._shown: dict[Field, int] = {}
        self._heights: list[int] = []
        self._tops: list[int] = [0]
        self.rebuild()

    def show_form(self, form: Form, folds: Folds, space: Space) -> None:
        """Replace the form."""
        self._form, self.folds, self.space = form, folds, space
        self.faults = ()
        self.rebuild()

    def rebuild(self) -> None:
        """List the items again after fields were added, removed, expanded or collapsed."""
        known = {item.key: item.cached_lines for item in self.items}
        self.items = items_of(self._form, self.folds)
        self._positions = {item.key: position for position, item in enumerate(self.items)}
        self._shown = {}
        for position, item in enumerate(self.items):
            item.cached_lines = known.get(item.key, item.cached_lines)
            if item.part != "add" or item.is_named or item.holder is not None:
                self._shown.setdefault(item.field, position)
        self._shown.update((item.field, position) for position, item in enumerate(self.items) if item.part == "raw")
        self.reset_heights()
        self.update_tops()

    def __contains__(self, key: ItemKey) -> bool:
        return key in self._positions

    def position(self, key: ItemKey) -> int:
        """Return the index of an item."""
        return self._positions[key]

    # Lines

    def resize(self, space: Space) -> None:
        """Change the space available to items."""
        self.space = space
        self.reset_heights()

    def reset_heights(self) -> None:
        """Recompute all heights, as if no item were mounted."""
        self._heights = [lines_of(item, self.space) for item in self.items]

    def set_height(self, key: ItemKey, lines: int) -> None:
        """Set the height of a mounted item."""
        self._heights[self._positions[key]] = lines

    def update_tops(self) -> int:
        """Recompute the first line of every item, and return the total height."""
        self._tops = [*accumulate(self._heights, initial=0)]
        return self._tops[-1]

    def lines_at(self, key: ItemKey) -> tuple[int, int]:
        """Return the first line and the height of an item."""
        position = self._positions[key]
        return self._tops[position], self._heights[position]

    def between(self, top: int, bottom: int) -> range:
        """Return the indexes of the items that have lines from `top` up to `bottom`."""
        first = max(bisect_right(self._tops, top) - 1, 0)
        last = bisect_right(self._tops, max(bottom - 1, 0))
        return range(min(first, len(self.items)), min(last, len(self.items)))

    # Fields

    def next_stop(self, position: int, by: int) -> int | None:
        """Return the index of the next focusable item, or None."""
        position += by
        while 0 <= position < len(self.items):
            if self.items[position].is_stop:
                return position
            position += by
        return None

    def first_editor(self) -> int | None:
        """Return the index of the first item with a value or of a required list to fill, else of the first stop."""
        editors = (at for at, item in enumerate(self.items) if item.is_stop and _asks_for_value(item))
        return next(editors, self.next_stop(-1, 1))

    def field_at(self, path: str) -> Field | None:
        """Return the field at or around a JSON Pointer, building sections on the way."""
        return self._form.build_to(path)

    def position_of_field(self, one: Field) -> int | None:
        """Return the index of the item that shows a field, or None if the field is collapsed."""
        return self._shown.get(one)

    def position_around(self, one: Field | None) -> int | None:
        """Return the index of the item that shows a field or its nearest visible ancestor."""
        while one is not None and one not in self._shown:
            one = one.parent
        return self._shown[one] if one is not None else None

    def fold_all(self, is_open: bool) -> None:
        """Expand or collapse every container; `rebuild` is left to the caller."""
        self.folds.set_all(self._form, is_open)

    def unfold_around(self, one: Field) -> bool:
        """Expand the ancestors of a field; return whether any was collapsed."""
        was_folded = False
        around = one.parent
        while around is not None:
            if is_folding(around) and not self.folds.is_open(around) and around.state != "null":
                self.folds.set_open(around, True)
                was_folded = True
            around = around.parent
        return was_folded

    # Validation errors

    def show_faults(self, faults: Sequence[Fault]) -> list[Fault]:
        """Assign validation errors to items; return those without one."""
        self.faults = faults
        for item in self.items:
            item.messages, item.hidden_errors = (), 0
        rest = [fault for fault in self._assign_to_keys(faults) if not self._assign(fault)] if faults else []
        self.reset_heights()
        return rest

    def _assign_to_keys(self, faults: Sequence[Fault]) -> Iterator[Fault]:
        """Assign the errors of map keys to their entries; yield the rest."""
        assigned = set()
        for item in self.items:
            if item.entry is None or not isinstance(item.holder, MapField):
                continue
            message = item.holder.key_fault(item.index)
            fault = Fault(path=item.field.path, message=message)
            if message and fault in faults:
                item.messages += (clean(message),)
                assigned.add(fault)
        return (fault for fault in faults if fault not in assigned)

    def _assign(self, fault: Fault) -> bool:
        """Add an error to its item, or count it in the collapsed container; return False if no item is concerned."""
        one = self.field_at(fault.path)
        if one is None:
            return False
        position = self.position_around(one)
        if position is None:
            return False
        item = self.items[position]
        is_inside = one not in self._shown
        if not item.is_open and is_inside:
            item.hidden_errors += 1
        else:
            item.messages += (_message(fault, item.field.path if is_inside else one.path),)
        return True


def _asks_for_value(item: FormItem) -> bool:
    return item.part in {"field", "raw"} or (item.part == "add" and item.is_named and item.field.required)


def _message(fault: Fault, path: str) -> str:
    inner = readable(fault.path.removeprefix(path)) if fault.path != path else ""
    return f"{clean_line(inner)}: {clean(fault.message)}" if inner else clean(fault.message)
