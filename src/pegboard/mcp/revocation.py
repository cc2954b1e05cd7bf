"""Revocation of the tokens of a login (RFC 7009)."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import httpx2
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata
from pydantic import ValidationError

from pegboard.mcp.logins import Login, is_private
from pegboard.mcp.texts import quotation

_SECONDS: Final = 10.0


async def revoke(login: Login, client_id: str | None = None, client_secret: str | None = None) -> str:
    """Ask the authorization server to revoke the tokens of a login.

    Args:
        login: The login.
        client_id: The client of the configuration, which is not part of the login.
        client_secret: Its secret.

    Returns:
        Why the tokens may stay valid; empty if they were revoked or if there are none.
    """
    tokens = login.tokens or {}
    kinds = [kind for kind in ("refresh_token", "access_token") if isinstance(tokens.get(kind), str)]
    if not kinds:
        return ""
    try:
        server = OAuthMetadata.model_validate(login.authorization_server or {})
        client = None if login.client is None else OAuthClientInformationFull.model_validate(login.client)
    except ValidationError:
        return "The authorization server is no longer known."
    if server.revocation_endpoint is None:
        return "The authorization server can't revoke tokens."
    url = str(server.revocation_endpoint)
    if not is_private(url):
        return "The authorization server's revocation endpoint doesn't use HTTPS."
    client_id = client_id or (client.client_id if client else None) or ""
    client_secret = client_secret or (client.client_secret if client else None)
    methods = server.revocation_endpoint_auth_methods_supported or server.token_endpoint_auth_methods_supported
    registered = client.token_endpoint_auth_method if client else None
    in_body = registered == "client_secret_post" or (
        registered is None and "client_secret_basic" not in (methods or ["client_secret_basic"])
    )
    auth: httpx2.BasicAuth | None = None
    form = {"client_id": client_id}
    if client_secret and in_body:
        form["client_secret"] = client_secret
    elif client_secret:
        auth, form = httpx2.BasicAuth(quote(client_id, safe=""), quote(client_secret, safe="")), {}
    refused: list[str] = []
    try:
        async with httpx2.AsyncClient(auth=auth, timeout=_SECONDS) as http:
            for kind in kinds:
                sent = {"token": str(tokens[kind]), "token_type_hint": kind, **form}
                response = await http.post(url, data=sent)
                if response.status_code != 200:
                    refused.append(f"{kind.replace('_', ' ')} (HTTP {response.status_code})")
                if response.status_code >= 500:  # it would refuse the next one, too
                    break
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:  # also of variables for proxies and TLS
        return f"The authorization server can't be reached: {quotation(str(error) or type(error).__name__)}."
    return f"The authorization server didn't revoke the {' and the '.join(refused)}." if refused else ""
