"""Converters of generic types and of types created by a call."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from pegboard.sdk.literals import NotLiteralError, is_plain_member, read
from pegboard.signatures import classes, constraints
from pegboard.signatures.names import LISTS, MAPPINGS, SETS, SIMPLE, WRAPPERS, WRITTEN, canonical

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.models import JsonObject
    from pegboard.signatures.converter import Converter


def choice(values: list[JsonValue]) -> JsonObject:
    """Return the schema of a choice between values, with their common type if they have one."""
    unique = list({(type(value), repr(value)): value for value in values}.values())
    kinds = {_KINDS.get(type(value)) for value in unique}
    kind = kinds.pop() if len(kinds) == 1 else None
    typed: JsonObject = {"type": kind} if kind else {}
    if len(unique) == 1:
        return {"const": unique[0], **typed}
    if not unique:
        return {}
    return {"enum": unique, **typed}


_KINDS: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def _array(to: Converter, arguments: list[ast.expr]) -> JsonObject:
    items = to.schema(arguments[0])
    return {"type": "array", "items": items} if items else {"type": "array"}


def _set(to: Converter, arguments: list[ast.expr]) -> JsonObject:
    return {**_array(to, arguments), "uniqueItems": True}


def _tuple(to: Converter, arguments: list[ast.expr]) -> JsonObject:
    if len(arguments) == 2 and isinstance(arguments[1], ast.Constant) and arguments[1].value is Ellipsis:
        return _array(to, arguments[:1])
    if not arguments:
        return {"type": "array", "maxItems": 0}
    length = len(arguments)
    return {
        "type": "array",
        "prefixItems": [to.schema(item) for item in arguments],
        "minItems": length,
        "maxItems": length,
    }


def _mapping(to: Converter, arguments: list[ast.expr]) -> JsonObject:
    schema: JsonObject = {"type": "object"}
    if len(arguments) != 2:
        return {**schema, "additionalProperties": True}
    keys = to.schema(arguments[0])
    if keys.keys() & {"enum", "const", "pattern", "minLength", "maxLength", "format"}:
        schema["propertyNames"] = _as_names(keys)
    return {**schema, "additionalProperties": to.schema(arguments[1]) or True}


def _as_names(keys: JsonObject) -> JsonObject:
    """Return the schema of keys as JSON writes them: numbers as text."""
    if "const" in keys:
        return {**keys, "const": _as_name(keys["const"]), "type": "string"}
    values = keys.get("enum")
    return {**keys, "enum": list(map(_as_name, values)), "type": "string"} if isinstance(values, list) else keys


def _as_name(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _counter(to: Converter, arguments: list[ast.expr]) -> JsonObject:
    del to, arguments
    return {"type": "object", "additionalProperties": {"type": "integer"}}


def _optional(to: Converter, arguments: list[ast.expr]) -> JsonObject:
    return to.union([*arguments, ast.Constant(None)])


def _union(to: Converter, arguments: list[ast.expr]) -> JsonObject:
    return to.union(arguments)


def _literal(to: Converter, arguments: list[ast.expr]) -> JsonObject:
    values: list[JsonValue] = []
    for node in arguments:
        inner = to.scope.definition(node)
        target = inner if isinstance(inner, ast.Subscript) else node
        if isinstance(target, ast.Subscript) and canonical(to.scope.qualified(target.value)) == "typing.Literal":
            nested = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
            variants = [_read_or_none(to, item) for item in nested]
        else:
            variants = [_read_or_none(to, target)]
        if is_plain_member(target, to.scope):
            return to.unresolved(node, "doesn't equal its value, so that no call could pass it")
        for variant in variants:
            if variant is None:
                return to.unresolved(node, "is not a literal")
            values.append(variant[0])
    return choice(values)


def _read_or_none(to: Converter, node: ast.expr) -> tuple[JsonValue] | None:
    """Return the value of a literal in a tuple, or None if it can't be read."""
    try:
        return (read(node, to.scope),)
    except NotLiteralError:
        return None


def _annotated(to: Converter, arguments: list[ast.expr]) -> JsonObject:
    schema = to.annotated(arguments[0], arguments[1:])
    for node in arguments[1:]:
        facts = constraints.apply(schema, node, to.scope, to.say)
        if facts.discriminator:
            to.tag(schema, facts.discriminator)
    return schema


def _first(to: Converter, arguments: list[ast.expr]) -> JsonObject:
    return to.schema(arguments[0])


def _last(to: Converter, arguments: list[ast.expr]) -> JsonObject:
    return to.schema(arguments[-1])


def _new_type(to: Converter, name: str, call: ast.Call) -> JsonObject:
    if len(call.args) != 2:
        return to.unresolved(call, "is not a type")
    return to.alias(name, call.args[1])


def _type_variable(to: Converter, _name: str, call: ast.Call) -> JsonObject:
    for keyword in call.keywords:
        if keyword.arg == "bound":
            return to.schema(keyword.value)
    return to.union(call.args[1:]) if len(call.args) > 1 else {}


def _typed_dict(to: Converter, name: str, call: ast.Call) -> JsonObject:
    return to.defined(name, call.lineno, lambda: classes.functional_typed_dict(to, call)) or to.unresolved(
        call, "is not a type"
    )


def _named_tuple(to: Converter, name: str, call: ast.Call) -> JsonObject:
    return to.defined(name, call.lineno, lambda: classes.functional_named_tuple(to, call)) or to.unresolved(
        call, "is not a type"
    )


def _functional_enum(to: Converter, _name: str, call: ast.Call) -> JsonObject:
    values = classes.functional_enum(to.scope, call)
    return choice(values) if values else to.unresolved(call, "has members that can't be read without running the file")


GENERIC: dict[str, Callable[[Converter, list[ast.expr]], JsonObject]] = {
    **dict.fromkeys(LISTS, _array),
    **dict.fromkeys(SETS, _set),
    **dict.fromkeys(MAPPINGS, _mapping),
    **dict.fromkeys(WRAPPERS, _first),
    "builtins.tuple": _tuple,
    "typing.Tuple": _tuple,
    "collections.Counter": _counter,
    "typing.Counter": _counter,
    "typing.Optional": _optional,
    "typing.Union": _union,
    "typing.Literal": _literal,
    "typing.Annotated": _annotated,
    "typing.Required": _first,
    "typing.NotRequired": _first,
    "typing.Awaitable": _first,
    "typing.Coroutine": _last,
    "pydantic.Json": lambda to, _arguments: (WRITTEN if to.is_output else SIMPLE)["pydantic.Json"].copy(),
    **dict.fromkeys(("numpy.ndarray", "numpy.typing.NDArray"), lambda _to, _arguments: SIMPLE["numpy.ndarray"].copy()),
    "os.PathLike": lambda _to, _arguments: {"type": "string", "format": "path"},
    "re.Pattern": lambda _to, _arguments: {"type": "string", "format": "regex"},
    "typing.Pattern": lambda _to, _arguments: {"type": "string", "format": "regex"},
}
"""Generic type → converter of its arguments."""

CALLED: dict[str, Callable[[Converter, str, ast.Call], JsonObject]] = {
    "typing.NewType": _new_type,
    "typing.TypeAliasType": _new_type,
    "typing.TypeVar": _type_variable,
    "typing.TypedDict": _typed_dict,
    "typing.NamedTuple": _named_tuple,
    "enum.Enum": _functional_enum,
    "enum.IntEnum": _functional_enum,
    "enum.StrEnum": _functional_enum,
}
"""Function that creates a type, as in `UserId = NewType("UserId", int)` → converter of its call."""
