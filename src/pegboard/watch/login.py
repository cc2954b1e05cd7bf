"""Authorization of a bridge with the login that `pegboard mcp login` stored."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.config import Paths
    from pegboard.mcp.authorization import ServerAuthorization
    from pegboard.models import ServerConfig


def authorization(url: str, headers: Mapping[str, str]) -> ServerAuthorization | None:
    """Return the authorization with the stored login to a server; None if there is none. Blocks."""
    from pegboard.config import Paths
    from pegboard.mcp.logins import Login, Logins

    if any(header.lower() == "authorization" for header in headers):
        return None
    paths = Paths.from_environment()
    logins = Logins(paths.logins)
    if not isinstance(logins.read(url), Login):
        return None
    from pegboard.mcp.authorization import ServerAuthorization

    # The SDK logs a refresh that failed; without a handler, Python prints it with what the server sent.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    return ServerAuthorization(_server(url, paths), logins)


def _server(url: str, paths: Paths) -> ServerConfig:
    """Return the server with the client that is configured for its address: a refresh needs its secret."""
    from pegboard.config import Secrets, configured_servers, load, resolve_server
    from pegboard.mcp.logins import canonical
    from pegboard.models import Problem, ServerConfig

    settings, _ = load()
    watched = ServerConfig(name="watched", url=url)
    for config in configured_servers(settings):
        if config.url is None or config.oauth.client_id is None or canonical(config.url) != canonical(url):
            continue
        resolved = resolve_server(config, Secrets(paths))
        if not isinstance(resolved, Problem):
            return watched.model_copy(update={"oauth": resolved.config.oauth})
    return watched
