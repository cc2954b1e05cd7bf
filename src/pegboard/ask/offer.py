"""Tools as a model sees them: under names that every provider takes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from pegboard.models import JsonObject, ToolSpec
from pegboard.models.conversation import OfferedTool

LONGEST: Final = 64
"""Characters of a name that every provider takes."""

_DIGITS: Final = 6
_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9_-]")


class Offer:
    """The tools that a model is offered in one ask, and their names there.

    A name is the tool's own with `_` for what providers don't take: `fs.read_file` is `fs_read_file`. Where two would
    be the same, or one too long, it ends in digits that depend on the tool's name alone, so that it stays what it was.

    Args:
        specs: The tools.
        taken: Names that none of them may have.
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
        """The tools' own names by those that the model has for them."""
        return {name: spec.name for name, spec in self._by_name.items()}

    def tools(self) -> tuple[OfferedTool, ...]:
        """Gives the tools as they are offered."""
        return tuple(
            OfferedTool(name=name, description=spec.description, parameters=_object_schema(spec))
            for name, spec in self._by_name.items()
        )

    def find(self, name: str) -> ToolSpec | None:
        """Gives the tool that a model means by a name: the offered one, or one of the tool's own."""
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
