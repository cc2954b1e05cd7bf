"""Descriptions of parameters in the description of a tool."""

from __future__ import annotations

from typing import Final

from pegboard.models import JsonObject
from pegboard.signatures.docstrings import Docstring, read

_CONTEXT: Final = {"ctx", "context", "self"}
"""Parameters in docstrings of servers that callers never see."""


def documented(schema: JsonObject, description: str) -> JsonObject:
    """Return a schema in which parameters without a description have that of the tool's description.

    Many MCP servers send a whole docstring as the description of a tool, and a schema without descriptions.

    Args:
        schema: The tool's input schema; it isn't changed.
        description: The tool's description.
    """
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    known = _read(description).parameters
    added = {
        name: {**part, "description": known[name]}
        for name, part in properties.items()
        if known.get(name) and isinstance(part, dict) and not part.get("description")
    }
    return {**schema, "properties": {**properties, **added}} if added else schema


def description_beside_form(schema: JsonObject, description: str) -> str:
    """Return a description without the parameters that the form of a `documented` schema describes.

    Args:
        schema: The tool's input schema.
        description: The tool's description.
    """
    properties = schema.get("properties")
    found = _read(description)
    names = set(found.parameters) - _CONTEXT
    if not names or not isinstance(properties, dict) or not names <= set(properties):
        return description
    returns = f"Returns: {found.returns}" if found.returns else ""
    return "\n\n".join(filter(None, [found.description, returns]))


def _read(description: str) -> Docstring:
    return read(description) if ":" in description else Docstring(description, {}, "")
