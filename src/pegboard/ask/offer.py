"""Tools as they are offered to a model: under names that every provider accepts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Final

from pegboard.models import JsonObject, McpHandler, ToolSpec
from pegboard.models.conversation import OfferedTool

LONGEST: Final = 64
"""Length of a name that every provider accepts."""

_DIGITS: Final = 6
_LONGEST_INSTRUCTIONS: Final = 4_000
"""Characters of one server's instructions."""
_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9_-]")


class Offer:
    """The tools that a model is offered, and their names for it.

    Characters that providers don't accept become `_`: `fs.read_file` is `fs_read_file`. Names that collide or are too
    long end in digits that depend only on the tool's name, so that they stay the same from turn to turn.

    Args:
        specs: The tools.
        taken: Names that no tool may get.
    """

    def __init__(self, specs: Iterable[ToolSpec], taken: Iterable[str] = ()) -> None:
        self.specs = tuple(specs)
        self._by_name: dict[str, ToolSpec] = {}
        plain = [_plain(spec.name) for spec in self.specs]
        common = Counter([*plain, *taken])
        for spec, name in zip(self.specs, plain, strict=True):
            fits = common[name] == 1 and len(name) <= LONGEST
            self._by_name[name if fits else _marked(name, spec.name)] = spec
        self._by_any = {
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
            OfferedTool(name=name, description=spec.description, parameters=_object_schema(spec))
            for name, spec in self._by_name.items()
        )

    def instructions(self, of: Callable[[str], str]) -> str:
        """Return the instructions of the offered tools' servers for a system prompt; only of servers that are trusted.

        Args:
            of: Function that returns the instructions of a server by its name; empty if it has none.
        """
        handlers = [spec.handler for spec in self.specs if isinstance(spec.handler, McpHandler)]
        servers = dict.fromkeys(handler.server for handler in handlers if handler.trusted)
        return "".join(
            f"\n\nInstructions of the MCP server {server} for its tools:\n\n{text[:_LONGEST_INSTRUCTIONS]}"
            for server in servers
            if (text := of(server))
        )

    def find(self, name: str) -> ToolSpec | None:
        """Return the tool with an offered name, or with one of its own names; None if it is unknown."""
        return self._by_any.get(name)


def _plain(name: str) -> str:
    plain = _FORBIDDEN.sub("_", name)
    return plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"


def _marked(plain: str, name: str) -> str:
    digits = sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    return f"{plain[: LONGEST - _DIGITS - 1]}_{digits}"


def _object_schema(spec: ToolSpec) -> JsonObject:
    schema = spec.input_schema
    if schema.get("type") == "object":
        return schema
    return {"type": "object", **schema}
