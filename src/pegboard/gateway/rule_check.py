"""Rules that can never match a call: misspelt tools, invalid arguments, and patterns that no value can equal."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from pegboard.data.pointer import steps
from pegboard.gateway.rule_match import (
    Arguments,
    ArgumentValue,
    Folders,
    can_be_path,
    is_path,
    names_tool,
    number,
    value_matches,
)
from pegboard.gateway.rule_pattern import literal
from pegboard.models.rule_scope import with_defaults

if TYPE_CHECKING:
    from decimal import Decimal

    from pegboard.models import Fault, JsonObject, ToolSpec
    from pegboard.models.rule import Rule


_LIMITS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
}
"""Limits of numbers in a schema, as words."""
_MOST_DIGITS = 300
"""Size of a number that isn't compared with limits: it would take long to write `1e999999999` as an integer."""


class RuleFinding(NamedTuple):
    """Why a rule, or a part of it, can never match."""

    message: str
    fix: str
    about: str
    """The incorrect text in the file: a pattern or the name of an argument."""
    is_final: bool = True
    """Whether the finding stays true whatever packs are installed."""
    is_expected: bool = False
    """Whether the rule is probably for a server that only other clients use."""

    def severity(self, rule: Rule) -> Literal["error", "warning", "hint"]:
        """Return the severity of the problem that a rule has with this finding."""
        if self.is_expected:
            return "hint"
        return "error" if self.is_final and rule.action != "allow" else "warning"


def findings(rule: Rule, specs: Sequence[ToolSpec], servers: Collection[str] = ()) -> Iterator[RuleFinding]:
    """Find the reasons why a rule can't match any call of these tools.

    Args:
        rule: The rule.
        specs: Every tool that was found.
        servers: Names of configured MCP servers. The tools of one that isn't connected are unknown.
    """
    unlisted = {*servers} - {spec.pack for spec in specs}
    named: dict[str, ToolSpec] = {}
    for pattern in rule.tools:
        found = [spec for spec in specs if names_tool(rule, pattern, spec)]
        named |= {spec.name: spec for spec in found}
        if not found and pattern.partition(".")[0] not in unlisted:
            yield _unknown_tool(pattern, specs)
    if not named:
        return
    if rule.exactly is not None:
        yield from _invalid_arguments(json.loads(rule.exactly), [*named.values()])
    arguments = {name: Arguments(spec) for name, spec in named.items()}
    for key, patterns in rule.where.items():
        known = [(one, nodes) for one in arguments.values() if (nodes := one.nodes(key)) is not None]
        if not known:
            yield _unknown_argument(key, [*named.values()])
            continue
        for pattern in patterns:
            if not any(_can_match(pattern, key, nodes, one) for one, listed in known for nodes in listed):
                every = (node for _, listed in known for nodes in listed for node in nodes)
                why = f"because `{key}` is {' or '.join(dict.fromkeys(map(_kind, every)))}"
                yield RuleFinding(f"the pattern {pattern!r} can never match {why}", "Change the pattern.", pattern)


def _invalid_arguments(exactly: JsonObject, specs: Sequence[ToolSpec]) -> Iterator[RuleFinding]:
    """Yield a finding if none of these tools can be called with the arguments of a rule."""
    faults = [_faults(exactly, spec) for spec in specs]
    if all(faults):
        why = "; ".join(map(str, faults[0]))
        message = f"`exactly` can never match because {specs[0].name} doesn't accept these arguments: {why}"
        yield RuleFinding(message, "Correct the arguments or remove the rule.", "exactly")


def _faults(exactly: JsonObject, spec: ToolSpec) -> list[Fault]:
    """Return the errors of exact arguments, except for those that have their default: a call can omit them."""
    from pegboard.schema.validation import validator

    omitted = with_defaults(spec, {})
    compared = with_defaults(spec, exactly)
    defaults = {name for name, value in omitted.items() if compared.get(name, value) == value}
    return [one for one in validator(spec.input_schema).faults(compared) if {*steps(one.path)[:1]} - defaults]


def _unknown_tool(pattern: str, specs: Sequence[ToolSpec]) -> RuleFinding:
    owner = next((spec for spec in specs if pattern in spec.aliases), None)
    if owner is not None:
        message = f"{pattern!r} is another name of {owner.name}, and `allow` accepts only a tool's own name"
        return RuleFinding(message, f"Write {owner.name!r}.", pattern)
    pack, dot, _ = pattern.partition(".")
    packs = {spec.pack for spec in specs}
    if dot and literal(pack) is not None and pack not in packs:
        message = f"{pattern!r} matches no tool because no pack {pack!r} is installed"
        if meant := _near(pack, packs):
            return RuleFinding(message, f"Did you mean {f'{meant}{pattern[len(pack) :]}'!r}?", pattern, is_final=False)
        fix = f"Ignore this if {pack!r} is a server behind `pegboard watch`, or a pack that you install later."
        return RuleFinding(message, fix, pattern, is_final=False, is_expected=True)
    if literal(pack) is None:
        return RuleFinding(
            f"{pattern!r} matches no tool now",
            "Correct the pattern, or ignore this if it is for a server behind `pegboard watch`.",
            pattern,
            is_final=False,
            is_expected=True,
        )
    names = [name for spec in specs for name in (spec.name, *spec.aliases)]
    return RuleFinding(f"the tool {pattern!r} doesn't exist", _nearest(pattern, names), pattern)


def _unknown_argument(key: str, specs: Sequence[ToolSpec]) -> RuleFinding:
    names = [name for spec in specs for name in _arguments(spec)]
    tools = specs[0].name if len(specs) == 1 else "none of its tools"
    message = f"{tools} has {'no' if len(specs) == 1 else 'an'} argument {key!r}"
    return RuleFinding(message, _nearest(key, names), key)


def _arguments(spec: ToolSpec) -> Iterable[str]:
    properties = spec.input_schema.get("properties")
    return [*(properties if isinstance(properties, dict) else ()), *spec.parameter_aliases]


def _nearest(wanted: str, names: Iterable[str]) -> str:
    found = _near(wanted, names)
    return f"Did you mean {found!r}?" if found else "Correct the name or remove the rule."


def _near(wanted: str, names: Iterable[str]) -> str:
    """Return the name that is most like another one; empty if none is."""
    from difflib import get_close_matches

    likely = {name for name in names if name[:1] == wanted[:1]}  # difflib takes a second for 10,000 names.
    found = get_close_matches(wanted, sorted(likely), n=1)
    return found[0] if found else ""


def _can_match(pattern: str, key: str, nodes: tuple[JsonObject, ...], arguments: Arguments) -> bool:
    """Return whether a pattern can match a value of one of these schemas; True if that can't be known."""
    return not nodes or any(_can_match_node(pattern, key, node, arguments) for node in nodes)


def _can_match_node(pattern: str, key: str, node: JsonObject, arguments: Arguments) -> bool:
    listed = [node["const"]] if "const" in node else node.get("enum")
    name = key.rpartition(".")[2]
    if isinstance(listed, list):
        values = (ArgumentValue(name, one, (node,)) for one in listed)
        return any(value_matches(pattern, value, Folders(), strict=False) for value in values)
    word = literal(pattern)
    match node.get("type"):
        case "boolean":
            return any(
                value_matches(pattern, ArgumentValue(name, one, ()), Folders(), strict=False) for one in (True, False)
            )
        case "null":
            return value_matches(pattern, ArgumentValue(name, None, ()), Folders(), strict=False)
        case "number" | "integer" as kind if word is not None:
            wanted = number(word)
            if wanted is None or not wanted.is_finite():
                return wanted is not None and kind == "number"
            if wanted.adjusted() > _MOST_DIGITS:
                return True
            return (kind == "number" or wanted == int(wanted)) and _is_within_limits(wanted, node)
        case "number" | "integer":
            return set(pattern) <= set("0123456789.eE+-*?")
        case "array":
            return _can_match(pattern, key, arguments.items([node]), arguments)
        case _:
            return not is_path([node], name) or can_be_path(pattern)


def _is_within_limits(wanted: Decimal, node: JsonObject) -> bool:
    from pegboard.schema.validation import validator

    limits: JsonObject = {key: node[key] for key in _LIMITS if key in node}
    value = int(wanted) if wanted == int(wanted) else float(wanted)
    return not limits or validator(limits).fits(limits, value)


def _kind(node: JsonObject) -> str:
    if "const" in node or "enum" in node:
        listed = [node["const"]] if "const" in node else node["enum"]
        return f"one of {', '.join(map(str, listed if isinstance(listed, list) else []))}"
    kinds = {"boolean": "true or false", "null": "null", "number": "a number", "integer": "an integer"}
    limits = [f", {text} {node[key]}" for key, text in _LIMITS.items() if key in node]
    return "".join([kinds.get(str(node.get("type")), f"of the type {node.get('type', 'any')}"), *limits])
