"""Makes any JSON value a schema that can be validated against, and tells what had to be left out.

Tools come with schemas that no draft allows (`"required": true` in a property, `"type": "any"`, a reference to
nowhere). One bad keyword must not cost the tool: it is left out, named, and the rest holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol, Self, TypeAlias

from pydantic import JsonValue

from pegboard.data.pointer import pointer
from pegboard.schema.patterns import PatternError, compiled

Schema: TypeAlias = dict[str, JsonValue] | bool
"""A JSON Schema: an object of keywords, or yes or no to everything."""


class Flaw(NamedTuple):
    """A part of a schema that could not be used."""

    path: str
    """A JSON Pointer into the schema."""
    message: str


_TYPES = {"array", "boolean", "integer", "null", "number", "object", "string"}


def _number(value: JsonValue) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _count(value: JsonValue) -> bool:
    return _number(value) and isinstance(value, int | float) and value >= 0 and value == int(value)


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
_NUMBER = (_number, "must be a number")
_COUNT = (_count, "must be a whole number from 0")
_PLAIN: dict[str, tuple[Callable[[JsonValue], bool], str]] = {
    "type": (_type, "names no JSON type"),
    "enum": (lambda value: isinstance(value, list), "must be a list of values"),
    "required": (_names, "must be a list of names"),
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": _NUMBER,
    "exclusiveMaximum": _NUMBER,
    "multipleOf": (
        lambda value: _number(value) and isinstance(value, int | float) and value > 0,
        "must be a number above 0",
    ),
    "uniqueItems": (lambda value: isinstance(value, bool), "must be true or false"),
    "pattern": (_regex, "is no regular expression that can be checked here"),
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
"""Keyword without schemas in it → whether its value can be used, and what is said if not."""

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
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class Base(Protocol):
    """The base URI of a part of a schema, which its references are relative to (JSON Schema 2020-12, section 8.2)."""

    def inside(self, node: dict[str, JsonValue]) -> Self:
        """Return the base inside `node`, which has an `$id`.

        Raises:
            ValueError: The `$id` is not a URI.
        """
        ...

    def lookup(self, reference: str) -> tuple[JsonValue, Self | None]:
        """Return what a reference leads to and its base; the base is None if it is in another document.

        Raises:
            LookupError: The reference leads nowhere.
        """
        ...


class Mender:
    """Goes through one schema and mends it.

    Args:
        lists_are_tuples: Whether the dialect writes fixed positions as a list in `items` (before 2020-12).
        old_bounds: Whether the dialect has `exclusiveMinimum: true` (Draft 4).
    """

    def __init__(self, *, lists_are_tuples: bool, old_bounds: bool) -> None:
        self.flaws: list[Flaw] = []
        self._lists_are_tuples = lists_are_tuples
        self._old_bounds = old_bounds
        self._seen: dict[int, dict[str, JsonValue]] = {}
        self._references: list[tuple[dict[str, JsonValue], str, str, Base]] = []
        self.is_dynamic = False
        """Whether a reference depends on the way by which it is reached (`$dynamicRef`, `$recursiveRef`)."""
        self._targets: dict[int, JsonValue] = {}
        self._said: dict[int, str] = {}

    def mend(self, value: JsonValue, base: Base, path: str = "") -> Schema:
        """Return `value` as a schema: itself, mended in place, or `True` if it is no schema.

        Args:
            value: Any JSON value; it belongs to the mender from now on.
            base: The base URI around it.
            path: The JSON Pointer to it.
        """
        if isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            self.flaws.append(Flaw(path, "is no schema: it must be an object"))
            return True
        if id(value) in self._seen:
            return value
        self._seen[id(value)] = value
        # Nested in a schema, `$schema` would change the dialect and with it our keywords.
        value.pop("$schema", None)
        self._translate(value)
        if isinstance(value.get("$id"), str):
            try:
                base = base.inside(value)
            except ValueError:
                self._drop(value, "$id", path + pointer("$id"), "is no URI")
        for keyword in list(value):
            self._mend_keyword(value, keyword, base, path + pointer(keyword))
        return value

    def resolve(self) -> None:
        """Follow every reference of what was mended, mend what it leads to, and drop those that lead nowhere."""
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
                self._drop(node, keyword, path, f"the reference {reference} leads nowhere")
                continue
            self._targets[id(node)] = target if its_base is None else self.mend(target, its_base, path)
            self.is_dynamic |= keyword != "$ref" or its_base is None

    def target(self, node: dict[str, JsonValue]) -> JsonValue:
        """Gives what the reference of `node`, a part of the mended schema, leads to; None if it has none."""
        return self._targets.get(id(node))

    def flaw(self, node: dict[str, JsonValue]) -> str:
        """Says what was left out of `node`, a part of the mended schema; empty if nothing was."""
        return self._said.get(id(node), "")

    def _translate(self, node: dict[str, JsonValue]) -> None:
        """Says in the dialect what older ones say differently and people still write."""
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

    def _mend_keyword(self, node: dict[str, JsonValue], keyword: str, base: Base, path: str) -> None:
        if keyword in _ONE:
            self._mend_one(node, keyword, base, path)
        elif keyword in _LISTS:
            self._mend_list(node, keyword, base, path)
        elif keyword in _MAPS:
            self._mend_map(node, keyword, base, path)
        elif keyword in _PLAIN:
            self._mend_plain(node, keyword, base, path)

    def _mend_one(self, node: dict[str, JsonValue], keyword: str, base: Base, path: str) -> None:
        value = node[keyword]
        if keyword == "items" and isinstance(value, list):
            self._mend_list(node, keyword, base, path)
        else:
            node[keyword] = self.mend(value, base, path)

    def _mend_list(self, node: dict[str, JsonValue], keyword: str, base: Base, path: str) -> None:
        value = node[keyword]
        if not isinstance(value, list) or not value:
            self._drop(node, keyword, path, "must be a list of schemas")
            return
        value[:] = [self.mend(item, base, path + pointer(index)) for index, item in enumerate(value)]

    def _mend_map(self, node: dict[str, JsonValue], keyword: str, base: Base, path: str) -> None:
        value = node[keyword]
        if not isinstance(value, dict):
            self._drop(node, keyword, path, "must be an object of schemas")
            return
        for name in list(value):
            inner = path + pointer(name)
            if keyword == "patternProperties" and not _regex(name):
                self._drop(value, name, inner, _PLAIN["pattern"][1])
            elif value[name] is False:
                value[name] = {"enum": []}  # the library loses the path of what is simply forbidden
            elif not (keyword == "dependencies" and _names(value[name])):
                value[name] = self.mend(value[name], base, inner)

    def _mend_plain(self, node: dict[str, JsonValue], keyword: str, base: Base, path: str) -> None:
        fits, otherwise = _PLAIN[keyword]
        old_bound = self._old_bounds and keyword.startswith("exclusive") and isinstance(node[keyword], bool)
        if not fits(node[keyword]) and not old_bound:
            self._drop(node, keyword, path, otherwise)
        elif keyword in _REFERENCES:
            self._references.append((node, keyword, path, base))

    def _drop(self, node: dict[str, JsonValue], keyword: str, path: str, why: str) -> None:
        del node[keyword]
        self.flaws.append(Flaw(path, why))
        self._said[id(node)] = why if keyword in _REFERENCES else f"`{keyword}` {why}"


def copied(value: JsonValue) -> JsonValue:
    """Gives a copy of a JSON value of which nothing is shared; faster than `copy.deepcopy`.

    Raises:
        RecursionError: It is nested too deeply.
    """
    if isinstance(value, dict):
        return {str(name): copied(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [copied(inner) for inner in value]
    return value
