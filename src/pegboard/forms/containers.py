"""The fields of a form that hold other fields: sections, lists, tuples, maps, variants and sets of choices.

Their state follows from what is in them: there is a value where something inside has one that the form did not put in
itself, and none again when all of it is gone. Only what was asked for is sent empty. What fits no part of a container,
such as a text where an object is meant or JSON that can't be read, is kept whole, and is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pydantic import JsonValue

from pegboard.forms.fields import (
    Facts,
    Field,
    Option,
    Place,
    Reading,
    Standing,
    State,
    TextField,
    not_one_of,
    option_of,
)
from pegboard.forms.json_text import JsonTextError, parse, same, write
from pegboard.models import Fault

if TYPE_CHECKING:
    from pegboard.schema.validation import Validator

Maker: TypeAlias = Callable[[Place], Field]
"""Builds an untouched field for a place."""

_MOST_PREFILLED = 24
"""Levels down to which required sections are filled in; a schema that requires itself would go on for ever."""
_DEEPEST = 100
"""Fields in fields that are filled by loading; what is deeper is kept as JSON, for Python's stack is not endless."""


class Container(Field):
    """A field whose value is made of what others hold.

    Args:
        facts: What its schema says.
        place: Where it stands.
    """

    def __init__(self, facts: Facts, place: Place) -> None:
        super().__init__(facts, place)
        self._unread: str | None = None
        self._left_out = False
        self._idle: State = "value" if self.in_list or place.parent is None else "unset"
        """The state from which on the parts say whether there is a value; rows and the whole are always there."""
        self._state = self._idle

    @property
    def state(self) -> State:
        """Whether its argument is left out, null, or has a value."""
        return self.standing().state

    @property
    def is_raw(self) -> bool:
        """Whether it holds something that fits no part of it; `text` is what."""
        return self._unread is not None or bool(self._loaded)

    @property
    def text(self) -> str:
        """What is in it as JSON; what was typed where that can't be read."""
        if self._unread is not None:
            return self._unread
        return write(self.draft(), indent=2) if self.state == "value" else ""

    @property
    def is_typed(self) -> bool:
        """Whether it holds a text that somebody typed, which can't be read."""
        return self._unread is not None

    @property
    def is_filled(self) -> bool:
        """Whether there is a value other than an empty one."""
        return self.is_raw or (self._state != "null" and self._holds_something(*self._inside()))

    def standing(self) -> Standing:
        """Gives its state and whether it is active, looking at each field inside once at most."""
        if self.is_raw:
            return Standing("value", not self._prefilled)
        if self._state == "null":
            return Standing("null", not self._prefilled)
        any_active, any_set = self._inside()
        if self._state == "unset" and not self._holds_something(any_active, any_set):
            return Standing("unset", is_active=False)
        return Standing("value", any_active or (self._state == "value" and not self._prefilled))

    def clear(self) -> None:
        """Makes the field as it was before anything was put in."""
        super().clear()
        self._state = self._idle
        self._left_out = False

    def draft(self, *, masked: bool = False) -> JsonValue:
        """Gives what is in it, fit or not; what can't be read as the text that was typed."""
        if self._unread is not None:
            return self._unread
        if self._loaded:
            return self._loaded[0]
        return None if self.state == "null" else self._drafted(masked)

    def load(self, value: JsonValue) -> None:
        """Puts a value in, whether it fits or not."""
        self._kept = None
        if value is None:
            self._put("null")
            return
        self._begin("unset")
        if self.depth > _DEEPEST or not self._take(value):
            self._drop()
            self._loaded = (value,)

    def write(self, text: str) -> None:
        """Puts in what was typed as JSON; what can't be read is kept as it is."""
        if not text.strip():
            self._put("unset")
            return
        try:
            value = parse(text)
        except JsonTextError:
            self._put("unset")
            self._unread = text
            return
        self.load(value)
        self.touched = True

    def empty(self) -> None:
        """Sends it empty; `recall` brings back what was there."""
        self._keep()
        self._put("value")

    def mark_prefilled(self) -> None:
        """Says that all that is in it was put in by the form."""
        super().mark_prefilled()
        for inner in self.built:
            inner.mark_prefilled()

    def _is_part_of_itself(self, source: JsonValue) -> bool:
        """Whether a field around it is built from the same part of the schema, so that filling both has no end."""
        outer, depth = self.parent, 0
        while outer is not None:
            depth += 1
            if (isinstance(outer, SectionField | TupleField) and outer.source is source) or depth > _MOST_PREFILLED:
                return True
            outer = outer.parent
        return False

    def _put(self, state: State) -> None:
        self._begin(state)
        self._drop()

    def _begin(self, state: State) -> None:
        super()._put(state)
        self._unread = None
        self._left_out = True

    def _snapshot(self) -> Callable[[], None]:
        unread, loaded, left_out, parts = self._unread, self._loaded, self._left_out, self._snapshot_parts()

        def restore() -> None:
            self._state = "unset"
            self._unread, self._loaded, self._left_out = unread, loaded, left_out
            parts()

        return restore

    def _read(self) -> Reading:
        if self._unread is None:
            return self._gathered()
        try:
            return Reading((parse(self._unread),))
        except JsonTextError as error:
            return self._refusal(str(error))

    def _inside(self) -> tuple[bool, bool]:
        """Says whether any field inside is active, and whether any is not unset."""
        any_set = False
        for inner in self.built:
            state, is_active = inner.standing()
            if is_active:
                return True, True
            any_set = any_set or state != "unset"
        return False, any_set

    def _holds_something(self, any_active: bool, any_set: bool) -> bool:
        """Whether there is something in it that makes it a value."""
        raise NotImplementedError

    def _drafted(self, masked: bool) -> JsonValue:
        raise NotImplementedError

    def _gathered(self) -> Reading:
        raise NotImplementedError

    def _take(self, value: JsonValue) -> bool:
        """Puts a value other than null in the place of what the parts hold; says whether it is of their kind."""
        raise NotImplementedError

    def _drop(self) -> None:
        """Makes the parts as they were at first."""
        raise NotImplementedError

    def _snapshot_parts(self) -> Callable[[], None]:
        """Gives what puts the present parts back."""
        raise NotImplementedError


class SectionField(Container):
    """An object: a field for each of its properties, and one for further ones.

    Args:
        facts: What its schema says.
        place: Where it stands.
        source: The part of the schema that names the properties; the same object where the schema is part of itself.
        makers: What builds each named property.
        rest: What builds the map of properties that are not named.
        is_open: Whether the schema speaks of properties that it doesn't name.
        validator: What tells whether a default may be put in.
    """

    kind = "section"

    def __init__(
        self,
        facts: Facts,
        place: Place,
        *,
        source: JsonValue,
        makers: dict[str, Maker],
        rest: Callable[[Place, frozenset[str]], MapField],
        is_open: bool,
        validator: Validator,
    ) -> None:
        super().__init__(facts, place)
        self.is_open = is_open
        self.source = source
        self._makers = makers
        self._make_rest = rest
        self._validator = validator
        self._named: dict[str, Field] | None = None
        self._rest: MapField | None = None

    @property
    def is_built(self) -> bool:
        """Whether its fields exist; they are built when they are asked for."""
        return self._named is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The named properties, in the schema's order, whether built or not."""
        return tuple(self._makers)

    @property
    def named(self) -> dict[str, Field]:
        """The fields of the named properties."""
        if self._named is None:
            self._named = {name: make(Place(self, name)) for name, make in self._makers.items()}
            for inner in self._named.values():
                inner.prefill(self._validator)
        return self._named

    @property
    def rest(self) -> MapField:
        """Further properties."""
        if self._rest is None:
            self._rest = self._make_rest(Place(self), frozenset(self._makers))
        return self._rest

    @property
    def children(self) -> tuple[Field, ...]:
        """The fields of the named properties; last the map of further ones, where there may be or are any."""
        return (*self.named.values(), *self._shown_rest())

    @property
    def built(self) -> tuple[Field, ...]:
        """The fields inside that were made already."""
        return self.children if self._named is not None else self._shown_rest()

    def path_of(self, inner: Field) -> str:
        """Gives the JSON Pointer of a field inside; further properties are side by side with the named ones."""
        return self.path if inner is self._rest else super().path_of(inner)

    def id_part(self, inner: Field) -> str:
        """Gives the last part of the id of a field inside."""
        return "-rest" if inner is self._rest else super().id_part(inner)

    def update(self, value: JsonValue, shown: JsonValue) -> None:
        """Puts in what somebody made of what was shown, property by property."""
        if write(value) == write(shown):
            return
        if self.is_raw or not (isinstance(value, dict) and isinstance(shown, dict) and value):
            self.load(value)
            return
        self._state = self._idle
        for name, inner in self.named.items():
            if name not in value:
                inner.leave_out()
            elif name in shown:
                inner.update(value[name], shown[name])
            else:
                inner.load(value[name])
        self.rest.update(self._beyond(value), self._beyond(shown))

    def prefill(self, validator: Validator) -> None:
        """Puts in its default, or what its own required properties are sent with."""
        super().prefill(validator)
        if self.required and self._is_part_of_itself(self.source):
            self._left_out = True
        elif self.required:
            self.complete()

    def complete(self) -> None:
        """Has its required properties put in what they are sent with by themselves."""
        self.named  # noqa: B018 - building them fills them

    def take_over(self, other: Field) -> None:
        """Puts in what somebody put into the properties of the same names."""
        if not isinstance(other, SectionField) or other.is_raw or other.state != "value" or not other.is_filled:
            super().take_over(other)
            return
        further = {inner.name: inner for inner in other.rest.built}
        theirs = {inner.name: inner for inner in other.built if inner is not other.rest} | further
        for name, inner in theirs.items():
            if name in self._makers and (inner.is_active or (inner.touched and self.is_built)):
                self.named[name].take_over(inner)
        rest: JsonValue = {name: theirs[name].draft() for name in further if name not in self._makers}
        self._rest_of(other.rest.draft() if other.rest.is_raw else rest)

    def _rest_of(self, value: JsonValue) -> None:
        if value != {}:
            self.rest.load(value)

    def _shown_rest(self) -> tuple[Field, ...]:
        if self.is_open:
            return (self.rest,)
        return (self._rest,) if self._rest is not None and self._rest.state != "unset" else ()

    def _holds_something(self, any_active: bool, any_set: bool) -> bool:
        return any_active or (any_set and self._counts_prefilled())

    def _counts_prefilled(self) -> bool:
        """Whether what the form put in by itself is enough for the section to be sent."""
        is_meant = self.parent.is_settled if isinstance(self.parent, VariantField) else self.required
        return is_meant and not self._left_out

    def _drafted(self, masked: bool) -> JsonValue:
        found: dict[str, JsonValue] = {}
        for inner in self._sent():
            if inner.state == "unset":
                continue
            drafted = inner.draft(masked=masked)
            if inner is not self._rest:
                found[inner.name] = drafted
            elif isinstance(drafted, dict):
                found.update((name, value) for name, value in drafted.items() if name not in found)
        return found

    def _gathered(self) -> Reading:
        found: dict[str, JsonValue] = {}
        faults: list[Fault] = []
        for inner in self._sent():
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
        return Reading((found,), tuple(faults))

    def _take(self, value: JsonValue) -> bool:
        if not isinstance(value, dict):
            return False
        self._state = self._idle if value else "value"
        for name, inner in self.named.items():
            if name in value:
                inner.load(value[name])
            else:
                inner.leave_out()
        if self._rest is not None:
            self._rest.leave_out()
        self._rest_of(self._beyond(value))
        return True

    def _sent(self) -> tuple[Field, ...]:
        """Gives the fields that may be sent; where the object is, its constants are."""
        return self.children if self._state == "value" else self.built

    def _beyond(self, value: dict[str, JsonValue]) -> JsonValue:
        return {name: inner for name, inner in value.items() if name not in self._makers}

    def _drop(self) -> None:
        self._named = None
        self._rest = None

    def _snapshot_parts(self) -> Callable[[], None]:
        named, rest, state = self._named, self._rest, self._state

        def restore() -> None:
            self._named, self._rest, self._state = named, rest, state

        return restore


class ListField(Container):
    """A list of rows, each a field of its own.

    Args:
        facts: What its schema says.
        place: Where it stands.
        make_row: Builds an empty row; None where no row can be added.
    """

    kind = "list"
    fixed = 0
    """How many of the first rows can't be removed or moved."""

    def __init__(self, facts: Facts, place: Place, *, make_row: Maker | None) -> None:
        super().__init__(facts, place)
        self._rows: list[Field] | None = None
        self._make_row = make_row

    @property
    def rows(self) -> list[Field]:
        """The rows, not to be changed from outside."""
        if self._rows is None:
            self._rows = []
            self._begin_rows(self._rows)
        return self._rows

    @property
    def can_add(self) -> bool:
        """Whether rows can be added."""
        return self._make_row is not None

    @property
    def children(self) -> tuple[Field, ...]:
        """The rows."""
        return tuple(self.rows)

    @property
    def built(self) -> tuple[Field, ...]:
        """The rows that were made already."""
        return tuple(self._rows or ())

    def row_at(self, index: int) -> Field:
        """Gives what a row at `index` would be, without adding it."""
        assert self._make_row is not None, "asked for only where rows can be added"
        return self._make_row(Place(self, str(index)))

    def add(self, index: int | None = None) -> Field:
        """Adds an empty row before `index`, else at the end, and gives it."""
        self._edit()
        at = len(self.rows) if index is None else max(index, self.fixed)
        row = self.row_at(at)
        self.rows.insert(at, row)
        self._renumber(at)
        return row

    def remove(self, index: int) -> None:
        """Removes a row; without rows an optional list is unset, a required one is empty."""
        if index < self.fixed:
            return
        self._edit()
        del self.rows[index]
        self._renumber(index)
        if len(self.rows) == self.fixed:
            self._state = "value" if self.required else "unset"

    def move(self, index: int, by: int) -> int:
        """Moves a row by so many places, as far as there are any; gives its new index."""
        if index < self.fixed:
            return index
        self._edit()
        to = min(max(index + by, self.fixed), len(self.rows) - 1)
        self.rows.insert(to, self.rows.pop(index))
        self._renumber(self.fixed)
        return to

    def fill(self, texts: Sequence[str]) -> None:
        """Makes one row of each text."""
        self._put("value")
        for text in texts:
            self.add().write(text)

    def update(self, value: JsonValue, shown: JsonValue) -> None:
        """Puts in what somebody made of what was shown, row by row."""
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
        self._cut(len(value))

    def _edit(self) -> None:
        """Takes note that the rows are about to change, and that they are what counts."""
        if self.is_raw or self._state == "null":
            self._put("value")
        self._state = "value"
        self.touched = True
        self._prefilled = False

    def _append(self, item: JsonValue) -> None:
        row = self._make_row(Place(self, str(len(self.rows)))) if self._make_row is not None else None
        if row is not None:
            self.rows.append(row)
            row.load(item)

    def _cut(self, length: int) -> None:
        del self.rows[length:]

    def _renumber(self, start: int) -> None:
        for index in range(start, len(self.rows)):
            self.rows[index].name = str(index)

    def _holds_something(self, any_active: bool, any_set: bool) -> bool:
        return bool(self._rows)

    def _drafted(self, masked: bool) -> JsonValue:
        return [row.draft(masked=masked) for row in self.rows]

    def _gathered(self) -> Reading:
        readings = [row.read() for row in self.rows]
        faults = tuple(fault for reading in readings for fault in reading.faults)
        # An unreadable row keeps its place, so that what is said of the others is said at their places.
        return Reading(([reading.value[0] if reading.value else None for reading in readings],), faults)

    def _take(self, value: JsonValue) -> bool:
        if not isinstance(value, list) or (value and not self.can_add):
            return False
        self._drop()
        self._state = "value"
        for item in value:
            self._append(item)
        return True

    def _begin_rows(self, rows: list[Field]) -> None:
        """Adds the rows that are always there."""

    def _drop(self) -> None:
        self._rows = None

    def _snapshot_parts(self) -> Callable[[], None]:
        rows, state = self._rows, self._state

        def restore() -> None:
            self._rows, self._state = rows, state

        return restore


class TupleField(ListField):
    """A list whose first rows have types of their own, and are always there.

    Args:
        facts: What its schema says.
        place: Where it stands.
        source: The part of the schema that lists the fixed rows; the same object where the schema is part of itself.
        makers: What builds each of the fixed rows.
        make_row: Builds a further row; None where none fits.
        spare: Builds a row for what was loaded beyond what fits.
        validator: What tells whether a default may be put in.
    """

    kind = "tuple"

    def __init__(
        self,
        facts: Facts,
        place: Place,
        *,
        source: JsonValue,
        makers: Sequence[Maker],
        make_row: Maker | None,
        spare: Maker,
        validator: Validator,
    ) -> None:
        super().__init__(facts, place, make_row=make_row)
        self.fixed = len(makers)
        self.source = source
        self._makers = makers
        self._spare = spare
        self._validator = validator

    def prefill(self, validator: Validator) -> None:
        """Puts in its default, or what its rows that must be there are sent with."""
        super().prefill(validator)
        if self.required and self._is_part_of_itself(self.source):
            self._left_out = True
        elif self.required:
            self.complete()

    def complete(self) -> None:
        """Has its rows that must be there put in what they are sent with by themselves."""
        self.rows  # noqa: B018 - building them fills them

    def _append(self, item: JsonValue) -> None:
        row = (self._make_row or self._spare)(Place(self, str(len(self.rows))))
        self.rows.append(row)
        row.load(item)

    def _edit(self) -> None:
        if self.is_raw or self._state == "null":
            self._put("unset")
        self.touched = True
        self._prefilled = False

    def _cut(self, length: int) -> None:
        for row in self.rows[length : self.fixed]:
            row.leave_out()
        del self.rows[max(length, self.fixed) :]

    def _holds_something(self, any_active: bool, any_set: bool) -> bool:
        return any_active or len(self._rows or ()) > self.fixed or (any_set and self.required and not self._left_out)

    def _given(self) -> list[Field]:
        """Gives the rows up to the last that has something."""
        last = max((index for index, row in enumerate(self.rows) if row.state != "unset"), default=-1)
        return self.rows[: max(last + 1, len(self.rows) if len(self.rows) > self.fixed else 0)]

    def _drafted(self, masked: bool) -> JsonValue:
        return [row.draft(masked=masked) if row.state != "unset" else None for row in self._given()]

    def _gathered(self) -> Reading:
        readings = [row.read() for row in self._given()]
        faults = tuple(fault for reading in readings for fault in reading.faults)
        return Reading(([reading.value[0] if reading.value else None for reading in readings],), faults)

    def _take(self, value: JsonValue) -> bool:
        if not isinstance(value, list):
            return False
        self._drop()
        self._state = self._idle if value else "value"
        for row, item in zip(self.rows, value, strict=False):
            row.load(item)
        for item in value[self.fixed :]:
            self._append(item)
        return True

    def _begin_rows(self, rows: list[Field]) -> None:
        rows.extend(make(Place(self, str(index))) for index, make in enumerate(self._makers))
        for row in rows:
            row.prefill(self._validator)


class MapEntry:
    """One entry of a map.

    Args:
        key: Its key.
        field: The field of its value.
        is_named: Whether somebody gave it its key.
    """

    def __init__(self, key: str, field: Field, *, is_named: bool) -> None:
        self.key = key
        self.field = field
        self.is_named = is_named


class MapField(Container):
    """An object whose keys are not known beforehand: entries of a key and a field each.

    Args:
        facts: What its schema says.
        place: Where it stands.
        make: Builds the field for the value of a key.
        key_options: The keys that the schema lists; empty where it lists none.
        taken: Keys that have fields of their own elsewhere.
        same_for_all: Whether every key has the same kind of value.
    """

    kind = "map"

    def __init__(
        self,
        facts: Facts,
        place: Place,
        *,
        make: Maker,
        key_options: tuple[str, ...] = (),
        taken: frozenset[str] = frozenset(),
        same_for_all: bool = True,
    ) -> None:
        super().__init__(facts, place)
        self.entries: list[MapEntry] = []
        self.key_options = key_options
        self._make = make
        self._taken = taken
        self._same_for_all = same_for_all

    @property
    def children(self) -> tuple[Field, ...]:
        """The fields of the entries' values."""
        return tuple(entry.field for entry in self.entries)

    def id_part(self, inner: Field) -> str:
        """Gives the last part of the id of a field inside; a key that is there twice makes no id twice."""
        before = 0
        for entry in self.entries:
            if entry.field is inner:
                break
            before += entry.key == inner.name
        return super().id_part(inner) + (f"-k{before}" if before else "")

    def add(self, key: str = "") -> MapEntry:
        """Adds an entry at the end; without a key it is faulty until it is given one."""
        self._edit()
        entry = MapEntry(key, self._make(Place(self, key)), is_named=bool(key))
        self.entries.append(entry)
        return entry

    def rename(self, index: int, key: str) -> None:
        """Gives an entry another key; its value stays as far as what fits the other key can hold it."""
        self._edit()
        entry = self.entries[index]
        entry.key, entry.is_named = key, bool(key)
        if self._same_for_all:
            entry.field.name = key
            return
        before, entry.field = entry.field, self._make(Place(self, key))
        entry.field.take_over(before)

    def name_empty(self, index: int) -> None:
        """Gives an entry the empty text as its key, which clearing its key doesn't."""
        self.rename(index, "")
        self.entries[index].is_named = True

    def remove(self, index: int) -> None:
        """Removes an entry; without entries an optional map is unset, a required one is empty."""
        self._edit()
        del self.entries[index]
        if not self.entries:
            self._state = "value" if self.required else "unset"

    def move(self, index: int, by: int) -> int:
        """Moves an entry by so many places, as far as there are any; gives its new index."""
        self._edit()
        to = min(max(index + by, 0), len(self.entries) - 1)
        self.entries.insert(to, self.entries.pop(index))
        return to

    def key_fault(self, index: int) -> str:
        """Says what is wrong with the key of an entry, whatever the schema says of it; empty if nothing is."""
        return self._key_fault(self.entries[index], [entry.key for entry in self.entries[:index]])

    def update(self, value: JsonValue, shown: JsonValue) -> None:
        """Puts in what somebody made of what was shown, entry by entry."""
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
        """Puts in what somebody put into the map of the same name."""
        if other.is_active:
            self.load(other.draft())

    def _edit(self) -> None:
        if self.is_raw or self._state == "null":
            self._put("value")
        self._state = "value"
        self.touched = True
        self._prefilled = False

    def _append(self, key: str, item: JsonValue) -> None:
        entry = MapEntry(key, self._make(Place(self, key)), is_named=True)
        self.entries.append(entry)
        entry.field.load(item)

    def _key_fault(self, entry: MapEntry, before: Collection[str]) -> str:
        if not entry.is_named:
            return "has no name yet"
        if entry.key in self._taken:
            return "has a field of its own"
        return "is given twice" if entry.key in before else ""

    def _holds_something(self, any_active: bool, any_set: bool) -> bool:
        return bool(self.entries)

    def _drafted(self, masked: bool) -> JsonValue:
        found: dict[str, JsonValue] = {}
        for entry in self.entries:
            found[entry.key] = entry.field.draft(masked=masked)
        return found

    def _gathered(self) -> Reading:
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
        return Reading((found,), tuple(faults))

    def _take(self, value: JsonValue) -> bool:
        if not isinstance(value, dict):
            return False
        self._drop()
        self._state = "value"
        for key, item in value.items():
            self._append(key, item)
        return True

    def _drop(self) -> None:
        self.entries = []

    def _snapshot_parts(self) -> Callable[[], None]:
        entries, state = self.entries, self._state

        def restore() -> None:
            self.entries, self._state = entries, state

        return restore


class Variant:
    """One of the schemas of a union.

    Args:
        label: What it is called, different from the others.
        schema: It, with all that holds for each variant.
        make: Builds its field.
    """

    def __init__(self, label: str, schema: JsonValue, make: Maker) -> None:
        self.label = label
        self.schema = schema
        self.make = make


class VariantField(Container):
    """One of several kinds of value.

    Args:
        facts: What its schema says.
        place: Where it stands.
        options: The variants, at least one.
        rank: Gives the index of the variant that a value most likely is meant for.
    """

    kind = "variant"

    def __init__(
        self, facts: Facts, place: Place, *, options: Sequence[Variant], rank: Callable[[JsonValue], int]
    ) -> None:
        super().__init__(facts, place)
        self.chosen = 0
        """The index of the variant that is shown."""
        self.is_settled = False
        """Whether somebody chose it or filled it in."""
        self._options = options
        self._rank = rank
        self._inners: dict[int, Field] = {}
        self._state = "unset"

    @property
    def variants(self) -> tuple[str, ...]:
        """What the variants are called."""
        return tuple(option.label for option in self._options)

    @property
    def chosen_schema(self) -> JsonValue:
        """The schema of the chosen variant, with all that holds for each."""
        return self._options[self.chosen].schema

    @property
    def inner(self) -> Field:
        """The field of the chosen variant."""
        if self.chosen not in self._inners:
            self._inners[self.chosen] = self._options[self.chosen].make(Place(self, self.name))
        return self._inners[self.chosen]

    @property
    def children(self) -> tuple[Field, ...]:
        """The field of the chosen variant."""
        return (self.inner,)

    @property
    def built(self) -> tuple[Field, ...]:
        """The field of the chosen variant, if it was made already."""
        return (self._inners[self.chosen],) if self.chosen in self._inners else ()

    @property
    def text(self) -> str:
        """What the chosen variant holds, as it is typed."""
        return super().text if self.is_raw or self._state == "null" else self.inner.text

    @property
    def is_filled(self) -> bool:
        """Whether there is a value other than an empty one of the chosen variant."""
        return self.is_raw or (super().is_filled and self.inner.is_filled)

    def standing(self) -> Standing:
        """Gives its state and whether it is active: those of the chosen variant, once somebody filled or chose it."""
        if self.is_raw or self._state != "unset":
            return super().standing()
        if not (self.built or self._is_meant()):
            return Standing("unset", is_active=False)
        state, is_active = self.inner.standing()
        if not self._holds_something(is_active, state != "unset"):
            return Standing("unset", is_active=False)
        return Standing(state, is_active or not self._prefilled)

    def path_of(self, inner: Field) -> str:
        """Gives the JSON Pointer of a variant's field: it is the value itself."""
        return self.path

    def id_part(self, inner: Field) -> str:
        """Gives the last part of the id of a variant's field."""
        return f"-v{next((index for index, one in self._inners.items() if one is inner), self.chosen)}"

    def choose(self, index: int) -> None:
        """Shows another variant; what was put into the one before stays there, and what both have is carried over."""
        if self.is_raw or self._state == "null":
            self._put("unset")
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
        """Shows the variant that a value most likely is meant for."""
        self.choose(self._rank(value))

    def candidate(self, index: int) -> Field:
        """Gives an untouched field of a variant, to be filled and then adopted or dropped."""
        return self._options[index].make(Place(self, self.name))

    def adopt(self, index: int, inner: Field) -> None:
        """Shows a variant with a field that `candidate` gave, in the place of all there was."""
        self._put("unset")
        self.chosen, self.is_settled = index, True
        self._inners[index] = inner

    def empty(self) -> None:
        """Sends what the chosen variant is when it is empty; `recall` brings back what was there."""
        if not isinstance(self.inner, TextField | Container):
            return
        self._keep()
        self._put("unset")
        self.is_settled = True
        inner = self.inner
        assert isinstance(inner, TextField | Container), "a variant's field is always of the same kind"
        inner.empty()

    def write(self, text: str) -> None:
        """Puts in what was typed, read as the chosen variant reads it."""
        if self.is_raw or self._state == "null":
            self._put("unset")
        if isinstance(self.inner, Container):
            super().write(text)
        else:
            self.inner.write(text)
            self.is_settled = self.touched = True
            self._prefilled = False

    def mark_prefilled(self) -> None:
        """Says that all that is in it was put in by the form."""
        super().mark_prefilled()
        self._prefilled = True

    def update(self, value: JsonValue, shown: JsonValue) -> None:
        """Puts in what somebody made of what was shown; into the same variant where that is still meant."""
        if write(value) == write(shown):
            return
        if self.is_raw or value is None or self.state != "value" or self._rank(value) != self.chosen:
            self.load(value)
        else:
            self.inner.update(value, shown)

    def take_over(self, other: Field) -> None:
        """Puts in what somebody put into the field of the same name of another schema."""
        if not isinstance(other, VariantField) or other.is_raw or other.variants != self.variants:
            super().take_over(other)
        elif other.is_settled:
            self.choose(other.chosen)
            self.inner.take_over(other.inner)
            self.touched = other.touched

    def _holds_something(self, any_active: bool, any_set: bool) -> bool:
        return any_active or (any_set and self._is_meant())

    def _is_meant(self) -> bool:
        """Whether the chosen variant is there even if nobody put anything into it; a row is there from the start."""
        return self.is_settled or (self.in_list and not self._left_out)

    def _drafted(self, masked: bool) -> JsonValue:
        return self.inner.draft(masked=masked)

    def _gathered(self) -> Reading:
        return self.inner.read()

    def _take(self, value: JsonValue) -> bool:
        self._inners = {}
        self.chosen, self.is_settled = self._rank(value), True
        self.inner.load(value)
        return True

    def _drop(self) -> None:
        self.is_settled = False
        self._inners = {}

    def _snapshot_parts(self) -> Callable[[], None]:
        chosen, settled, inners = self.chosen, self.is_settled, self._inners

        def restore() -> None:
            self.chosen, self.is_settled, self._inners = chosen, settled, inners

        return restore


class MultiChoiceField(Container):
    """A list of values that the schema lists, in the order they were picked.

    Args:
        facts: What its schema says.
        place: Where it stands.
        options: What there is to pick.
        allows_twice: Whether a value may be in the list more than once.
    """

    kind = "multi"

    def __init__(self, facts: Facts, place: Place, *, options: tuple[Option, ...], allows_twice: bool) -> None:
        super().__init__(facts, place)
        self.options = options
        self.allows_twice = allows_twice
        self.picked: tuple[JsonValue, ...] = ()
        self._wrong: tuple[str, ...] = ()

    def is_picked(self, index: int) -> bool:
        """Whether the option at `index` is in the list."""
        return self.count(index) > 0

    def count(self, index: int) -> int:
        """How often the option at `index` is in the list."""
        return sum(same(value, self.options[index].value) for value in self.picked)

    def toggle(self, index: int) -> None:
        """Takes the option at `index` out wherever it is, or puts it at the end."""
        if not self.is_picked(index):
            self.add(index)
            return
        self._edit()
        self.picked = tuple(value for value in self.picked if not same(value, self.options[index].value))
        if not self.picked and not self.required:
            self._state = "unset"

    def add(self, index: int) -> None:
        """Puts the option at `index` at the end, once more where it is there already."""
        self._edit()
        self.picked = (*self.picked, self.options[index].value)

    def fill(self, texts: Iterable[str]) -> None:
        """Picks the option that each text means; what means none is a fault."""
        self._put("value")
        found = [(text, option_of(self.options, text)) for text in texts]
        self.picked = tuple(option.value if option is not None else text for text, option in found)
        self._wrong = tuple(text for text, option in found if option is None)

    def _edit(self) -> None:
        if self.is_raw or self._state == "null":
            self._put("value")
        self._state = "value"
        self._wrong = ()
        self.touched = True
        self._prefilled = False

    def _holds_something(self, any_active: bool, any_set: bool) -> bool:
        return bool(self.picked)

    def _drafted(self, masked: bool) -> JsonValue:
        return [*self.picked]

    def _gathered(self) -> Reading:
        faults = (
            Fault(path=f"{self.path}/{index}", message=not_one_of(self.options, value))
            for index, value in enumerate(self.picked)
            if isinstance(value, str) and value in self._wrong
        )
        return Reading(([*self.picked],), tuple(faults))

    def _take(self, value: JsonValue) -> bool:
        if not isinstance(value, list):
            return False
        self._state = "value"
        self.picked = tuple(value)
        return True

    def _drop(self) -> None:
        self.picked = ()
        self._wrong = ()

    def _snapshot_parts(self) -> Callable[[], None]:
        picked, wrong, state = self.picked, self._wrong, self._state

        def restore() -> None:
            self.picked, self._wrong, self._state = picked, wrong, state

        return restore
