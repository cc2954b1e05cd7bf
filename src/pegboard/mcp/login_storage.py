"""Storage of the login to one server, for the SDK's provider."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.client.auth import OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import BaseModel, ValidationError

from pegboard.mcp.logins import Login, Logins
from pegboard.mcp.refresh_lock import refreshing
from pegboard.models import Problem

Learn = Callable[[dict[str, str]], object]
"""Receives secrets to redact, by name."""


class LoginError(OAuthFlowError):
    """The user isn't logged in; the message is a sentence."""


class LoginStorage:
    """Storage of one login, as the SDK's provider expects it, with what it needs after a restart.

    Args:
        url: The server.
        logins: All logins.
        learn: Receives secrets.
        context: Returns what the provider has discovered.
        redirect_port: Returns the port of the address that the browser returns to; None before a login.
    """

    def __init__(
        self,
        url: str,
        logins: Logins,
        learn: Learn,
        *,
        context: Callable[[], OAuthContext],
        redirect_port: Callable[[], int | None],
    ) -> None:
        self._logins = logins
        self._learn = learn
        self._context = context
        self._redirect_port = redirect_port
        self.login = Login(url=url)
        self.problem: Problem | None = None
        """Why the login can't be read; None if it can."""

    async def load(self) -> None:
        """Read the login; keep the last one if it can't be read."""
        found = await asyncio.to_thread(self._logins.read, self.login.url)
        self.problem = found if isinstance(found, Problem) else None
        if isinstance(found, Login):
            self._learn(dict(found.secrets()))
            self.login = found
        elif found is None:  # the user may have logged out with another process
            self.login = Login(url=self.login.url)

    def refreshing(self) -> AbstractAsyncContextManager[None]:
        """Hold the lock of the login against other processes."""
        return refreshing(self._logins.lock_file(self.login.url))

    async def want(self, scope: str) -> None:
        """Ask for a scope at the next login."""
        self.login.wanted_scope = union_scopes(self.login.wanted_scope, scope)
        await self._write(self.login)

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens; see `mcp.client.auth.TokenStorage`."""
        tokens: OAuthToken | None = parsed(OAuthToken, self.login.tokens)
        return tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store new tokens with what refreshing them needs."""
        context = self._context()
        self.login.tokens = tokens.model_dump(mode="json", exclude_none=True)
        self.login.expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        self.login.authorization_server = _dumped(context.oauth_metadata)
        self.login.protected_resource = _dumped(context.protected_resource_metadata)
        self.login.is_doubtful = False
        await self._write(self.login)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registration of this client."""
        client: OAuthClientInformationFull | None = parsed(OAuthClientInformationFull, self.login.client)
        return client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep a registration, which is written with the tokens; until then, an earlier login stays."""
        self.login.client = _dumped(client_info)
        self.login.redirect_port = self._redirect_port()
        self._learn(dict(self.login.secrets()))

    async def doubt(self) -> None:
        """Register again at the next login, unless this one succeeds."""
        found = await asyncio.to_thread(self._logins.read, self.login.url)
        if isinstance(found, Login):
            await self._write(found.model_copy(update={"is_doubtful": True}))

    async def drop_refresh_token(self) -> None:
        """Forget a refused refresh token; some servers end all logins of the user if it is used again."""
        found = await asyncio.to_thread(self._logins.read, self.login.url)
        if isinstance(found, Login) and found.tokens and found.tokens == self.login.tokens:
            found.tokens.pop("refresh_token", None)
            await self._write(found)

    async def _write(self, login: Login) -> None:
        self._learn(dict(login.secrets()))
        problem = await asyncio.to_thread(self._logins.write, login)
        if problem is not None:
            raise LoginError(str(problem))


def parsed(model: type[Any], value: object) -> Any:  # noqa: ANN401 - an SDK model or None
    """Return stored data as a model of the SDK; None if it is missing or invalid."""
    if value is None:
        return None
    try:
        return model.model_validate(value)
    except ValidationError:
        return None


def _dumped(model: BaseModel | None) -> dict[str, Any] | None:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)
