"""What the editor and the list of saved scripts both know of the script that is in the editor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class InEditor:
    """The script that is in the editor."""

    text: str
    name: str
    """That of the saved script which it is; empty for a new one."""
    saved: str
    """The text of that one when it was last read or written."""
