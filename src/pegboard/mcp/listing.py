"""The tools of a server, page by page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from mcp_types import ListToolsResult, PaginatedRequestParams, Tool
from pydantic import JsonValue

from pegboard.mcp.limits import MOST_TOOLS
from pegboard.mcp.pages import read_pages
from pegboard.mcp.watch import RAW_TOOLS, Watch, slim

if TYPE_CHECKING:
    from mcp import Client


_AT_ONCE = 500


class Listing(NamedTuple):
    """All tools of a server."""

    tools: list[JsonValue]
    """As the server sent them."""
    rejected: set[str]
    """Names of tools that the protocol forbids clients to offer."""
    latency_ms: float
    """Duration of the first request."""
    problem: str = ""
    """Why the list is incomplete; empty if it isn't."""


def _introduce(client: Client, tools: list[JsonValue]) -> set[str]:
    """Make tools known to the SDK, a few at a time; return the names of those that it rejects.

    The SDK validates a whole list in one step, which would block all threads.
    """
    rejected: set[str] = set()
    named = [tool for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
    for start in range(0, len(named), _AT_ONCE):
        slims = [slim(tool, client.protocol_version) for tool in named[start : start + _AT_ONCE]]
        made = [Tool.model_construct(name=one["name"], input_schema=one["inputSchema"]) for one in slims]
        listed = ListToolsResult.model_construct(tools=made)
        # `Client.list_tools` uses this method too. Without it, each call of an unknown tool would list all tools.
        client.session._absorb_tool_listing(listed, complete=False)  # noqa: SLF001
        rejected |= {tool.name for tool in made} - {tool.name for tool in listed.tools}
    return rejected


async def list_tools(client: Client, watch: Watch) -> Listing:
    """Return all tools of a server, or those up to the point where its list goes wrong.

    Args:
        client: The connected client.
        watch: The watch over its messages.

    Raises:
        MCPError, ValueError: The server answered with an error, or with an invalid list.
    """
    tools: list[JsonValue] = []
    rejected: set[str] = set()
    latency = 0.0
    began = asyncio.get_running_loop().time()

    async def fetch(cursor: str | None) -> ListToolsResult:
        nonlocal latency
        watch.is_raw_next = True
        result = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        latency = latency or (asyncio.get_running_loop().time() - began) * 1000
        return result

    def add(page: ListToolsResult) -> tuple[int, int]:
        raw: list[JsonValue] = (page.meta or {}).get(RAW_TOOLS, [])
        rejected.update(_introduce(client, raw))
        tools.extend(raw)
        return len(tools), sum(len(repr(tool)) for tool in raw)

    problem = await read_pages("tools", MOST_TOOLS, fetch, add)
    return Listing(tools[:MOST_TOOLS], rejected, latency, problem)
