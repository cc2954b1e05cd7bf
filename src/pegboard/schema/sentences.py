"""Conversion of the library's errors to a `Fault` with a path and a message."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

from pegboard.data.pointer import numeric_keys, pointer
from pegboard.data.unicode import beginning
from pegboard.models import Fault

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from pydantic import JsonValue

_SHOWN_CHOICES = 12
_SHOWN_TEXT = 40
_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "text",
}


def faults_of(error: ValidationError) -> list[Fault]:
    """Return the validation errors for an error of the library; in a union, those of the most likely variant."""
    if error.validator in {"anyOf", "oneOf"} and error.context:
        return _faults_of_union(error)
    path, keys = pointer(*error.absolute_path), numeric_keys(*error.absolute_path)
    sentence = _SENTENCES.get(str(error.validator))
    if error.schema is False or error.validator is None:
        return [Fault(path=path, message="is not allowed", keys=keys)]
    return [Fault(path=path, message=sentence(_rule(error), _value(error)) if sentence else error.message, keys=keys)]


def shown(value: JsonValue) -> str:
    """Return a short description of a value: `the text "ten"`, `12`, `a list`."""
    match value:
        case None | bool():
            return json.dumps(value)
        case str():
            return f"the text {json.dumps(beginning(value, _SHOWN_TEXT), ensure_ascii=False)}"
        case int() | float():
            return _digits(value)
        case list():
            return "a list"
        case _:
            return "an object"


def choices(values: Iterable[JsonValue]) -> str:
    """Return a short list of choices: `"a", "b" and 3 more`."""
    every = list(values)
    listed = [_written(value) for value in every[:_SHOWN_CHOICES]]
    rest = len(every) - len(listed)
    return ", ".join(listed) + (f" and {rest} more" if rest else "")


def types(names: JsonValue) -> str:
    """Return the description of the keyword `type`: `an integer`, `text or null`."""
    every = names if isinstance(names, list) else [names]
    return " or ".join(_TYPES.get(str(name), str(name)) for name in every)


def _digits(value: float) -> str:
    try:
        return beginning(repr(value), _SHOWN_TEXT)
    except ValueError:  # Python's limit of digits
        return "a huge number"


def _written(value: JsonValue) -> str:
    try:
        return beginning(json.dumps(value, ensure_ascii=False), _SHOWN_TEXT)
    except ValueError:
        return shown(value)


def _count(number: JsonValue, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _length(value: JsonValue) -> int:
    return len(value) if isinstance(value, str | list | dict) else 0


def _short(limit: JsonValue, value: JsonValue) -> str:
    if limit == 1:
        return "must not be empty"
    return f"must have at least {_count(limit, 'character', 'characters')}, not {_length(value)}"


def _few(one: str, many: str) -> Callable[[JsonValue, JsonValue], str]:
    return lambda limit, value: f"must have at least {_count(limit, one, many)}, not {_length(value)}"


def _lots(one: str, many: str) -> Callable[[JsonValue, JsonValue], str]:
    return lambda limit, value: f"must have at most {_count(limit, one, many)}, not {_length(value)}"


_SENTENCES: dict[str, Callable[[JsonValue, JsonValue], str]] = {
    "type": lambda names, value: f"must be {types(names)}, not {shown(value)}",
    "enum": lambda values, value: (
        f"must be one of {choices(values)}, not {_written(value)}"
        if isinstance(values, list) and values
        else "is not allowed: no value is valid"
    ),
    "const": lambda expected, value: f"must be {_written(expected)}, not {_written(value)}",
    "minimum": lambda limit, value: f"must be at least {_written(limit)}, not {shown(value)}",
    "maximum": lambda limit, value: f"must be at most {_written(limit)}, not {shown(value)}",
    "exclusiveMinimum": lambda limit, value: f"must be greater than {_written(limit)}, not {shown(value)}",
    "exclusiveMaximum": lambda limit, value: f"must be less than {_written(limit)}, not {shown(value)}",
    "minLength": _short,
    "maxLength": _lots("character", "characters"),
    "minItems": _few("item", "items"),
    "maxItems": _lots("item", "items"),
    "minProperties": _few("property", "properties"),
    "maxProperties": _lots("property", "properties"),
    "uniqueItems": lambda _, __: "must not have the same item twice",
    "contains": lambda _, __: "must contain an item that matches the schema of `contains`",
    "minContains": lambda limit, _: f"must contain at least {limit} items that match the schema of `contains`",
    "maxContains": lambda limit, _: f"must contain at most {limit} items that match the schema of `contains`",
    "items": lambda _, __: "has too many items",
    "additionalItems": lambda _, __: "has too many items",
    "unevaluatedItems": lambda _, __: "has items that are not allowed",
    "unevaluatedProperties": lambda _, __: "has properties that are not allowed",
    "oneOf": lambda _, __: "matches more than one of the variants, but must match exactly one",
    "anyOf": lambda _, __: "matches none of the variants",
    "not": lambda _, __: "must not match the schema of `not`",
}
"""Keyword → function that returns the message for the keyword's value and the invalid value."""


def _rule(error: ValidationError) -> JsonValue:
    return cast("JsonValue", error.validator_value)  # the library's type includes the unset state


def _value(error: ValidationError) -> JsonValue:
    return cast("JsonValue", error.instance)  # as above


def _faults_of_union(error: ValidationError) -> list[Fault]:
    variants: dict[object, list[ValidationError]] = {}
    for inner in error.context or ():
        variants.setdefault(inner.relative_schema_path[0], []).append(inner)
    meant = [errors for errors in variants.values() if not any(_excludes(inner) for inner in errors)]
    if len(meant) == 1:
        return [fault for inner in meant[0] for fault in faults_of(inner)]
    path = pointer(*error.absolute_path)
    mismatches = [
        inner for errors in variants.values() for inner in errors if _is_at(inner) and inner.validator == "type"
    ]
    if not meant and len(mismatches) == len(variants):
        wanted = " or ".join(dict.fromkeys(types(_rule(inner)) for inner in mismatches))
        return [Fault(path=path, message=f"must be {wanted}, not {shown(_value(error))}")]
    values = [_rule(inner) for errors in variants.values() for inner in errors if inner.validator == "const"]
    if not meant and len(values) == len(variants) and all(_is_at(errors[0]) for errors in variants.values()):
        return [Fault(path=path, message=_SENTENCES["enum"](values, _value(error)))]
    named = _tag_errors(list(variants.values()))
    if not meant and named:
        message = _SENTENCES["enum"]([_rule(inner) for inner in named], _value(named[0]))
        return [Fault(path=pointer(*named[0].absolute_path), message=message)]
    nearest = min(meant or variants.values(), key=len)
    reasons = "; ".join(dict.fromkeys(str(fault) for inner in nearest for fault in faults_of(inner)))
    errors = beginning(reasons, 4 * _SHOWN_TEXT)
    message = f"matches none of the {len(variants)} variants; errors of the most similar one: {errors}"
    return [Fault(path=path, message=message)]


def _tag_errors(variants: list[list[ValidationError]]) -> list[ValidationError]:
    """Return each variant's error at the constant property that identifies it; empty without such a property."""
    first = [next((inner for inner in errors if inner.validator == "const"), None) for errors in variants]
    found = [inner for inner in first if inner is not None and len(inner.relative_path) == 1]
    return found if len(found) == len(variants) and len({inner.relative_path[0] for inner in found}) == 1 else []


def _is_at(error: ValidationError) -> bool:
    return not error.relative_path


def _excludes(error: ValidationError) -> bool:
    """Return whether an error shows that another variant is meant: a wrong type, or a wrong identifying property."""
    if error.validator == "type":
        return _is_at(error)
    return error.validator in {"const", "enum"} and len(error.relative_path) <= 1
