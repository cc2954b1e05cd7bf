"""A server written with the MCP SDK: `python sdk_server.py [stdio|http PORT]`."""

from __future__ import annotations

import base64
import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("example/fixture", version="1.2")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def echo(message: str) -> str:
    """Return the message."""
    return message


if __name__ == "__main__":
    server.run()
