"""Rules built from one call: for exactly its arguments, for arguments that match patterns, or for any arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pegboard.models.call import OF_CLIENTS
from pegboard.models.rule import Rule

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.models.call import ToolCall
    from pegboard.models.model import JsonObject
    from pegboard.models.rule import RuleScope
    from pegboard.models.spec import ToolSpec

ANYTHING: Final = "**"
"""The pattern that matches every text."""
_MOST_ITEMS: Final = 8
"""Number of items of a list that get a pattern each."""
_LONGEST: Final = 200
"""Length of a value in a suggested pattern, in characters."""
_DEEPEST: Final = 50
"""Depth of values, and number of references and variants in a row, below which no default is filled in."""


def literal(text: str) -> str:
    """Return a pattern that matches only this text."""
    return re.sub(r"[*?[]", lambda sign: f"[{sign[0]}]", text)


def exact_rule(spec: ToolSpec, call: ToolCall) -> Rule:
    """Return the rule that allows the tool with exactly the arguments of a call, its present defaults included."""
    arguments = with_defaults(spec, call.args)
    return Rule(allow=(literal(call.name),), exactly=_written(arguments), scope=_scope(call))


def pattern_rule(call: ToolCall, patterns: Iterable[tuple[str, str]]) -> Rule:
    """Return the rule that allows the tool with arguments that match patterns.

    Args:
        call: The call; its tool and its source are those of the rule.
        patterns: Pairs of an argument and a pattern. Of several patterns for one argument, one must match. An empty
            pattern, and `**` alone, accept every value.
    """
    where: dict[str, tuple[str, ...]] = {}
    open_ = set[str]()
    for name, pattern in patterns:
        if pattern in {"", ANYTHING}:
            open_.add(name)
        else:
            where[name] = (*where.get(name, ()), pattern)
    kept = {name: found for name, found in where.items() if name not in open_}
    return Rule(allow=(literal(call.name),), where=kept, scope=_scope(call))


def any_rule(call: ToolCall) -> Rule:
    """Return the rule that allows the tool with any arguments."""
    return pattern_rule(call, ())


def session_rule(spec: ToolSpec, call: ToolCall) -> Rule:
    """Return the rule behind the answer "this session".

    A destructive tool is allowed with exactly the arguments of the call, any other tool with any arguments.
    """
    return exact_rule(spec, call) if spec.hints.destructive else any_rule(call)


def suggested_patterns(spec: ToolSpec, call: ToolCall, is_safe: Callable[[str], bool]) -> list[tuple[str, str]]:
    """Return editable patterns that match the call's arguments: pairs of an argument and a pattern.

    Arguments that the call leaves out are pinned to their default, or match every value if they have none.

    Args:
        spec: The tool.
        call: The call.
        is_safe: Returns whether a character can be shown in an input; any other becomes `?`.
    """
    properties = spec.input_schema.get("properties")
    known: Mapping[str, JsonValue] = properties if isinstance(properties, Mapping) else {}
    values = {**_defaults(spec.input_schema), **call.args}
    found: list[tuple[str, str]] = []
    for name in dict.fromkeys([*call.args, *known]):
        value = values.get(name)
        items = value if isinstance(value, list) else [value]
        if value is None or not items or len(items) > _MOST_ITEMS:
            found.append((name, ANYTHING))
        else:
            found += [(name, pattern) for pattern in dict.fromkeys(_pattern(item, is_safe) for item in items)]
    return found


def matches_exactly(exactly: str, spec: ToolSpec, arguments: JsonObject) -> bool:
    """Return whether arguments are exactly those of a rule; an argument left out has its default."""
    return _canonical(with_defaults(spec, _read(exactly))) == _canonical(with_defaults(spec, arguments))


def with_defaults(spec: ToolSpec, arguments: JsonObject) -> JsonObject:
    """Return arguments with the defaults of those that are left out, also within objects and lists."""
    filled = _filled(arguments, spec.input_schema, spec.input_schema)
    assert isinstance(filled, dict), "it was an object"
    return filled


def _defaults(node: Mapping[str, JsonValue]) -> JsonObject:
    known = _properties(node).items()
    return {name: one["default"] for name, one in known if isinstance(one, Mapping) and "default" in one}


def _filled(value: JsonValue, schema: object, root: JsonObject, depth: int = 0) -> JsonValue:
    """Return a value with the defaults of its schema; with none where several variants of the schema fit."""
    if depth > _DEEPEST or not isinstance(value, dict | list):
        return value
    node = _plain(schema, value, root)
    if isinstance(value, list):
        items = node.get("items")
        return [_filled(one, items, root, depth + 1) for one in value] if items else value
    known, others = _properties(node), node.get("additionalProperties")
    filled = {**_defaults(node), **value}
    return {name: _filled(one, known.get(name, others), root, depth + 1) for name, one in filled.items()}


def _plain(schema: object, value: JsonValue, root: JsonObject) -> Mapping[str, JsonValue]:
    """Return a schema without references, and of several variants the only one that fits; empty if there is none."""
    for _ in range(_DEEPEST):
        node = _target(schema, root)
        union = node.get("anyOf") or node.get("oneOf") or node.get("allOf")
        if "properties" in node or "items" in node or not isinstance(union, list):
            return node
        fitting = [one for one in union if len(union) == 1 or _fits(_target(one, root), value)]
        schema = fitting[0] if len(fitting) == 1 else None
    return {}


def _fits(node: Mapping[str, JsonValue], value: JsonValue) -> bool:
    """Return whether a value may be of a variant, by its type and its names."""
    if isinstance(value, list):
        return node.get("type") == "array"
    properties, required = _properties(node), node.get("required")
    wanted = required if isinstance(required, list) else ()
    return (
        isinstance(value, dict)
        and node.get("type", "object") == "object"
        and all(name in value for name in wanted)
        and (not properties or value.keys() <= properties.keys())
        and all(
            one["const"] == value[name]
            for name, one in properties.items()
            if name in value and isinstance(one, Mapping) and "const" in one
        )
    )


def _target(schema: object, root: JsonObject) -> Mapping[str, JsonValue]:
    """Return the schema that local references lead to; empty if they lead to none."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, Mapping):
            break
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = root if reference.startswith("#") else None
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            schema = schema.get(name) if isinstance(schema, Mapping) else None
    return {}


def _properties(node: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    properties = node.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _pattern(value: JsonValue, is_safe: Callable[[str], bool]) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    kept = text[:_LONGEST]
    pattern = "".join(literal(sign) if is_safe(sign) else "?" for sign in kept)
    return pattern if kept == text else pattern + ANYTHING


def _scope(call: ToolCall) -> RuleScope | None:
    return "mcp" if call.source in OF_CLIENTS else "ask" if call.source == "ask" else None


def _written(arguments: JsonObject) -> str:
    text = json.dumps(arguments, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # Half a surrogate pair can't be written to a file.
        return json.dumps(arguments)
    return text


@lru_cache(maxsize=500)
def _read(exactly: str) -> JsonObject:
    arguments: JsonObject = json.loads(exactly)
    return arguments


def _canonical(arguments: JsonObject) -> str:
    return json.dumps(arguments, sort_keys=True)
