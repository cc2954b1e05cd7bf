"""The settings of the first frame; apart from the others, so that it needs no validator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Appearance:
    """Theme and keys of the interface; the defaults are those of the settings."""

    theme: str = "pegboard-dark"
    vim_keys: bool = False
    animations: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)
    """Command id → its keys."""
