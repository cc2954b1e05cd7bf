"""Arguments that are kept under a name."""

from __future__ import annotations

from pegboard.models.model import JsonObject, Model


class Preset(Model):
    """A named argument object of one tool."""

    tool: str
    """The qualified name of the tool."""
    name: str
    arguments: JsonObject
    """As they were saved, whether or not the tool's schema still takes them."""
