"""Conversations that are kept."""

from __future__ import annotations

from datetime import datetime

from pegboard.models.conversation import Message
from pegboard.models.model import Model


class Session(Model):
    """One conversation, without what was said in it."""

    id: str
    name: str
    """What the user calls it; the beginning of the first message until then."""
    created: datetime
    """UTC, as the next one."""
    changed: datetime
    """When something was last said or changed."""
    messages: int
    """How many there are."""
    model: str = ""
    """The model that answered last, `provider:model`."""
    system: str | None = None
    """What the model is told beforehand in place of our own words."""


class SessionEntry(Model):
    """One message of a session."""

    position: int
    """From 0, without gaps."""
    at: datetime
    message: Message
    call: str | None = None
    """Of a tool's answer: the id of our call, by which the history knows it whole."""
