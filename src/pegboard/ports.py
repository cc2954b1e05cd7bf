"""The protocols between layers, so that neither side imports the other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.models import CallEvent, JsonObject, PackHandler, Problem, ToolCall, ToolResult, ToolSpec
    from pegboard.models.approval import Approval
    from pegboard.models.conversation import ModelEvent, Prompt
    from pegboard.models.server import Elicitation, ElicitationAnswer, SamplingRequest


class ToolSource(Protocol):
    """A source of tools: the packs folders, an MCP server."""

    def scan(self) -> tuple[Sequence[ToolSpec], Sequence[Problem]]:
        """Return the current tools and problems; a bad file or server raises nothing."""
        ...


class ToolRunner(Protocol):
    """Runner of calls with valid arguments."""

    def run(
        self, spec: ToolSpec, call: ToolCall, *, timeout: float, calls: Calls | None = None
    ) -> AsyncGenerator[CallEvent]:
        """Run a call; yield `Started`, `Log` and `Progress` events, then `Finished`.

        A failing tool is a result, not an exception.

        Args:
            spec: The tool.
            call: The call, with aliases resolved and valid arguments.
            timeout: Seconds from the start of the tool.
            calls: The pipeline for calls that the tool makes of other tools.
        """
        ...

    async def cancel(self, call_id: str) -> bool:
        """Cancel a running or queued call, with the detail `cancelled`; return False if none has this id."""
        ...

    async def close(self) -> None:
        """Cancel every running call and stop every process."""
        ...


class Calls(Protocol):
    """The pipeline for calls that a tool makes of other tools."""

    def call(self, call: ToolCall) -> AsyncGenerator[CallEvent]:
        """Run one call through the same pipeline as every other call; yield its events, `Finished` last."""
        ...

    def callable(self) -> Sequence[ToolSpec]:
        """Return the tools that can be called."""
        ...

    async def refreshed(self) -> Sequence[ToolSpec]:
        """Scan for tools again and return those that can be called."""
        ...

    async def changed(self, spec: ToolSpec) -> ToolResult | None:
        """Return the failed result of a call whose tool changed after it was approved; None if it may run."""
        ...


class Granted(NamedTuple):
    """Configuration and secrets of a pack for one call."""

    config: Mapping[str, object]
    """The pack's table in the configuration, as parsed from TOML."""
    secrets: Mapping[str, str | None]
    """Secrets that the pack is granted, by name; None for a missing one."""


class Grants(Protocol):
    """Lookup of the configuration and secrets of packs."""

    def known(self, handler: PackHandler) -> Granted | None:
        """Return the configuration and secrets of a pack if that takes no time; None if `look_up` is required."""
        ...

    async def look_up(self, handler: PackHandler) -> Granted:
        """Return the configuration and secrets of a pack."""
        ...

    def refuse(self, handler: PackHandler, name: str) -> None:
        """Record that a pack asked for a secret that it wasn't granted; the name is untrusted text."""
        ...

    def where(self, name: str) -> tuple[str | None, str]:
        """Return where a secret comes from, or None and why it is missing. Blocks; the value is never returned."""
        ...


class Redaction(Protocol):
    """Redaction of secrets in everything that is shown and recorded."""

    @property
    def has_any(self) -> bool:
        """Whether any secret is known."""
        ...

    async def renew(self) -> None:
        """Add secrets that were added since the last call."""
        ...

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        ...

    def value(self, value: JsonValue) -> JsonValue:
        """Return a JSON value without secrets; the same object if it contains none."""
        ...

    def unfinished(self, text: str) -> int:
        """Return the length of the suffix that could be the start of a secret."""
        ...


class Recorder(Protocol):
    """Storage of the record of calls."""

    def start(self, call: ToolCall, at: datetime, *, waits: bool = False) -> None:
        """Note that a call that was requested at `at` runs, or waits for approval; never block, never raise."""
        ...

    def record(self, call: ToolCall, result: ToolResult, at: datetime) -> None:
        """Record a finished call that was requested at `at`; write in the background, never raise."""
        ...

    def flush(self) -> None:
        """Write the queue. Blocks; never raises."""
        ...

    def keep_for_reuse(self, key: str, call_id: str) -> None:
        """Store under a key that the result of a call can be reused. Blocks; never raises."""
        ...

    def kept_for_reuse(self, key: str) -> tuple[float, ToolResult | None]:
        """Return the time of the last `keep_for_reuse`, in seconds since 1970, and the result.

        Blocks; never raises.
        """
        ...


class Approver(Protocol):
    """Decision on calls that need approval."""

    async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
        """Decide on one call; cancelled when the call no longer waits for the answer."""
        ...


class ServerQuestions(Protocol):
    """Answers to what MCP servers ask the user. Without one, every question is declined."""

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Answer a question; cancelled when the server no longer waits for the answer."""
        ...

    async def log_in(self, server: str, url: str) -> bool:
        """Show the address at which the user logs in to a server, and open it if the user agrees.

        Returns:
            Whether to wait for the user to come back from the browser.
        """
        ...

    async def approve_sampling(self, request: SamplingRequest) -> bool:
        """Return whether the configured model may answer a server's prompt; cancelled as above."""
        ...


class ClientRequests(Protocol):
    """Requests that MCP servers make during a call, passed on to the MCP client that made the call."""

    async def ask(self, call: ToolCall, requests: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
        """Pass on requests of a server; cancelled when the server no longer waits for the results.

        Args:
            call: The call during which the server asks.
            requests: `{"method": …, "params": …}` by a key of the caller.

        Returns:
            The client's result of each request; without those that it doesn't support or refuses.
        """
        ...


class Readiness(Protocol):
    """Check of a tool's requirements before a call."""

    async def missing(self, spec: ToolSpec) -> Sequence[Problem]:
        """Return the problems that keep the tool from working now; empty if it can be called."""
        ...


class Model(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """The name in the configuration: `provider:model`."""
        ...

    def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Send a prompt to the model and stream its response, `TurnEnded` last.

        Closing the iterator ends the response.

        Raises:
            ModelError: The provider failed. Events yielded before remain valid.
        """
        ...
