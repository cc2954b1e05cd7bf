"""The protocols at which the layers meet; who stands on either side doesn't know the other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pydantic import JsonValue

from pegboard.models import CallEvent, CallRecord, PackHandler, Problem, ToolCall, ToolResult, ToolSpec

if TYPE_CHECKING:
    from pegboard.models.approval import Approval
    from pegboard.models.conversation import ModelEvent, Prompt


class ToolSource(Protocol):
    """Where tools come from: packs folders, an MCP server."""

    def scan(self) -> tuple[Sequence[ToolSpec], Sequence[Problem]]:
        """Gives the tools as they are now, and what is wrong; never raises for a file's or server's sake."""
        ...


class ToolRunner(Protocol):
    """What runs a call whose arguments have been checked."""

    def run(
        self, spec: ToolSpec, call: ToolCall, *, timeout: float, calls: Calls | None = None
    ) -> AsyncGenerator[CallEvent]:
        """Runs `call` and yields `Started`, `Log`s and `Progress`, then `Finished`; never raises for the tool's sake.

        Args:
            spec: The tool.
            call: The call, aliases resolved and arguments valid.
            timeout: Seconds from the start of the tool.
            calls: Where the calls go that the tool makes of others.
        """
        ...

    async def cancel(self, call_id: str) -> bool:
        """Ends a running or waiting call, which then finishes with the detail `cancelled`; False if there is none."""
        ...

    async def close(self) -> None:
        """Ends every running call and frees every process."""
        ...


class Calls(Protocol):
    """Where the calls go that a tool makes of others."""

    def call(self, call: ToolCall) -> AsyncGenerator[CallEvent]:
        """Takes one call down the road that all take; yields what happens, `Finished` last."""
        ...

    def callable(self) -> Sequence[ToolSpec]:
        """Gives the tools that may be called."""
        ...

    async def refreshed(self) -> Sequence[ToolSpec]:
        """Look for tools again, and return those that may be called."""
        ...


class Granted(NamedTuple):
    """What a pack may know while one call of it runs."""

    config: Mapping[str, object]
    """As TOML has it."""
    secrets: Mapping[str, str | None]
    """All that it may ask for, by name; None where one is missing."""


class Grants(Protocol):
    """Who knows what each pack may know."""

    def at_once(self, handler: PackHandler) -> Granted | None:
        """Gives what a pack may know where that takes no time; None where it must be looked up."""
        ...

    async def look_up(self, handler: PackHandler) -> Granted:
        """Gives what a pack may know."""
        ...

    def refuse(self, handler: PackHandler, name: str) -> None:
        """Learns that a pack asked for a secret that it wasn't granted; the name is untrusted text."""
        ...

    def where(self, name: str) -> tuple[str | None, str]:
        """Gives where a secret comes from; None and the reason if it is missing. Blocks; never gives the value."""
        ...


class Redaction(Protocol):
    """Who takes secrets out of what is told and recorded."""

    @property
    def has_any(self) -> bool:
        """Whether there is any secret to take out."""
        ...

    async def renew(self) -> None:
        """Looks for secrets that were added since."""
        ...

    def text(self, text: str) -> str:
        """Gives a text without secrets."""
        ...

    def value(self, value: JsonValue) -> JsonValue:
        """Gives a JSON value without secrets: itself where there are none."""
        ...

    def unfinished(self, text: str) -> int:
        """Gives how many characters at the end of a text may be the beginning of a secret."""
        ...


class Recorder(Protocol):
    """What keeps the record of calls."""

    def record(self, call: ToolCall, result: ToolResult, at: datetime) -> None:
        """Keeps a finished call, asked for at `at`; returns at once, writes in the background, never raises."""
        ...

    def records(self, *, tool: str | None = None, limit: int = 100) -> Sequence[CallRecord]:
        """Gives the newest records first."""
        ...

    def keep_for_reuse(self, key: str, call_id: str) -> None:
        """Remembers under a key that the result of a call may be used again; blocks, never raises."""
        ...

    def kept_for_reuse(self, key: str) -> tuple[float, ToolResult | None]:
        """Gives when a key was last kept, in seconds since 1970, and the result; blocks, never raises."""
        ...


class Approver(Protocol):
    """Who may be asked whether a call may run."""

    async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
        """Decides on one call; cancelled when nobody waits for the answer any more."""
        ...


class Readiness(Protocol):
    """Who knows whether a tool has what it needs."""

    async def lacking(self, spec: ToolSpec) -> Sequence[Problem]:
        """Gives what keeps the tool from working, as things are now; nothing if it can be called."""
        ...


class Model(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """Its name as the configuration has it: `provider:model`."""
        ...

    def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Says something to the model and yields its answer piece by piece, `TurnEnded` last.

        Closing it ends the answer.

        Raises:
            ModelError: The provider failed. What was yielded before stays said.
        """
        ...
