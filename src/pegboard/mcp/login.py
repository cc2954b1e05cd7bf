"""The login to an HTTP server, apart from its connection, whose time limits don't wait for a person."""

from __future__ import annotations

import asyncio

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, Implementation

from pegboard import __version__
from pegboard.mcp.authorization import LogIn, ServerAuthorization
from pegboard.mcp.failures import ERRORS, authorization_unreachable, explain
from pegboard.mcp.http import LastResponse, http_streams
from pegboard.mcp.login_storage import Learn
from pegboard.mcp.logins import Logins, is_private
from pegboard.mcp.messages import MessageLog
from pegboard.mcp.texts import quotation
from pegboard.models import Problem, ServerConfig

_TIMEOUT_SECONDS = 900.0
"""Seconds for the whole login."""


async def log_in(config: ServerConfig, logins: Logins, ask: LogIn, learn: Learn) -> Problem | None:
    """Let the user log in to a server, and store the login; return why that failed.

    Args:
        config: The server, with its secrets.
        logins: The store of logins.
        ask: Shows the user the address; returns whether to wait.
        learn: Receives each token before it is used.
    """
    if config.url is None:
        return Problem(message=f"The server {config.name} runs on this machine and needs no login.")
    if any(header.lower() == "authorization" for header in config.headers):
        fix = "Remove the header to log in with the browser."
        return Problem(message=f"The server {config.name} has an `Authorization` header.", fix=fix)
    if not is_private(config.url):
        message = f"The server {config.name} isn't encrypted, so that others could read the token of a login."
        return Problem(message=message, fix="Use an address that starts with https://.")
    authorization = ServerAuthorization(config, logins, log_in=ask, learn=learn)
    last = LastResponse()
    name, reason, fix = config.name or config.url, "", ""
    try:
        streams = http_streams(config.url, config.headers, last, MessageLog(), authorization)
        known_as = Implementation(name="pegboard", version=__version__)
        mode = "auto" if config.protocol is None else "legacy"
        async with (
            asyncio.timeout(_TIMEOUT_SECONDS),
            Client(streams, client_info=known_as, cache=None, mode=mode) as client,
        ):
            if not authorization.is_logged_in:
                await _send_request(client)
            if not authorization.is_logged_in:
                # Nothing was rejected: the server may require a login only for some tools.
                authorization.is_forced = True
                await _send_request(client)
    except TimeoutError:
        reason = f"It took more than {_TIMEOUT_SECONDS / 60:g} minutes."
    except ERRORS as error:
        unreachable = authorization_unreachable(authorization.unanswered, error)
        reason, fix = (unreachable or explain(config, error, None, last))[:2]
    if authorization.is_rejected and last.status in (401, 403):
        said = f" It said: {quotation(last.text)}." if last.text else ""
        return Problem(
            message=f"You logged in, but the server {name} rejects the new token (HTTP {last.status}).{said}",
            fix="Check whether your account has access, or report this to the server's author.",
        )
    if authorization.is_logged_in:
        return None
    if authorization.error:
        reason, fix = f"The login failed: {quotation(authorization.error)}.", authorization.error_fix
    return Problem(message=f"You are not logged in to {name}. {reason}".strip(), fix=fix)


async def _send_request(client: Client) -> None:
    """Send a request, to whose response only the authorization pays attention: the server may have no tools."""
    try:
        await client.list_tools()
    except MCPError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
