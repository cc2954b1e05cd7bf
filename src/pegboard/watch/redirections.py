"""Addresses of a watched server, and its redirections."""

from __future__ import annotations

from typing import Final

import httpx2

MOVES: Final = 3
"""Redirections of one message that are followed."""


def own_address(base: str, path: str, query: str) -> httpx2.URL | None:
    """Return the address of a path of a server; None if it is invalid or no path, such as `@other.example/`.

    Args:
        base: Scheme, user and host of the server.
        path: The target of a client's request without its query.
        query: The query.
    """
    try:
        root, address = httpx2.URL(f"{base}/"), httpx2.URL(base + path + (f"?{query}" if query else ""))
    except httpx2.InvalidURL:
        return None
    is_own = (address.scheme, address.netloc, address.userinfo) == (root.scheme, root.netloc, root.userinfo)
    return address if is_own and path.startswith("/") else None


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
