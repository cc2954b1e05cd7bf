"""Tools as they are offered to a model: under names that every provider accepts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pegboard.ask.call_text import plain_arguments
from pegboard.data.portable_names import earlier_names, portable_names
from pegboard.models import ToolSpec
from pegboard.models.conversation import OfferedTool, ProposedCall

_PREFIX: Final = "functions."
"""Prefix that some models write before the name of a tool, as their template groups the tools under it."""


class Offer:
    """The tools that a model is offered, and their portable names for it.

    Args:
        specs: The tools.
        taken: Names that no tool may get.
    """

    def __init__(self, specs: Iterable[ToolSpec], taken: Iterable[str] = ()) -> None:
        self.specs = tuple(specs)
        self._taken = frozenset(taken)
        names = portable_names([spec.name for spec in self.specs], self._taken)
        self._by_name = dict(zip(names, self.specs, strict=True))
        earlier = {name: spec for spec in self.specs for name in earlier_names(spec.aliases)}
        self._by_any = {
            **{name: spec for name, spec in earlier.items() if name not in self._taken},
            **{alias: spec for spec in self.specs for alias in spec.aliases},
            **{spec.name: spec for spec in self.specs},
            **self._by_name,
        }

    @property
    def names(self) -> dict[str, str]:
        """The model's name of each tool → the tool's own name."""
        return {name: spec.name for name, spec in self._by_name.items()}

    def tools(self) -> tuple[OfferedTool, ...]:
        """Return the tools as they are offered."""
        return tuple(
            OfferedTool(name=name, description=spec.description, parameters=spec.object_schema)
            for name, spec in self._by_name.items()
        )

    def find(self, name: str) -> ToolSpec | None:
        """Return the tool with an offered name, also an earlier one, or with one of its own names; None if unknown."""
        return self._by_any.get(self._without_prefix(name))

    def as_meant(self, call: ProposedCall) -> ProposedCall:
        """Return a call with its name without a prefix, and only its arguments."""
        update = {"name": self._without_prefix(call.name), "arguments": plain_arguments(call.arguments)}
        return call.model_copy(update=update)

    def _without_prefix(self, name: str) -> str:
        """Return a name without the prefix `functions.`, unless a tool has that very name."""
        bare = name.removeprefix(_PREFIX)
        return bare if name not in self._by_any and (bare in self._by_any or bare in self._taken) else name
