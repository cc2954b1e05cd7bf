"""The result of the last scan, which every page shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pegboard.tui.state.catalogue import Catalogue

if TYPE_CHECKING:
    from pegboard.checks.compatibility import ToolCompatibility
    from pegboard.models import Problem


@dataclass(frozen=True, slots=True, eq=False)
class ToolScan:
    """Tools and problems at one moment; compared by identity, as the catalogue is."""

    catalogue: Catalogue = field(default_factory=Catalogue)
    problems: tuple[Problem, ...] = ()
    """Problems with packs, themes and settings."""
    schema_changes: Mapping[str, ToolCompatibility] = field(default_factory=dict)
    """Changes of schemas that break callers, by the name of the tool."""
    hidden: int = 0
    """Number of tools that the allow list excludes."""
    empty: str = "Looking for tools…"
    """Text of an empty tool list."""
    scanning: bool = True
    """Whether the first scan is still running."""
