"""Requests that outlive the session of an HTTP server, such as one that was started again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from mcp.shared.exceptions import MCPError

if TYPE_CHECKING:
    from mcp import Client

_T = TypeVar("_T")


class LostSession(str):
    """Data of the error of a request that the server rejected because it doesn't know its session.

    The data that a server sends is never of this class.
    """

    __slots__ = ()


async def in_session(
    client: Client, send: Callable[[Client], Awaitable[_T]], renew: Callable[[Client], Awaitable[Client | None]]
) -> _T:
    """Send a request and return its result; if the server has forgotten the session, repeat it in a new one.

    Args:
        client: The client to send it with first.
        send: Sends the request.
        renew: Returns a client with another session than that of a client; None if there is none.
    """
    try:
        return await send(client)
    except MCPError as error:
        # Any other request may have had an effect, so it isn't repeated.
        renewed = await renew(client) if isinstance(error.data, LostSession) else None
        if renewed is None:
            raise
    return await send(renewed)
