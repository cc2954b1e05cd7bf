"""Tools as an MCP client sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from pegboard.data.portable_names import earlier_names, portable_names
from pegboard.models import JsonObject, McpHandler, ToolSpec

RESULT: Final = "result"
"""Key of a result that isn't an object, because the protocol allows only objects."""
_LONGEST: Final = 48
"""Length of a name; clients put up to 16 characters before it, such as `mcp__pegboard__`."""
_WRAPS: Final = "x-fastmcp-wrap-result"
"""Keyword with which clients of FastMCP take the data out of this key."""
_PAGE: Final = 500


class ServedTools:
    """The tools that are offered at one moment, by their portable names.

    The protocol also allows `.`, but many clients pass names on to a model unchanged, whose provider rejects it.

    Args:
        specs: The tools.
    """

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        names = portable_names([spec.name for spec in specs], longest=_LONGEST)
        self._specs = dict(zip(names, specs, strict=True))
        self._order = sorted(self._specs)
        self._described: dict[str, JsonObject] = {}
        self._by_any = {
            **{name: spec for spec in specs for name in earlier_names(spec.aliases, _LONGEST)},
            **{alias: spec for spec in specs for alias in spec.aliases},
            **{spec.name: spec for spec in specs},
            **self._specs,
        }

    def find(self, name: str) -> ToolSpec | None:
        """Return the tool with an offered name, also an earlier one, or with one of its own names; None if unknown."""
        return self._by_any.get(name)

    def input_schema(self, name: str) -> JsonObject | None:
        """Return the input schema of a tool as it is described, or None if there is no such tool."""
        spec = self.find(name)
        return None if spec is None else spec.object_schema

    def page(self, after: str | None) -> tuple[list[JsonObject], str | None]:
        """Return descriptions of tools, and the name after which the next page begins; None for the last page.

        Args:
            after: The name after which the page begins, whether or not the tool still exists; None for the first page.
        """
        names = self._order if after is None else [name for name in self._order if name > after]
        page = names[:_PAGE]
        return [self._description(name) for name in page], page[-1] if len(names) > _PAGE else None

    def _description(self, name: str) -> JsonObject:
        described = self._described.get(name)
        if described is None:
            described = self._described[name] = _description(name, self._specs[name])
        return described

    def is_like(self, other: ServedTools) -> bool:
        """Return whether both offer the same tools with the same descriptions."""
        return self._specs == other._specs


def output_schema(spec: ToolSpec) -> JsonObject | None:
    """Return the output schema of a tool for clients, or None; one of another type than objects gets a key."""
    schema = _with_type(spec.output_schema)
    if schema is None or schema.get("type") == "object":
        return schema
    if not wraps_result(spec):
        return None
    outer: JsonObject = {key: schema[key] for key in ("$schema", "$defs", "definitions") if key in schema}
    inner: JsonObject = {key: value for key, value in schema.items() if key not in outer}
    return {**outer, "type": "object", "properties": {RESULT: inner}, "required": [RESULT], _WRAPS: True}


def wraps_result(spec: ToolSpec) -> bool:
    """Return whether results of the tool get a key because its output schema describes data other than objects."""
    schema = _with_type(spec.output_schema)
    return schema is not None and schema.get("type") not in ("object", "null")


def _with_type(schema: JsonObject | None) -> JsonObject | None:
    """Return a schema with the keywords of the class to which it refers, if those are of objects.

    The protocol requires the type at the root of an output schema.
    """
    if schema is None or "$ref" not in schema:
        return schema
    definitions = schema.get("$defs")
    target = definitions.get(str(schema["$ref"]).removeprefix("#/$defs/")) if isinstance(definitions, dict) else None
    if not isinstance(target, dict) or target.get("type") != "object":
        return schema
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def _description(name: str, spec: ToolSpec) -> JsonObject:
    described: JsonObject = {"name": name, "description": spec.description, "inputSchema": spec.object_schema}
    if isinstance(spec.handler, McpHandler):
        described |= spec.handler.display
    schema = output_schema(spec)
    if schema is not None:
        described["outputSchema"] = schema
    annotations: dict[str, JsonValue] = dict(spec.annotations)
    if annotations:
        described["annotations"] = annotations
    return described
