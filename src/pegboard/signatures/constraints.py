"""Constraints and descriptions of types: `Annotated[int, Field(ge=1)]`, `= Field(5)`, `Ge(1)`, `Doc("…")`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pegboard.sdk.literals import NotLiteralError, read
from pegboard.sdk.scope import Scope
from pegboard.signatures.model_config import alias_of

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.models import JsonObject

_NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS = {
    "min_length": {"string": "minLength", "array": "minItems", "object": "minProperties"},
    "max_length": {"string": "maxLength", "array": "maxItems", "object": "maxProperties"},
    "min_items": {"array": "minItems"},
    "max_items": {"array": "maxItems"},
}
_NOTES = {"description": "description", "title": "title", "examples": "examples", "deprecated": "deprecated"}

FIELDS = frozenset({"pydantic.Field", "pydantic.fields.Field"})
"""Functions that describe a field."""

_TYPER = frozenset({"typer.Argument", "typer.Option", "typer.params.Argument", "typer.params.Option"})
"""Functions of Typer that describe a parameter. Only as a default, their first argument is the default."""

_DESCRIBING = FIELDS | _TYPER

_NAMES_OF_TYPER = {"help": "description", "max": "le", "min": "ge"}

_POSITIONAL: dict[str, tuple[str, ...]] = {
    "annotated_types.Ge": ("ge",),
    "annotated_types.Gt": ("gt",),
    "annotated_types.Le": ("le",),
    "annotated_types.Lt": ("lt",),
    "annotated_types.MultipleOf": ("multiple_of",),
    "annotated_types.MinLen": ("min_length",),
    "annotated_types.MaxLen": ("max_length",),
    "annotated_types.Len": ("min_length", "max_length"),
    "annotated_types.Interval": ("gt", "ge", "lt", "le"),
    "annotated_types.doc": ("description",),
    "typing.Doc": ("description",),
    "typing_extensions.Doc": ("description",),
    "annotated_doc.Doc": ("description",),
    "pydantic.StringConstraints": (),
    "pydantic.types.StringConstraints": (),
    "pydantic.Field": ("default",),
    "pydantic.fields.Field": ("default",),
    "pydantic.WithJsonSchema": ("json_schema_extra",),
    **dict.fromkeys(_TYPER, ()),
}
"""Supported annotation → names of its positional arguments."""


_VALIDATORS = frozenset(
    f"{module}.{name}"
    for module in ("pydantic", "pydantic.functional_validators")
    for name in ("BeforeValidator", "PlainValidator", "WrapValidator", "field_validator")
)
"""Functions of pydantic that may accept other values than those of the annotated type."""


class FieldFacts:
    """Facts from `Field(...)` that are not part of the schema.

    Attributes:
        has_default: Whether the field is optional.
        alias: Name in arguments, if different; empty if it can't be read.
        written_alias: Name in results that are written by alias, if different; empty if it can't be read.
        discriminator: Property that distinguishes the variants of a union.
        excluded: Whether pydantic leaves the field out of results; None if only of some.
    """

    __slots__ = ("alias", "discriminator", "excluded", "has_default", "written_alias")

    def __init__(self) -> None:
        self.has_default = False
        self.alias: str | None = None
        self.written_alias: str | None = None
        self.discriminator: str | None = None
        self.excluded: bool | None = False


def input_type(nodes: Iterable[ast.expr | str], scope: Scope) -> ast.expr | None:
    """Return the type that a validator declares as `json_schema_input_type`, or None; the last one applies first."""
    declared = [
        keyword.value
        for node in nodes
        if isinstance(node, ast.Call) and scope.qualified(node.func) in _VALIDATORS
        for keyword in node.keywords
        if keyword.arg == "json_schema_input_type"
    ]
    return declared[-1] if declared else None


def is_field(node: ast.AST | None, scope: Scope) -> bool:
    """Return whether an expression is a `Field(...)`, or what Typer has in its place."""
    return isinstance(node, ast.Call) and scope.qualified(node.func) in _DESCRIBING


def apply(
    schema: JsonObject, node: ast.expr, scope: Scope, report: Callable[[str], None], *, is_default: bool = False
) -> FieldFacts:
    """Add an argument of `Annotated` to the schema of its type; ignore unknown ones.

    Args:
        schema: Schema of the type, changed in place.
        node: Call, or text as the description.
        scope: Scope of the file.
        report: Callback for values that can't be read.
        is_default: Whether the call is the default of the parameter, as in `= Field(5)`.

    Returns:
        Facts that are not part of the schema.
    """
    facts = FieldFacts()
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            _read_constraint(schema, "description", node, scope, report)
        return facts
    if not isinstance(node, ast.Call):
        return facts
    name = scope.qualified(node.func)
    order = _POSITIONAL.get(name) if name else None
    if order is None:
        return facts
    arguments = dict(zip(("default",) if is_default else order, node.args, strict=False))
    renamed = _NAMES_OF_TYPER if name in _TYPER else {}
    arguments.update((renamed.get(keyword.arg, keyword.arg), keyword.value) for keyword in node.keywords if keyword.arg)
    both = arguments.get("alias", ast.Constant(None))
    facts.alias = alias_of(arguments.get("validation_alias", both), scope)
    facts.written_alias = alias_of(arguments.get("serialization_alias", both), scope)
    for key, value in arguments.items():
        _apply_argument(schema, facts, key, value, scope, report)
    return facts


def _apply_argument(
    schema: JsonObject, facts: FieldFacts, key: str, node: ast.expr, scope: Scope, report: Callable[[str], None]
) -> None:
    match key:
        case "default":
            if not (isinstance(node, ast.Constant) and node.value is Ellipsis):
                facts.has_default = True
                set_default(schema, node, scope)
        case "default_factory":
            facts.has_default = True
            set_default(schema, ast.Call(func=node, args=[], keywords=[]), scope)
        case "exclude" if isinstance(node, ast.Constant):
            facts.excluded = bool(node.value) or facts.excluded
        case "exclude" | "exclude_if":
            facts.excluded = facts.excluded or None
        case "discriminator" if isinstance(node, ast.Constant) and isinstance(node.value, str):
            facts.discriminator = node.value
        case _:
            _read_constraint(schema, key, node, scope, report)


def _read_constraint(schema: JsonObject, key: str, node: ast.expr, scope: Scope, report: Callable[[str], None]) -> None:
    if (
        key not in _NUMBERS
        and key not in _LENGTHS
        and key not in _NOTES
        and key not in {"pattern", "json_schema_extra"}
    ):
        return
    try:
        value = read(node, scope)
    except NotLiteralError:
        report(f"the value of `{key}` can't be read without running the file")
        return
    if value is not None:
        constrain(schema, key, value)


def constrain(schema: JsonObject, key: str, value: JsonValue) -> None:
    """Add a constraint with pydantic's name, if it applies to the type.

    Args:
        schema: Schema, changed in place; in a union, all variants to which the constraint applies.
        key: `ge`, `min_length`, `pattern`, `description`, …
        value: Value of the constraint; ignored if its type is wrong.
    """
    if key in _NOTES:
        if key == "examples" and not isinstance(value, list):
            return
        if key in {"description", "title"} and not isinstance(value, str):
            return
        schema[_NOTES[key]] = value
    elif key == "json_schema_extra":
        if isinstance(value, dict):
            schema.update(value)
    else:
        for variant in _variants(schema):
            _limit(variant, key, value)


def _variants(schema: JsonObject) -> list[JsonObject]:
    variants = schema.get("anyOf")
    if isinstance(variants, list):
        return [variant for variant in variants if isinstance(variant, dict)]
    return [schema]


def _limit(schema: JsonObject, key: str, value: JsonValue) -> None:
    kind = schema.get("type")
    if key == "multiple_of" and (not isinstance(value, int | float) or value <= 0):
        return
    if key in _NUMBERS:
        if kind in {"integer", "number"} and isinstance(value, int | float) and not isinstance(value, bool):
            schema[_NUMBERS[key]] = value
    elif key in _LENGTHS:
        keyword = _LENGTHS[key].get(kind) if isinstance(kind, str) else None
        if keyword and isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            schema[keyword] = value
    elif kind == "string" and isinstance(value, str):
        schema["pattern"] = value


def set_default(schema: JsonObject, node: ast.expr, scope: Scope) -> None:
    """Add a default if it can be read statically. The default None makes the schema nullable.

    Args:
        schema: Schema, changed in place.
        node: Expression of the default.
        scope: Scope of the file.
    """
    try:
        value = read(node, scope)
    except NotLiteralError:
        return
    if value is None:
        make_nullable(schema)
    schema["default"] = value


def make_nullable(schema: JsonObject) -> None:
    """Make a schema accept null."""
    variants = schema.get("anyOf")
    if isinstance(variants, list):
        if {"type": "null"} not in variants:
            variants.append({"type": "null"})
        return
    if schema.get("type") == "null" or not (schema.keys() - _NOTES):
        return
    enum = schema.get("enum")
    if isinstance(enum, list) and None in enum:
        return
    notes: JsonObject = {key: schema.pop(key) for key in _NOTES if key in schema}
    inner = dict(schema)
    schema.clear()
    schema["anyOf"] = [inner, {"type": "null"}]
    schema.update(notes)
