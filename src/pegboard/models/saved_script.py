"""Saved scripts."""

from __future__ import annotations

from datetime import datetime

from pegboard.models.model import DataModel


class SavedScript(DataModel):
    """A named bash script."""

    name: str
    changed: datetime
    """When the script was last written, UTC."""
