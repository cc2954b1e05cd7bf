"""The form of one tool: its fields, the object they make, and the same object as JSON text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from pegboard.errors import FormFaults
from pegboard.forms.build import Builder
from pegboard.forms.containers import SectionField, VariantField
from pegboard.forms.fields import Field
from pegboard.forms.json_text import JsonTextError, parse, write
from pegboard.models import Fault, JsonObject
from pegboard.schema.validation import Validator, validator


class Form:
    """Everything that can be put in for one schema.

    Untouched, it sends required constants and required properties whose default is valid, and nothing else.

    Args:
        schema: The schema of an argument object, or any JSON value in its place; it never raises.
    """

    def __init__(self, schema: JsonValue) -> None:
        self.validator: Validator = validator(schema)
        self.root = Builder(self.validator).root()
        """The field of the whole: a section, or a choice of sections where the schema is a union."""
        self._text: str | None = None
        self._prefill()

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of the arguments in the schema's order, last a map of further ones, where there may be or are any.

        Where the whole is a union, the choice of its variant.
        """
        return self.root.children if isinstance(self.root, SectionField) else (self.root,)

    def walk(self) -> Iterator[Field]:
        """Goes through all fields that were made already, outer ones first, in the order of the form."""
        for one in self.fields:
            yield from one.walk()

    def field_at(self, path: str) -> Field | None:
        """Gives the field that a JSON Pointer leads to or into, the inmost there is; None if it leads to none."""
        nearest: Field | None = None
        length = -1
        for one in self.walk():
            own = one.path
            if own and _is_within(path, own) and len(own) > length:
                nearest, length = one, len(own)
        return nearest

    def reset(self) -> None:
        """Makes the form untouched."""
        self._text = None
        self.root.clear()
        self._prefill()

    def load(self, arguments: JsonObject) -> None:
        """Puts an argument object in, in the place of all there was; what doesn't fit is kept, and is a fault."""
        self._text = None
        self.root.load(arguments)

    def take_over(self, other: Form) -> None:
        """Puts in what somebody had put into the form of another schema, as far as the names are the same."""
        self._text = other._text
        self.root.take_over(other.root)

    def arguments(self) -> JsonObject:
        """Gives the object to send.

        Raises:
            FormFaults: With everything that is wrong.
        """
        found, faults = self._collect()
        if faults or self.validator.faults(found):
            raise FormFaults(self.faults())
        return found

    def faults(self) -> tuple[Fault, ...]:
        """Gives everything that is wrong now, in the order of the fields.

        What is around something unreadable is not judged until that can be read.
        """
        found, unread = self._collect()
        if self._text is not None:
            return tuple(unread)
        checked = self._told_by_variant(found, list(self.validator.faults(found)))
        paths = [fault.path for fault in unread]
        judged = [fault for fault in checked if not any(_is_within(path, fault.path) for path in paths)]
        return tuple(self._in_order([*unread, *judged]))

    # --- The same as JSON text ---

    @property
    def has_text_fault(self) -> bool:
        """Whether the JSON text last given can't be read; the fields are then as they were before it."""
        return self._text is not None

    def text(self, *, masked: bool = False) -> str:
        """Gives what would be sent as JSON; what can't be read stands in it as text. Or the text that has a fault.

        Args:
            masked: Whether dots stand for secrets; `load_text` knows them again.
        """
        return self._text if self._text is not None else write(self.draft(masked=masked), indent=2)

    def load_text(self, text: str) -> None:
        """Puts in what was edited as JSON.

        Fields whose arguments are as they were shown keep what was typed in them. Text that is no JSON object is kept
        and is a fault until it is mended or dropped.
        """
        try:
            found = parse(text)
        except JsonTextError:
            found = None
        if not isinstance(found, dict):
            self._text = text
            return
        self._text = None
        shown = self.draft(masked=False), self.draft(masked=True)
        if write(found) not in {write(one) for one in shown}:
            self.root.update(found, shown[0])

    def drop_text(self) -> None:
        """Throws away a JSON text that has a fault."""
        self._text = None

    def draft(self, *, masked: bool = False) -> JsonObject:
        """Gives what is in the form, fit or not; what can't be read stands in it as the text that was typed.

        Args:
            masked: Whether dots stand for secrets.
        """
        found = self.root.draft(masked=masked) if self.root.state == "value" else {}
        return found if isinstance(found, dict) else {}

    # --- What the fields make ---

    def _prefill(self) -> None:
        if isinstance(self.root, SectionField):
            self.root.prefill(self.validator)
        for one in self.walk():
            one.touched = False

    def _collect(self) -> tuple[JsonObject, list[Fault]]:
        if self._text is not None:
            return {}, [Fault(path="", message=_text_fault(self._text))]
        if self.root.state != "value":
            return {}, []
        reading = self.root.read()
        found = reading.value[0] if reading.value else {}
        return found if isinstance(found, dict) else {}, list(reading.faults)

    def _told_by_variant(self, found: JsonObject, faults: list[Fault]) -> list[Fault]:
        """Puts what is wrong with a chosen variant in the place of what is wrong with all that could be chosen."""
        if not faults:
            return faults
        for one in [self.root, *self.walk()]:
            if not isinstance(one, VariantField) or one.is_raw or one.state != "value":
                continue
            path = one.path
            if not any(_is_within(fault.path, path) for fault in faults):
                continue
            part = _at(found, path)
            own = self.validator.faults_within(one.chosen_schema, part[0], path) if part else ()
            if own:
                faults = [fault for fault in faults if not _is_within(fault.path, path)]
                faults += own
        return list(dict.fromkeys(faults))

    def _in_order(self, faults: Iterable[Fault]) -> list[Fault]:
        ranks = {one.path: rank for rank, one in enumerate(self.walk())}

        def rank(fault: Fault) -> int:
            path = fault.path
            while path and path not in ranks:
                path = path.rpartition("/")[0]
            return ranks.get(path, len(ranks))

        return sorted(faults, key=rank)


def _is_within(path: str, outer: str) -> bool:
    return path == outer or path.startswith(outer + "/")


def _at(value: JsonValue, path: str) -> tuple[JsonValue, ...]:
    """Gives what a JSON Pointer leads to as the only item; nothing where there is nothing."""
    for step in path.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return ()
    return (value,)


def _text_fault(text: str) -> str:
    try:
        parse(text)
    except JsonTextError as error:
        return str(error)
    return 'must be a JSON object, like {"name": "value"}'
