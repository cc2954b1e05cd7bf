"""What a language model needs before it can answer."""

from __future__ import annotations

from pegboard.models.model import Model


class ModelNeeds(Model):
    """What a model of some name needs, and what of that is there."""

    title: str
    """What its provider is called."""
    where: str = ""
    """Host and port; empty for what is built in."""
    is_local: bool = False
    """Whether it is on this machine."""
    needs_key: bool = False
    """Whether nothing can be had without a key."""
    secret: str = ""
    """The name of its key: the one that was found, else the first that is looked for; empty where none is."""
    secret_place: str | None = None
    """Where the key comes from, never the key; None if it is missing."""
    start: str = ""
    """What starts its server, where that is on this machine and known."""
    extra: str = ""
    """The extra that must be installed with Pegboard first; empty if nothing is lacking."""
