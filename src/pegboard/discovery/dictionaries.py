"""Tools whose function gets all arguments as one dictionary, with a schema beside it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from pegboard.sdk.exports import dictionary_decorator, positional_or_named, spec_of_module
from pegboard.sdk.literals import NotLiteralError, read

if TYPE_CHECKING:
    from pegboard.models import JsonObject
    from pegboard.sdk.exports import Function
    from pegboard.sdk.scope import Scope


class Declared(NamedTuple):
    """Arguments that the decorator of a function declares.

    Attributes:
        types: Type of each argument: `{"a": float}`.
        model: Class whose fields are the arguments; possibly another expression.
        schema: JSON Schema of the arguments.
    """

    types: dict[str, ast.expr] | None = None
    model: ast.expr | None = None
    schema: JsonObject | None = None


def declared(node: Function, scope: Scope) -> Declared | None:
    """Return the arguments that `@tool("name", "description", schema)` of the Claude Agent SDK or `TOOL_SPEC` declares.

    Args:
        node: Function.
        scope: Scope of its file.

    Returns:
        The arguments, or None for any other function.
    """
    decorator = dictionary_decorator(node, scope)
    if decorator is None:
        of_module = spec_of_module(node, scope)
        return Declared(schema=written_schema(of_module["inputSchema"], scope)) if of_module else None
    written = positional_or_named(decorator, 2, "input_schema")
    value = scope.definition(written) or written if written is not None else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "model_json_schema":
        return Declared(model=value.func.value)
    if not isinstance(value, ast.Dict):
        return Declared(model=written)
    keys = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
    types = {key: node for key, node in zip(keys, value.values, strict=True) if isinstance(key, str)}
    if not {"type", "properties"} <= types.keys():
        return Declared(types)
    return Declared(schema=written_schema(value, scope))


def written_schema(node: ast.expr, scope: Scope) -> JsonObject | None:
    """Return a JSON Schema that is written as a dictionary, possibly within `{"json": …}` as in Strands, or None."""
    try:
        schema = read(node, scope)
    except NotLiteralError:
        return None
    if isinstance(schema, dict) and isinstance(schema.get("json"), dict):
        schema = schema["json"]
    return schema if isinstance(schema, dict) else None
