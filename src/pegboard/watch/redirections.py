"""Redirections of servers with an address."""

from __future__ import annotations

from typing import Final

import httpx2

MOVES: Final = 3
"""Redirections of one message that are followed."""


def own_location(response: httpx2.Response) -> httpx2.URL | None:
    """Return the address of the same origin to which a response redirects, or None."""
    before = response.request.url
    location = response.headers.get("location")
    if not 300 <= response.status_code < 400 or location is None:
        return None
    try:
        after = before.join(location)
    except (httpx2.InvalidURL, ValueError):
        return None
    if (after.scheme, after.host, after.port) != (before.scheme, before.host, before.port):
        return None
    return after.copy_with(username=before.username, password=before.password) if before.userinfo else after


def redirected(status: int) -> str:
    """Return why a message wasn't sent to the address to which the server redirects."""
    return f"The server redirects to another address (HTTP {status}). Use that address instead."
