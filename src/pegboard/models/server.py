"""MCP servers: their configuration, their state, and the questions that they ask the user."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from pegboard.models.model import DataModel, JsonObject
from pegboard.models.problem import Problem
from pegboard.models.server_state import ServerState


class OAuthClient(DataModel):
    """Pegboard's identity for a server that doesn't let clients register themselves."""

    client_id: str | None = None
    """An identifier, or the HTTPS address of a client metadata document."""
    client_secret: str | None = Field(default=None, repr=False)
    """May contain `${SECRET}`."""
    redirect_port: int | None = None
    """Port of the loopback redirect; any free one if None."""


class ServerConfig(DataModel):
    """Configuration of one MCP server: a command to start, or a URL to connect to."""

    name: str = ""
    """The name of its pack. Empty only for a server of `--mcp` that is to be named after what it reports."""
    command: str | None = None
    """The program to start; None for a server with a URL."""
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    """Environment variables of the process; values may contain `${SECRET}`."""
    cwd: str | None = None
    """Absolute; None for Pegboard's own working directory."""
    url: str | None = None
    """The address of its streamable HTTP endpoint; None for a server with a command."""
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    """HTTP headers of every request; values may contain `${SECRET}`."""
    timeout: float = 60.0
    """Seconds that connecting, and one call without a timeout of its own, may take."""
    enabled: bool = True
    """Whether to connect."""
    tools: tuple[str, ...] | None = None
    """Patterns of the server's own tool names that are offered; None offers all, an empty tuple none."""
    trusted: bool = False
    """Whether the server's annotations, such as `readOnlyHint`, count."""
    protocol: Literal["2025-11-25"] | None = None
    """The newest protocol version to use; None for the newest of both sides."""
    roots: tuple[str, ...] | None = None
    """Absolute folders to report to the server as roots; None for the working directory."""
    oauth: OAuthClient = OAuthClient.model_construct()
    saved: bool = True
    """Whether the server is in a configuration file. Saved rules never apply to one of `--mcp`."""
    of_folder: bool = False
    """Whether the working directory's `pegboard.toml` configures it. Then only the folder's `.env` has its secrets."""
    problem: Problem | None = None
    """Why it can't be used as configured; None if it can."""


class ServerStatus(DataModel):
    """State of a server and facts about it. Texts from the server are untrusted."""

    name: str
    state: ServerState
    reason: str = ""
    """Why it isn't ready, as one sentence; empty if it is."""
    fix: str = ""
    """What to do about it."""
    stray_output: str = ""
    """Text on stdout that isn't MCP, described in one sentence; empty if the server prints none."""
    retries: bool = False
    """Whether Pegboard tries again by itself, if the server isn't connected."""
    stderr: tuple[str, ...] = ()
    """The last lines that the server's process wrote to stderr."""
    server_name: str = ""
    """The name that the server reports."""
    server_version: str = ""
    protocol: str = ""
    """The protocol version in use, such as `2026-07-28`."""
    capabilities: tuple[str, ...] = ()
    """Names of the capabilities that the server reports, such as `tools` and `resources.subscribe`."""
    instructions: str = ""
    """How to use the server, in its own words; several lines, shortened."""
    tools: int = 0
    """Number of tools that it offers."""
    tokens: int = 0
    """Estimate of the tokens that the definitions of its tools use in each turn of a model."""
    content_changes: int = 0
    """How often it has announced changes of its resources or prompts."""
    latency_ms: float | None = None
    """Round-trip time of the last ping or listing in milliseconds; None before the first."""
    has_login: bool = False
    """Whether requests carry the token of a login."""


class Elicitation(DataModel):
    """A question of a server to the user, during a call or between calls. Every text is untrusted."""

    server: str
    """Name of the server's pack."""
    message: str
    json_schema: JsonObject | None = None
    """Schema of the object to fill in (form mode); None in URL mode."""
    url: str | None = None
    """Address to visit (URL mode); None in form mode."""
    tool: str | None = None
    """Qualified name of the tool whose call asks, if known."""


ElicitationAction: TypeAlias = Literal["accept", "decline", "cancel"]
"""*decline*: the user said no; *cancel*: the user made no choice."""


class ElicitationAnswer(DataModel):
    """The user's answer to an `Elicitation`."""

    action: ElicitationAction
    content: JsonObject | None = None
    """The filled-in object, for an accepted form."""


class SamplingRequest(DataModel):
    """A server's request to the configured model, for approval. Every text is untrusted."""

    server: str
    """Name of the server's pack."""
    system: str = ""
    messages: tuple[tuple[Literal["user", "assistant"], str], ...]
    """Role and text of each message, in full."""
    max_tokens: int | None = None
    tool: str | None = None
    """Qualified name of the tool whose call asks, if known."""
