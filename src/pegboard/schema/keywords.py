"""Validator classes of `jsonschema` with modified keywords.

Differences to the library: an error about a property has the path of the property, not of the object. Patterns follow
JavaScript. Multiples are calculated in decimal. Only finite numbers are numbers. The target of a reference is checked
once per value, so that a small schema can't cause endless work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, cast

from pegboard.data.json_text import comparable, same
from pegboard.schema.formats import FORMATS, impossible_date
from pegboard.schema.patterns import occurs
from pegboard.schema.soundness import REFERENCES, is_number

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator as Engine
    from pydantic import JsonValue

    Errors: TypeAlias = Iterator[ValidationError]


_MOST_REPEATS = 1000
"""Maximum number of repeated checks of failing references, which may be exponential in the depth of the schema."""


class _Descending:
    """Methods of the engine that its protocol does not declare."""

    def descend(
        self, instance: JsonValue, schema: JsonValue, path: str | None = None, schema_path: int | None = None
    ) -> Errors:
        """Yield the errors of `instance` under `schema`."""
        raise NotImplementedError

    def is_type(self, instance: JsonValue, type: str) -> bool:  # noqa: A002 - name in the library
        """Return whether `instance` has a type."""
        raise NotImplementedError


class Walk:
    """State of validating one value.

    Args:
        target: Function that returns the target of the reference in a part of the schema.
        is_dynamic: Whether the target of a reference may depend on the path that leads to it.
    """

    def __init__(self, target: Callable[[JsonValue], JsonValue], *, is_dynamic: bool) -> None:
        self.target = target
        self.is_dynamic = is_dynamic
        self.open: set[Hashable] = set()
        """References being checked: the keyword's check, and the ids of the part of the schema and of the value."""
        self.fitting: set[Hashable] = set()
        """References checked without errors."""
        self.failing: set[Hashable] = set()
        """References checked with errors."""
        self.repeats = 0
        """Number of repeated checks of failing references, which list all errors again."""


_WALK: ContextVar[Walk] = ContextVar("walk")


@contextmanager
def walking(target: Callable[[JsonValue], JsonValue], *, is_dynamic: bool) -> Iterator[None]:
    """Share one `Walk` inside the `with` block.

    Args:
        target: Function that returns the target of the reference in a part of the schema.
        is_dynamic: Whether the target of a reference may depend on the path that leads to it.
    """
    token = _WALK.set(Walk(target, is_dynamic=is_dynamic))
    try:
        yield
    finally:
        _WALK.reset(token)


@lru_cache
def engine(name: str) -> type[Engine]:
    """Return the validator class of a dialect with the modified keywords.

    Args:
        name: Base class in `jsonschema`, such as `Draft202012Validator`.
    """
    import jsonschema

    plain: type[Engine] = getattr(jsonschema, name)
    return cast(
        "type[Engine]",
        jsonschema.validators.extend(  # type: ignore[no-untyped-call] # the stubs lack its types
            plain,
            {
                **{keyword: check for keyword, check in _OURS.items() if keyword in plain.VALIDATORS},
                **{keyword: _once(plain.VALIDATORS[keyword]) for keyword in REFERENCES if keyword in plain.VALIDATORS},
            },
            type_checker=plain.TYPE_CHECKER.redefine("number", lambda _, value: is_number(value)),
        ),
    )


def _error(message: str, *path: str) -> ValidationError:
    from jsonschema.exceptions import ValidationError

    return ValidationError(message, path=path)


def _once(follow: Callable[..., Errors]) -> Callable[..., Errors]:
    """Return a check of references that runs once per value, and not at all for a reference to itself."""

    def check(checker: Engine, reference: str, instance: JsonValue, schema: JsonValue) -> Errors:
        walk = _WALK.get()
        key = (follow, id(schema), id(instance), _scope(checker) if walk.is_dynamic else ())
        if key in walk.fitting or key in walk.open:
            return
        if key in walk.failing:
            walk.repeats += 1
            if walk.repeats > _MOST_REPEATS:
                yield _error("does not match the schema")
                return
        walk.open.add(key)
        known = walk.fitting
        try:
            for error in follow(checker, reference, instance, schema):
                known = walk.failing
                yield error
            known.add(key)
        finally:
            walk.open.discard(key)

    return check


def _scope(checker: Engine) -> tuple[str, ...]:
    """Return the base URIs of the dynamic scope (JSON Schema 2020-12, section 7.1)."""
    resolver = checker._resolver  # type: ignore[attr-defined] # noqa: SLF001 - the library's keywords read it too
    return (resolver._base_uri, *(uri for uri, _ in resolver.dynamic_scope()))  # noqa: SLF001 - as above


def _type(checker: _Descending, names: str | list[str], instance: JsonValue, _: JsonValue) -> Errors:
    if not any(checker.is_type(instance, name) for name in ([names] if isinstance(names, str) else names)):
        yield _error("is of another type")


def _any_of(checker: _Descending, variants: list[JsonValue], instance: JsonValue, _: JsonValue) -> Errors:
    fitting, errors = _first_fitting(checker, variants, instance)
    if fitting is None:
        yield _union_error(errors)


def _one_of(checker: _Descending, variants: list[JsonValue], instance: JsonValue, _: JsonValue) -> Errors:
    fitting, errors = _first_fitting(checker, variants, instance)
    if fitting is None:
        yield _union_error(errors)
    elif _first_fitting(checker, variants[fitting + 1 :], instance)[0] is not None:
        yield _error("matches more than one")


def _first_fitting(
    checker: _Descending, variants: list[JsonValue], instance: JsonValue
) -> tuple[int | None, list[ValidationError]]:
    """Return the index of the first matching variant, and the errors of those before it."""
    errors: list[ValidationError] = []
    for index, variant in enumerate(variants):
        other = _other_constant(variant, instance)
        found = (
            [_constant_error(index, *other)] if other else list(checker.descend(instance, variant, schema_path=index))
        )
        if not found:
            return index, errors
        errors += found
    return None, errors


def _other_constant(variant: JsonValue, instance: JsonValue) -> tuple[()] | tuple[str, JsonValue, JsonValue]:
    """Return a property with another constant than the value, the constant and the value; empty if none differs.

    Such a property identifies another variant, so that the rest of this one need not be checked.
    """
    target = _WALK.get().target(variant)
    node = target if isinstance(target, dict) else variant
    properties = node.get("properties") if isinstance(node, dict) else None
    if not isinstance(properties, dict) or not isinstance(instance, dict):
        return ()
    for name, schema in properties.items():
        if isinstance(schema, dict) and "const" in schema and name in instance:
            constant, value = schema["const"], instance[name]
            if _is_scalar(constant) and _is_scalar(value) and comparable(constant) != comparable(value):
                return name, constant, value
    return ()


def _is_scalar(value: JsonValue) -> bool:
    return not isinstance(value, list | dict)


def _constant_error(index: int, name: str, constant: JsonValue, value: JsonValue) -> ValidationError:
    from jsonschema.exceptions import ValidationError

    return ValidationError(
        "is another constant",
        validator="const",
        path=[name],
        schema_path=[index, "properties", name, "const"],
        validator_value=constant,
        instance=value,
        schema={"const": constant},
    )


def _union_error(errors: list[ValidationError]) -> ValidationError:
    from jsonschema.exceptions import ValidationError

    return ValidationError("matches no variant", context=errors)


def _enum(_: Engine, values: list[JsonValue], instance: JsonValue, __: JsonValue) -> Errors:
    # A string equals only itself, but in Python, 1 equals True
    if instance in values and (isinstance(instance, str) or any(same(value, instance) for value in values)):
        return
    yield _error("is not one of the listed values")


def _unique_items(_: Engine, wanted: bool, instance: JsonValue, __: JsonValue) -> Errors:
    if not wanted or not isinstance(instance, list):
        return
    if len({comparable(item) for item in instance}) < len(instance):
        yield _error("has an item twice")


def _required(_: Engine, names: list[str], instance: JsonValue, __: JsonValue) -> Errors:
    if isinstance(instance, dict):
        yield from (_error("is required", name) for name in names if name not in instance)


def _dependencies(checker: _Descending, needs: dict[str, JsonValue], instance: JsonValue, _: JsonValue) -> Errors:
    if not isinstance(instance, dict):
        return
    for name, needed in needs.items():
        if name not in instance:
            continue
        if not isinstance(needed, list):
            yield from checker.descend(instance, needed)
            continue
        for other in needed:
            if isinstance(other, str) and other not in instance:
                yield _error(f"is required if `{name}` is set", other)


def _pattern_properties(
    checker: _Descending, patterns: dict[str, JsonValue], instance: JsonValue, _: JsonValue
) -> Errors:
    if not isinstance(instance, dict):
        return
    for expression, schema in patterns.items():
        for name, value in instance.items():
            if occurs(expression, name):
                yield from checker.descend(value, schema, path=name)


def _additional_properties(
    checker: _Descending, allowed: JsonValue, instance: JsonValue, schema: dict[str, JsonValue]
) -> Errors:
    if not isinstance(instance, dict) or allowed is True:
        return
    known = schema.get("properties")
    names = list(known) if isinstance(known, dict) else []
    patterns = schema.get("patternProperties")
    expressions = list(patterns) if isinstance(patterns, dict) else []
    for name, value in instance.items():
        if name in names or any(occurs(expression, name) for expression in expressions):
            continue
        if allowed is False:
            yield _error(f"unknown argument{_nearest(name, [one for one in names if one not in instance])}", name)
        else:
            yield from checker.descend(value, allowed, path=name)


def _nearest(name: str, names: list[str]) -> str:
    close = get_close_matches(name.lower(), [one.lower() for one in names], n=1, cutoff=0.6)
    meant = next((one for one in names if close and one.lower() == close[0]), None)
    return f"; did you mean `{meant}`?" if meant is not None else ""


def _property_names(checker: _Descending, schema: JsonValue, instance: JsonValue, _: JsonValue) -> Errors:
    from pegboard.schema.sentences import faults_of

    if not isinstance(instance, dict):
        return
    for name in instance:
        for error in checker.descend(name, schema):
            for fault in faults_of(error):
                yield _error(f"the name {fault.message}", name)


def _pattern(_: Engine, expression: str, instance: JsonValue, __: JsonValue) -> Errors:
    if isinstance(instance, str) and not occurs(expression, instance):
        yield _error(f"must match the pattern {expression}")


def _format(_: Engine, name: str, instance: JsonValue, __: JsonValue) -> Errors:
    if isinstance(instance, str) and name in FORMATS:
        words, fits = FORMATS[name]
        if not fits(instance):
            why = impossible_date(name, instance)
            yield _error(f"is not a real date: {why}" if why else f"must be {words}")


def _multiple_of(_: Engine, step: float, instance: JsonValue, __: JsonValue) -> Errors:
    if isinstance(instance, bool) or not isinstance(instance, int | float) or not math.isfinite(instance):
        return
    if (_fraction(instance) / _fraction(step)).denominator != 1:
        yield _error(f"must be a multiple of {step}")


def _fraction(number: float) -> Fraction:
    # 0.3 is a multiple of 0.1 in decimal, but not in binary
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


# None of these can be left to the library. Its errors for `required`, `dependentRequired`, `additionalProperties` and
# `propertyNames` name the property only in a sentence, not in the path. Its `pattern` and `patternProperties` follow
# Python, its `multipleOf` is binary, and it checks formats only with further packages. The others are much slower in
# the library: `type` formats the whole value into each message (15 ms instead of 0.05 ms for a list of 20,000 objects),
# `uniqueItems` compares each pair of objects (1,000 ms instead of 7 ms for 1,000 objects), `enum` compares in Python
# (10 s instead of 0.5 s for 5,000 of 5,000 values), and `anyOf` and `oneOf` check variants that a constant
# already excludes (149 ms instead of 1.7 ms for four nested unions of eight variants).
_OURS: dict[str, Callable[..., Errors]] = {
    "additionalProperties": _additional_properties,
    "anyOf": _any_of,
    "dependencies": _dependencies,
    "dependentRequired": _dependencies,
    "enum": _enum,
    "format": _format,
    "multipleOf": _multiple_of,
    "oneOf": _one_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "propertyNames": _property_names,
    "required": _required,
    "type": _type,
    "uniqueItems": _unique_items,
}
"""Keyword → check. Its arguments are the engine, the keyword's value, the checked value and the whole schema."""
