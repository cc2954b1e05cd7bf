"""Parts of JSON Schemas in a form in which two schemas can be compared: references, alternatives and types."""

from __future__ import annotations

import json
from collections import deque
from itertools import combinations
from typing import Final, NamedTuple

from pydantic import JsonValue

from pegboard.checks.differences import shortened
from pegboard.data.json_text import identical
from pegboard.models import JsonObject
from pegboard.schema.validation import Validator

_DEEPEST: Final = 60
_MOST_LISTED: Final = 5
_MOST_MERGED: Final = 200
_NOTES: Final = frozenset({"title", "description", "examples", "$comment", "deprecated"})
_MAPS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
BRANCHES: Final = frozenset({"anyOf", "oneOf"})
_LISTING: Final = frozenset({"type", "enum", "const", "default"})
_MOST_OVERLAPPING: Final = 100
"""Alternatives of which each is compared with each; more count as overlapping."""
_VALUES: Final = frozenset({"enum", "const", "default", "required"})
TYPES: Final[dict[type, str]] = {
    type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object",
}  # fmt: skip


def bare(schema: JsonValue) -> JsonValue:
    """Return a schema without its texts, which don't change what it accepts."""
    if isinstance(schema, list):
        return [bare(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    found: JsonObject = {}
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, dict):
            found[key] = {name: bare(inner) for name, inner in value.items()}
        elif key not in _NOTES:
            found[key] = value if key in _VALUES else bare(value)
    return found


class Alternative(NamedTuple):
    """One of the forms that a value can have."""

    node: JsonValue
    text: str
    """What it accepts, in the words of a change."""
    marks: tuple[str, ...]
    """Texts that it shares with the alternatives that are like it, the most specific first."""


def resolved(schema: Validator, node: JsonValue) -> JsonValue:
    """Return a part of a schema with the targets of its references and its `allOf` merged into it.

    Args:
        schema: The whole schema.
        node: Part of it, not a copy.
    """
    return _merged(schema, node, [_MOST_MERGED])


def _merged(schema: Validator, node: JsonValue, left: list[int]) -> JsonValue:
    """Merge as `resolved` does, as long as parts are left: a schema may name itself, or one part many times."""
    merged: JsonValue = node
    for _ in range(_DEEPEST):
        target = schema.target(node)
        if target is None or not isinstance(merged, dict):
            break
        rest = {key: value for key, value in merged.items() if key != "$ref"}
        if not isinstance(target, dict):
            merged = rest if target is True else target
            break
        merged = {**target, **rest} if rest else target
        node = target
    parts = merged.get("allOf") if isinstance(merged, dict) else None
    if not isinstance(merged, dict) or not isinstance(parts, list):
        return merged
    found = {key: value for key, value in merged.items() if key != "allOf"}
    for part in parts:
        left[0] -= 1
        inner = _merged(schema, part, left) if left[0] >= 0 else None
        if not isinstance(inner, dict) or not _add(found, inner):
            return merged
    return found


def _add(node: JsonObject, other: JsonObject) -> bool:
    """Add the keywords of another part; return False if both have one with different values."""
    for key, value in other.items():
        if key not in node:
            node[key] = value
        elif key not in _NOTES and key != "default" and not identical(node[key], value):
            return False
    return True


def branches(node: JsonObject) -> list[JsonValue] | None:
    """Return the parts of which a value must match one, or None without such parts."""
    found = node.get("anyOf", node.get("oneOf"))
    return found if isinstance(found, list) and found else None


def alternatives(schema: Validator, node: JsonObject, *, whole: bool = False) -> list[Alternative]:
    """Return the alternatives of a part of a schema, or the part itself without its default.

    A list of types has one alternative for each, and listed values of one type are one alternative.

    Args:
        schema: The whole schema.
        node: The part.
        whole: Whether each alternative includes what the part requires of all of them.
    """
    found: list[Alternative] = []
    lists: dict[frozenset[str], list[JsonValue]] = {}
    parts = branches(node) or [{key: value for key, value in node.items() if key != "default"}]
    common: JsonObject = {key: value for key, value in node.items() if key not in BRANCHES | _NOTES | {"default"}}
    if whole and common and branches(node):
        parts = [{"allOf": [common, part]} for part in parts]
    for one in parts:
        target = resolved(schema, one)
        types = target.get("type") if isinstance(target, dict) else None
        values = listed_values(target) if isinstance(target, dict) else None
        if isinstance(target, dict) and values is not None and not as_object(bare(target)).keys() - _LISTING:
            lists.setdefault(types_of(target), []).extend(values)
        elif isinstance(target, dict) and isinstance(types, list):
            found += [_alternative(part, part) for part in (_of_type(target, str(name)) for name in types)]
        else:
            found.append(_alternative(one, target))
    listed: list[JsonObject] = [{"enum": values} for values in lists.values()]
    return [*found, *(_alternative(one, one) for one in listed)]


def overlap(schema: Validator, node: JsonObject) -> bool:
    """Return whether a value may match more than one part of a `oneOf`, which then excludes it."""
    found = node.get("oneOf")
    targets = [resolved(schema, one) for one in found] if isinstance(found, list) else []
    if len(targets) > _MOST_OVERLAPPING:
        return True
    return not all(_are_disjoint(schema, one, other) for one, other in combinations(targets, 2))


def _are_disjoint(schema: Validator, one: JsonValue, other: JsonValue) -> bool:
    """Return whether two parts have different types or listed values, or objects with different constants."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return one is False or other is False
    if _list_others(one, other):
        return True
    types, others = types_of(one), types_of(other)
    shared = {name for name in types | others if admits(types, name) and admits(others, name)}
    if shared != {"object"}:
        return bool(types and others and not shared)
    first, second = as_object(one.get("properties")), as_object(other.get("properties"))
    return any(
        _list_others(as_object(resolved(schema, first[name])), as_object(resolved(schema, second[name])))
        for name in first.keys() & second.keys()
    )


def _list_others(one: JsonObject, other: JsonObject) -> bool:
    """Return whether both parts list values, and none of them is in both lists."""
    first, second = listed_values(one), listed_values(other)
    return first is not None and second is not None and set(map(comparable, first)).isdisjoint(map(comparable, second))


def _of_type(node: JsonObject, name: str) -> JsonObject:
    """Return a part of a schema for the values of one of its types."""
    return {"type": name} if name in {"null", "boolean"} else {**node, "type": name}


def _alternative(node: JsonValue, target: JsonValue) -> Alternative:
    found = target if isinstance(target, dict) else {}
    types, values = sorted(types_of(found)), listed_values(found)
    constants: JsonObject = {
        name: inner["const"]
        for name, inner in as_object(found.get("properties")).items()
        if isinstance(inner, dict) and "const" in inner
    }
    text = described(values) if values is not None else " or ".join(types) or "of one of its forms"
    wide = sorted({"number" if one == "integer" else one for one in types})
    return Alternative(node, text, (comparable(bare(node)), f"{types}{comparable(constants)}", f"{types}", f"{wide}"))


def paired(
    left: list[Alternative], right: list[Alternative]
) -> tuple[list[tuple[Alternative, Alternative]], list[Alternative], list[Alternative]]:
    """Return the pairs of the alternatives that are most alike, and those of each side without one."""
    pairs: list[tuple[Alternative, Alternative]] = []
    for level in range(len(left[0].marks)):
        waiting: dict[str, deque[int]] = {}
        for index, other in enumerate(right):
            waiting.setdefault(other.marks[level], deque()).append(index)
        rest, taken = [], set()
        for one in left:
            found = waiting.get(one.marks[level])
            if found:
                taken.add(found[0])
                pairs.append((one, right[found.popleft()]))
            else:
                rest.append(one)
        left, right = rest, [other for index, other in enumerate(right) if index not in taken]
    return pairs, left, right


def listed_values(node: JsonObject) -> list[JsonValue] | None:
    """Return the values of `enum` or `const` that have a declared type, or None without these keywords."""
    found = [node["const"]] if "const" in node else node.get("enum")
    types = declared_types(node)
    if not isinstance(found, list) or not types:
        return found if isinstance(found, list) else None
    return [value for value in found if admits(types, _type_of(value))]


def declared_types(node: JsonObject) -> frozenset[str]:
    """Return the types that a part of a schema declares."""
    found = node.get("type")
    return frozenset([found] if isinstance(found, str) else map(str, found) if isinstance(found, list) else ())


def types_of(node: JsonObject) -> frozenset[str]:
    """Return the types of the listed values of a part of a schema, or its own types if it lists none."""
    values = listed_values(node)
    return declared_types(node) if values is None else frozenset(map(_type_of, values))


def _type_of(value: JsonValue) -> str:
    if isinstance(value, float) and value.is_integer():
        return "integer"
    return TYPES[type(value)]


def admits(types: frozenset[str], one: str) -> bool:
    """Return whether values of one type are valid for a part of a schema with these types."""
    return one in types or (one == "integer" and "number" in types)


def as_object(value: JsonValue) -> JsonObject:
    """Return an object itself, and an empty one for another value."""
    return value if isinstance(value, dict) else {}


def comparable(value: JsonValue) -> str:
    """Return a text that is equal for equal JSON: `1` equals `1.0`."""
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    return json.dumps(value, sort_keys=True)


def described(values: list[JsonValue]) -> str:
    """Return the first values of a list as alternatives."""
    shown = " or ".join(map(shortened, values[:_MOST_LISTED]))
    return f"{shown} or {len(values) - _MOST_LISTED:,} more" if len(values) > _MOST_LISTED else shown
