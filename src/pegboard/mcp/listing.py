"""The tools of a server, page by page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from mcp_types import PaginatedRequestParams
from pydantic import JsonValue

from pegboard.mcp.limits import MOST_PAGES, MOST_TOOLS
from pegboard.mcp.watch import RAW_TOOLS

if TYPE_CHECKING:
    from mcp import Client


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


async def list_tools(client: Client) -> Listing:
    """Return all tools of a server, or those up to the point where its list goes wrong.

    Raises:
        MCPError, ValueError: The server answered with an error, or with an invalid list.
    """
    tools: list[JsonValue] = []
    rejected: set[str] = set()
    cursors: set[str] = set()
    cursor: str | None = None
    problem, latency = "", 0.0
    began = asyncio.get_running_loop().time()
    for page in range(MOST_PAGES):
        params = PaginatedRequestParams(cursor=cursor) if cursor else None
        result = await client.session.list_tools(params=params)
        if page == 0:
            latency = (asyncio.get_running_loop().time() - began) * 1000
        raw: list[JsonValue] = (result.meta or {}).get(RAW_TOOLS, [])
        offered = {tool.name for tool in result.tools}
        rejected |= {
            name for tool in raw if isinstance(tool, dict) and isinstance(name := tool.get("name"), str)
        } - offered
        tools += raw
        cursor = result.next_cursor
        if not cursor:
            break
        if cursor in cursors:
            problem = "The server repeats a page of its list of tools, so Pegboard stopped reading it"
            break
        if len(tools) > MOST_TOOLS:
            problem = f"The server lists more than {MOST_TOOLS:,} tools, so Pegboard stopped reading"
            break
        cursors.add(cursor)
    else:
        problem = f"The list of tools has more than {MOST_PAGES:,} pages, so Pegboard stopped reading it"
    return Listing(tools[:MOST_TOOLS], rejected, latency, problem and f"{problem} after {len(tools):,} tools.")
