"""The MCP server of a selected tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.results.clean import clean_line
from pegboard.results.sizes import count
from pegboard.tui.state.catalogue import CatalogueRow, ToolEntry

if TYPE_CHECKING:
    from textual.app import App

    from pegboard.runtime import Runtime


def server_of(row: CatalogueRow | None) -> str:
    """Return the name of the MCP server that has the tool of a row; empty for other rows."""
    if not isinstance(row, ToolEntry):
        return ""
    from pegboard.models.spec import McpHandler  # the first frame is painted without it

    handler = row.spec.handler
    return handler.server if isinstance(handler, McpHandler) else ""


async def reconnect(app: App[None], runtime: Runtime, server: str) -> None:
    """Connect to a server again, and show whether that succeeded.

    Args:
        app: The running app.
        runtime: Runtime with the servers.
        server: Name of the server.
    """
    await runtime.servers.reconnect(server)
    status = runtime.servers.status(server)
    if status is None:
        return
    if status.state.is_usable:
        app.notify(clean_line(f"Reconnected to {server}: {count(status.tools, 'tool')}."), markup=False)
        return
    text = clean_line(f"{server} is not connected. {status.reason} {status.fix}".strip())
    app.notify(text, title="MCP server", severity="error", markup=False)
