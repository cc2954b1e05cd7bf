"""The fields of a form that hold one value: what each is told of its argument, and what was put in.

A field is *unset* (its argument is left out), *null*, or has a *value*. What a user typed stays as typed, fit or not,
and is read when its value is asked for; what was loaded comes out as it went in until somebody edits it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

from pydantic import JsonValue

from pegboard.errors import FormFaults
from pegboard.forms.json_text import JsonTextError, parse, same, write
from pegboard.models import Fault
from pegboard.schema.soundness import pointer

if TYPE_CHECKING:
    from pegboard.schema.validation import Validator

State: TypeAlias = Literal["unset", "null", "value"]
Picks: TypeAlias = Literal["", "file", "folder"]

MASK = "••••••••"
"""What stands for a secret in a masked text."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST_DIGITS = 4000
"""Python reads and writes integers of up to 4,300 digits."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a field is told of its argument."""

    schema: JsonValue
    """The part of the validator's schema that it stands for."""
    label: str = ""
    """The schema's title where it says more than the name; else empty."""
    description: str = ""
    required: bool = False
    nullable: bool = False
    """Whether null may be sent."""
    has_default: bool = False
    default: JsonValue = None
    """What the tool takes when the argument is left out, where `has_default`."""
    examples: tuple[JsonValue, ...] = ()
    limits: str = ""
    """What is allowed, for people: `1 to 10`; or empty."""
    type_label: str = "any"
    """What kind of value it is: `integer`, `string · date`, `list of string`."""
    in_list: bool = False
    """Whether it is a row of a list."""
    reason: str = ""
    """Why there is no better field for it; empty where there could not be one."""

    def but(
        self,
        *,
        type_label: str | None = None,
        nullable: bool | None = None,
        reason: str | None = None,
    ) -> Facts:
        """Gives the same facts but for these."""
        return replace(
            self,
            type_label=self.type_label if type_label is None else type_label,
            nullable=self.nullable if nullable is None else nullable,
            reason=self.reason if reason is None else reason,
        )


@dataclass(frozen=True)
class Place:
    """Where a field stands.

    Args:
        parent: The field it is in; None for the whole.
        name: The property's name, the index of a row, or the key of an entry.
    """

    parent: Field | None = None
    name: str = ""


@dataclass(frozen=True)
class Reading:
    """What a field gives: as much of its value as can be read, and what is wrong with the rest."""

    value: tuple[JsonValue, ...] = ()
    """The value as the only item; nothing where there is none."""
    faults: tuple[Fault, ...] = ()


class Standing(NamedTuple):
    """What a field does now, as one answer: what is around it needs both parts."""

    state: State
    is_active: bool
    """Whether there is something in it that the form did not put in itself."""


class Field:
    """One argument or a part of one.

    Args:
        facts: What its schema says.
        place: Where it stands.
    """

    kind: ClassVar[str]

    def __init__(self, facts: Facts, place: Place) -> None:
        self.facts = facts
        self.parent = place.parent
        self.name = place.name
        self.depth: int = 0 if place.parent is None else place.parent.depth + 1
        """How many fields it is in."""
        self.touched = False
        """Whether somebody has put something in."""
        self._state: State = "unset"
        self._text = ""
        self._loaded: tuple[JsonValue, ...] = ()
        self._kept: Callable[[], None] | None = None
        self._prefilled = False

    # --- What it is ---

    @property
    def schema(self) -> JsonValue:
        """The part of the validator's schema that it stands for."""
        return self.facts.schema

    @property
    def label(self) -> str:
        """The schema's title where it says more than the name, else the name."""
        return self.facts.label or self.name

    @property
    def description(self) -> str:
        """What the schema says of it; may be empty."""
        return self.facts.description

    @property
    def required(self) -> bool:
        """Whether it must be sent."""
        return self.facts.required

    @property
    def nullable(self) -> bool:
        """Whether null may be sent."""
        return self.facts.nullable

    @property
    def has_default(self) -> bool:
        """Whether the schema names a default."""
        return self.facts.has_default

    @property
    def default(self) -> JsonValue:
        """What the tool takes when the argument is left out, where `has_default`."""
        return self.facts.default

    @property
    def examples(self) -> tuple[JsonValue, ...]:
        """Examples that the schema gives."""
        return self.facts.examples

    @property
    def limits(self) -> str:
        """What is allowed, for people: `1 to 10`; or empty."""
        return self.facts.limits

    @property
    def type_label(self) -> str:
        """What kind of value it is: `integer`, `string · date`, `list of string`."""
        return self.facts.type_label

    @property
    def in_list(self) -> bool:
        """Whether it is a row of a list."""
        return self.facts.in_list

    @property
    def reason(self) -> str:
        """Why there is no better field for it; empty where there could not be one."""
        return self.facts.reason

    @property
    def path(self) -> str:
        """A JSON Pointer into the arguments."""
        return self.parent.path_of(self) if self.parent is not None else ""

    def path_of(self, inner: Field) -> str:
        """Gives the JSON Pointer of a field inside."""
        return self.path + pointer(inner.name)

    @property
    def id(self) -> str:
        """Made of the path; legal and unique in CSS and Textual whatever the names are."""
        return self.parent.id + self.parent.id_part(self) if self.parent is not None else "f"

    def id_part(self, inner: Field) -> str:
        """Gives the last part of the id of a field inside."""
        return "-n" + re.sub(r"[^a-zA-Z0-9]", lambda match: f"_{ord(match[0]):x}_", inner.name)

    @property
    def children(self) -> tuple[Field, ...]:
        """The fields inside."""
        return ()

    @property
    def built(self) -> tuple[Field, ...]:
        """The fields inside that were made already."""
        return self.children

    def walk(self) -> Iterator[Field]:
        """Goes through this field and all that are in it and were made already, outer ones first."""
        yield self
        for inner in self.built:
            yield from inner.walk()

    # --- What is in it ---

    @property
    def state(self) -> State:
        """Whether its argument is left out, null, or has a value."""
        return self._state

    @property
    def text(self) -> str:
        """The value as it is typed; empty unless the state is `value`."""
        return self._text

    @property
    def is_typed(self) -> bool:
        """Whether the value is a text that somebody typed, which may be unreadable."""
        return self.state == "value" and not self._loaded and bool(self._text)

    @property
    def is_filled(self) -> bool:
        """Whether there is a value other than an empty one."""
        return self.state == "value" and bool(self.text)

    @property
    def is_prefilled(self) -> bool:
        """Whether the form itself put in all that there is, as a required constant or default."""
        state, is_active = self.standing()
        return state != "unset" and not is_active

    @property
    def is_active(self) -> bool:
        """Whether there is something in it that the form did not put in itself."""
        return self.standing().is_active

    def standing(self) -> Standing:
        """Gives its state and whether it is active, looking at each field inside once at most."""
        return Standing(self._state, self._state != "unset" and not self._prefilled)

    @property
    def can_recall(self) -> bool:
        """Whether there is a value that another state took the place of."""
        return self._kept is not None

    def value(self) -> JsonValue:
        """Gives the value to send.

        Raises:
            FormFaults: There is none, or what was typed can't be read.
        """
        reading = self.read()
        if reading.faults:
            raise FormFaults(reading.faults)
        return reading.value[0]

    def read(self) -> Reading:
        """Gives as much of the value as can be read, and what is wrong with the rest."""
        if self.state == "unset":
            return self._refusal("is empty" if self.in_list else "is required")
        if self.state == "null":
            return Reading((None,))
        return Reading(self._loaded) if self._loaded else self._read()

    def draft(self, *, masked: bool = False) -> JsonValue:
        """Gives what is in a field that is not unset, fit or not; what can't be read as the text that was typed.

        Args:
            masked: Whether dots stand for secrets.
        """
        del masked
        reading = self.read()
        return self._text if reading.faults else reading.value[0]

    # --- Putting in ---

    def load(self, value: JsonValue) -> None:
        """Puts a value in, whether it fits or not."""
        self._kept = None
        self._put("null" if value is None else "value")
        if value is not None:
            self._loaded = (value,)
            self._show(value)

    def update(self, value: JsonValue, shown: JsonValue) -> None:
        """Puts in what somebody made of the value that was shown; where it is the same, what was typed stays.

        Args:
            value: What to put in.
            shown: The draft, with secrets masked, that it was made of.
        """
        if write(value) != write(shown):
            self.load(value)

    def write(self, text: str) -> None:
        """Puts in what was typed; a cleared field is unset."""
        self._put("value" if text.strip() else "unset")
        self._text = text

    def unset(self) -> None:
        """Leaves the argument out; `recall` brings back what was there."""
        self._keep()
        self._put("unset")

    def set_null(self) -> None:
        """Sends null; `recall` brings back what was there."""
        self._keep()
        self._put("null")

    def recall(self) -> None:
        """Puts back the value that another state took the place of, if there is one."""
        if self._kept is not None:
            self._put("value")
            self._kept()

    def forget(self) -> None:
        """Makes the field untouched, with nothing to recall; its state stays."""
        self.touched = False
        self._kept = None

    def leave_out(self) -> None:
        """Leaves the argument out because what was loaded has none; nothing is there to recall."""
        self._put("unset")
        self.forget()

    def clear(self) -> None:
        """Makes the field as it was before anything was put in."""
        self._put("unset")
        self.forget()

    def prefill(self, validator: Validator) -> None:
        """Puts in what a required field is sent with when nobody touches it: its constant, or its default if valid."""
        if self.required and self.has_default and not self.in_list and validator.fits(self.schema, self.default):
            self.load(self.default)
            self.mark_prefilled()

    def complete(self) -> None:
        """Has what is in it put in what it is sent with by itself."""

    def mark_prefilled(self) -> None:
        """Says that what is in the field was put in by the form."""
        self._prefilled = True
        self.touched = False

    def take_over(self, other: Field) -> None:
        """Puts in what somebody put into the field of the same name of another schema, as far as it can be."""
        if not other.touched and not other.is_active:
            return
        if other.state == "unset":
            self.leave_out()
        elif type(other) is type(self) and other.is_typed:
            self.write(other.text)
        else:
            self.load(other.draft())

    # --- For the kinds of field ---

    def _put(self, state: State) -> None:
        self._state = state
        self.touched = True
        self._prefilled = False
        self._text = ""
        self._loaded = ()

    def _keep(self) -> None:
        if self.is_filled:
            self._kept = self._snapshot()

    def _snapshot(self) -> Callable[[], None]:
        """Gives what puts the present value back."""
        text, loaded = self._text, self._loaded

        def restore() -> None:
            self._text, self._loaded = text, loaded

        return restore

    def _show(self, value: JsonValue) -> None:
        self._text = write(value)

    def _read(self) -> Reading:
        raise NotImplementedError

    def _refusal(self, message: str) -> Reading:
        return Reading(faults=(Fault(path=self.path, message=message),))


class TextField(Field):
    """Text, taken to the letter.

    Args:
        facts: What its schema says.
        place: Where it stands.
        multiline: Whether it should have room for several lines from the start.
        secret: Whether what is typed should be masked.
        picks: What it is the path of.
    """

    kind = "text"

    def __init__(
        self, facts: Facts, place: Place, *, multiline: bool = False, secret: bool = False, picks: Picks = ""
    ) -> None:
        super().__init__(facts, place)
        self.multiline = multiline
        self.secret = secret
        self.picks = picks
        self._state = "value" if self.in_list else "unset"

    def write(self, text: str) -> None:
        """Puts in what was typed; a cleared field is unset, a cleared row is the empty text."""
        self._put("value" if text or self.in_list else "unset")
        self._text = text

    def empty(self) -> None:
        """Sends the empty text; `recall` brings back what was there."""
        self._keep()
        self._put("value")

    def draft(self, *, masked: bool = False) -> JsonValue:
        """Gives what is in the field; dots for a secret that is to be masked."""
        return MASK if masked and self.secret and self.state == "value" else super().draft()

    def update(self, value: JsonValue, shown: JsonValue) -> None:
        """Puts in what somebody made of what was shown; the dots of a secret are no new value."""
        if not (self.secret and value == MASK):
            super().update(value, shown)

    def _show(self, value: JsonValue) -> None:
        self._text = value if isinstance(value, str) else write(value)

    def _read(self) -> Reading:
        return Reading((self._text,))


class NumberField(Field):
    """A number, exact where it is an integer.

    Args:
        facts: What its schema says.
        place: Where it stands.
        integer: Whether only integers fit; `1e3` and `3.0` are.
    """

    kind = "number"

    def __init__(self, facts: Facts, place: Place, *, integer: bool = False) -> None:
        super().__init__(facts, place)
        self.integer = integer

    def _read(self) -> Reading:
        text = self._text.strip()
        wanted = "an integer" if self.integer else "a number"
        if not _NUMBER.fullmatch(text):
            return self._refusal(f"must be {wanted}, not {write(text)}")
        if len(text) > _MOST_DIGITS:
            return self._refusal("has too many digits")
        if text.lstrip("+-").isdigit():
            return Reading((int(text),))
        return self._whole(text) if self.integer else self._finite(text)

    def _whole(self, text: str) -> Reading:
        try:
            number = Decimal(text)
        except InvalidOperation:
            return self._refusal("is too large")
        if number.adjusted() > _MOST_DIGITS:
            return self._refusal("is too large")
        if number != 0 and (number.adjusted() < 0 or number != int(number)):
            return self._refusal(f"must be an integer, not {text}")
        return Reading((int(number),))

    def _finite(self, text: str) -> Reading:
        number = float(text)
        return Reading((number,)) if math.isfinite(number) else self._refusal("is too large")


@dataclass(frozen=True)
class Option:
    """One thing to choose."""

    label: str
    value: JsonValue = field(hash=False)


def option_of(options: Sequence[Option], text: str) -> Option | None:
    """Gives the option that a typed text means: read as JSON first, so that `1` is the number and `"1"` the text."""
    stripped = text.strip()
    written = (option for option in options if write(option.value) == stripped)
    literal = (option for option in options if option.value == text)
    return next(written, None) or next(literal, None)


def not_one_of(options: Sequence[Option], text: str) -> str:
    """Gives the sentence for a typed text that is none of the options."""
    return f"must be one of {', '.join(write(option.value) for option in options[:12])}, not {write(text.strip())}"


class ChoiceField(Field):
    """One value of several, each with its JSON type; null is a state, not an option.

    Args:
        facts: What its schema says.
        place: Where it stands.
        options: What there is to choose.
    """

    kind = "choice"

    def __init__(self, facts: Facts, place: Place, *, options: tuple[Option, ...]) -> None:
        super().__init__(facts, place)
        self.options = options

    @property
    def chosen(self) -> int | None:
        """The index of the chosen option; None if none is."""
        if self.state != "value":
            return None
        read = self.read().value
        found = (index for index, option in enumerate(self.options) if read and same(option.value, read[0]))
        return next(found, None)

    def choose(self, index: int) -> None:
        """Chooses the option at `index`."""
        self._put("value")
        self._loaded = (self.options[index].value,)
        self._text = self.options[index].label

    def _show(self, value: JsonValue) -> None:
        shown = (option.label for option in self.options if same(option.value, value))
        self._text = next(shown, write(value))

    def _read(self) -> Reading:
        option = option_of(self.options, self._text)
        return self._refusal(not_one_of(self.options, self._text)) if option is None else Reading((option.value,))


class SwitchField(ChoiceField):
    """True or false.

    Args:
        facts: What its schema says.
        place: Where it stands.
    """

    kind = "switch"

    def __init__(self, facts: Facts, place: Place) -> None:
        super().__init__(facts, place, options=(Option("true", True), Option("false", False)))


class ConstField(ChoiceField):
    """The only value there is: sent when required, else sent or left out."""

    kind = "const"

    def prefill(self, validator: Validator) -> None:
        """Puts the constant in where it is required."""
        del validator
        if self.required:
            self.load(self.options[0].value if self.options else None)
            self.mark_prefilled()


class JsonField(Field):
    """Any JSON value, typed as JSON; `reason` says why there is nothing better."""

    kind = "json"

    def load(self, value: JsonValue) -> None:
        """Puts a value in, null as well."""
        self._kept = None
        self._put("value")
        self._loaded = (value,)
        self._text = write(value, indent=2)

    def _read(self) -> Reading:
        try:
            return Reading((parse(self._text),))
        except JsonTextError as error:
            return self._refusal(str(error))
