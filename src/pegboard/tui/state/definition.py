"""A tool's definition as a model is given it."""

from __future__ import annotations

import json

from pegboard.models import JsonObject, ToolSpec

_CHARACTERS_PER_TOKEN = 4


def definition(spec: ToolSpec) -> JsonObject:
    """Gives what a model is told of the tool: name, description and input schema."""
    return {"name": spec.name, "description": spec.description, "inputSchema": spec.input_schema}


def token_weight(spec: ToolSpec) -> int:
    """Estimates how many tokens the definition costs each time a model sees it."""
    text = json.dumps(definition(spec), ensure_ascii=False, separators=(",", ":"))
    return max(1, round(len(text) / _CHARACTERS_PER_TOKEN))
