"""Form of one tool: its fields, the argument object they make up, and that object as JSON text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pegboard.data.json_text import JsonTextError, parse, write
from pegboard.data.pointer import resolve
from pegboard.errors import FormFaults
from pegboard.forms.build import Builder
from pegboard.forms.lists import ListField
from pegboard.forms.masks import Masks
from pegboard.forms.sections import SectionField
from pegboard.forms.variants import VariantField
from pegboard.models import Fault
from pegboard.schema.arguments import by_parameter
from pegboard.schema.validation import validator

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.forms.fields import Field
    from pegboard.models import JsonObject
    from pegboard.schema.validation import Validator


class Form:
    """Editable arguments for one schema.

    An untouched form sends required constants and valid defaults of required properties, nothing else.

    Args:
        schema: Schema of the argument object. Any other JSON value results in a form too; the constructor never raises.
        aliases: Other names of parameters, alias → parameter, which loaded arguments may have.
    """

    def __init__(self, schema: JsonValue, aliases: Mapping[str, str] | None = None) -> None:
        self._aliases = aliases or {}
        self.validator: Validator = validator(schema)
        self.root = Builder(self.validator).root()
        """Field of the whole object: a section, or a variant field if the schema is a union."""
        self._text: str | None = None
        self._text_faults: tuple[Fault, ...] = ()
        self._masks = Masks()
        self._gone: dict[str, Field] = {}
        """Filled fields of earlier schemas that this one doesn't have, in case they come back."""
        self._prefill()

    @property
    def fields(self) -> tuple[Field, ...]:
        """Fields of the arguments in the schema's order.

        The last one is the map of additional arguments, if they are allowed or present. For a union, the only field is
        the choice of its variant.
        """
        return self.root.children if isinstance(self.root, SectionField) else (self.root,)

    def walk(self) -> Iterator[Field]:
        """Yield all existing fields, outer ones first, in the order of the form."""
        for one in self.fields:
            yield from one.walk()

    def field_at(self, path: str) -> Field | None:
        """Return the innermost field that contains a JSON Pointer's target, or None."""
        return _innermost(self._around(path))

    def build_to(self, path: str) -> Field | None:
        """Return the field at or around a JSON Pointer, building sections and variants on the way."""
        return _innermost(self._around(path, builds=True))

    def _around(self, path: str, *, builds: bool = False) -> Iterator[Field]:
        """Yield the fields that contain a JSON Pointer's target, outer ones first; don't look into others."""
        waiting = [*reversed(self.fields)]
        while waiting:
            one = waiting.pop()
            own = one.path
            if not _is_within(path, own):
                continue
            yield one
            if isinstance(one, ListField):
                index = path[len(own) + 1 :].partition("/")[0]
                waiting += (row for row in one.built if row.name == index)  # their paths would take longer
            elif builds and isinstance(one, SectionField | VariantField) and own != path:
                waiting += reversed(one.children)
            else:
                waiting += reversed(one.built)

    def reset(self) -> None:
        """Reset the form to its untouched state."""
        self._text = None
        self.root.clear()
        self._prefill()

    def load(self, arguments: JsonObject) -> None:
        """Replace all content with an argument object. Values that do not fit are kept as validation errors."""
        self._text = None
        self.root.load(by_parameter(arguments, self._aliases))

    def take_over(self, other: Form) -> None:
        """Copy user input from the form of another schema into fields of the same names.

        Input without such a field returns when a later schema has it again.
        """
        self._text, self._text_faults, self._masks = other._text, other._text_faults, other._masks
        self.root.take_over(other.root)
        earlier = {one.name: one for one in other.fields}
        for one in self.fields:
            if one.name in other._gone and one.name not in earlier:
                one.take_over(other._gone[one.name])
        current = {one.name for one in self.fields}
        left = {name: one for name, one in earlier.items() if one.is_active}
        self._gone = {name: one for name, one in (other._gone | left).items() if name not in current}

    def arguments(self) -> JsonObject:
        """Return the object to send.

        Raises:
            FormFaults: Some values are invalid; lists all validation errors.
        """
        found, faults = self._collect()
        if faults or self.validator.faults(found):
            raise FormFaults(self.faults())
        return found

    def faults(self) -> tuple[Fault, ...]:
        """Return all validation errors in the order of the fields.

        Containers of an unreadable value are not validated until it can be read.
        """
        found, unread = self._collect()
        if self._text is not None:
            return tuple(unread)
        checked = self._narrow_to_variants(found, list(self.validator.faults(found)))
        paths = [fault.path for fault in unread]
        judged = [fault for fault in checked if not any(_is_within(path, fault.path) for path in paths)]
        return tuple(self._sorted_by_field([*unread, *judged]))

    def path_to_fix(self, fault: Fault) -> str:
        """Return the path of the field to change: of a section that is missing, its first required argument."""
        section = self.field_at(fault.path)
        if not isinstance(section, SectionField) or section.path != fault.path or section.state != "unset":
            return fault.path
        missing = next(iter(self.validator.faults_within(section.schema, {}, fault.path)), fault)
        return fault.path if missing.path == fault.path else self.path_to_fix(missing)

    # --- JSON text ---

    @property
    def has_text_fault(self) -> bool:
        """True if the last JSON text is invalid. The fields then keep their earlier content."""
        return self._text is not None

    def text(self, *, masked: bool = False) -> str:
        """Return the draft as JSON, or the invalid JSON text if there is one.

        Args:
            masked: Whether to mask secrets, each with a mask of its own. `load_text` puts the secrets back.
        """
        if self._text is not None:
            return self._text
        draft = self.draft()
        return write(self._masks.hide(draft, self.draft(masked=True)) if masked else draft, indent=2)

    def load_text(self, text: str) -> None:
        """Apply edited JSON text.

        Fields whose values did not change keep their typed text. Text that is not a JSON object, or with a mask that
        hides no known secret, is kept as a validation error until it is corrected or dropped.
        """
        self._text = text
        try:
            edited = self._masks.reveal(by_parameter(_object(text), self._aliases), self.root)
        except JsonTextError as error:
            self._text_faults = (Fault(path="", message=str(error)),)
        except FormFaults as error:
            self._text_faults = error.faults
        else:
            self._text = None
            self.root.update(edited, self.draft())

    def drop_text(self) -> None:
        """Discard an invalid JSON text."""
        self._text = None

    def draft(self, *, masked: bool = False) -> JsonObject:
        """Return the content of the form, valid or not; unreadable values are the typed texts.

        Args:
            masked: Whether to mask secrets.
        """
        found = self.root.draft(masked=masked) if self.root.state == "value" else {}
        return found if isinstance(found, dict) else {}

    # --- Arguments ---

    def _prefill(self) -> None:
        if isinstance(self.root, SectionField):
            self.root.prefill(self.validator)
        for one in self.walk():
            one.touched = False

    def _collect(self) -> tuple[JsonObject, list[Fault]]:
        if self._text is not None:
            return {}, [*self._text_faults]
        if self.root.state != "value":
            return {}, []
        reading = self.root.read()
        found = reading.value[0] if reading.value else {}
        return found if isinstance(found, dict) else {}, list(reading.faults)

    def _narrow_to_variants(self, found: JsonObject, faults: list[Fault]) -> list[Fault]:
        """Replace the errors of a union with those of its chosen variant."""
        if not faults:
            return faults
        for one in [self.root, *self.walk()]:
            if not isinstance(one, VariantField) or one.is_raw or one.state != "value":
                continue
            path = one.path
            if not any(_is_within(fault.path, path) for fault in faults):
                continue
            part = resolve(found, path)
            own = self.validator.faults_within(one.chosen_schema, part[0], path) if part else ()
            if own:
                faults = [fault for fault in faults if not _is_within(fault.path, path)]
                faults += own
        return list(dict.fromkeys(faults))

    def _sorted_by_field(self, faults: Iterable[Fault]) -> list[Fault]:
        ranks = {one.path: rank for rank, one in enumerate(self.walk())}

        def rank(fault: Fault) -> int:
            path = fault.path
            while path and path not in ranks:
                path = path.rpartition("/")[0]
            return ranks.get(path, len(ranks))

        return sorted(faults, key=rank)


def _innermost(fields: Iterable[Field]) -> Field | None:
    """Return the first of the fields with the longest path, or None if all paths are empty."""
    return max((one for one in fields if one.path), key=lambda one: len(one.path), default=None)


def _is_within(path: str, outer: str) -> bool:
    return path == outer or path.startswith(outer + "/")


def _object(text: str) -> JsonObject:
    found = parse(text)
    if not isinstance(found, dict):
        raise JsonTextError('must be a JSON object, like {"name": "value"}')
    return found
