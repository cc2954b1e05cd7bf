"""State of the interface that is kept between starts. Independent of Textual."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field, ValidationError

from pegboard import storage

PAGES: Final = ("tools", "chat", "script", "health", "activity")
"""Modes of the app that can be restored."""


class Remembered(BaseModel):
    """State of the interface at the end of the last run; the defaults are those of the first start."""

    page: str = "tools"
    """Mode of the current page."""
    tool: str = ""
    """Qualified name of the selected tool."""
    query: str = ""
    """Filter of the tool list."""
    activity_query: str = ""
    """Filter of the Activity page."""
    has_run: bool = False
    """Whether a tool was run; until then, the Tools page shows the welcome."""
    stacked: float | None = Field(default=None, ge=0.05, le=0.95)
    """Share of the form above the result; None if the form is as high as its fields."""
    beside: float | None = Field(default=None, ge=0.05, le=0.95)
    """Share of the form beside the result; None for the default."""

    @classmethod
    def read(cls, file: Path) -> Remembered:
        """Return the stored state, or that of a first start if none can be read."""
        try:
            found = cls.model_validate_json(file.read_bytes())
        except (OSError, ValidationError):
            return cls()
        if found.page not in PAGES:
            found.page = "tools"
        return found

    def write(self, file: Path) -> None:
        """Store the state.

        Raises:
            OSError: The file can't be written.
        """
        storage.make_folder(file.parent)
        storage.write(file, self.model_dump_json().encode())
