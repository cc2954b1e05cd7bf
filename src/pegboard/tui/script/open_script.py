"""State of the open script, shared by the page and the dialog of saved scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class EditedScript:
    """The script in the editor."""

    text: str
    name: str
    """Name of the saved script; empty for a new one."""
    saved: str
    """Text of the saved script when it was last read or written."""
    changed: Callable[[EditedScript], object] | None = None
    """Callback for a change of the name or the saved text, which may end after the dialog is closed."""

    def update(self, name: str, saved: str) -> None:
        """Set the name and the saved text."""
        self.name, self.saved = name, saved
        if self.changed is not None:
            self.changed(self)
