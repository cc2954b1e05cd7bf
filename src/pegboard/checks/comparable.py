"""The tools whose schemas are compared with earlier ones."""

from __future__ import annotations

import os

from pegboard import models
from pegboard.config.paths import BUILT_IN_PACKS


def is_comparable(spec: models.ToolSpec) -> bool:
    """Return whether a tool can change between two starts: built-in ones change only with Pegboard."""
    if isinstance(spec.handler, models.PackHandler):
        return not os.path.realpath(spec.handler.file).startswith(os.path.realpath(BUILT_IN_PACKS) + os.sep)
    return isinstance(spec.handler, models.McpHandler) and spec.handler.saved
