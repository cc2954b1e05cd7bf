"""Quick acceptance of simple arguments, which skips the validator.

Validation of a call takes about a third of its time in Pegboard, and most schemas are flat objects of plain values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pydantic import JsonValue

Accepts = Callable[[dict[str, JsonValue]], bool]
"""Returns True if an argument object is certainly valid; False if the validator must decide."""

_ANNOTATIONS: Final = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"})
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
"""Exact types, so that True is not an integer. The validator judges 1.0, which is one, and infinity."""


def quick_acceptance(schema: JsonValue) -> Accepts | None:
    """Return a function that accepts simple valid arguments, or None if the schema isn't simple.

    Args:
        schema: A repaired schema of an argument object.
    """
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    if schema.keys() - _ANNOTATIONS - {"type", "properties", "required", "additionalProperties", "$schema"}:
        return None
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return None
    if not isinstance(schema.get("additionalProperties", False), bool):
        return None
    found = {name: types for name, node in properties.items() if (types := _types(node)) is not None}
    needed = frozenset(name for name in required if isinstance(name, str))

    def accepts(arguments: dict[str, JsonValue]) -> bool:
        if not needed <= arguments.keys():
            return False
        for name, value in arguments.items():
            types = found.get(name)
            if types is None:
                return False
            if types and type(value) not in types:
                return False
            if isinstance(value, float) and not -1e308 < value < 1e308:
                return False
        return True

    return accepts


def _types(node: JsonValue) -> frozenset[type] | None:
    """Return the types that a property accepts, empty for any; None if it has other conditions."""
    if node is True:
        return frozenset()
    if not isinstance(node, dict) or node.keys() - _ANNOTATIONS - {"type"}:
        return None
    named = node.get("type")
    if named is None:
        return frozenset()
    names = named if isinstance(named, list) else [named]
    if not all(isinstance(name, str) and name in _TYPES for name in names):
        return None
    return frozenset(kind for name in names for kind in _TYPES[str(name)])
