"""State of an MCP server as text: signs, styles and lines. Texts of servers are cleaned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from pegboard.models import ServerState
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count

if TYPE_CHECKING:
    from pegboard.models import ServerStatus

SERVER_SIGNS = {
    ServerState.CONNECTING: "…",
    ServerState.READY: "●",
    ServerState.DEGRADED: "◐",
    ServerState.FAILED: "✖",
    ServerState.NEEDS_LOGIN: "?",
    ServerState.DISABLED: "◌",
}
"""Symbol of each state; the name of the state is always next to it."""

SERVER_STYLES = {
    ServerState.CONNECTING: "$text-muted",
    ServerState.READY: "$text-success",
    ServerState.DEGRADED: "$text-warning bold",
    ServerState.FAILED: "$text-error bold",
    ServerState.NEEDS_LOGIN: "$text-warning bold",
    ServerState.DISABLED: "$text-muted",
}
_LABEL = 13
_STDERR_LINES = 10


def server_label(server: ServerStatus) -> str:
    """Return the name of a server's pack; one of `--mcp` has none until it is connected."""
    return clean_line(server.name) or "(server of --mcp)"


def server_state(server: ServerStatus) -> Content:
    """Return the sign and the name of a server's state."""
    return Content.styled(f"{SERVER_SIGNS[server.state]} {server.state}", SERVER_STYLES[server.state])


def server_lines(server: ServerStatus) -> list[Content]:
    """Return all that is known about a server: state, reason, fix, facts and the last lines of stderr."""
    facts = [server_state(server)]
    if server.state is ServerState.FAILED:
        facts.append(Content("Pegboard tries again" if server.retries else "Pegboard has stopped trying"))
    if server.tools or server.protocol:
        facts.append(Content(f"{count(server.tools, 'tool')}, ≈ {count(server.tokens, 'token')}"))
    if server.latency_ms is not None:
        facts.append(Content(f"{server.latency_ms:.0f} ms"))
    lines = [Content.styled(" · ", "$text-disabled").join(facts)]
    lines += [Content(clean(text)) for text in (server.reason, _fix(server)) if text]
    known = f"{server.server_name} {server.server_version}".strip()
    lines += [
        Content.assemble((f"{label:<{_LABEL}}", "$text-muted"), clean_line(text))
        for label, text in (
            ("Server", known),
            ("Protocol", server.protocol),
            ("Capabilities", ", ".join(server.capabilities)),
        )
        if text
    ]
    if server.stderr:
        lines.append(Content.styled("Last lines on stderr", "$text-muted"))
        lines += [Content.styled(f"│ {clean_line(line)}", "$text-muted") for line in server.stderr[-_STDERR_LINES:]]
    return lines


def instruction_lines(server: ServerStatus) -> list[Content]:
    """Return the instructions of a server under a heading; nothing if it has none."""
    if not server.instructions:
        return []
    lines = [Content(line) for line in clean(server.instructions).split("\n")]
    return [Content.styled("Instructions of the server for models", "$text-muted"), *lines]


def _fix(server: ServerStatus) -> str:
    if server.state is ServerState.DISABLED and not server.fix:
        return f"Remove `enabled = false` from `[mcp.servers.{server.name}]`."
    return server.fix
