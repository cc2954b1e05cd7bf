"""Fields for lists: rows, tuples and multiple choices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from pegboard.data.json_text import same
from pegboard.forms.containers import Container
from pegboard.forms.fields import FieldPosition, FieldReading
from pegboard.forms.scalars import not_one_of, option_of
from pegboard.models import Fault

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.forms.containers import Maker
    from pegboard.forms.fields import Field, FieldDescription
    from pegboard.forms.scalars import Option
    from pegboard.schema.validation import Validator


class ListField(Container):
    """List with one field per row.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
        make_row: Function that builds an empty row, or None if rows can't be added.
    """

    kind = "list"
    has_named_parts = False
    fixed = 0
    """Number of leading rows that can't be removed or moved."""

    def __init__(self, facts: FieldDescription, position: FieldPosition, *, make_row: Maker | None) -> None:
        super().__init__(facts, position)
        self._rows: list[Field] | None = None
        self._make_row = make_row

    @property
    def rows(self) -> list[Field]:
        """Rows. Callers must not modify the list."""
        if self._rows is None:
            self._rows = []
            self._add_fixed_rows(self._rows)
        return self._rows

    @property
    def can_add(self) -> bool:
        """True if rows can be added."""
        return self._make_row is not None

    @property
    def part_count(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def children(self) -> tuple[Field, ...]:
        """Rows."""
        return tuple(self.rows)

    @property
    def built(self) -> tuple[Field, ...]:
        """Rows that exist already."""
        return tuple(self._rows or ())

    def row_at(self, index: int) -> Field:
        """Return the field that a new row at `index` would have, without adding it."""
        assert self._make_row is not None, "asked for only where rows can be added"
        return self._make_row(FieldPosition(self, str(index)))

    def add(self, index: int | None = None) -> Field:
        """Add and return an empty row before `index`, by default at the end."""
        self._edit()
        at = len(self.rows) if index is None else max(index, self.fixed)
        row = self.row_at(at)
        self.rows.insert(at, row)
        self._renumber(at)
        return row

    def remove(self, index: int) -> None:
        """Remove a row. Without rows, an optional list is unset and a required one is empty."""
        if index < self.fixed:
            return
        self._edit()
        del self.rows[index]
        self._renumber(index)
        if len(self.rows) == self.fixed:
            self._state = "value" if self.required else "unset"

    def move(self, index: int, by: int) -> int:
        """Move a row by an offset, limited to the list, and return its new index."""
        if index < self.fixed:
            return index
        self._edit()
        to = min(max(index + by, self.fixed), len(self.rows) - 1)
        self.rows.insert(to, self.rows.pop(index))
        self._renumber(self.fixed)
        return to

    def fill(self, texts: Sequence[str]) -> None:
        """Replace the rows with one row per text."""
        self._set_state("value")
        for text in texts:
            self.add().write(text)

    def _update_parts(self, value: JsonValue, shown: JsonValue) -> bool:
        has_rows = self.can_add or self.rows
        if not (isinstance(value, list) and isinstance(shown, list) and value and has_rows):
            return False
        self._edit()
        for index, item in enumerate(value):
            if index >= len(self.rows):
                self._append(item)
            elif index < len(shown):
                self.rows[index].update(item, shown[index])
            else:
                self.rows[index].load(item)
        self._truncate(len(value))
        return True

    def _append(self, item: JsonValue) -> None:
        row = self._make_row(FieldPosition(self, str(len(self.rows)))) if self._make_row is not None else None
        if row is not None:
            self.rows.append(row)
            row.load(item)

    def _truncate(self, length: int) -> None:
        del self.rows[length:]

    def _renumber(self, start: int) -> None:
        for index in range(start, len(self.rows)):
            self.rows[index].name = str(index)

    def _has_content(self, any_active: bool, any_set: bool) -> bool:
        return bool(self._rows)

    def _draft_parts(self, masked: bool) -> JsonValue:
        return [row.draft(masked=masked) for row in self.rows]

    def _read_parts(self) -> FieldReading:
        readings = [row.read() for row in self.rows]
        faults = tuple(fault for reading in readings for fault in reading.faults)
        # None replaces an unreadable row so that the paths of later rows stay correct.
        return FieldReading(([reading.value[0] if reading.value else None for reading in readings],), faults)

    def _load_parts(self, value: JsonValue) -> bool:
        if not isinstance(value, list) or (value and not self.can_add):
            return False
        self._reset_parts()
        self._state = "value"
        for item in value:
            self._append(item)
        return True

    def _add_fixed_rows(self, rows: list[Field]) -> None:
        """Add the rows that always exist."""

    def _reset_parts(self) -> None:
        self._rows = None

    def _snapshot_parts(self) -> Callable[[], None]:
        rows, state = self._rows, self._state

        def restore() -> None:
            self._rows, self._state = rows, state

        return restore


class TupleField(ListField):
    """List whose first rows always exist and have their own types.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
        source: Schema list of the fixed rows. A recursive schema passes the same object again.
        makers: Function that builds each fixed row.
        make_row: Function that builds an additional row, or None if none is allowed.
        spare: Function that builds a row for loaded items that are not allowed.
        validator: Validator that checks defaults before they are filled in.
    """

    kind = "tuple"

    def __init__(
        self,
        facts: FieldDescription,
        position: FieldPosition,
        *,
        source: JsonValue,
        makers: Sequence[Maker],
        make_row: Maker | None,
        spare: Maker,
        validator: Validator,
    ) -> None:
        super().__init__(facts, position, make_row=make_row)
        self.fixed = len(makers)
        self.source = source
        self._makers = makers
        self._spare = spare
        self._validator = validator

    def prefill(self, validator: Validator) -> None:
        """Fill in the default, or the constants and defaults of required rows."""
        super().prefill(validator)
        self._prefill_required()

    def complete(self) -> None:
        """Build the rows, which fills in required constants and defaults."""
        self.rows  # noqa: B018 - building them fills them

    def _append(self, item: JsonValue) -> None:
        row = (self._make_row or self._spare)(FieldPosition(self, str(len(self.rows))))
        self.rows.append(row)
        row.load(item)

    def _edit(self) -> None:
        if self.is_raw or self._state == "null":
            self._set_state("unset")
        self.touched = True
        self._prefilled = False

    def _truncate(self, length: int) -> None:
        for row in self.rows[length : self.fixed]:
            row.leave_out()
        del self.rows[max(length, self.fixed) :]

    def _has_content(self, any_active: bool, any_set: bool) -> bool:
        counts_prefilled = self._prefilled or (self.required and not self._left_out)
        return any_active or len(self._rows or ()) > self.fixed or (any_set and counts_prefilled)

    def _sendable_rows(self) -> list[Field]:
        """Return the rows up to the last one that is set."""
        last = max((index for index, row in enumerate(self.rows) if row.state != "unset"), default=-1)
        return self.rows[: max(last + 1, len(self.rows) if len(self.rows) > self.fixed else 0)]

    def _draft_parts(self, masked: bool) -> JsonValue:
        return [row.draft(masked=masked) if row.state != "unset" else None for row in self._sendable_rows()]

    def _read_parts(self) -> FieldReading:
        readings = [row.read() for row in self._sendable_rows()]
        faults = tuple(fault for reading in readings for fault in reading.faults)
        return FieldReading(([reading.value[0] if reading.value else None for reading in readings],), faults)

    def _load_parts(self, value: JsonValue) -> bool:
        if not isinstance(value, list):
            return False
        self._reset_parts()
        self._state = self._initial_state if value else "value"
        for row, item in zip(self.rows, value, strict=False):
            row.load(item)
        for item in value[self.fixed :]:
            self._append(item)
        return True

    def _add_fixed_rows(self, rows: list[Field]) -> None:
        rows.extend(make(FieldPosition(self, str(index))) for index, make in enumerate(self._makers))
        for row in rows:
            row.prefill(self._validator)


class MultiChoiceField(Container):
    """List of values picked from the schema's options, in the order of picking.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
        options: Values to pick from.
        allows_twice: Whether the list can contain a value more than once.
    """

    kind = "multi"

    def __init__(
        self, facts: FieldDescription, position: FieldPosition, *, options: tuple[Option, ...], allows_twice: bool
    ) -> None:
        super().__init__(facts, position)
        self.options = options
        self.allows_twice = allows_twice
        self.picked: tuple[JsonValue, ...] = ()
        self._unknown: tuple[str, ...] = ()

    def is_picked(self, index: int) -> bool:
        """Return True if the list contains the option at `index`."""
        return self.count(index) > 0

    def count(self, index: int) -> int:
        """Return how many times the list contains the option at `index`."""
        return sum(same(value, self.options[index].value) for value in self.picked)

    def toggle(self, index: int) -> None:
        """Remove every occurrence of the option at `index`, or append it if there are none."""
        if not self.is_picked(index):
            self.add(index)
            return
        self._edit()
        self.picked = tuple(value for value in self.picked if not same(value, self.options[index].value))
        if not self.picked and not self.required:
            self._state = "unset"

    def add(self, index: int) -> None:
        """Append the option at `index`, even if the list contains it already."""
        self._edit()
        self.picked = (*self.picked, self.options[index].value)

    def fill(self, texts: Iterable[str]) -> None:
        """Replace the list with the options that the texts name. Unknown texts are validation errors."""
        self._set_state("value")
        found = [(text, option_of(self.options, text)) for text in texts]
        self.picked = tuple(option.value if option is not None else text for text, option in found)
        self._unknown = tuple(text for text, option in found if option is None)

    def _edit(self) -> None:
        if self.is_raw or self._state == "null":
            self._set_state("value")
        self._state = "value"
        self._unknown = ()
        self.touched = True
        self._prefilled = False

    def _has_content(self, any_active: bool, any_set: bool) -> bool:
        return bool(self.picked)

    def _draft_parts(self, masked: bool) -> JsonValue:
        return [*self.picked]

    def _read_parts(self) -> FieldReading:
        faults = (
            Fault(path=f"{self.path}/{index}", message=not_one_of(self.options, value))
            for index, value in enumerate(self.picked)
            if isinstance(value, str) and value in self._unknown
        )
        return FieldReading(([*self.picked],), tuple(faults))

    def _load_parts(self, value: JsonValue) -> bool:
        if not isinstance(value, list):
            return False
        self._state = "value"
        self.picked = tuple(value)
        return True

    def _reset_parts(self) -> None:
        self.picked = ()
        self._unknown = ()

    def _snapshot_parts(self) -> Callable[[], None]:
        picked, wrong, state = self.picked, self._unknown, self._state

        def restore() -> None:
            self.picked, self._unknown, self._state = picked, wrong, state

        return restore
