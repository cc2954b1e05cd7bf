"""The request to run a tool."""

from __future__ import annotations

import os
import time
from typing import Literal

from pydantic import Field

from pegboard.models.model import DataModel, JsonObject

CallSource = Literal["form", "cli", "ask", "script", "mcp", "sdk"]
"""Who requested a call: a person at the form or the command line, a model, a script, an MCP client, another tool."""


OWN_ACTS: frozenset[CallSource] = frozenset({"form", "cli", "script", "sdk"})
"""Sources of calls that a person makes; all other calls come from models and other agents."""


def new_call_id() -> str:
    """Return a unique id, 32 hexadecimal digits that start with the time.

    Ids in order of time keep the index of a large history in few pages.
    """
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"


class ToolCall(DataModel):
    """One request for a tool."""

    id: str = Field(default_factory=new_call_id)
    """Unique id from Pegboard; a provider's own id is `provider_id`."""
    name: str
    args: JsonObject = Field(default_factory=dict)
    source: CallSource
    session: str | None = None
    """The chat session that the call belongs to."""
    parent: str | None = None
    """The id of the call (or script run) that made this call."""
    agent: str | None = None
    """Name of the agent or client that makes the call, as it reports it: untrusted."""
    provider_id: str | None = None
    """The id from the model's provider."""
    from_text: bool = False
    """Whether the model wrote the call into its text, where it may be a quotation. It always needs approval."""
    timeout: float | None = None
    """Timeout in seconds; takes precedence over those of the tool and the configuration."""

    @property
    def caller(self) -> Literal["user", "agent"]:
        """The origin of the call: the user, or a model or another agent."""
        return "user" if self.source in OWN_ACTS else "agent"

    def shown(self) -> JsonObject:
        """Return the call as commands print it: `{id, name, args, source}`."""
        return self.model_dump(mode="json", include={"id", "name", "args", "source"})
