"""A server written with the MCP SDK whose schemas change: `versioned_server.py FILE`; it has `old`, `new` or `none`."""

from __future__ import annotations

import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("shop", version="1.0")


@server.tool()
def stock(item: str) -> int:
    """Return how many items there are."""
    return len(item)


if (version := Path(sys.argv[1]).read_text()) == "new":

    @server.tool()
    def search(query: str, limit: int) -> list[str]:
        """Search the shop."""
        return [query] * limit
else:

    @server.tool(name="search")
    def search_before(query: str, limit: int = 2) -> list[str]:
        """Search the shop."""
        return [query] * limit


if version == "none":
    for name in ("stock", "search"):
        server.remove_tool(name)

server.run()
