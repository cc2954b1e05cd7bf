"""Validation of arguments against the schema of a tool, with `jsonschema`.

The messages, paths and some rules differ from the library's, because forms, the command line and models show the
messages to those who have to correct the arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Self, cast

from pegboard.data.pointer import pointer
from pegboard.models import Fault
from pegboard.schema.keywords import engine, walking
from pegboard.schema.quick import quick_acceptance
from pegboard.schema.sentences import faults_of
from pegboard.schema.soundness import Flaw, SchemaRepair, copied

if TYPE_CHECKING:
    from jsonschema.protocols import Validator as Engine
    from pydantic import JsonValue
    from referencing import Specification
    from referencing._core import Resolver
    from referencing.jsonschema import Schema as ReferencingSchema
    from referencing.jsonschema import SchemaRegistry

    from pegboard.models import JsonObject
    from pegboard.schema.quick import Accepts
    from pegboard.schema.soundness import Schema

_LATEST = "https://json-schema.org/draft/2020-12/schema"
_DIALECTS = {
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    _LATEST: "Draft202012Validator",
}
_TOO_DEEP = "is nested too deeply to be validated"


class Validator:
    """Validator of argument objects for one schema.

    Args:
        schema: Any JSON value. Invalid parts are ignored and reported in `flaws`.
    """

    def __init__(self, schema: JsonValue) -> None:
        dialect = _dialect(schema)
        self._repair = SchemaRepair(
            lists_are_tuples=dialect != _LATEST, old_bounds=dialect == "http://json-schema.org/draft-04/schema"
        )
        self._dialect = dialect
        self.schema: Schema = True
        """Copy of the schema without invalid parts."""
        try:
            copy = copied(schema)
            self.schema = self._repair.repair(copy, _Base.of(copy, dialect))
            self._repair.resolve()
        except RecursionError:
            self.schema = True
            self._repair.flaws.append(Flaw("", _TOO_DEEP))
        self.flaws: tuple[Flaw, ...] = tuple(self._repair.flaws)
        """Invalid parts of the schema."""

    def faults(self, value: JsonValue) -> tuple[Fault, ...]:
        """Return all validation errors of a value, in the order of the schema's properties. Never raises.

        Args:
            value: Argument object or other value to validate; not changed.
        """
        if self._accepts is not None and isinstance(value, dict) and self._accepts(value):
            return ()
        return tuple(sorted(self.faults_within(self.schema, value, ""), key=self._rank))

    def faults_within(self, node: JsonValue, value: JsonValue, path: str) -> tuple[Fault, ...]:
        """Return all validation errors of a part of the arguments. Never raises.

        Args:
            node: Schema of the part: a part of `schema`, or composed of such parts.
            value: Part of the arguments.
            path: JSON Pointer to it, a prefix of the errors' paths.
        """
        try:
            engine = self._engine.evolve(schema=node)
            with walking(self.target, is_dynamic=self._repair.is_dynamic):
                found = [fault for error in engine.iter_errors(value) for fault in faults_of(error)]
        except RecursionError:
            return (Fault(path=path, message=_TOO_DEEP),)
        except _trouble() as trouble:
            return (Fault(path=path, message=f"could not be validated because the schema is invalid ({trouble})"),)
        if not path:
            return tuple(dict.fromkeys(found))
        depth = path.count("/")
        return tuple(
            Fault(path=path + fault.path, message=fault.message, keys=tuple(at + depth for at in fault.keys))
            for fault in dict.fromkeys(found)
        )

    def fits(self, node: JsonValue, value: JsonValue) -> bool:
        """Return whether a value is valid for a part of `schema`; False if that can't be determined."""
        try:
            with walking(self.target, is_dynamic=self._repair.is_dynamic):
                return next(iter(self._engine.evolve(schema=node).iter_errors(value)), None) is None
        except RecursionError:
            return False
        except _trouble():
            return False

    def flaw(self, node: JsonValue) -> str:
        """Return the message about an invalid keyword in a part of `schema`; empty if all are valid."""
        return self._repair.flaw(node) if isinstance(node, dict) else ""

    def target(self, node: JsonValue) -> JsonValue:
        """Return the target of the `$ref` in a part of `schema`, or None.

        Args:
            node: Part of `schema` itself, not a copy.
        """
        return self._repair.target(node) if isinstance(node, dict) else None

    @cached_property
    def _accepts(self) -> Accepts | None:
        return quick_acceptance(self.schema)

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
    """Base URI of a part of a schema; implements `Base`.

    References may point to the schema itself and to the metaschemas; nothing is downloaded.

    Args:
        resolver: Function that returns the resolver of references at this part; called for the first reference.
        dialect: Dialect of the schema.
    """

    def __init__(self, resolver: Callable[[], Resolver[ReferencingSchema]], dialect: str) -> None:
        self._make = resolver
        self._dialect = dialect

    @classmethod
    def of(cls, schema: JsonValue, dialect: str) -> Self:
        """Return the base of a whole schema. The schema may change until the first reference is looked up."""
        root = schema if isinstance(schema, dict | bool) else True
        return cls(lambda: _registry().resolver_with_root(_specification(dialect).create_resource(root)), dialect)

    @cached_property
    def _resolver(self) -> Resolver[ReferencingSchema]:
        return self._make()

    def inside(self, node: JsonObject) -> Self:
        """Return the base inside a part with an `$id`.

        Raises:
            ValueError: The `$id` is not a URI.
        """
        inner = self._resolver.in_subresource(_specification(self._dialect).create_resource(node))
        return type(self)(lambda: inner, self._dialect)

    def lookup(self, reference: str) -> tuple[JsonValue, Self | None]:
        """Return the target of a reference and its base; the base is None inside a metaschema."""
        from referencing.exceptions import Unresolvable

        try:
            found = self._resolver.lookup(reference)
        except (Unresolvable, ValueError, TypeError, AttributeError) as error:
            raise LookupError(reference) from error
        contents = cast("JsonValue", found.contents)  # parts of JSON values are JSON values
        base = None if _is_in_metaschema(contents) else type(self)(lambda: found.resolver, self._dialect)
        return contents, base


class _Same:
    """Cache key of a schema by identity, because comparing contents would be slow."""

    __slots__ = ("schema",)

    def __init__(self, schema: JsonValue) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.schema is self.schema


def validator(schema: JsonValue) -> Validator:
    """Return the cached validator of a schema.

    Args:
        schema: JSON Schema or any other JSON value. Don't change it afterwards.
    """
    return _validator(_Same(schema))


@lru_cache(maxsize=512)
def _validator(key: _Same) -> Validator:
    return Validator(key.schema)


def _specification(dialect: str) -> Specification[ReferencingSchema]:
    from referencing.jsonschema import specification_with  # most schemas contain no reference

    return specification_with(dialect)


def _registry() -> SchemaRegistry:
    """Return the registry of the metaschemas."""
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
    """Return the exceptions that the engine raises for invalid schemas that the repair doesn't detect."""
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
