"""Saved arguments."""

from __future__ import annotations

from pegboard.models.model import DataModel, JsonObject


class Preset(DataModel):
    """A named argument object of one tool."""

    tool: str
    """The qualified name of the tool."""
    name: str
    arguments: JsonObject
    """The arguments as saved; they may no longer match the tool's schema."""
