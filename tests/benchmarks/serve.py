"""Cost of being between an agent and its tools: a call of `pegboard serve` against a bare server of the MCP SDK."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

_CALLS = 50
_ROUNDS = 20
_WARM_UP = 20
_BARE = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("bare")

@server.tool()
def echo(*, value: str) -> str:
    "Return the value."
    return value

server.run()
"""
_PACK = '''
from pegboard.sdk import hints

@hints(read_only=True)
def echo(*, value: str) -> str:
    """Return the value."""
    return value
'''


def measure() -> list[tuple[str, float, float, str]]:
    """Return the figures."""
    with tempfile.TemporaryDirectory() as home:
        bare, ours = asyncio.run(_serve(Path(home)))
    return [
        (
            "serve: a call over stdio against the same function on a bare SDK server",
            ours / bare,
            1.3,
            f"median {ours * 1000:.2f} ms / {bare * 1000:.2f} ms",
        )
    ]


async def _serve(home: Path) -> tuple[float, float]:
    """Return the median seconds of a call on a bare server, and of one through `serve`."""
    (home / "bare.py").write_text(_BARE)
    (home / "packs").mkdir()
    (home / "packs" / "peer.py").write_text(_PACK)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PEGBOARD_")}
    environment |= {f"PEGBOARD_{name}_DIR": str(home / name.lower()) for name in ("DATA", "STATE", "CACHE")}
    environment["PEGBOARD_CONFIG"] = str(home / "config.toml")
    ours = ["-m", "pegboard", "serve", "--packs", str(home / "packs"), "--tool-allow", "peer.*"]
    took: dict[str, list[float]] = {"echo": [], "peer_echo": []}
    async with AsyncExitStack() as stack:
        clients = {
            "echo": await stack.enter_async_context(_client([str(home / "bare.py")], environment)),
            "peer_echo": await stack.enter_async_context(_client(ours, environment)),
        }
        for tool, client in clients.items():
            await client.list_tools()
            for _ in range(_WARM_UP):
                await client.call_tool(tool, {"value": "x"})
        for _ in range(_ROUNDS):  # in turns, because the machine's load changes
            for tool, client in clients.items():
                for _ in range(_CALLS):
                    began = time.perf_counter()
                    await client.call_tool(tool, {"value": "x"})
                    took[tool].append(time.perf_counter() - began)
    return statistics.median(took["echo"]), statistics.median(took["peer_echo"])


@asynccontextmanager
async def _client(arguments: list[str], environment: dict[str, str]) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    async with Client(stdio_client(parameters)) as client:
        yield client
