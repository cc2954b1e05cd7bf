"""Requests that outlive the session of an HTTP server, such as one that was started again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

if TYPE_CHECKING:
    from mcp import Client

_T = TypeVar("_T")


async def in_session(
    client: Client, send: Callable[[Client], Awaitable[_T]], renew: Callable[[Client], Awaitable[Client | None]]
) -> _T:
    """Send a request and return its result; if the server has forgotten the session, repeat it in a new one.

    Args:
        client: The client to send it with first.
        send: Sends the request.
        renew: Returns a client with a new session if the server has forgotten that of a client, otherwise None.
    """
    try:
        return await send(client)
    except MCPError as error:
        # A request without an answer may have had an effect, so it isn't repeated.
        renewed = None if error.code == CONNECTION_CLOSED else await renew(client)
        if renewed is None:
            raise
    return await send(renewed)
