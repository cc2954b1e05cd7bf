"""State of the open script, shared by the page and the dialog of saved scripts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class EditedScript:
    """The script in the editor."""

    text: str
    name: str
    """Name of the saved script; empty for a new one."""
    saved: str
    """Text of the saved script when it was last read or written."""
