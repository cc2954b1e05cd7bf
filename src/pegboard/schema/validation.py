"""Checks argument objects against the schema of a tool, and says what is wrong in plain sentences.

The library is `jsonschema`; the sentences, the paths and a few rules are ours, because forms, command line and models
all show them to somebody who has to mend the arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Self, cast

from pydantic import JsonValue

from pegboard.data.pointer import pointer
from pegboard.models import Fault, JsonObject
from pegboard.schema.keywords import engine, walking
from pegboard.schema.sentences import told
from pegboard.schema.soundness import Flaw, Mender, Schema, copied

if TYPE_CHECKING:
    from jsonschema.protocols import Validator as Engine
    from referencing import Specification
    from referencing._core import Resolver
    from referencing.jsonschema import Schema as ReferencingSchema
    from referencing.jsonschema import SchemaRegistry

_LATEST = "https://json-schema.org/draft/2020-12/schema"
_DIALECTS = {
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    _LATEST: "Draft202012Validator",
}
_TOO_DEEP = "is nested too deeply to be checked"


class Validator:
    """What checks argument objects against one schema.

    Args:
        schema: Any JSON value at all; what can't be used of it is left out and told in `flaws`.
    """

    def __init__(self, schema: JsonValue) -> None:
        dialect = _dialect(schema)
        self._mender = Mender(
            lists_are_tuples=dialect != _LATEST, old_bounds=dialect == "http://json-schema.org/draft-04/schema"
        )
        self._dialect = dialect
        self.schema: Schema = True
        """The schema as it is checked against: a copy without what is flawed."""
        try:
            copy = copied(schema)
            self.schema = self._mender.mend(copy, _Base.of(copy, dialect))
            self._mender.resolve()
        except RecursionError:
            self.schema = True
            self._mender.flaws.append(Flaw("", _TOO_DEEP))
        self.flaws: tuple[Flaw, ...] = tuple(self._mender.flaws)
        """What could not be used of the schema given."""

    def faults(self, arguments: JsonObject) -> tuple[Fault, ...]:
        """Finds everything that is wrong with an argument object.

        Args:
            arguments: The object; it is not changed.

        Returns:
            All faults, in the order of the schema's properties; none if the object is valid. Never raises.
        """
        return tuple(sorted(self.faults_within(self.schema, arguments, ""), key=self._rank))

    def faults_within(self, node: JsonValue, value: JsonValue, path: str) -> tuple[Fault, ...]:
        """Finds everything that is wrong with a part of the arguments.

        Args:
            node: The schema it is checked against: a part of `schema`, or made of such parts.
            value: The part.
            path: The JSON Pointer that leads to it.

        Returns:
            All faults, with paths into the whole. Never raises.
        """
        try:
            engine = self._engine.evolve(schema=node)
            with walking(self.target, is_dynamic=self._mender.is_dynamic):
                found = [fault for error in engine.iter_errors(value) for fault in told(error)]
        except RecursionError:
            return (Fault(path=path, message=_TOO_DEEP),)
        except _trouble() as trouble:
            return (Fault(path=path, message=f"can't be checked: the schema is broken ({trouble})"),)
        return tuple(Fault(path=path + fault.path, message=fault.message) for fault in dict.fromkeys(found))

    def fits(self, node: JsonValue, value: JsonValue) -> bool:
        """Whether a value is valid against a part of `schema`; not if it can't be checked."""
        try:
            with walking(self.target, is_dynamic=self._mender.is_dynamic):
                return next(iter(self._engine.evolve(schema=node).iter_errors(value)), None) is None
        except RecursionError:
            return False
        except _trouble():
            return False

    def flaw(self, node: JsonValue) -> str:
        """Says what could not be used of a part of `schema`; empty where all of it can."""
        return self._mender.flaw(node) if isinstance(node, dict) else ""

    def target(self, node: JsonValue) -> JsonValue:
        """Gives what a part of `schema` refers to by its `$ref`; None where it refers to nothing.

        Args:
            node: A part of `schema` itself, not a copy of one.
        """
        return self._mender.target(node) if isinstance(node, dict) else None

    @cached_property
    def _engine(self) -> Engine:
        return engine(_DIALECTS[self._dialect])(self.schema, registry=_registry())

    @cached_property
    def _order(self) -> dict[str, int]:
        properties = self.schema.get("properties") if isinstance(self.schema, dict) else None
        return {pointer(name): rank for rank, name in enumerate(properties)} if isinstance(properties, dict) else {}

    def _rank(self, fault: Fault) -> int:
        end = fault.path.find("/", 1)
        return self._order.get(fault.path if end < 0 else fault.path[:end], len(self._order))


class _Base:
    """The base URI of a part of a schema. A `Base`.

    References lead into the schema itself or into the metaschemas; nothing is fetched.

    Args:
        resolver: Returns what resolves references at this part; it is not called before the first reference.
        specification: The dialect.
    """

    def __init__(
        self, resolver: Callable[[], Resolver[ReferencingSchema]], specification: Specification[ReferencingSchema]
    ) -> None:
        self._make = resolver
        self._specification = specification

    @classmethod
    def of(cls, schema: JsonValue, dialect: str) -> Self:
        """Return the base of a whole schema, which may still be mended until the first reference is looked up."""
        from referencing.jsonschema import specification_with

        specification = specification_with(dialect)
        root = schema if isinstance(schema, dict | bool) else True
        return cls(lambda: _registry().resolver_with_root(specification.create_resource(root)), specification)

    @cached_property
    def _resolver(self) -> Resolver[ReferencingSchema]:
        return self._make()

    def inside(self, node: JsonObject) -> Self:
        """Return the base inside a part with an `$id`.

        Raises:
            ValueError: The `$id` is not a URI.
        """
        inner = self._resolver.in_subresource(self._specification.create_resource(node))
        return type(self)(lambda: inner, self._specification)

    def lookup(self, reference: str) -> tuple[JsonValue, Self | None]:
        """Return what a reference leads to, and its base unless it is in a metaschema."""
        from referencing.exceptions import Unresolvable

        try:
            found = self._resolver.lookup(reference)
        except (Unresolvable, ValueError, TypeError, AttributeError) as error:
            raise LookupError(reference) from error
        contents = cast("JsonValue", found.contents)  # a part of a JSON value is one
        base = None if _is_in_metaschema(contents) else type(self)(lambda: found.resolver, self._specification)
        return contents, base


class _Same:
    """A schema as a key: equal to itself only, because comparing contents would cost more than it saves."""

    __slots__ = ("schema",)

    def __init__(self, schema: JsonValue) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.schema is self.schema


def validator(schema: JsonValue) -> Validator:
    """Gives the validator of a schema, the same one for the same object.

    Args:
        schema: A JSON Schema, or any JSON value in the place of one; not to be changed afterwards.
    """
    return _validator(_Same(schema))


@lru_cache(maxsize=512)
def _validator(key: _Same) -> Validator:
    return Validator(key.schema)


def _registry() -> SchemaRegistry:
    """Return the registry that has the metaschemas and nothing else."""
    from jsonschema_specifications import REGISTRY

    return cast("SchemaRegistry", REGISTRY)


@lru_cache(maxsize=1)
def _parts_of_metaschemas() -> frozenset[int]:
    parts = set[int]()
    left: list[object] = [_registry().contents(uri) for uri in _registry()]
    while left:
        part = left.pop()
        if isinstance(part, dict | list):
            parts.add(id(part))
            left += part.values() if isinstance(part, dict) else part
    return frozenset(parts)


def _is_in_metaschema(value: JsonValue) -> bool:
    return id(value) in _parts_of_metaschemas()


def _dialect(schema: JsonValue) -> str:
    named = schema.get("$schema") if isinstance(schema, dict) else None
    uri = named.rstrip("#") if isinstance(named, str) else _LATEST
    return uri if uri in _DIALECTS else _LATEST


def _trouble() -> tuple[type[Exception], ...]:
    """What the engine raises over schemas that are broken in ways that mending doesn't see."""
    import re

    from jsonschema.exceptions import UndefinedTypeCheck, UnknownType
    from referencing.exceptions import Unresolvable

    return (
        Unresolvable,
        UndefinedTypeCheck,
        UnknownType,
        re.error,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    )
