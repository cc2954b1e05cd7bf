"""What a user says to a call that asks first."""

from __future__ import annotations

from typing import Literal

from pegboard.models.model import JsonObject, Model

ApprovalAnswer = Literal["once", "session", "always", "reject"]
"""This call; every call of the tool in this session; every call of the tool from now on; not at all."""


class Approval(Model):
    """The answer to one `ApprovalRequested`."""

    answer: ApprovalAnswer
    reason: str = ""
    """Why it was rejected, in the user's words; whoever made the call is told."""
    args: JsonObject | None = None
    """The arguments as the user edited them, if so; they are checked again."""
