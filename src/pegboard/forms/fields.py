"""Base of all fields of a form.

A field is *unset* (its argument is left out), *null*, or has a *value*. Typed text is kept as typed, valid or not, and
parsed when the value is read. A loaded value is returned unchanged until the user edits it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

from pegboard.data.json_text import write
from pegboard.data.pointer import pointer
from pegboard.errors import FormFaults
from pegboard.models import Fault

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.schema.validation import Validator

State: TypeAlias = Literal["unset", "null", "value"]


@dataclass(frozen=True, kw_only=True)
class FieldDescription:
    """Properties of an argument that its field displays or follows."""

    schema: JsonValue
    """Part of the validator's schema that describes the argument."""
    label: str = ""
    """Title of the schema; empty if it only repeats the name."""
    description: str = ""
    required: bool = False
    nullable: bool = False
    """Whether null is allowed."""
    has_default: bool = False
    default: JsonValue = None
    """Value that the tool uses when the argument is left out, if `has_default`."""
    examples: tuple[JsonValue, ...] = ()
    limits: str = ""
    """Allowed values in words, such as `1 to 10`; can be empty."""
    type_label: str = "any"
    """Type in words, such as `integer`, `string · date` or `list of strings`."""
    in_list: bool = False
    """Whether the field is a row of a list."""
    reason: str = ""
    """Why only JSON can be entered; empty if JSON is the natural choice."""

    def but(
        self,
        *,
        type_label: str | None = None,
        nullable: bool | None = None,
        reason: str | None = None,
    ) -> FieldDescription:
        """Return a copy with some facts replaced."""
        return replace(
            self,
            type_label=self.type_label if type_label is None else type_label,
            nullable=self.nullable if nullable is None else nullable,
            reason=self.reason if reason is None else reason,
        )


@dataclass(frozen=True)
class FieldPosition:
    """Position of a field in the form.

    Args:
        parent: Containing field, or None for the root.
        name: Name of the property, index of the row or key of the entry.
    """

    parent: Field | None = None
    name: str = ""


@dataclass(frozen=True)
class FieldReading:
    """Value of a field as far as it can be read, with validation errors for the rest."""

    value: tuple[JsonValue, ...] = ()
    """The value as the only item, or nothing if it can't be read."""
    faults: tuple[Fault, ...] = ()


class FieldStatus(NamedTuple):
    """State and activity of a field, which containers need together."""

    state: State
    is_active: bool
    """Whether it has content that the form did not prefill."""


class Field:
    """One argument or a part of one.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
    """

    kind: ClassVar[str]
    has_named_parts: ClassVar[bool] = True
    """Whether inner fields have names of their own; rows of a list and variants have the name of the whole."""

    def __init__(self, facts: FieldDescription, position: FieldPosition) -> None:
        self.facts = facts
        self.parent = position.parent
        self.name = position.name
        self.depth: int = 0 if position.parent is None else position.parent.depth + 1
        """Number of enclosing fields."""
        self.touched = False
        """Whether the user has changed it."""
        self._state: State = "unset"
        self._text = ""
        self._loaded: tuple[JsonValue, ...] = ()
        self._kept: Callable[[], None] | None = None
        self._prefilled = False

    # --- Facts ---

    @property
    def schema(self) -> JsonValue:
        """Part of the validator's schema that describes the argument."""
        return self.facts.schema

    @property
    def label(self) -> str:
        """Title of the schema, or the name if the title only repeats it."""
        return self.facts.label or self.name

    @property
    def description(self) -> str:
        """Description from the schema; can be empty."""
        return self.facts.description

    @property
    def required(self) -> bool:
        """True if the argument must be sent."""
        return self.facts.required

    @property
    def nullable(self) -> bool:
        """True if null is allowed."""
        return self.facts.nullable

    @property
    def has_default(self) -> bool:
        """True if the schema has a default."""
        return self.facts.has_default

    @property
    def default(self) -> JsonValue:
        """Value that the tool uses when the argument is left out, if `has_default`."""
        return self.facts.default

    @property
    def examples(self) -> tuple[JsonValue, ...]:
        """Examples from the schema."""
        return self.facts.examples

    @property
    def limits(self) -> str:
        """Allowed values in words, such as `1 to 10`; can be empty."""
        return self.facts.limits

    @property
    def type_label(self) -> str:
        """Type in words, such as `integer`, `string · date` or `list of strings`."""
        return self.facts.type_label

    @property
    def in_list(self) -> bool:
        """True if the field is a row of a list."""
        return self.facts.in_list

    @property
    def reason(self) -> str:
        """Why only JSON can be entered; empty if JSON is the natural choice."""
        return self.facts.reason

    @property
    def path(self) -> str:
        """JSON Pointer into the arguments."""
        return self.parent.path_of(self) if self.parent is not None else ""

    def path_of(self, inner: Field) -> str:
        """Return the JSON Pointer of an inner field."""
        return self.path + pointer(inner.name)

    @property
    def id(self) -> str:
        """Identifier made of the path; valid and unique in CSS and Textual for any names."""
        return self.parent.id + self.parent.id_part(self) if self.parent is not None else "f"

    def id_part(self, inner: Field) -> str:
        """Return the last part of an inner field's id."""
        return "-n" + re.sub(r"[^a-zA-Z0-9]", lambda match: f"_{ord(match[0]):x}_", inner.name)

    @property
    def children(self) -> tuple[Field, ...]:
        """Inner fields."""
        return ()

    @property
    def built(self) -> tuple[Field, ...]:
        """Inner fields that exist already."""
        return self.children

    def walk(self) -> Iterator[Field]:
        """Yield this field and its existing inner fields, outer ones first."""
        yield self
        for inner in self.built:
            yield from inner.walk()

    # --- Content ---

    @property
    def state(self) -> State:
        """State of the argument: left out, null or a value."""
        return self._state

    @property
    def text(self) -> str:
        """Value as typed; empty unless the state is `value`."""
        return self._text

    @property
    def is_typed(self) -> bool:
        """True if the value is typed text, which can be invalid."""
        return self.state == "value" and not self._loaded and bool(self._text)

    @property
    def is_filled(self) -> bool:
        """True if it has a value that is not empty."""
        return self.state == "value" and bool(self.text)

    @property
    def is_prefilled(self) -> bool:
        """True if all content was filled in by the form, as required constants and defaults are."""
        state, is_active = self.status()
        return state != "unset" and not is_active

    @property
    def is_active(self) -> bool:
        """True if it has content that the form did not prefill."""
        return self.status().is_active

    def status(self) -> FieldStatus:
        """Return state and activity in one pass over the inner fields."""
        return FieldStatus(self._state, self._state != "unset" and not self._prefilled)

    @property
    def can_recall(self) -> bool:
        """True if a value was replaced by another state and can be restored."""
        return self._kept is not None

    def value(self) -> JsonValue:
        """Return the value to send.

        Raises:
            FormFaults: The field is unset or its text is invalid.
        """
        reading = self.read()
        if reading.faults:
            raise FormFaults(reading.faults)
        return reading.value[0]

    def read(self) -> FieldReading:
        """Return the value as far as it can be read, with validation errors for the rest."""
        if self.state == "unset":
            return self._invalid("is empty" if self.in_list else "is required")
        if self.state == "null":
            return FieldReading((None,))
        return FieldReading(self._loaded) if self._loaded else self._read()

    def draft(self, *, masked: bool = False) -> JsonValue:
        """Return the content of a field that is set, valid or not; text that can't be read is returned as typed.

        Args:
            masked: Whether to mask secrets.
        """
        del masked
        reading = self.read()
        return self._text if reading.faults else reading.value[0]

    # --- Changes ---

    def load(self, value: JsonValue) -> None:
        """Replace the content with a value, even one that does not fit."""
        self._kept = None
        self._set_state("null" if value is None else "value")
        if value is not None:
            self._loaded = (value,)
            self._set_text(value)

    def update(self, value: JsonValue, shown: JsonValue) -> None:
        """Apply an edited draft. Typed text stays if the value did not change.

        Args:
            value: Edited value.
            shown: Draft from which the value was edited.
        """
        if write(value) != write(shown):
            self.load(value)

    def write(self, text: str) -> None:
        """Replace the content with typed text. Blank text unsets the field."""
        self._set_state("value" if text.strip() else "unset")
        self._text = text

    def unset(self) -> None:
        """Leave the argument out. `recall` restores its value."""
        self._remember()
        self._set_state("unset")

    def set_null(self) -> None:
        """Send null. `recall` restores the previous value."""
        self._remember()
        self._set_state("null")

    def recall(self) -> None:
        """Restore the value that another state replaced, if there was one."""
        if self._kept is not None:
            self._set_state("value")
            self._kept()

    def forget(self) -> None:
        """Mark the field as untouched and discard its recallable value; the state stays."""
        self.touched = False
        self._kept = None

    def leave_out(self) -> None:
        """Leave out an argument that a loaded object does not have; `recall` restores nothing."""
        self._set_state("unset")
        self.forget()

    def clear(self) -> None:
        """Reset the field to its initial content."""
        self._set_state("unset")
        self.forget()

    def prefill(self, validator: Validator) -> None:
        """Fill in the constant or valid default of a required field."""
        if self.required and self.has_default and not self.in_list and validator.fits(self.schema, self.default):
            self.load(self.default)
            self.mark_prefilled()

    def complete(self) -> None:
        """Fill in required constants and defaults of inner fields."""

    def mark_prefilled(self) -> None:
        """Mark all content as filled in by the form."""
        self._prefilled = True
        self.touched = False

    def take_over(self, other: Field) -> None:
        """Copy user input from the field of the same name of another schema, as far as possible."""
        if not other.touched and not other.is_active:
            return
        if other.state == "unset":
            self.leave_out()
        elif type(other) is type(self) and other.is_typed:
            self.write(other.text)
        else:
            self.load(other.draft())

    # --- Hooks of subclasses ---

    def _set_state(self, state: State) -> None:
        self._state = state
        self.touched = True
        self._prefilled = False
        self._text = ""
        self._loaded = ()

    def _remember(self) -> None:
        if self.is_filled:
            self._kept = self._snapshot()

    def _snapshot(self) -> Callable[[], None]:
        """Return a function that restores the current value."""
        text, loaded = self._text, self._loaded

        def restore() -> None:
            self._text, self._loaded = text, loaded

        return restore

    def _set_text(self, value: JsonValue) -> None:
        self._text = write(value)

    def _read(self) -> FieldReading:
        raise NotImplementedError

    def _invalid(self, message: str) -> FieldReading:
        return FieldReading(faults=(Fault(path=self.path, message=message),))


def key_of(field: Field) -> str:
    """Return the name of the property or map entry that a field belongs to."""
    while field.parent is not None and not field.parent.has_named_parts:
        field = field.parent
    return field.name
