"""Fields that hold one value: text, numbers, choices and JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from pegboard.data.json_text import JsonTextError, parse, same, write
from pegboard.data.mask import MASK
from pegboard.data.unicode import beginning
from pegboard.forms.fields import Field, FieldReading, key_of
from pegboard.forms.labels import is_secret
from pegboard.forms.moments import canonical

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.forms.fields import FieldDescription, FieldPosition
    from pegboard.forms.labels import PathKind
    from pegboard.schema.validation import Validator

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST_DIGITS = 4000
"""Python converts integers of up to 4,300 digits."""
_MOST_QUOTED = 100
"""Characters of an invalid text that a message shows."""
_TRUTH_VALUES = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def _quoted(text: str) -> str:
    return write(beginning(text, _MOST_QUOTED))


class TextField(Field):
    """Text, used exactly as typed unless it is a date, a time or a duration.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
        multiline: Whether the editor starts with several lines.
        secret: Whether to mask the text whatever its name is.
        picks: Kind of path that the text is, if any.
        formats: Formats to the first fitting of which a typed date, time or duration is converted.
    """

    kind = "text"

    def __init__(
        self,
        facts: FieldDescription,
        position: FieldPosition,
        *,
        multiline: bool = False,
        secret: bool = False,
        picks: PathKind = "",
        formats: Sequence[str] = (),
    ) -> None:
        super().__init__(facts, position)
        self.multiline = multiline
        self._is_secret = secret
        self.picks = picks
        self._formats = formats
        self._state = "value" if self.in_list else "unset"

    @property
    def secret(self) -> bool:
        """Whether to mask the text."""
        return self._is_secret or is_secret(key_of(self))

    @property
    def converted(self) -> str:
        """The text that is sent instead of the typed one, such as `08:30:00` for `8:30`; empty if it is the same."""
        if not self._formats or not self.is_typed:
            return ""
        found = canonical(self._formats, self._text)
        return found if found != self._text else ""

    def write(self, text: str) -> None:
        """Replace the text. Empty text unsets a field, but not a row."""
        self._set_state("value" if text or self.in_list else "unset")
        self._text = text

    def empty(self) -> None:
        """Send an empty string. `recall` restores the previous one."""
        self._remember()
        self._set_state("value")

    def draft(self, *, masked: bool = False) -> JsonValue:
        """Return the text, masked if it is a secret and `masked` is set."""
        return MASK if masked and self.secret and self.state == "value" else super().draft()

    def read(self) -> FieldReading:
        """Return the text; the mask of a secret is a validation error."""
        if self.secret and MASK in self.text:
            return self._invalid("is only a mask; enter the value that it hides")
        return super().read()

    def _set_text(self, value: JsonValue) -> None:
        self._text = value if isinstance(value, str) else write(value)

    def _read(self) -> FieldReading:
        return FieldReading((self.converted or self._text,))


class NumberField(Field):
    """Number, exact if it is an integer.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
        integer: Whether the value must be an integer, which includes `1e3` and `3.0`.
    """

    kind = "number"

    def __init__(self, facts: FieldDescription, position: FieldPosition, *, integer: bool = False) -> None:
        super().__init__(facts, position)
        self.integer = integer

    def _read(self) -> FieldReading:
        text = self._text.strip()
        wanted = "an integer" if self.integer else "a number"
        if not _NUMBER.fullmatch(text):
            return self._invalid(f"must be {wanted}, not {_quoted(text)}")
        if len(text) > _MOST_DIGITS:
            return self._invalid("has too many digits")
        if text.lstrip("+-").isdigit():
            return FieldReading((int(text),))
        return self._read_integer(text) if self.integer else self._read_float(text)

    def _read_integer(self, text: str) -> FieldReading:
        try:
            number = Decimal(text)
        except InvalidOperation:
            return self._invalid("is too large")
        if number.adjusted() > _MOST_DIGITS:
            return self._invalid("is too large")
        if number != 0 and (number.adjusted() < 0 or number != int(number)):
            return self._invalid(f"must be an integer, not {beginning(text, _MOST_QUOTED)}")
        return FieldReading((int(number),))

    def _read_float(self, text: str) -> FieldReading:
        number = float(text)
        return FieldReading((number,)) if math.isfinite(number) else self._invalid("is too large")


@dataclass(frozen=True)
class Option:
    """Value to choose, with its label."""

    label: str
    value: JsonValue = field(hash=False)


def option_of(options: Sequence[Option], text: str) -> Option | None:
    """Return the option that a text names, as JSON or literally.

    `1` is a number and `"1"` a string. If no option is written like the text, an equal one counts: `1` is `1.0`.
    """
    stripped = text.strip()
    written = (option for option in options if write(option.value) == stripped)
    literal = (option for option in options if option.value == text)
    return next(written, None) or next(literal, None) or _equal_option(options, text)


def _equal_option(options: Sequence[Option], text: str) -> Option | None:
    try:
        value = parse(text)
    except JsonTextError:
        return None
    return next((option for option in options if same(option.value, value)), None)


def not_one_of(options: Sequence[Option], text: str) -> str:
    """Return the validation message for a text that names no option."""
    return f"must be one of {', '.join(write(option.value) for option in options[:12])}, not {_quoted(text.strip())}"


class ChoiceField(Field):
    """One of several values, each with its JSON type. Null is a state, not an option.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
        options: Values to choose from.
    """

    kind = "choice"

    def __init__(self, facts: FieldDescription, position: FieldPosition, *, options: tuple[Option, ...]) -> None:
        super().__init__(facts, position)
        self.options = options

    @property
    def chosen(self) -> int | None:
        """Index of the chosen option, or None."""
        if self.state != "value":
            return None
        read = self.read().value
        found = (index for index, option in enumerate(self.options) if read and same(option.value, read[0]))
        return next(found, None)

    def choose(self, index: int) -> None:
        """Choose the option at `index`."""
        self._set_state("value")
        self._loaded = (self.options[index].value,)
        self._text = self.options[index].label

    def _set_text(self, value: JsonValue) -> None:
        shown = (option.label for option in self.options if same(option.value, value))
        self._text = next(shown, write(value))

    def _read(self) -> FieldReading:
        option = option_of(self.options, self._text)
        return self._invalid(not_one_of(self.options, self._text)) if option is None else FieldReading((option.value,))


class SwitchField(ChoiceField):
    """True or false.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
    """

    kind = "switch"

    def __init__(self, facts: FieldDescription, position: FieldPosition) -> None:
        super().__init__(facts, position, options=(Option("true", True), Option("false", False)))

    def _read(self) -> FieldReading:
        # Spreadsheets write TRUE, Python True, PostgreSQL t and MySQL 1.
        written = _TRUTH_VALUES.get(self._text.strip().lower())
        return super()._read() if written is None else FieldReading((written,))


class ConstField(ChoiceField):
    """Constant, always sent if required and optional otherwise."""

    kind = "const"

    def prefill(self, validator: Validator) -> None:
        """Fill in the constant if it is required."""
        del validator
        if self.required:
            self.load(self.options[0].value if self.options else None)
            self.mark_prefilled()


class JsonField(Field):
    """Any value, typed as JSON; `reason` explains why a more specific field is not possible."""

    kind = "json"

    def load(self, value: JsonValue) -> None:
        """Replace the content with a value, including null."""
        self._kept = None
        self._set_state("value")
        self._loaded = (value,)
        self._text = write(value, indent=2)

    def _read(self) -> FieldReading:
        try:
            return FieldReading((parse(self._text),))
        except JsonTextError as error:
            return self._invalid(str(error))
