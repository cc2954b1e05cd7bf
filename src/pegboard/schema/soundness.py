"""Repair of invalid schemas.

Some tools have schemas that no draft allows (`"required": true` in a property, `"type": "any"`, a broken reference).
To keep such tools usable, invalid keywords are removed and reported, and the rest of the schema applies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol, Self, TypeAlias

from pydantic import JsonValue

from pegboard.data.pointer import pointer
from pegboard.schema.patterns import PatternError, compiled

Schema: TypeAlias = dict[str, JsonValue] | bool
"""JSON Schema: an object of keywords, or a boolean that accepts or rejects everything."""


class Flaw(NamedTuple):
    """Invalid part of a schema."""

    path: str
    """JSON Pointer into the schema."""
    message: str


_TYPES = {"array", "boolean", "integer", "null", "number", "object", "string"}


def is_number(value: object) -> bool:
    """Return whether a value is a finite number; true and false aren't."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _count(value: JsonValue) -> bool:
    return is_number(value) and isinstance(value, int | float) and value >= 0 and value == int(value)


def _names(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _text(value: JsonValue) -> bool:
    return isinstance(value, str)


def _type(value: JsonValue) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(name, str) and name in _TYPES for name in value)
    return isinstance(value, str) and value in _TYPES


def _regex(value: JsonValue) -> bool:
    if not isinstance(value, str):
        return False
    try:
        compiled(value)
    except PatternError:
        return False
    return True


_TEXT = (_text, "must be text")
_NUMBER = (is_number, "must be a number")
_COUNT = (_count, "must be a non-negative integer")
_PLAIN: dict[str, tuple[Callable[[JsonValue], bool], str]] = {
    "type": (_type, "must name JSON types"),
    "enum": (lambda value: isinstance(value, list), "must be a list of values"),
    "required": (_names, "must be a list of names"),
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": _NUMBER,
    "exclusiveMaximum": _NUMBER,
    "multipleOf": (
        lambda value: is_number(value) and isinstance(value, int | float) and value > 0,
        "must be a number greater than 0",
    ),
    "uniqueItems": (lambda value: isinstance(value, bool), "must be true or false"),
    "pattern": (_regex, "is not a supported regular expression"),
    "format": _TEXT,
    "$ref": _TEXT,
    "$dynamicRef": _TEXT,
    "$recursiveRef": _TEXT,
    "$id": _TEXT,
    "$anchor": _TEXT,
    "$dynamicAnchor": _TEXT,
    "dependentRequired": (
        lambda value: isinstance(value, dict) and all(_names(names) for names in value.values()),
        "must be lists of names",
    ),
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
    "minContains": _COUNT,
    "maxContains": _COUNT,
}
"""Keyword without subschemas → check of its value, and message if the check fails."""

_ONE = {
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
}
_LISTS = {"allOf", "anyOf", "oneOf", "prefixItems"}
_MAPS = {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class Base(Protocol):
    """Base URI of a part of a schema, for relative references (JSON Schema 2020-12, section 8.2)."""

    def inside(self, node: dict[str, JsonValue]) -> Self:
        """Return the base inside `node`, which has an `$id`.

        Raises:
            ValueError: The `$id` is not a URI.
        """
        ...

    def lookup(self, reference: str) -> tuple[JsonValue, Self | None]:
        """Return the target of a reference and its base; the base is None if it is in another document.

        Raises:
            LookupError: The target does not exist.
        """
        ...


class SchemaRepair:
    """Repair of one schema.

    Args:
        lists_are_tuples: Whether `items` may be a list of positional schemas (before 2020-12).
        old_bounds: Whether `exclusiveMinimum` is a boolean (Draft 4).
    """

    def __init__(self, *, lists_are_tuples: bool, old_bounds: bool) -> None:
        self.flaws: list[Flaw] = []
        self._lists_are_tuples = lists_are_tuples
        self._old_bounds = old_bounds
        self._seen: dict[int, dict[str, JsonValue]] = {}
        self._references: list[tuple[dict[str, JsonValue], str, str, Base]] = []
        self.is_dynamic = False
        """Whether the target of a reference depends on the path that leads to it (`$dynamicRef`, `$recursiveRef`)."""
        self._targets: dict[int, JsonValue] = {}
        self._messages: dict[int, str] = {}

    def repair(self, value: JsonValue, base: Base, path: str = "") -> Schema:
        """Return `value` as a valid schema: itself, repaired in place, or `True` if it is not a schema.

        Args:
            value: Any JSON value. The caller must not change it afterwards.
            base: Base URI of the surrounding schema.
            path: JSON Pointer to `value`.
        """
        if isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            self.flaws.append(Flaw(path, "is not a schema: it must be an object"))
            return True
        if id(value) in self._seen:
            return value
        self._seen[id(value)] = value
        # in a subschema, `$schema` would change the dialect and disable the modified keywords
        value.pop("$schema", None)
        self._translate(value)
        if isinstance(value.get("$id"), str):
            try:
                base = base.inside(value)
            except ValueError:
                self._drop(value, "$id", path + pointer("$id"), "is not a URI")
        for keyword in list(value):
            self._repair_keyword(value, keyword, base, path + pointer(keyword))
        return value

    def resolve(self) -> None:
        """Repair the targets of all references in the repaired schema, and remove broken references."""
        while self._references:
            node, keyword, path, base = self._references.pop()
            reference = node.get(keyword)
            if not isinstance(reference, str):
                continue
            try:
                target, its_base = base.lookup(reference)
            except LookupError:
                target, its_base = None, None
            if not isinstance(target, dict | bool):
                self._drop(node, keyword, path, f"the target of the reference {reference} does not exist")
                continue
            self._targets[id(node)] = target if its_base is None else self.repair(target, its_base, path)
            self.is_dynamic |= keyword != "$ref" or its_base is None

    def target(self, node: dict[str, JsonValue]) -> JsonValue:
        """Return the target of the reference in `node`, a part of the repaired schema, or None without a reference."""
        return self._targets.get(id(node))

    def flaw(self, node: dict[str, JsonValue]) -> str:
        """Return the message about the keyword removed from `node`, a part of the repaired schema; empty if none."""
        return self._messages.get(id(node), "")

    def _translate(self, node: dict[str, JsonValue]) -> None:
        """Replace keywords of older dialects that are still in use."""
        if not self._lists_are_tuples and isinstance(node.get("items"), list):
            node.setdefault("prefixItems", node.pop("items"))
            node.pop("items", None)
            if "additionalItems" in node:
                node["items"] = node.pop("additionalItems")
        if self._old_bounds:
            return
        for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if node.get(exclusive) is True and bound in node:
                node[exclusive] = node.pop(bound)
            elif isinstance(node.get(exclusive), bool):
                del node[exclusive]

    def _repair_keyword(self, node: dict[str, JsonValue], keyword: str, base: Base, path: str) -> None:
        if keyword in _ONE:
            self._repair_one(node, keyword, base, path)
        elif keyword in _LISTS:
            self._repair_list(node, keyword, base, path)
        elif keyword in _MAPS:
            self._repair_map(node, keyword, base, path)
        elif keyword in _PLAIN:
            self._repair_plain(node, keyword, base, path)

    def _repair_one(self, node: dict[str, JsonValue], keyword: str, base: Base, path: str) -> None:
        value = node[keyword]
        if keyword == "items" and isinstance(value, list):
            self._repair_list(node, keyword, base, path)
        else:
            node[keyword] = self.repair(value, base, path)

    def _repair_list(self, node: dict[str, JsonValue], keyword: str, base: Base, path: str) -> None:
        value = node[keyword]
        if not isinstance(value, list) or not value:
            self._drop(node, keyword, path, "must be a list of schemas")
            return
        value[:] = [self.repair(item, base, path + pointer(index)) for index, item in enumerate(value)]

    def _repair_map(self, node: dict[str, JsonValue], keyword: str, base: Base, path: str) -> None:
        value = node[keyword]
        if not isinstance(value, dict):
            self._drop(node, keyword, path, "must be an object of schemas")
            return
        for name in list(value):
            inner = path + pointer(name)
            if keyword == "patternProperties" and not _regex(name):
                self._drop(value, name, inner, _PLAIN["pattern"][1])
            elif value[name] is False:
                value[name] = {"enum": []}  # for `False`, the library reports an error without a path
            elif not (keyword == "dependencies" and _names(value[name])):
                value[name] = self.repair(value[name], base, inner)

    def _repair_plain(self, node: dict[str, JsonValue], keyword: str, base: Base, path: str) -> None:
        is_valid, message = _PLAIN[keyword]
        old_bound = self._old_bounds and keyword.startswith("exclusive") and isinstance(node[keyword], bool)
        if not is_valid(node[keyword]) and not old_bound:
            self._drop(node, keyword, path, message)
        elif keyword in REFERENCES:
            self._references.append((node, keyword, path, base))

    def _drop(self, node: dict[str, JsonValue], keyword: str, path: str, why: str) -> None:
        del node[keyword]
        self.flaws.append(Flaw(path, why))
        self._messages[id(node)] = why if keyword in REFERENCES else f"`{keyword}` {why}"


def copied(value: JsonValue) -> JsonValue:
    """Return a deep copy of a JSON value, faster than `copy.deepcopy`.

    Raises:
        RecursionError: The value is nested too deeply.
    """
    if isinstance(value, dict):
        return {str(name): copied(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [copied(inner) for inner in value]
    return value
