"""The request to run a tool."""

from __future__ import annotations

import hashlib
import os
import re
import time
from typing import Final, Literal

from pydantic import Field

from pegboard.models.agent import Agent
from pegboard.models.model import DataModel, JsonObject

CallSource = Literal["form", "cli", "ask", "script", "sdk", "serve", "watch", "otel", "batch", "check", "mcp"]
"""Who requested a call: a person (form, command line, batch, check, script), a model, an MCP client (`serve`: through
`pegboard serve`, `watch`: seen by `pegboard watch`), an agent that sends telemetry (`otel`), or a program that uses
Pegboard's Python interface (`sdk`, `mcp`). A call inside a call has the source of the outer one."""


OF_CLIENTS: frozenset[CallSource] = frozenset({"mcp", "serve", "watch"})
"""Sources of calls that MCP clients make; the scope `mcp` of rules covers them."""

OWN_ACTS: frozenset[CallSource] = frozenset({"form", "cli", "script", "sdk", "batch", "check"})
"""Sources of calls that a person makes; all other calls come from models and other agents."""


def new_call_id() -> str:
    """Return a unique id, 32 hexadecimal digits that start with the time.

    Ids in order of time keep the index of a large history in few pages.
    """
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"


FILE_STEM: Final = r"[A-Za-z0-9_-]{1,100}"
"""Pattern of `file_stem`."""


def file_stem(call_id: str) -> str:
    """Return the name, without suffix, of the files of a call: its id if that is a safe name, otherwise a hash."""
    if re.fullmatch(FILE_STEM, call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()


class ToolCall(DataModel):
    """One request for a tool."""

    id: str = Field(default_factory=new_call_id)
    """Unique id from Pegboard; a provider's own id is `provider_id`."""
    name: str
    args: JsonObject = Field(default_factory=dict)
    source: CallSource
    session: str | None = None
    """The chat session, or the connection of an MCP client, that the call belongs to."""
    parent: str | None = None
    """The id of the call (or script run) that made this call."""
    turn: str | None = Field(default=None, exclude_if=lambda turn: turn is None)
    """The id of the model turn in which the call was made; the turn's own record has its own id here."""
    agent: Agent | None = Field(default=None, exclude_if=lambda agent: agent is None)
    """The MCP client that made the call, if one did."""
    provider_id: str | None = None
    """The id from the model's provider."""
    from_text: bool = False
    """Whether the model wrote the call into its text, where it may be a quotation. It always needs approval."""
    unattended: bool = Field(default=False, exclude_if=lambda unattended: not unattended)
    """Whether no person started this call now, so that the approval rules apply; not in the JSON of other calls."""
    timeout: float | None = None
    """Timeout in seconds; takes precedence over those of the tool and the configuration."""

    @property
    def caller(self) -> Literal["user", "agent"]:
        """The origin of the call: the user, or a model, another agent or a run without a person."""
        return "user" if self.source in OWN_ACTS and not self.unattended else "agent"

    @property
    def is_turn(self) -> bool:
        """Whether this is the record of a model turn, whose calls have its id as `turn`."""
        return self.turn == self.id

    def shown(self) -> JsonObject:
        """Return the call as commands print it: `{id, name, args, source}`."""
        return self.model_dump(mode="json", include={"id", "name", "args", "source"})
