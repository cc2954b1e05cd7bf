"""A tool's definition as models receive it, and its size."""

from __future__ import annotations

import json

from pegboard.models import JsonObject, ToolSpec
from pegboard.results.sizes import tokens


def definition(spec: ToolSpec) -> JsonObject:
    """Return the definition that models receive: name, description and input schema."""
    return {"name": spec.name, "description": spec.description, "inputSchema": spec.input_schema}


def token_weight(spec: ToolSpec) -> int:
    """Return an estimate of the tokens that the definition uses in each model turn."""
    text = json.dumps(definition(spec), ensure_ascii=False, separators=(",", ":"))
    return tokens(len(text))
