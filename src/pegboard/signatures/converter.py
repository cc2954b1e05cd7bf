"""Interface of the converter of annotations, for the modules that convert particular kinds of types."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from pegboard.models import JsonObject
    from pegboard.sdk.scope import Scope


class FieldInfo(NamedTuple):
    """Parameter of a function or field of a class.

    Attributes:
        schema: JSON Schema of its values.
        required: Whether it is required.
        alias: Name in arguments, if different; empty if it can't be read.
        written_alias: Name in results that are written by alias, if different; empty if it can't be read.
        excluded: Whether pydantic leaves it out of results; None if only of some.
    """

    schema: JsonObject
    required: bool
    alias: str | None
    written_alias: str | None = None
    excluded: bool | None = False


class Converter(Protocol):
    """Converter of annotations to schemas, implemented by `pegboard.signatures.annotations.Annotations`."""

    @property
    def scope(self) -> Scope:
        """Scope in which names are resolved."""

    @property
    def is_output(self) -> bool:
        """Whether the schemas describe results as the worker writes them, not arguments."""

    def schema(self, node: ast.expr) -> JsonObject:
        """Return the schema of an annotation."""

    def annotated(self, node: ast.expr, beside: Iterable[ast.expr | str]) -> JsonObject:
        """Return the schema of `Annotated[X, …]` without constraints."""

    def field(self, annotation: ast.expr | None, default: ast.expr | None = None, line: int | None = None) -> FieldInfo:
        """Return the schema of a field with its constraints and default."""

    def union(self, variants: Sequence[ast.expr]) -> JsonObject:
        """Return the schema of a union."""

    def tag(self, schema: JsonObject, tag: str) -> None:
        """Distinguish the variants of a union by a property."""

    def alias(self, name: str, value: ast.expr) -> JsonObject:
        """Return the schema of a type alias."""

    def defined(self, name: str, line: int, build: Callable[[], JsonObject | None]) -> JsonObject | None:
        """Return the reference to a class, which `build` converts on first use; None if it has no JSON form."""

    def inside(self, scope: Scope) -> AbstractContextManager[None]:
        """Resolve names in the scope of another file, inside the `with` block."""

    def say(self, text: str) -> None:
        """Report a problem in the current annotation."""

    def unresolved(self, node: ast.AST, why: str = ...) -> JsonObject:
        """Report a part of an annotation that can't be resolved, and return the schema that accepts any value."""
