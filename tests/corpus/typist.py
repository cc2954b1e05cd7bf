"""Entry of an argument object into a form field by field, like a user, never as a whole.

Values that can't be entered this way can't be expressed with the form's fields. Nothing is loaded: values are typed,
chosen, added and named. The recorded actions can be repeated on another form of the same schema or with keys.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import JsonValue

from pegboard.data.json_text import identical
from pegboard.forms import (
    ChoiceField,
    Container,
    Field,
    Form,
    JsonField,
    ListField,
    MapField,
    MultiChoiceField,
    NumberField,
    SectionField,
    TextField,
    VariantField,
)
from pegboard.models import JsonObject

Action: TypeAlias = Literal["write", "empty", "null", "unset", "choose", "pick", "variant", "row", "entry"]


class CannotBeTypedError(AssertionError):
    """A field offers no way to enter a value."""


@dataclass(frozen=True)
class Act:
    """One action on a form."""

    do: Action
    at: str
    """Id of the field."""
    text: str = ""
    """Typed text, or the key of an entry."""
    index: int = 0
    """Index of the option or variant."""


def fill(form: Form, arguments: JsonObject) -> list[Act]:
    """Enter an argument object into an untouched form and return the actions.

    Raises:
        CannotBeTypedError: A field offers no way to enter its part.
    """
    acts: list[Act] = []
    if form.root.state != "value" or form.root.draft() != arguments:
        _Hand(acts).put(form.root, arguments)
    return acts


def perform(form: Form, act: Act) -> None:
    """Repeat an action that was recorded on another form of the same schema."""
    _do(field_of(form, act.at), act)


def field_of(form: Form, at: str) -> Field:
    """Return the field with an id, building sections on the way."""
    one = form.root
    while one.id != at:
        inside = (*one.children, one.rest) if isinstance(one, SectionField) else one.children
        one = next(inner for inner in inside if at == inner.id or at.startswith(inner.id + "-"))
    return one


def _do(field: Field, act: Act) -> None:
    match act.do, field:
        case "write", _:
            field.write(act.text)
        case "empty", TextField() | Container():
            field.empty()
        case "null", _:
            field.set_null()
        case "unset", _:
            field.unset()
        case "choose", ChoiceField():
            field.choose(act.index)
        case "pick", MultiChoiceField():
            field.add(act.index)
        case "variant", VariantField():
            field.choose(act.index)
        case "row", ListField():
            field.add()
        case "entry", MapField():
            field.add()
            if act.text:
                field.rename(len(field.entries) - 1, act.text)
            else:
                field.name_empty(len(field.entries) - 1)
        case _:
            raise TypeError(f"{act.do} {field.kind}")


class _Hand:
    """Writer of values into fields that records its actions.

    Args:
        acts: List that receives the actions.
    """

    def __init__(self, acts: list[Act]) -> None:
        self._acts = acts

    def put(self, field: Field, value: JsonValue) -> None:
        """Enter a value into a field like a user.

        Raises:
            CannotBeTypedError: The field offers no way to enter the value.
        """
        if field.state != "unset" and identical(field.draft(), value) and not field.read().faults:
            return
        is_always_there = field.in_list or field.parent is None or isinstance(field.parent, VariantField)
        if isinstance(field, Container) and field.state != "unset" and not is_always_there:
            self._do(field, "unset")
        if isinstance(field, VariantField):
            self._choose_variant(field, value)
        elif isinstance(field, JsonField):
            self._do(field, "write", json.dumps(value))
        elif value is None:
            _must(field.nullable, field, value)
            self._do(field, "null")
        else:
            self._put_of_kind(field, value)

    def _do(self, field: Field, do: Action, text: str = "", index: int = 0) -> None:
        act = Act(do, field.id, text, index)
        _do(field, act)
        self._acts.append(act)

    def _put_of_kind(self, field: Field, value: JsonValue) -> None:
        match field, value:
            case TextField(), str():
                self._do(field, "write" if value else "empty", value)
            case NumberField(), int() | float() if not isinstance(value, bool):
                self._do(field, "write", json.dumps(value))
            case ChoiceField(), _:
                self._do(field, "choose", index=_index(field, value))
            case MultiChoiceField(), list():
                self._pick(field, value)
            case ListField(), list():
                self._rows(field, value)
            case SectionField(), dict():
                self._section(field, value)
            case MapField(), dict():
                self._entries(field, value)
            case _:
                _must(False, field, value)

    def _choose_variant(self, field: VariantField, value: JsonValue) -> None:
        if value is None and field.nullable:
            self._do(field, "null")
            return
        before = len(self._acts)
        for index in range(len(field.variants)):
            # Remains of an attempt would be copied to the next variant.
            field.unset()
            field.forget()
            del self._acts[before:]
            self._do(field, "variant", index=index)
            try:
                self.put(field.inner, value)
            except CannotBeTypedError:
                continue
            if identical(field.draft(), value) and not field.read().faults:
                return
        _must(False, field, value)

    def _pick(self, field: MultiChoiceField, value: list[JsonValue]) -> None:
        indexes = [_index(field, item) for item in value]
        if not value:
            self._do(field, "empty")
        for index in indexes:
            self._do(field, "pick", index=index)

    def _rows(self, field: ListField, value: list[JsonValue]) -> None:
        if not value:
            self._do(field, "empty")
        for row, item in zip(field.rows, value[: field.fixed], strict=False):
            self.put(row, item)
        for item in value[field.fixed :]:
            _must(field.can_add, field, value)
            self._do(field, "row")
            self.put(field.rows[-1], item)

    def _section(self, field: SectionField, value: JsonObject) -> None:
        if not value:
            self._do(field, "empty")
        named = field.named
        for name, inner in named.items():
            if name in value:
                self.put(inner, value[name])
            elif inner.state != "unset":
                self._do(inner, "unset")
        further = {name: item for name, item in value.items() if name not in named}
        if further:
            self._entries(field.rest, further)
        if field.state == "unset":  # all values were prefilled, but that alone does not send the section
            self._do(field, "empty")

    def _entries(self, field: MapField, value: JsonObject) -> None:
        if not value:
            self._do(field, "empty")
        for key, item in value.items():
            self._do(field, "entry", key)
            self.put(field.entries[-1].field, item)


def _must(holds: bool, field: Field, value: JsonValue) -> None:
    if not holds:
        raise CannotBeTypedError(
            f"{field.kind} at {field.path or 'the top'} offers no way to enter {json.dumps(value)[:200]}"
        )


def _index(field: ChoiceField | MultiChoiceField, value: JsonValue) -> int:
    found = [index for index, option in enumerate(field.options) if identical(option.value, value)]
    _must(bool(found), field, value)
    return found[0]
