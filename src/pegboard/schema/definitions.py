"""What the classes and aliases of one file are as schemas, each made once."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.models import JsonObject
    from pegboard.sdk.scope import Scope

Report = Callable[[str, int | None], None]
"""Takes a sentence about something that can't be resolved, and the line it is in where that isn't the annotation's."""


class Definition:
    """A class or an alias as a schema.

    Attributes:
        schema: What it takes; None for a class that has no form in JSON.
        uses: The other definitions that it refers to.
        reports: What couldn't be resolved in it, with the line.
        cost: How many parts it was made of.
        is_open: Whether it is being built.
    """

    __slots__ = ("cost", "is_open", "reports", "schema", "uses")

    def __init__(self) -> None:
        self.schema: JsonObject | None = {}
        self.uses: dict[str, None] = {}
        self.reports: list[tuple[str, int | None]] = []
        self.cost = 0
        self.is_open = True


class Definitions:
    """The classes and aliases of one file, and those it uses of helpers, as schemas: made once, when first met.

    Attributes:
        scope: The names of the file.
        found: Each definition by its key.
        choices: Each enumeration's schema; None where its values can't be known.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.found: dict[str, Definition] = {}
        self.choices: dict[ast.ClassDef, JsonObject | None] = {}
        self._plain: dict[Scope, dict[str, JsonObject]] = {}
        self._keys: dict[tuple[Scope, str], str] = {}

    def plain(self, scope: Scope) -> dict[str, JsonObject]:
        """Gives the schemas of the plain types met so far in a file, by the names they have there; to be added to."""
        return self._plain.setdefault(scope, {})

    def key(self, scope: Scope, name: str) -> str:
        """Gives what a class or an alias is called in `$defs`: its name, numbered where another file's has it.

        Args:
            scope: The names of the file that defines it.
            name: What it is called there.
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
        """Gives these definitions and all that they refer to, over any number of steps."""
        reached: dict[str, None] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached[name] = None
                waiting += self.found[name].uses
        return sorted(reached)
