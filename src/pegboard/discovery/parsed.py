"""Content of a parsed file as plain data, which child processes send and the index stores.

The keys are the fields of the models (`ToolSpec`, `Problem` and so on), in their order. `pegboard.discovery.specs`
builds the models. All modules that read files avoid pydantic, which is slow to import.
"""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from pegboard.models import JsonObject


class PlainProblem(TypedDict):
    """Fields of a `Problem`."""

    message: str
    fix: str
    severity: Literal["error", "warning", "hint"]
    file: str | None
    line: int | None
    pack: str | None
    tool: str | None


class PlainHandler(TypedDict):
    """Fields of a `PackHandler`."""

    kind: Literal["pack"]
    pack: str
    function: str
    file: str
    line: int
    is_async: bool
    helpers: tuple[str, ...]


class PlainRequirement(TypedDict):
    """Fields of a `Requirement`."""

    kind: Literal["cli", "lib", "secret"]
    name: str
    version_flag: str
    min_version: str | None
    install: str | None
    optional: bool


class PlainTool(TypedDict):
    """Fields of a `ToolSpec`."""

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


class ParsedFile(TypedDict):
    """Content of one file."""

    pack: str
    tools: list[PlainTool]
    problems: list[PlainProblem]
    """Problems of the file itself; those of a tool are in the tool."""


def pack(reading: ParsedFile) -> bytes:
    """Serialize the content of a file."""
    return marshal.dumps(reading)  # type: ignore[arg-type] # a TypedDict of plain data


def unpack(packed: bytes) -> ParsedFile:
    """Deserialize the content of a file.

    Raises:
        ValueError: The data is damaged.
    """
    reading: ParsedFile = marshal.loads(packed)  # noqa: S302 - from our own process or the user's own cache
    return reading
