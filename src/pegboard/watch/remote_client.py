"""The HTTP client of a watched server with an address."""

from __future__ import annotations

from typing import Any, Final

import httpx2

from pegboard.errors import PegboardError
from pegboard.mcp.client_variables import invalid_variable

CONNECT_SECONDS: Final = 30.0


class RemoteError(PegboardError):
    """The server can't be watched; the message says why."""


def http_client(**options: Any) -> httpx2.AsyncClient:  # noqa: ANN401 - of the library
    """Return a client that follows no redirections and waits for responses without a limit.

    Raises:
        RemoteError: A variable of the environment that clients read is invalid.
    """
    timeout = httpx2.Timeout(CONNECT_SECONDS, read=None)
    try:
        return httpx2.AsyncClient(timeout=timeout, follow_redirects=False, **options)
    except (OSError, ValueError) as error:
        reason, fix = invalid_variable() or (f"{type(error).__name__}: {error}.", "")
        raise RemoteError(f"The server can't be watched. {reason} {fix}".rstrip()) from error
