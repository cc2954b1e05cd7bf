"""States of MCP servers; apart from the other models, because the tool list needs them before it needs pydantic."""

from __future__ import annotations

from enum import StrEnum


class ServerState(StrEnum):
    """State of the connection to a server."""

    CONNECTING = "connecting"
    READY = "ready"
    DEGRADED = "degraded"
    """Connected, but with a problem, such as a tool that can't be offered."""
    FAILED = "failed"
    NEEDS_LOGIN = "needs login"
    DISABLED = "disabled"

    @property
    def is_usable(self) -> bool:
        """Whether tools of the server can be called."""
        return self in (ServerState.READY, ServerState.DEGRADED)
