"""Fields that hold other fields: sections, lists, tuples, maps, variants and multiple choices.

A container's state follows from its inner fields: it has a value if any inner field holds one that the form did not
prefill, and becomes unset when all of them are unset. An empty container is sent only on request. A value that fits no
inner field, such as text instead of an object or invalid JSON, is kept unchanged and reported as a validation error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pydantic import JsonValue

from pegboard.forms.fields import (
    Field,
    FieldFacts,
    FieldPosition,
    FieldReading,
    FieldStatus,
    Option,
    State,
    TextField,
    not_one_of,
    option_of,
)
from pegboard.forms.json_text import JsonTextError, parse, same, write
from pegboard.models import Fault

if TYPE_CHECKING:
    from pegboard.schema.validation import Validator

Maker: TypeAlias = Callable[[FieldPosition], Field]
"""Function that builds an untouched field at a position."""

_MOST_PREFILLED = 24
"""Maximum depth of prefilled required sections. A schema can require itself."""
_DEEPEST = 100
"""Maximum nesting depth of loaded fields. Deeper values are kept as JSON because Python's stack is limited."""


class Container(Field):
    """Field composed of other fields.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
    """

    def __init__(self, facts: FieldFacts, position: FieldPosition) -> None:
        super().__init__(facts, position)
        self._unreadable: str | None = None
        self._left_out = False
        self._initial_state: State = "value" if self.in_list or position.parent is None else "unset"
        """State without content. Rows of a list and the root field always have a value."""
        self._state = self._initial_state

    @property
    def state(self) -> State:
        """State of the argument: left out, null or a value."""
        return self.status().state

    @property
    def is_raw(self) -> bool:
        """True if it holds a value that fits no inner field; `text` returns that value."""
        return self._unreadable is not None or bool(self._loaded)

    @property
    def text(self) -> str:
        """Content as JSON, or the typed text if it is not valid JSON."""
        if self._unreadable is not None:
            return self._unreadable
        return write(self.draft(), indent=2) if self.state == "value" else ""

    @property
    def is_typed(self) -> bool:
        """True if it holds typed text that is not valid JSON."""
        return self._unreadable is not None

    @property
    def is_filled(self) -> bool:
        """True if it has a value that is not empty."""
        return self.is_raw or (self._state != "null" and self._has_content(*self._inner_status()))

    def status(self) -> FieldStatus:
        """Return state and activity in one pass over the inner fields."""
        if self.is_raw:
            return FieldStatus("value", not self._prefilled)
        if self._state == "null":
            return FieldStatus("null", not self._prefilled)
        any_active, any_set = self._inner_status()
        if self._state == "unset" and not self._has_content(any_active, any_set):
            return FieldStatus("unset", is_active=False)
        return FieldStatus("value", any_active or (self._state == "value" and not self._prefilled))

    def clear(self) -> None:
        """Reset the field to its initial content."""
        super().clear()
        self._state = self._initial_state
        self._left_out = False

    def draft(self, *, masked: bool = False) -> JsonValue:
        """Return the content, valid or not; text that can't be read is returned as typed."""
        if self._unreadable is not None:
            return self._unreadable
        if self._loaded:
            return self._loaded[0]
        return None if self.state == "null" else self._draft_parts(masked)

    def load(self, value: JsonValue) -> None:
        """Replace the content with a value, even one that does not fit."""
        self._kept = None
        if value is None:
            self._set_state("null")
            return
        self._set_own_state("unset")
        if self.depth > _DEEPEST or not self._load_parts(value):
            self._reset_parts()
            self._loaded = (value,)

    def write(self, text: str) -> None:
        """Replace the content with typed JSON. Invalid JSON is kept as typed."""
        if not text.strip():
            self._set_state("unset")
            return
        try:
            value = parse(text)
        except JsonTextError:
            self._set_state("unset")
            self._unreadable = text
            return
        self.load(value)
        self.touched = True

    def empty(self) -> None:
        """Send an empty value. `recall` restores the previous one."""
        self._remember()
        self._set_state("value")

    def mark_prefilled(self) -> None:
        """Mark all content as filled in by the form."""
        super().mark_prefilled()
        for inner in self.built:
            inner.mark_prefilled()

    def _is_part_of_itself(self, source: JsonValue) -> bool:
        """Return True if an outer field has the same source, so that prefilling both would not end."""
        outer, depth = self.parent, 0
        while outer is not None:
            depth += 1
            if (isinstance(outer, SectionField | TupleField) and outer.source is source) or depth > _MOST_PREFILLED:
                return True
            outer = outer.parent
        return False

    def _set_state(self, state: State) -> None:
        self._set_own_state(state)
        self._reset_parts()

    def _set_own_state(self, state: State) -> None:
        super()._set_state(state)
        self._unreadable = None
        self._left_out = True

    def _snapshot(self) -> Callable[[], None]:
        unread, loaded, left_out, parts = self._unreadable, self._loaded, self._left_out, self._snapshot_parts()

        def restore() -> None:
            self._state = "unset"
            self._unreadable, self._loaded, self._left_out = unread, loaded, left_out
            parts()

        return restore

    def _read(self) -> FieldReading:
        if self._unreadable is None:
            return self._read_parts()
        try:
            return FieldReading((parse(self._unreadable),))
        except JsonTextError as error:
            return self._invalid(str(error))

    def _inner_status(self) -> tuple[bool, bool]:
        """Return whether any inner field is active, and whether any is set."""
        any_set = False
        for inner in self.built:
            state, is_active = inner.status()
            if is_active:
                return True, True
            any_set = any_set or state != "unset"
        return False, any_set

    def _has_content(self, any_active: bool, any_set: bool) -> bool:
        """Return True if the content makes this a value."""
        raise NotImplementedError

    def _draft_parts(self, masked: bool) -> JsonValue:
        raise NotImplementedError

    def _read_parts(self) -> FieldReading:
        raise NotImplementedError

    def _load_parts(self, value: JsonValue) -> bool:
        """Load a value other than null into the inner fields; return False if it has the wrong type."""
        raise NotImplementedError

    def _reset_parts(self) -> None:
        """Reset the inner fields."""
        raise NotImplementedError

    def _snapshot_parts(self) -> Callable[[], None]:
        """Return a function that restores the current inner fields."""
        raise NotImplementedError


class SectionField(Container):
    """Object with one field per property and a map of additional properties.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
        source: Schema object that declares the properties. A recursive schema passes the same object again.
        makers: Function that builds the field of each declared property.
        rest: Function that builds the map of additional properties.
        is_open: Whether the schema describes additional properties.
        validator: Validator that checks defaults before they are filled in.
    """

    kind = "section"

    def __init__(
        self,
        facts: FieldFacts,
        position: FieldPosition,
        *,
        source: JsonValue,
        makers: dict[str, Maker],
        rest: Callable[[FieldPosition, frozenset[str]], MapField],
        is_open: bool,
        validator: Validator,
    ) -> None:
        super().__init__(facts, position)
        self.is_open = is_open
        self.source = source
        self._makers = makers
        self._make_rest = rest
        self._validator = validator
        self._named: dict[str, Field] | None = None
        self._rest: MapField | None = None

    @property
    def is_built(self) -> bool:
        """True if the inner fields exist. They are built on first access."""
        return self._named is not None

    @property
    def names(self) -> tuple[str, ...]:
        """Declared properties in the schema's order, built or not."""
        return tuple(self._makers)

    @property
    def named(self) -> dict[str, Field]:
        """Fields of the declared properties."""
        if self._named is None:
            self._named = {name: make(FieldPosition(self, name)) for name, make in self._makers.items()}
            for inner in self._named.values():
                inner.prefill(self._validator)
        return self._named

    @property
    def rest(self) -> MapField:
        """Additional properties."""
        if self._rest is None:
            self._rest = self._make_rest(FieldPosition(self), frozenset(self._makers))
        return self._rest

    @property
    def children(self) -> tuple[Field, ...]:
        """Fields of the declared properties, then the map of additional ones if they are allowed or present."""
        return (*self.named.values(), *self._visible_rest())

    @property
    def built(self) -> tuple[Field, ...]:
        """Inner fields that exist already."""
        return self.children if self._named is not None else self._visible_rest()

    def path_of(self, inner: Field) -> str:
        """Return the JSON Pointer of an inner field. Additional properties are siblings of the declared ones."""
        return self.path if inner is self._rest else super().path_of(inner)

    def id_part(self, inner: Field) -> str:
        """Return the last part of an inner field's id."""
        return "-rest" if inner is self._rest else super().id_part(inner)

    def update(self, value: JsonValue, shown: JsonValue) -> None:
        """Apply an edited draft, property by property."""
        if write(value) == write(shown):
            return
        if self.is_raw or not (isinstance(value, dict) and isinstance(shown, dict) and value):
            self.load(value)
            return
        self._state = self._initial_state
        for name, inner in self.named.items():
            if name not in value:
                inner.leave_out()
            elif name in shown:
                inner.update(value[name], shown[name])
            else:
                inner.load(value[name])
        self.rest.update(self._additional(value), self._additional(shown))

    def prefill(self, validator: Validator) -> None:
        """Fill in the default, or the constants and defaults of required properties."""
        super().prefill(validator)
        if self.required and self._is_part_of_itself(self.source):
            self._left_out = True
        elif self.required:
            self.complete()

    def complete(self) -> None:
        """Build the inner fields, which fills in required constants and defaults."""
        self.named  # noqa: B018 - building them fills them

    def take_over(self, other: Field) -> None:
        """Copy user input from the properties with the same names."""
        if not isinstance(other, SectionField) or other.is_raw or other.state != "value" or not other.is_filled:
            super().take_over(other)
            return
        further = {inner.name: inner for inner in other.rest.built}
        theirs = {inner.name: inner for inner in other.built if inner is not other.rest} | further
        for name, inner in theirs.items():
            if name in self._makers and (inner.is_active or (inner.touched and self.is_built)):
                self.named[name].take_over(inner)
        rest: JsonValue = {name: theirs[name].draft() for name in further if name not in self._makers}
        self._load_rest(other.rest.draft() if other.rest.is_raw else rest)

    def _load_rest(self, value: JsonValue) -> None:
        if value != {}:
            self.rest.load(value)

    def _visible_rest(self) -> tuple[Field, ...]:
        if self.is_open:
            return (self.rest,)
        return (self._rest,) if self._rest is not None and self._rest.state != "unset" else ()

    def _has_content(self, any_active: bool, any_set: bool) -> bool:
        return any_active or (any_set and self._counts_prefilled())

    def _counts_prefilled(self) -> bool:
        """Return True if prefilled content is enough to send the section."""
        is_meant = self.parent.is_settled if isinstance(self.parent, VariantField) else self.required
        return is_meant and not self._left_out

    def _draft_parts(self, masked: bool) -> JsonValue:
        found: dict[str, JsonValue] = {}
        for inner in self._sendable():
            if inner.state == "unset":
                continue
            drafted = inner.draft(masked=masked)
            if inner is not self._rest:
                found[inner.name] = drafted
            elif isinstance(drafted, dict):
                found.update((name, value) for name, value in drafted.items() if name not in found)
        return found

    def _read_parts(self) -> FieldReading:
        found: dict[str, JsonValue] = {}
        faults: list[Fault] = []
        for inner in self._sendable():
            if inner.state == "unset":
                continue
            reading = inner.read()
            faults.extend(reading.faults)
            if inner is not self._rest:
                found.update((inner.name, value) for value in reading.value)
            elif reading.value and isinstance(reading.value[0], dict):
                found.update((name, value) for name, value in reading.value[0].items() if name not in self._makers)
            elif reading.value:
                faults.append(Fault(path=self.path, message="must be a JSON object"))
        return FieldReading((found,), tuple(faults))

    def _load_parts(self, value: JsonValue) -> bool:
        if not isinstance(value, dict):
            return False
        self._state = self._initial_state if value else "value"
        for name, inner in self.named.items():
            if name in value:
                inner.load(value[name])
            else:
                inner.leave_out()
        if self._rest is not None:
            self._rest.leave_out()
        self._load_rest(self._additional(value))
        return True

    def _sendable(self) -> tuple[Field, ...]:
        """Return the fields that can be sent. A section with an explicit value includes its constants."""
        return self.children if self._state == "value" else self.built

    def _additional(self, value: dict[str, JsonValue]) -> JsonValue:
        return {name: inner for name, inner in value.items() if name not in self._makers}

    def _reset_parts(self) -> None:
        self._named = None
        self._rest = None

    def _snapshot_parts(self) -> Callable[[], None]:
        named, rest, state = self._named, self._rest, self._state

        def restore() -> None:
            self._named, self._rest, self._state = named, rest, state

        return restore


class ListField(Container):
    """List with one field per row.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
        make_row: Function that builds an empty row, or None if rows can't be added.
    """

    kind = "list"
    fixed = 0
    """Number of leading rows that can't be removed or moved."""

    def __init__(self, facts: FieldFacts, position: FieldPosition, *, make_row: Maker | None) -> None:
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

    def update(self, value: JsonValue, shown: JsonValue) -> None:
        """Apply an edited draft, row by row."""
        if write(value) == write(shown):
            return
        if self.is_raw or not (isinstance(value, list) and isinstance(shown, list) and value):
            self.load(value)
            return
        self._edit()
        for index, item in enumerate(value):
            if index >= len(self.rows):
                self._append(item)
            elif index < len(shown):
                self.rows[index].update(item, shown[index])
            else:
                self.rows[index].load(item)
        self._truncate(len(value))

    def _edit(self) -> None:
        """Prepare for a change of the rows, which then determine the value."""
        if self.is_raw or self._state == "null":
            self._set_state("value")
        self._state = "value"
        self.touched = True
        self._prefilled = False

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
        facts: FieldFacts,
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
        if self.required and self._is_part_of_itself(self.source):
            self._left_out = True
        elif self.required:
            self.complete()

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
        return any_active or len(self._rows or ()) > self.fixed or (any_set and self.required and not self._left_out)

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


class MapEntry:
    """Entry of a map.

    Args:
        key: Key of the entry.
        field: Field of the value.
        is_named: Whether the user has set the key.
    """

    def __init__(self, key: str, field: Field, *, is_named: bool) -> None:
        self.key = key
        self.field = field
        self.is_named = is_named


class MapField(Container):
    """Object with arbitrary keys: one entry with a key and a field per property.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
        make: Function that builds the field for the value of a key.
        key_options: Keys that the schema lists; empty if it lists none.
        taken: Keys that have their own fields elsewhere.
        same_for_all: Whether the values of all keys have the same schema.
    """

    kind = "map"

    def __init__(
        self,
        facts: FieldFacts,
        position: FieldPosition,
        *,
        make: Maker,
        key_options: tuple[str, ...] = (),
        taken: frozenset[str] = frozenset(),
        same_for_all: bool = True,
    ) -> None:
        super().__init__(facts, position)
        self.entries: list[MapEntry] = []
        self.key_options = key_options
        self._make = make
        self._taken = taken
        self._same_for_all = same_for_all

    @property
    def children(self) -> tuple[Field, ...]:
        """Fields of the entries' values."""
        return tuple(entry.field for entry in self.entries)

    def id_part(self, inner: Field) -> str:
        """Return the last part of an inner field's id, unique even if a key is repeated."""
        before = 0
        for entry in self.entries:
            if entry.field is inner:
                break
            before += entry.key == inner.name
        return super().id_part(inner) + (f"-k{before}" if before else "")

    def add(self, key: str = "") -> MapEntry:
        """Add an entry at the end. An entry without a key is invalid."""
        self._edit()
        entry = MapEntry(key, self._make(FieldPosition(self, key)), is_named=bool(key))
        self.entries.append(entry)
        return entry

    def rename(self, index: int, key: str) -> None:
        """Change the key of an entry. Its value is kept as far as the schema of the new key can hold it."""
        self._edit()
        entry = self.entries[index]
        entry.key, entry.is_named = key, bool(key)
        if self._same_for_all:
            entry.field.name = key
            return
        before, entry.field = entry.field, self._make(FieldPosition(self, key))
        entry.field.take_over(before)

    def name_empty(self, index: int) -> None:
        """Set the key of an entry to the empty string; clearing a key leaves the entry unnamed."""
        self.rename(index, "")
        self.entries[index].is_named = True

    def remove(self, index: int) -> None:
        """Remove an entry. Without entries, an optional map is unset and a required one is empty."""
        self._edit()
        del self.entries[index]
        if not self.entries:
            self._state = "value" if self.required else "unset"

    def move(self, index: int, by: int) -> int:
        """Move an entry by an offset, limited to the map, and return its new index."""
        self._edit()
        to = min(max(index + by, 0), len(self.entries) - 1)
        self.entries.insert(to, self.entries.pop(index))
        return to

    def key_fault(self, index: int) -> str:
        """Return the validation error of an entry's key, regardless of the schema, or an empty string."""
        return self._key_fault(self.entries[index], [entry.key for entry in self.entries[:index]])

    def update(self, value: JsonValue, shown: JsonValue) -> None:
        """Apply an edited draft, entry by entry."""
        if write(value) == write(shown):
            return
        before = {entry.key: entry for entry in self.entries}
        if self.is_raw or not (isinstance(value, dict) and isinstance(shown, dict) and value):
            self.load(value)
            return
        self._edit()
        self.entries = []
        for key, item in value.items():
            entry = before.get(key)
            if entry is None or key not in shown:
                self._append(key, item)
            else:
                self.entries.append(entry)
                entry.field.update(item, shown[key])

    def take_over(self, other: Field) -> None:
        """Copy user input from the map of the same name."""
        if other.is_active:
            self.load(other.draft())

    def _edit(self) -> None:
        if self.is_raw or self._state == "null":
            self._set_state("value")
        self._state = "value"
        self.touched = True
        self._prefilled = False

    def _append(self, key: str, item: JsonValue) -> None:
        entry = MapEntry(key, self._make(FieldPosition(self, key)), is_named=True)
        self.entries.append(entry)
        entry.field.load(item)

    def _key_fault(self, entry: MapEntry, before: Collection[str]) -> str:
        if not entry.is_named:
            return "has no name yet"
        if entry.key in self._taken:
            return "has a field of its own"
        return "is given twice" if entry.key in before else ""

    def _has_content(self, any_active: bool, any_set: bool) -> bool:
        return bool(self.entries)

    def _draft_parts(self, masked: bool) -> JsonValue:
        found: dict[str, JsonValue] = {}
        for entry in self.entries:
            found[entry.key] = entry.field.draft(masked=masked)
        return found

    def _read_parts(self) -> FieldReading:
        found: dict[str, JsonValue] = {}
        faults: list[Fault] = []
        before: set[str] = set()
        for entry in self.entries:
            wrong = self._key_fault(entry, before)
            before.add(entry.key)
            if wrong:
                faults.append(Fault(path=entry.field.path, message=wrong))
                continue
            reading = entry.field.read()
            faults.extend(reading.faults)
            found.update((entry.key, value) for value in reading.value)
        return FieldReading((found,), tuple(faults))

    def _load_parts(self, value: JsonValue) -> bool:
        if not isinstance(value, dict):
            return False
        self._reset_parts()
        self._state = "value"
        for key, item in value.items():
            self._append(key, item)
        return True

    def _reset_parts(self) -> None:
        self.entries = []

    def _snapshot_parts(self) -> Callable[[], None]:
        entries, state = self.entries, self._state

        def restore() -> None:
            self.entries, self._state = entries, state

        return restore


class Variant:
    """Alternative of a union.

    Args:
        label: Label that is unique within the union.
        schema: Schema of the variant, including the keywords beside the union.
        make: Function that builds the field.
    """

    def __init__(self, label: str, schema: JsonValue, make: Maker) -> None:
        self.label = label
        self.schema = schema
        self.make = make


class VariantField(Container):
    """Choice between several kinds of value.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
        options: Variants, at least one.
        rank: Function that returns the index of the best variant for a value.
    """

    kind = "variant"

    def __init__(
        self,
        facts: FieldFacts,
        position: FieldPosition,
        *,
        options: Sequence[Variant],
        rank: Callable[[JsonValue], int],
    ) -> None:
        super().__init__(facts, position)
        self.chosen = 0
        """Index of the visible variant."""
        self.is_settled = False
        """Whether the user chose or filled the variant."""
        self._options = options
        self._rank = rank
        self._inners: dict[int, Field] = {}
        self._state = "unset"

    @property
    def variants(self) -> tuple[str, ...]:
        """Labels of the variants."""
        return tuple(option.label for option in self._options)

    @property
    def chosen_schema(self) -> JsonValue:
        """Schema of the chosen variant, including the keywords beside the union."""
        return self._options[self.chosen].schema

    @property
    def inner(self) -> Field:
        """Field of the chosen variant."""
        if self.chosen not in self._inners:
            self._inners[self.chosen] = self._options[self.chosen].make(FieldPosition(self, self.name))
        return self._inners[self.chosen]

    @property
    def children(self) -> tuple[Field, ...]:
        """Field of the chosen variant."""
        return (self.inner,)

    @property
    def built(self) -> tuple[Field, ...]:
        """Field of the chosen variant if it exists already."""
        return (self._inners[self.chosen],) if self.chosen in self._inners else ()

    @property
    def text(self) -> str:
        """Content of the chosen variant as typed."""
        return super().text if self.is_raw or self._state == "null" else self.inner.text

    @property
    def is_filled(self) -> bool:
        """True if the chosen variant has a value that is not empty."""
        return self.is_raw or (super().is_filled and self.inner.is_filled)

    def status(self) -> FieldStatus:
        """Return state and activity of the chosen variant, or unset until the user chooses or fills it."""
        if self.is_raw or self._state != "unset":
            return super().status()
        if not (self.built or self._counts_untouched()):
            return FieldStatus("unset", is_active=False)
        state, is_active = self.inner.status()
        if not self._has_content(is_active, state != "unset"):
            return FieldStatus("unset", is_active=False)
        return FieldStatus(state, is_active or not self._prefilled)

    def path_of(self, inner: Field) -> str:
        """Return the JSON Pointer of a variant's field, which is the path of the value itself."""
        return self.path

    def id_part(self, inner: Field) -> str:
        """Return the last part of the id of a variant's field."""
        return f"-v{next((index for index, one in self._inners.items() if one is inner), self.chosen)}"

    def choose(self, index: int) -> None:
        """Show another variant. The previous one keeps its content, and properties of both are copied."""
        if self.is_raw or self._state == "null":
            self._set_state("unset")
        before = self.inner
        self.chosen, self.is_settled = index, True
        self.touched, self._prefilled = True, False
        now = self.inner
        now.complete()
        if isinstance(before, SectionField) and isinstance(now, SectionField) and before is not now:
            for name, theirs in before.named.items():
                mine = now.named.get(name)
                if mine is None or mine.kind != theirs.kind or mine.kind == "const" or mine.state != "unset":
                    continue
                if theirs.is_active:
                    mine.take_over(theirs)

    def choose_for(self, value: JsonValue) -> None:
        """Show the best variant for a value."""
        self.choose(self._rank(value))

    def candidate(self, index: int) -> Field:
        """Return an untouched field of a variant, to be filled and then adopted or discarded."""
        return self._options[index].make(FieldPosition(self, self.name))

    def adopt(self, index: int, inner: Field) -> None:
        """Show a variant with a field from `candidate`, replacing all content."""
        self._set_state("unset")
        self.chosen, self.is_settled = index, True
        self._inners[index] = inner

    def empty(self) -> None:
        """Send the empty value of the chosen variant. `recall` restores the previous one."""
        if not isinstance(self.inner, TextField | Container):
            return
        self._remember()
        self._set_state("unset")
        self.is_settled = True
        inner = self.inner
        assert isinstance(inner, TextField | Container), "a variant's field is always of the same kind"
        inner.empty()

    def write(self, text: str) -> None:
        """Write typed text to the chosen variant."""
        if self.is_raw or self._state == "null":
            self._set_state("unset")
        if isinstance(self.inner, Container):
            super().write(text)
        else:
            self.inner.write(text)
            self.is_settled = self.touched = True
            self._prefilled = False

    def mark_prefilled(self) -> None:
        """Mark all content as filled in by the form."""
        super().mark_prefilled()
        self._prefilled = True

    def update(self, value: JsonValue, shown: JsonValue) -> None:
        """Apply an edited draft, to the same variant if it is still the best one."""
        if write(value) == write(shown):
            return
        if self.is_raw or value is None or self.state != "value" or self._rank(value) != self.chosen:
            self.load(value)
        else:
            self.inner.update(value, shown)

    def take_over(self, other: Field) -> None:
        """Copy user input from the field of the same name of another schema."""
        if not isinstance(other, VariantField) or other.is_raw or other.variants != self.variants:
            super().take_over(other)
        elif other.is_settled:
            self.choose(other.chosen)
            self.inner.take_over(other.inner)
            self.touched = other.touched

    def _has_content(self, any_active: bool, any_set: bool) -> bool:
        return any_active or (any_set and self._counts_untouched())

    def _counts_untouched(self) -> bool:
        """Return True if the chosen variant is sent without user input, as it is for a new row."""
        return self.is_settled or (self.in_list and not self._left_out)

    def _draft_parts(self, masked: bool) -> JsonValue:
        return self.inner.draft(masked=masked)

    def _read_parts(self) -> FieldReading:
        return self.inner.read()

    def _load_parts(self, value: JsonValue) -> bool:
        self._inners = {}
        self.chosen, self.is_settled = self._rank(value), True
        self.inner.load(value)
        return True

    def _reset_parts(self) -> None:
        self.is_settled = False
        self._inners = {}

    def _snapshot_parts(self) -> Callable[[], None]:
        chosen, settled, inners = self.chosen, self.is_settled, self._inners

        def restore() -> None:
            self.chosen, self.is_settled, self._inners = chosen, settled, inners

        return restore


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
        self, facts: FieldFacts, position: FieldPosition, *, options: tuple[Option, ...], allows_twice: bool
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
