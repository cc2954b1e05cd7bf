"""The result of the last scan, which every page shows."""

from __future__ import annotations

from dataclasses import dataclass, field

from pegboard.models import Problem
from pegboard.tui.state.catalogue import Catalogue


@dataclass(frozen=True, slots=True, eq=False)
class ToolScan:
    """Tools and problems at one moment; compared by identity, as the catalogue is."""

    catalogue: Catalogue = field(default_factory=Catalogue)
    problems: tuple[Problem, ...] = ()
    """Problems with packs, themes and settings."""
    hidden: int = 0
    """Number of tools that the allow list excludes."""
    empty: str = "Looking for tools…"
    """Text of an empty tool list."""
    scanning: bool = True
    """Whether the first scan is still running."""
