"""Fields for objects: sections with declared properties, and maps with arbitrary keys."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from pegboard.forms.containers import Container
from pegboard.forms.fields import FieldPosition, FieldReading
from pegboard.models import Fault

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.forms.containers import Maker
    from pegboard.forms.fields import Field, FieldDescription
    from pegboard.schema.validation import Validator


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
        facts: FieldDescription,
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

    @property
    def is_explicitly_empty(self) -> bool:
        """True if it is empty because the user or a loaded object says so, and not because it is untouched."""
        return not self.is_filled and (self.touched or self._state != self._initial_state)

    def path_of(self, inner: Field) -> str:
        """Return the JSON Pointer of an inner field. Additional properties are siblings of the declared ones."""
        return self.path if inner is self._rest else super().path_of(inner)

    def id_part(self, inner: Field) -> str:
        """Return the last part of an inner field's id."""
        return "-rest" if inner is self._rest else super().id_part(inner)

    def _update_parts(self, value: JsonValue, shown: JsonValue) -> bool:
        if not (isinstance(value, dict) and isinstance(shown, dict) and value):
            return False
        self._state = self._initial_state
        for name, inner in self.named.items():
            if name not in value:
                inner.leave_out()
            elif name in shown:
                inner.update(value[name], shown[name])
            else:
                inner.load(value[name])
        additional = self._additional(value)
        if additional:
            self.rest.update(additional, self._additional(shown))
        elif self._rest is not None:
            self._rest.leave_out()
        return True

    def prefill(self, validator: Validator) -> None:
        """Fill in the default, or the constants and defaults of required properties."""
        super().prefill(validator)
        self._prefill_required()

    def complete(self) -> None:
        """Build the inner fields, which fills in required constants and defaults."""
        self.named  # noqa: B018 - building them fills them

    def take_over(self, other: Field) -> None:
        """Copy user input from the properties with the same names."""
        if not isinstance(other, SectionField) or other.is_raw or other.state != "value" or other.is_explicitly_empty:
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
        if self._prefilled:  # it is part of a default
            return True
        is_sent = self.parent.sends_prefilled(self) if isinstance(self.parent, Container) else self.required
        return is_sent and not self._left_out

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
        facts: FieldDescription,
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
    def part_count(self) -> int:
        """Number of entries."""
        return len(self.entries)

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

    def clash(self) -> Fault | None:
        """Return the error of the first entry that JSON can't hold beside the other arguments, or None."""
        before: set[str] = set()
        for entry in self.entries:
            if entry.key in before or entry.key in self._taken:
                return Fault(path=entry.field.path, message=self._key_fault(entry, before))
            before.add(entry.key)
        return None

    def _update_parts(self, value: JsonValue, shown: JsonValue) -> bool:
        if not (isinstance(value, dict) and isinstance(shown, dict) and value):
            return False
        before = {entry.key: entry for entry in self.entries}
        self._edit()
        self.entries = []
        for key, item in value.items():
            entry = before.get(key)
            if entry is None or key not in shown:
                self._append(key, item)
            else:
                self.entries.append(entry)
                entry.field.update(item, shown[key])
        return True

    def take_over(self, other: Field) -> None:
        """Copy user input from the map of the same name."""
        if other.is_active:
            self.load(other.draft())

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
