"""Schemas of the classes and aliases of a file, shared by all its functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING

from pegboard.signatures.supplied import imports_framework

if TYPE_CHECKING:
    from pegboard.models import JsonObject
    from pegboard.sdk.scope import Scope

Report = Callable[[str, int | None], None]
"""Callback for parts that can't be resolved: a sentence, and the line unless it is the annotation's."""


class Definition:
    """Schema of a class or alias.

    Attributes:
        schema: JSON Schema; None for a class without a JSON form.
        uses: Keys of the definitions that it refers to.
        reports: Sentences about parts that can't be resolved, with lines.
        cost: Number of nodes that it consists of.
        is_open: Whether it is still being built.
    """

    __slots__ = ("cost", "is_open", "reports", "schema", "uses")

    def __init__(self) -> None:
        self.schema: JsonObject | None = {}
        self.uses: dict[str, None] = {}
        self.reports: list[tuple[str, int | None]] = []
        self.cost = 0
        self.is_open = True


class Definitions:
    """Definitions of a file and of the modules of its project that it uses, each built on first use.

    Attributes:
        scope: Scope of the file.
        is_output: Whether the schemas describe results as the worker writes them, not arguments.
        found: Definitions by key.
        choices: Schemas of enumerations; None if the values are dynamic.
    """

    def __init__(self, scope: Scope, *, is_output: bool = False) -> None:
        self.scope = scope
        self.is_output = is_output
        self.found: dict[str, Definition] = {}
        self.choices: dict[ast.ClassDef, JsonObject | None] = {}
        self._plain: dict[Scope, dict[str, JsonObject]] = {}
        self._keys: dict[tuple[Scope, str], str] = {}

    @cached_property
    def outputs(self) -> Definitions:
        """Definitions of the same file for results."""
        return Definitions(self.scope, is_output=True)

    @cached_property
    def may_be_supplied(self) -> bool:
        """Whether a framework may fill in parameters of the file's functions."""
        return imports_framework(self.scope)

    def plain(self, scope: Scope) -> dict[str, JsonObject]:
        """Return the mutable cache of simple types in a file: name → schema."""
        return self._plain.setdefault(scope, {})

    def key(self, scope: Scope, name: str) -> str:
        """Return the key of a class or alias in `$defs`: its name, with a number if another file uses the name.

        Args:
            scope: Scope of the defining file.
            name: Name in that file.
        """
        if scope is self.scope:
            return name
        if (scope, name) not in self._keys:
            taken = {
                *self._keys.values(),
                *(own for own, what in self.scope.names.items() if not isinstance(what, str)),
            }
            free = (f"{name}_{number}" for number in count(2))
            self._keys[scope, name] = name if name not in taken else next(key for key in free if key not in taken)
        return self._keys[scope, name]

    def reached(self, names: Iterable[str]) -> list[str]:
        """Return the keys of these definitions and of all that they refer to, directly or indirectly."""
        reached: dict[str, None] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached[name] = None
                waiting += self.found[name].uses
        return sorted(reached)
