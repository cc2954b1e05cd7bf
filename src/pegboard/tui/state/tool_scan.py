"""What the last scan found, as every place of the screen is told of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pegboard.models import Problem
from pegboard.tui.state.catalogue import Catalogue


@dataclass(frozen=True, slots=True, eq=False)
class ToolScan:
    """Tools and problems at one moment; equals only itself, as the catalogue does."""

    catalogue: Catalogue = field(default_factory=Catalogue)
    problems: tuple[Problem, ...] = ()
    """All that is wrong, with packs, themes and settings."""
    hidden: int = 0
    """How many tools the allow list keeps out."""
    empty: str = "Looking for tools…"
    """What to say where there is no tool."""
    scanning: bool = True
    """Whether the first scan is still under way."""

    @property
    def errors(self) -> int:
        """How many problems hide or break something."""
        return sum(1 for problem in self.problems if problem.severity == "error")
