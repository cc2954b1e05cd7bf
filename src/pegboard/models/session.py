"""Saved conversations."""

from __future__ import annotations

from datetime import datetime

from pegboard.models.conversation import Message
from pegboard.models.model import DataModel


class Session(DataModel):
    """One conversation, without its messages."""

    id: str
    name: str
    """The user's name for it; until then the start of the first message."""
    created: datetime
    """Creation time, UTC."""
    changed: datetime
    """Time of the last message or change, UTC."""
    messages: int
    """Number of messages."""
    model: str = ""
    """The model that answered last, `provider:model`."""
    system: str | None = None
    """Instructions to the model that replace the default ones."""


class SessionEntry(DataModel):
    """One message of a session."""

    position: int
    """Index from 0, without gaps."""
    at: datetime
    message: Message
    call: str | None = None
    """For a tool's result: the id of the call, under which the history has the whole result."""
