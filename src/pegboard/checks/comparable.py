"""The tools whose schemas are compared with earlier ones."""

from __future__ import annotations

from pegboard import models
from pegboard.built_in import is_built_in


def is_comparable(spec: models.ToolSpec) -> bool:
    """Return whether a tool can change between two starts: built-in ones change only with Pegboard."""
    if isinstance(spec.handler, models.PackHandler):
        return not is_built_in(spec.handler.file)
    return isinstance(spec.handler, models.McpHandler) and spec.handler.saved
