"""Scripts that are kept under a name."""

from __future__ import annotations

from datetime import datetime

from pegboard.models.model import Model


class SavedScript(Model):
    """A named bash script."""

    name: str
    changed: datetime
    """When it was written last, UTC."""
