"""Requirements of a language model."""

from __future__ import annotations

from typing import Final

from pegboard.models.model import DataModel

OFFLINE: Final = "offline"
"""Name of the built-in model, which requires nothing."""


class ModelRequirements(DataModel):
    """Requirements of a model and their status."""

    title: str
    """The provider's display name."""
    where: str = ""
    """Host and port; empty for a built-in model."""
    is_local: bool = False
    """Whether the server is on this machine."""
    needs_key: bool = False
    """Whether every request needs a key."""
    secret: str = ""
    """The name of the key: the one that was found, else the first that is looked up; empty if none is used."""
    secret_place: str | None = None
    """Where the key comes from (never its value); None if it is missing."""
    start: str = ""
    """The command that starts the server, if it is on this machine and known."""
    extra: str = ""
    """The extra to install with Pegboard first; empty if it is installed."""
    install: str = ""
    """The command that installs the extra."""
