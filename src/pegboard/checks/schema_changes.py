"""Comparison of two JSON Schemas: which values the new one accepts no longer, and which ones it accepts in addition.

For arguments, a schema that accepts less breaks callers. For results, one that accepts more breaks readers. A part that
can't be compared is reported as breaking.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, Literal, NamedTuple, TypeAlias

from pydantic import JsonValue

from pegboard.checks.differences import shortened
from pegboard.checks.schema_parts import (
    BRANCHES,
    TYPES,
    admits,
    alternatives,
    as_object,
    bare,
    branches,
    comparable,
    declared_types,
    described,
    listed_values,
    overlap,
    paired,
    resolved,
    types_of,
)
from pegboard.data.json_text import identical
from pegboard.data.pointer import pointer
from pegboard.models import DataModel, JsonObject
from pegboard.models.readable_path import readable
from pegboard.schema.formats import FORMATS
from pegboard.schema.validation import Validator

Side: TypeAlias = Literal["input", "output"]
_Effect: TypeAlias = Literal["less", "more", "other", "none"]
"""What the new schema accepts: less, more, other values, or the same in practice."""

_DEEPEST: Final = 60
_MOST: Final = 500
_BOUNDS: Final = (
    ("minLength", 1, 0), ("minItems", 1, 0), ("minProperties", 1, 0), ("minContains", 1, 1),
    ("maxLength", -1, None), ("maxItems", -1, None), ("maxProperties", -1, None), ("maxContains", -1, None),
)  # fmt: skip
"""Keyword, whether it is a minimum (1) or a maximum (-1), and its default."""
_LIMITS: Final = (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1))
_RESTRICTING: Final = ("pattern", "format", "multipleOf", "uniqueItems", "contentEncoding", "contentMediaType")
_UNCOMPARED: Final = (
    "not", "if", "then", "else", "contains", "patternProperties", "propertyNames", "dependentRequired",
    "dependentSchemas", "dependencies", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef",
)  # fmt: skip
_ALL_TYPES: Final = frozenset(TYPES.values())


class SchemaChange(DataModel):
    """One difference between two schemas of a tool."""

    side: Side
    """Whether it concerns the arguments or the data of the result."""
    path: str
    """JSON Pointer to the value that it concerns; the step `*` means every item or every other key."""
    message: str
    """A clause with its subject: "`limit` is now required"."""
    breaking: bool


class _Step(NamedTuple):
    path: str
    message: str
    effect: _Effect


def schema_changes(side: Side, old: JsonValue, new: JsonValue) -> tuple[SchemaChange, ...]:
    """Return the changes from one schema to another, the breaking ones first.

    Args:
        side: Whether the schemas describe arguments or data of results.
        old: The earlier schema; None if there was none.
        new: The later schema; None if there is none.
    """
    if old is None and new is None:
        return ()
    if old is None or new is None:
        message = "the output schema was added" if old is None else "the output schema was removed"
        return (SchemaChange(side=side, path="", message=message, breaking=new is None),)
    steps: list[_Step] = []
    try:
        steps += islice(_Comparison(side, Validator(old), Validator(new)).run(), _MOST)
    except (RecursionError, ValueError):  # it is nested too deeply, or has a number with too many digits
        steps.append(_Step("", "the schema can't be compared", "other"))
    bad = {"input": ("less", "other"), "output": ("more", "other")}[side]
    found = [
        SchemaChange(side=side, path=step.path, message=step.message, breaking=step.effect in bad)
        for step in dict.fromkeys(steps)
    ]
    return tuple(sorted(found, key=lambda change: not change.breaking))


class _Comparison:
    """Comparison of two whole schemas.

    Args:
        side: As in `schema_changes`.
        old: The earlier schema.
        new: The later schema.
    """

    def __init__(self, side: Side, old: Validator, new: Validator) -> None:
        self._side = side
        self._old = old
        self._new = new
        self._seen: dict[tuple[int, int], tuple[JsonValue, JsonValue]] = {}
        """Compared nodes by their ids; they are kept, so that no other node gets the same id."""

    def run(self) -> Iterator[_Step]:
        """Yield every change."""
        yield from self._compare(self._old.schema, self._new.schema, ())

    def _compare(self, old: JsonValue, new: JsonValue, at: tuple[str | int, ...]) -> Iterator[_Step]:
        if self._was_seen(old, new):
            return
        was, now = resolved(self._old, old), resolved(self._new, new)
        if (was is not old or now is not new) and self._was_seen(was, now):
            return
        if len(at) > _DEEPEST:
            yield _Step(pointer(*at), f"{_name(at)} is nested too deeply to be compared", "other")
            return
        if was is False or now is False:
            if was is not now:
                effect: _Effect = "less" if now is False else "more"
                yield _Step(pointer(*at), f"{_name(at)} is {'no longer' if now is False else 'now'} allowed", effect)
            return
        was, now = (was if isinstance(was, dict) else {}), (now if isinstance(now, dict) else {})
        if branches(was) or branches(now):
            yield from self._compare_branches(was, now, at)
            return
        yield from self._compare_values(was, now, at)
        yield from self._compare_limits(was, now, at)
        yield from self._compare_bounds(was, now, at)
        yield from self._compare_object(was, now, at)
        yield from self._compare_items(was, now, at)
        yield from self._compare_all_of(was, now, at)
        for keyword in _UNCOMPARED:
            if not identical(bare(was.get(keyword)), bare(now.get(keyword))):
                yield _Step(pointer(*at), f"`{keyword}` of {_name(at)} changed", "other")

    def _was_seen(self, old: JsonValue, new: JsonValue) -> bool:
        """Return whether two nodes were compared before, and note that they are compared."""
        mark = (id(old), id(new))
        if mark in self._seen and isinstance(old, dict) and isinstance(new, dict):
            return True
        self._seen[mark] = (old, new)
        return False

    def _compare_branches(self, was: JsonObject, now: JsonObject, at: tuple[str | int, ...]) -> Iterator[_Step]:
        """Compare alternatives (`anyOf`, `oneOf`): those that are alike with each other, the rest in order."""
        if was.keys() >= BRANCHES or now.keys() >= BRANCHES:
            for keyword in sorted(BRANCHES):
                one, other = ({keyword: node[keyword]} if keyword in node else {} for node in (was, now))
                yield from self._compare_alternatives(one, other, at)
        else:
            yield from self._compare_alternatives(was, now, at)
        if branches(was) and branches(now):
            rest = [{key: value for key, value in node.items() if key not in BRANCHES} for node in (was, now)]
            if not is_same(*rest):
                yield from self._compare(rest[0], rest[1], at)
        elif not identical(was.get("default"), now.get("default")):
            yield _Step(pointer(*at), f"the default of {_name(at)} changed", "none")

    def _compare_alternatives(self, was: JsonObject, now: JsonObject, at: tuple[str | int, ...]) -> Iterator[_Step]:
        path, name = pointer(*at), _name(at)
        whole = not branches(was) or not branches(now)
        pairs, gone, added = paired(
            alternatives(self._old, was, whole=whole), alternatives(self._new, now, whole=whole)
        )
        if len(gone) == len(added):
            pairs += zip(gone, added, strict=True)
        else:
            for one in gone:
                yield _Step(path, f"{name} can no longer be {one.text}", "less")
            for one in added:
                yield _Step(path, f"{name} can now be {one.text}", "more")
        for one, other in pairs:  # those of equal text, too: their references may have other targets
            yield from self._compare(one.node, other.node, at)
        before, after = overlap(self._old, was), overlap(self._new, now)
        if after and not before:
            yield _Step(path, f"{name} must now match exactly one of its forms, which overlap", "less")
        elif before and not after:
            yield _Step(path, f"{name} can now match more than one of its forms", "more")
        elif before and not _are_same_forms(was, now):
            yield _Step(path, f"the forms of {name} changed, and a value must match exactly one of them", "other")

    def _compare_values(self, was: JsonObject, now: JsonObject, at: tuple[str | int, ...]) -> Iterator[_Step]:
        """Compare types, constants and listed values."""
        path, name = pointer(*at), _name(at)
        old_values, new_values = listed_values(was), listed_values(now)
        if old_values is not None and new_values is not None:
            known, current = set(map(comparable, old_values)), set(map(comparable, new_values))
            for value in (one for one in old_values if comparable(one) not in current):
                yield _Step(path, f"{name} can no longer be {shortened(value)}", "less")
            for value in (one for one in new_values if comparable(one) not in known):
                yield _Step(path, f"{name} can now be {shortened(value)}", "more")
            return
        if new_values is not None:
            yield _Step(path, f"{name} can now only be {described(new_values)}", "less")
        elif old_values is not None:
            yield _Step(path, f"{name} can now be any value, not only the listed ones", "more")
        old_types, new_types = types_of(was) or _ALL_TYPES, types_of(now) or _ALL_TYPES
        # Listed values in place of a type restrict it, and the message above says so.
        less = [] if new_values is not None else sorted(one for one in old_types if not admits(new_types, one))
        more = [] if old_values is not None else sorted(one for one in new_types if not admits(old_types, one))
        if less and more:
            text = f"{name} is now {' or '.join(sorted(new_types))} instead of {' or '.join(sorted(old_types))}"
            yield _Step(path, text, "other")
        elif less:
            yield _Step(path, f"{name} can no longer be {' or '.join(less)}", "less")
        elif more:
            yield _Step(path, f"{name} can now be {' or '.join(more)}", "more")
        if not identical(was.get("default"), now.get("default")):
            yield _Step(path, f"the default of {name} changed", "none")

    @staticmethod
    def _compare_limits(was: JsonObject, now: JsonObject, at: tuple[str | int, ...]) -> Iterator[_Step]:
        """Compare the smallest and the largest number, each of which has two keywords."""
        is_whole = declared_types(was) == declared_types(now) == {"integer"}
        for inclusive, exclusive, sign in _LIMITS:
            old, new = (_limit(node, inclusive, exclusive, sign, is_whole=is_whole) for node in (was, now))
            if old.rank == new.rank:
                continue
            if not old.keyword or not new.keyword or old.keyword == new.keyword:
                text = f"`{new.keyword or old.keyword}` of {_name(at)} changed from {old.value} to {new.value}"
            else:
                text = f"`{old.keyword}` {old.value} of {_name(at)} changed to `{new.keyword}` {new.value}"
            yield _Step(pointer(*at), text, "less" if new.rank > old.rank else "more")

    @staticmethod
    def _compare_bounds(was: JsonObject, now: JsonObject, at: tuple[str | int, ...]) -> Iterator[_Step]:
        path, name = pointer(*at), _name(at)
        for keyword, sign, default in _BOUNDS:
            first, second = (_bound(node.get(keyword, default), sign) for node in (was, now))
            if first != second:
                text = (
                    f"`{keyword}` of {name} changed from {_bounded(was.get(keyword))} to {_bounded(now.get(keyword))}"
                )
                yield _Step(path, text, "less" if second > first else "more")
        for keyword in _RESTRICTING:
            old, new = was.get(keyword) or None, now.get(keyword) or None
            if not identical(old, new):
                text = f"`{keyword}` of {name} changed from {_bounded(old)} to {_bounded(new)}"
                yield _Step(path, text, _effect(keyword, old, new))

    def _compare_object(self, was: JsonObject, now: JsonObject, at: tuple[str | int, ...]) -> Iterator[_Step]:
        """Compare properties, required ones, and what applies to others."""
        old, new = as_object(was.get("properties")), as_object(now.get("properties"))
        old_required, new_required = _names(was.get("required")), _names(now.get("required"))
        old_rest, new_rest = was.get("additionalProperties", True), now.get("additionalProperties", True)
        for name in dict.fromkeys([*old, *new, *old_required, *new_required]):
            inner = (*at, name)
            path, shown = pointer(*inner), _name(inner)
            if name in old and name not in new and (self._side == "output" or new_rest is False):
                yield _Step(path, f"{shown} was removed", "more" if self._side == "output" else "less")
                continue
            if name in old and name not in new:
                yield _Step(path, f"{shown} is no longer described", "none")
            elif name in new and name not in old:
                yield _Step(path, f"{shown} was added", "none")
            if name in old or name in new:
                yield from self._compare(*_property(name, old, old_rest, new, new_rest), inner)
            if name in new_required and name not in old_required:
                property_ = new.get(name)
                has_default = at == () and isinstance(property_, dict) and "default" in property_
                text = f"{shown} is now required"
                yield _Step(path, f"{text}, with a default" if has_default else text, "none" if has_default else "less")
            elif name in old_required and name not in new_required:
                yield _Step(path, f"{shown} is no longer required", "more")
        if old_rest is not True or new_rest is not True:
            if self._side == "output" and old_rest is False and new_rest is True:
                yield _Step(pointer(*at), f"{_name(at)} can now have other keys", "none")
            elif old_rest is False or new_rest is False:
                if old_rest is not new_rest:
                    verb = "can no longer" if new_rest is False else "can now"
                    effect: _Effect = "less" if new_rest is False else "more"
                    yield _Step(pointer(*at), f"{_name(at)} {verb} have other keys", effect)
            else:
                yield from self._compare(old_rest, new_rest, (*at, "*"))

    def _compare_items(self, was: JsonObject, now: JsonObject, at: tuple[str | int, ...]) -> Iterator[_Step]:
        (old_first, old_rest), (new_first, new_rest) = _items(was), _items(now)
        for index in range(max(len(old_first), len(new_first))):
            old = old_first[index] if index < len(old_first) else old_rest
            new = new_first[index] if index < len(new_first) else new_rest
            yield from self._compare(old, new, (*at, index))
        if old_rest is not True or new_rest is not True:
            yield from self._compare(old_rest, new_rest, (*at, "*"))

    def _compare_all_of(self, was: JsonObject, now: JsonObject, at: tuple[str | int, ...]) -> Iterator[_Step]:
        old, new = _list(was.get("allOf")), _list(now.get("allOf"))
        for index in range(max(len(old), len(new))):
            one = old[index] if index < len(old) else True
            other = new[index] if index < len(new) else True
            yield from self._compare(one, other, at)


def is_same(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two schemas are equal except for their texts; False if they are nested too deeply."""
    try:
        return identical(bare(one), bare(other))
    except RecursionError:
        return False


def _property(
    name: str, old: JsonObject, old_rest: JsonValue, new: JsonObject, new_rest: JsonValue
) -> tuple[JsonValue, JsonValue]:
    """Return the schemas of a property: of an object that doesn't describe it, that of its other keys.

    If these may have any value, the property was meaningless there, and both schemas are the same.
    """
    if name in old and name in new:
        return old[name], new[name]
    rest = new_rest if name in old else old_rest
    if not isinstance(rest, dict) or not bare(rest):
        return True, True
    return (old[name], rest) if name in old else (rest, new[name])


def _are_same_forms(was: JsonObject, now: JsonObject) -> bool:
    """Return whether two `oneOf` have equal parts in any order."""
    one, other = (sorted(comparable(bare(part)) for part in _list(node.get("oneOf"))) for node in (was, now))
    return one == other


def _items(node: JsonObject) -> tuple[list[JsonValue], JsonValue]:
    """Return the schemas of the first items, and that of the others."""
    items = node.get("items", True)
    if isinstance(items, list):  # before the draft 2020-12
        return items, node.get("additionalItems", True)
    return _list(node.get("prefixItems")), items


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _names(value: JsonValue) -> dict[str, None]:
    return {str(name): None for name in value} if isinstance(value, list) else {}


def _effect(keyword: str, old: JsonValue, new: JsonValue) -> _Effect:
    """Return the effect of a change of a keyword that restricts values; the values are None without it."""
    if keyword == "format":
        old, new = (one if isinstance(one, str) and one in FORMATS else None for one in (old, new))
        if old == new:
            return "none"
    if old is None or new is None:
        return "less" if old is None else "more"
    if keyword == "multipleOf" and isinstance(old, int) and isinstance(new, int):
        return "more" if old % new == 0 else "less" if new % old == 0 else "other"
    return "other"


class _Limit(NamedTuple):
    rank: tuple[float, bool]
    """Greater if it restricts more."""
    keyword: str = ""
    value: str = "none"


def _limit(node: JsonObject, inclusive: str, exclusive: str, sign: int, *, is_whole: bool) -> _Limit:
    """Return the limit of a number that restricts it most.

    Args:
        node: Part of a schema.
        inclusive: Keyword of a limit that is allowed itself.
        exclusive: Keyword of a limit that isn't.
        sign: 1 for the smallest number, -1 for the largest.
        is_whole: Whether all allowed numbers are whole: then more than 0 equals at least 1.
    """
    found = [_Limit((float("-inf"), False))]
    for keyword in (inclusive, exclusive):
        bound, is_exclusive = _bound(node.get(keyword), sign), keyword == exclusive
        if bound > float("-inf"):
            is_next = is_whole and is_exclusive and bound == bound // 1
            rank = (bound + 1, False) if is_next else (bound, is_exclusive)
            found.append(_Limit(rank, keyword, _bounded(node[keyword])))
    return max(found)


def _bound(value: JsonValue, sign: int) -> float:
    """Return a bound so that a greater one restricts more; minus infinity without one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return sign * value if isinstance(value, int | float) and is_number else float("-inf")


def _bounded(value: JsonValue) -> str:
    return "none" if value is None else shortened(value)


def _name(at: tuple[str | int, ...]) -> str:
    return f"`{readable(pointer(*at))}`" if at else "the whole value"
