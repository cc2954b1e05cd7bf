"""State of the interface that is kept between starts. Independent of Textual."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

from pegboard import storage

PAGES: Final = {"tools": "Tools", "chat": "Chat", "script": "Script", "health": "Health", "activity": "Activity"}
"""Title of each page by its mode."""
_LEAST, _MOST = 0.05, 0.95
"""Limits of a pane's share of the screen."""


@dataclass
class Remembered:
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
    stacked: float | None = None
    """Share of the form above the result; None if the form is as high as its fields."""
    beside: float | None = None
    """Share of the form beside the result; None for the default."""

    @classmethod
    def read(cls, file: Path) -> Remembered:
        """Return the stored state, or that of a first start if none can be read."""
        try:
            stored = json.loads(file.read_bytes())
        except (OSError, ValueError, RecursionError):
            return cls()
        if not isinstance(stored, dict) or not _is_valid(stored):
            return cls()
        found = cls(**{field.name: stored[field.name] for field in fields(cls) if field.name in stored})
        if found.page not in PAGES:
            found.page = "tools"
        return found

    def write(self, file: Path) -> None:
        """Store the state.

        Raises:
            OSError: The file can't be written.
        """
        storage.make_folder(file.parent)
        storage.write(file, json.dumps(asdict(self)).encode())


def _is_valid(stored: Mapping[str, object]) -> bool:
    shares = (stored.get("stacked"), stored.get("beside"))
    return (
        all(isinstance(stored.get(name, ""), str) for name in ("page", "tool", "query", "activity_query"))
        and isinstance(stored.get("has_run", False), bool)
        and all(share is None or (isinstance(share, int | float) and _LEAST <= share <= _MOST) for share in shares)
    )
