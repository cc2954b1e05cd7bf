"""What reading a file gives, as plain data: it crosses process borders and lies in the index.

The keys of a tool are the fields of `ToolSpec`, those of a problem the fields of `Problem`, in their order.
`pegboard.discovery.specs` makes the models of them; this module and all that reads files stay free of pydantic.
"""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from pegboard.models import JsonObject


class PlainProblem(TypedDict):
    """The fields of a `Problem`."""

    message: str
    fix: str
    severity: Literal["error", "warning", "hint"]
    file: str | None
    line: int | None
    pack: str | None
    tool: str | None


class PlainHandler(TypedDict):
    """The fields of a `PackHandler`."""

    kind: Literal["pack"]
    pack: str
    function: str
    file: str
    line: int
    is_async: bool


class PlainRequirement(TypedDict):
    """The fields of a `Requirement`."""

    kind: Literal["cli", "lib", "secret"]
    name: str
    version_flag: str
    min_version: str | None
    install: str | None
    optional: bool


class PlainTool(TypedDict):
    """The fields of a `ToolSpec`."""

    name: str
    pack: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None
    handler: PlainHandler
    signature: str
    aliases: tuple[str, ...]
    parameter_aliases: dict[str, str]
    hints: dict[str, bool | float | str] | None
    requirements: list[PlainRequirement]
    problems: list[PlainProblem]


class Reading(TypedDict):
    """What one file holds."""

    pack: str
    tools: list[PlainTool]
    problems: list[PlainProblem]
    """Those that belong to no tool."""


def pack(reading: Reading) -> bytes:
    """Packs what a file holds, for the way to another process and for the index."""
    return marshal.dumps(reading)  # type: ignore[arg-type] # plain data all through, which a TypedDict can't say


def unpack(packed: bytes) -> Reading:
    """Gives back what was packed.

    Raises:
        ValueError: The bytes aren't sound.
    """
    reading: Reading = marshal.loads(packed)  # noqa: S302 - our own process's or the user's own cache's
    return reading
