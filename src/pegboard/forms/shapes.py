"""Simplification of schemas for display: references are resolved and combinations merged.

The results decide only how a form looks. Validation uses the original schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import JsonValue

from pegboard.data.json_text import same

if TYPE_CHECKING:
    from pegboard.models import JsonObject
    from pegboard.schema.validation import Validator

_MOST_REFERENCES = 32
_TYPED_BY = {
    "object": {
        "properties",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "required",
        "minProperties",
        "maxProperties",
        "dependentRequired",
        "dependentSchemas",
    },
    "array": {"items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"},
    "string": {"pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}
"""Type → keywords that apply to it alone, and imply it in a schema without a type."""
_RULES = {
    "required",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "minProperties",
    "maxProperties",
    "title",
    "description",
    "$comment",
}
"""Keywords that add no argument."""
_NOTES = {"title", "description", "default", "examples", "deprecated", "$comment", "$schema", "$id", "$defs"}
NO_VALUE: JsonObject = {"enum": []}
"""Schema that no value fits, as keywords."""


class Shapes:
    """Simplifier for the parts of one schema.

    Args:
        validator: Validator that repairs the schema and resolves its references.
    """

    def __init__(self, validator: Validator) -> None:
        self._validator = validator
        self._known: dict[int, tuple[JsonValue, JsonObject]] = {}
        """Id of a schema → the schema, which keeps the id valid, and its simplified form."""

    def plain(self, schema: JsonValue, depth: int = 0) -> JsonObject:
        """Return a schema as keywords with references and `allOf` merged in. Its own keywords take precedence.

        Args:
            schema: Part of the validator's schema, or a combination of parts.
            depth: Number of references followed so far.

        Returns:
            The same object for the same schema. Callers must not modify it.
        """
        if schema is False:
            return NO_VALUE
        if not isinstance(schema, dict) or depth > _MOST_REFERENCES:
            return {}
        known = self._known.get(id(schema))
        if known is None:
            self._known[id(schema)] = (schema, {})  # ends the recursion of a self-referencing schema
            known = self._known[id(schema)] = (schema, self._simplified(schema, depth))
        return known[1]

    def variants(self, node: JsonObject) -> list[JsonValue]:
        """Return the variants of a union as written, or an empty list."""
        unions = [listed for listed in (node.get("anyOf"), node.get("oneOf")) if isinstance(listed, list)]
        real = (listed for listed in unions if not all(map(self.is_rule, listed)))
        return next(real, unions[0] if unions else [])

    def is_rule(self, schema: JsonValue) -> bool:
        """Return True if a variant only restricts the keywords beside the union."""
        return isinstance(schema, bool) or (isinstance(schema, dict) and schema.keys() <= _RULES)

    def flaw(self, schema: JsonValue) -> str:
        """Return why a part of the schema can't be used, or an empty string."""
        return self._validator.flaw(schema)

    def _simplified(self, schema: JsonObject, depth: int) -> JsonObject:
        merged, beside = schema, list[JsonValue]()
        target = self._validator.target(schema)
        if target is not None:
            own = without(schema, "$ref")
            followed = self.plain(target, depth + 1)
            if not own:
                return followed
            merged = merge(own, followed)
        parts = merged.get("allOf")
        if isinstance(parts, list):
            merged = without(merged, "allOf")
            for part in parts:
                inner = self.plain(part, depth + 1)
                beside += self.variants(inner) if self.variants(merged) else []
                merged = merge(merged, inner)
        unions = [listed for listed in (merged.get("anyOf"), merged.get("oneOf")) if isinstance(listed, list)]
        if len(unions) > 1:
            beside += [variant for listed in unions if listed is not self.variants(merged) for variant in listed]
        return self._with_conditional(merged, beside, depth)

    def _with_conditional(self, node: JsonObject, beside: list[JsonValue], depth: int) -> JsonObject:
        """Add properties that only a condition, or a union beside the displayed one, declares."""
        branches = [node.get("then"), node.get("else"), *beside]
        dependent = node.get("dependentSchemas", node.get("dependencies"))
        if isinstance(dependent, dict):
            branches += [branch for branch in dependent.values() if isinstance(branch, dict)]
        own = node.get("properties")
        properties: JsonObject = dict(own) if isinstance(own, dict) else {}
        for branch in branches:
            more = self.plain(branch, depth + 1).get("properties") if isinstance(branch, dict) else None
            for name, schema in more.items() if isinstance(more, dict) else ():
                if name not in properties and schema not in (False, NO_VALUE):
                    properties[name] = {} if schema is True else schema
        return {**node, "properties": properties} if properties and properties != own else node


def without(node: JsonObject, *keywords: str) -> JsonObject:
    """Return a schema without some of its keywords."""
    return {name: value for name, value in node.items() if name not in keywords}


def types(node: JsonObject) -> list[str]:
    """Return the types that a schema declares, in order, each once."""
    names = node.get("type")
    every = names if isinstance(names, list) else [names]
    return list(dict.fromkeys(name for name in every if isinstance(name, str)))


def meant_types(node: JsonObject) -> list[str]:
    """Return the declared types, or the type that the keywords imply, or an empty list for any type."""
    named = types(node)
    if named:
        return named
    return next(([name] for name, keywords in _TYPED_BY.items() if not keywords.isdisjoint(node)), [])


def is_null(node: JsonObject) -> bool:
    """Return True if the schema allows only null."""
    return types(node) == ["null"] or ("const" in node and node["const"] is None) or node.get("enum") == [None]


def is_free(schema: JsonValue) -> bool:
    """Return True if the schema allows every value."""
    return schema is True or (isinstance(schema, dict) and schema.keys() <= _NOTES)


def merge(first: JsonObject, second: JsonObject) -> JsonObject:
    """Return the conjunction of two schemas. Annotations of the first take precedence."""
    merged = dict(first)
    for keyword, value in second.items():
        if keyword not in merged:
            merged[keyword] = value
        elif keyword in _MERGERS:
            merged[keyword] = _MERGERS[keyword](merged[keyword], value)
    return merged


def _both(first: JsonValue, second: JsonValue) -> JsonValue:
    if first is False or second is False:
        return False
    if first is True or first == {}:
        return second
    return first if second is True or second == {} or first is second else {"allOf": [first, second]}


def _properties(first: JsonValue, second: JsonValue) -> JsonValue:
    if not isinstance(first, dict) or not isinstance(second, dict):
        return first
    shared = {name: _both(first[name], schema) for name, schema in second.items() if name in first}
    return {**first, **second, **shared}


def _required(first: JsonValue, second: JsonValue) -> JsonValue:
    if not isinstance(first, list) or not isinstance(second, list):
        return first
    return list(dict.fromkeys(name for name in (*first, *second) if isinstance(name, str)))


def _types(first: JsonValue, second: JsonValue) -> JsonValue:
    one, other = types({"type": first}), types({"type": second})
    shared: list[JsonValue] = [name for name in one if name in other or (name == "integer" and "number" in other)]
    shared += [name for name in other if name == "integer" and "number" in one and name not in shared]
    return shared[0] if len(shared) == 1 else shared or first


def _enum(first: JsonValue, second: JsonValue) -> JsonValue:
    if not isinstance(first, list) or not isinstance(second, list):
        return first
    return [value for value in first if any(same(value, other) for other in second)]


def _greater(first: JsonValue, second: JsonValue) -> JsonValue:
    return max(first, second) if isinstance(first, int | float) and isinstance(second, int | float) else first


def _smaller(first: JsonValue, second: JsonValue) -> JsonValue:
    return min(first, second) if isinstance(first, int | float) and isinstance(second, int | float) else first


_MERGERS: dict[str, Callable[[JsonValue, JsonValue], JsonValue]] = {
    "properties": _properties,
    "patternProperties": _properties,
    "required": _required,
    "type": _types,
    "enum": _enum,
    "items": _both,
    "additionalProperties": _both,
    "propertyNames": _both,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), _greater),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), _smaller),
}
"""Keyword → function that combines its values in two schemas."""
