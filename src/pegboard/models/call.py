"""The request for one run of a tool."""

from __future__ import annotations

import os
from typing import Literal

from pydantic import Field

from pegboard.models.model import JsonObject, Model

CallSource = Literal["form", "cli", "ask", "script", "mcp", "sdk"]
"""Who asked: a person at the form or the command line, a model, a script, an MCP client, another tool."""


OWN_ACTS: frozenset[CallSource] = frozenset({"form", "cli", "script", "sdk"})
"""Sources of calls that a person makes; all others are calls of models and other agents."""


class ToolCall(Model):
    """One request for a tool."""

    id: str = Field(default_factory=lambda: os.urandom(16).hex())
    """Ours, and unique; a provider's own id is `provider_id`."""
    name: str
    args: JsonObject = Field(default_factory=dict)
    source: CallSource
    session: str | None = None
    """The chat session it belongs to."""
    parent: str | None = None
    """The id of the call (or script run) that this one was made in."""
    provider_id: str | None = None
    """The id that the model's provider gave it."""
    from_text: bool = False
    """Whether a model wrote it into its text, where it may be a quotation; it always needs approval."""
    timeout: float | None = None
    """Seconds; wins over what the tool and the configuration say."""

    @property
    def caller(self) -> Literal["user", "agent"]:
        """Who started the call in the end: the user, or a model or another agent."""
        return "user" if self.source in OWN_ACTS else "agent"

    def shown(self) -> JsonObject:
        """The call as command lines print it: `{id, name, args, source}`."""
        return self.model_dump(mode="json", include={"id", "name", "args", "source"})
