"""Authorization at MCP servers that are reached by HTTP: OAuth with the SDK's provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.client.auth.utils import (
    extract_field_from_www_auth,
    extract_scope_from_www_auth,
    is_valid_client_metadata_url,
    issuers_match,
    union_scopes,
)
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    ProtectedResourceMetadata,
)
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from pydantic import AnyUrl, BaseModel, ValidationError

from pegboard.mcp.failures import login_error
from pegboard.mcp.login_storage import Learn, LoginError, LoginStorage, parsed
from pegboard.mcp.logins import Logins, is_private
from pegboard.mcp.redirect import Redirect, with_one_query
from pegboard.mcp.texts import MORE_PERMISSIONS, quotation, said_in

if TYPE_CHECKING:
    from pegboard.models.server import ServerConfig

LogIn = Callable[[str], Awaitable[bool]]
"""Shows the user the address at which to log in; returns whether to wait for the answer."""

_TIMEOUT_SECONDS: Final = 600.0
"""Seconds that the user has to log in."""
_ANSWER_SECONDS: Final = 20.0
"""Seconds that an authorization server may be silent before it answers a request."""
_EARLY: Final = 30.0
"""Seconds before its expiry from which on an access token is refreshed."""


_REFUSALS: Final = frozenset({400, 401, 403})
"""Statuses with which an authorization server refuses to refresh a token; others don't end the login."""


class OAuthError(BaseModel):
    """Body of an error of an authorization server."""

    error: str


class ServerAuthorization(OAuthClientProvider):
    """Authorization of the requests to one server.

    Uses and refreshes the stored tokens. Without `log_in`, no request leads to a registration or a browser window:
    the server's rejection is passed on, and `needed` says that the user must log in. With `log_in`, the user logs in
    once, with the first request that the server rejects.

    Args:
        config: The server, with its secrets; it has a URL.
        logins: The store of logins.
        log_in: Asks the user to log in; None if the user must not be asked now.
        learn: Receives each token before it is used.
    """

    def __init__(
        self, config: ServerConfig, logins: Logins, *, log_in: LogIn | None = None, learn: Learn | None = None
    ) -> None:
        assert config.url is not None, "only servers with a URL need authorization"
        self._client = config.oauth
        self._name = config.name if config.saved else ""
        self._log_in = log_in
        self._redirect: Redirect | None = None
        self._issuer: str | None = None
        """Issuer in the metadata of the authorization server, as it is written there."""
        self._store = LoginStorage(
            config.url,
            logins,
            learn or (lambda _: None),
            context=lambda: self.context,
            redirect_port=lambda: self.redirect_port,
        )
        client_id = config.oauth.client_id
        is_document = is_valid_client_metadata_url(client_id)
        metadata = OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1/callback")], client_name="Pegboard")
        super().__init__(
            config.url,
            metadata,
            self._store,
            redirect_handler=self._open,
            callback_handler=self._receive,
            client_metadata_url=client_id if is_document else None,
        )
        self._own_client = None if is_document or client_id is None else client_id
        self.needed = ""
        """Why the user must log in; empty if that isn't known to be so."""
        self.not_refreshed = ""
        """Why the token can't be refreshed at present, although the login may be valid; empty if it can."""
        self.is_logged_in = False
        """Whether the user logged in with this object."""
        self.is_rejected = False
        """Whether the server rejected the first request after that login."""
        self.is_forced = False
        """Whether the user logs in with the next request, even if the server doesn't require it for that request."""
        self.error = ""
        """Why the login failed; empty if it didn't."""
        self.error_fix = ""
        """What to do about it; empty if that isn't known."""
        self.unanswered = ""
        """Address of the request to the authorization server that has no response; empty if there is none."""
        self._refreshing = AsyncExitStack()
        """The lock of the login, from when an expired token is read until it is refreshed."""

    @property
    def has_login(self) -> bool:
        """Whether there is a login, as far as it has been read."""
        return self._store.login.tokens is not None

    async def _initialize(self) -> None:
        await self._read()
        if not self.context.is_token_valid() and self.context.can_refresh_token():
            await self._refreshing.enter_async_context(self._store.refreshing())
            try:
                await self._read()  # another process may have refreshed it meanwhile
            except BaseException:
                await self._refreshing.aclose()
                raise

    async def _read(self) -> None:
        """Read the login."""
        await self._store.load()
        login, context = self._store.login, self.context
        if self._log_in is not None and not self.is_logged_in:
            login.tokens = None
        await super()._initialize()
        if context.current_tokens is not None and login.expires_at is not None:
            context.token_expiry_time = login.expires_at - _EARLY
        context.oauth_metadata = parsed(OAuthMetadata, login.authorization_server)
        context.protected_resource_metadata = parsed(ProtectedResourceMetadata, login.protected_resource)
        if context.protected_resource_metadata is not None:
            context.auth_server_url = str(context.protected_resource_metadata.authorization_servers[0])
        if self._own_client is not None:
            context.client_info = OAuthClientInformationFull(
                client_id=self._own_client,
                client_secret=self._client.client_secret,
                redirect_uris=context.client_metadata.redirect_uris,
            )
            self._choose_client_authentication()

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        logs_in = self._log_in is not None and not self.is_logged_in
        # A stream of events may send no headers before its first event, and nothing else is sent during a login.
        flow = self._log_in_once(request) if logs_in and request.method == "POST" else self._use_login(request)
        async with AsyncExitStack() as closing:
            closing.push_async_callback(flow.aclose)
            closing.push(self._keep_error)
            outgoing: httpx2.Request | None = await anext(flow)
            while outgoing is not None:
                self.unanswered = ""
                if outgoing is not request:
                    if outgoing.method == "POST":
                        _require_privacy(str(outgoing.url), "authorization server", "so nothing was sent to it")
                    self.unanswered = str(outgoing.url.copy_with(query=None))
                    # A request of a flow has no limit of its own, and others wait for the same token.
                    limit = httpx2.Timeout(_ANSWER_SECONDS).as_dict()
                    outgoing.extensions = {**outgoing.extensions, "timeout": limit}
                    outgoing.headers["Accept"] = "application/json"  # GitHub sends a form otherwise
                response = yield outgoing
                self.unanswered = ""
                outgoing = await _sent(flow, response)

    async def _use_login(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with the stored token, which is refreshed if necessary.

        The SDK's own flow holds its lock until the response, so that calls of a server would run one after another.
        """
        lock, context = self.context.lock, self.context
        async with lock:
            context.protocol_version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
            if not (self._initialized and context.is_token_valid()):
                await self._initialize()  # another process may have refreshed the token
                try:
                    if not context.is_token_valid() and context.can_refresh_token():
                        await self._handle_refresh_response((yield await self._refresh_token()))
                finally:
                    await self._refreshing.aclose()
            used = self._authorize(request) if context.is_token_valid() else ""
        response = yield request
        is_refreshed, is_last = False, True
        # The token may have been revoked before its expiry; refreshing costs no login.
        while response.status_code == 401 and not is_refreshed:
            async with lock:
                if not context.can_refresh_token():
                    break
                async with self._store.refreshing():
                    is_refreshed = not await self._has_other_token(used)
                    if is_refreshed and not (
                        context.can_refresh_token()
                        and await self._handle_refresh_response((yield await self._refresh_token()))
                    ):
                        is_last = False  # the caller gets the last response, which must be the server's
                        break
                used = self._authorize(request)
            response = yield request
        self.needed = ""
        if not _is_rejected(response):
            self.not_refreshed = ""
            return
        async with lock:
            if has_other := await self._has_other_token(used):
                self._authorize(request)
        if has_other or not is_last:
            response = yield request
        if _is_rejected(response):
            await self._note(response)

    async def _log_in_once(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request, and let the user log in if the server rejects it or if a login is forced."""
        flow = super()._auth_flow(request)
        self._redirect = None
        async with AsyncExitStack() as closing:
            closing.push_async_callback(flow.aclose)
            outgoing: httpx2.Request | None = await anext(flow)
            while outgoing is not None:
                response = yield outgoing
                if outgoing is request:
                    is_rejected = _is_rejected(response)
                    if self._redirect is not None or not (is_rejected or self.is_forced):
                        self.is_rejected = is_rejected
                        return  # a user who has just logged in is not asked again
                    if not is_rejected:
                        response = httpx2.Response(401, request=request)
                    self._redirect = await closing.enter_async_context(self._bound_redirect())
                elif response.status_code == 200 and outgoing.url.path.startswith("/.well-known/"):
                    response = await self._with_expected_issuer(response)
                outgoing = await _sent(flow, response)

    async def _with_expected_issuer(self, response: httpx2.Response) -> httpx2.Response:
        """Return the metadata of an authorization server, with its issuer as the MCP server writes it.

        Many MCP servers add a slash to an issuer without a path, and the SDK compares both as texts.
        """
        expected = self.context.auth_server_url
        try:
            found = OAuthMetadata.model_validate_json(await response.aread())
        except ValidationError:
            return response
        self._issuer = str(response.json()["issuer"])
        if expected is None or not issuers_match(str(found.issuer), expected):
            return response
        content = {**response.json(), "issuer": expected}
        return httpx2.Response(response.status_code, json=content, request=response.request)

    def _authorize(self, request: httpx2.Request) -> str:
        """Add the token to a request; return it."""
        self._add_auth_header(request)
        return self.context.current_tokens.access_token if self.context.current_tokens is not None else ""

    async def _has_other_token(self, used: str) -> bool:
        """Read the store again; return whether it has another token than this one, such as of another process."""
        await self._read()
        tokens = self.context.current_tokens
        return tokens is not None and tokens.access_token != used

    def _keep_error(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The transport replaces the error by one of its own.
        if isinstance(error, OAuthFlowError | ValidationError | httpx2.HTTPError):
            self.error = login_error(error)
            if isinstance(error, OAuthRegistrationError) and self._own_client is None:
                self.error_fix = "If it registers no clients itself, set `client_id` in " + (
                    f"`[mcp.servers.{self._name}.oauth]`." if self._name else "the `oauth` table of the server's entry."
                )

    def _bound_redirect(self) -> Redirect:
        """Bind the address that the browser returns to; if possible, the one that was registered earlier."""
        registered = self._store.login.redirect_port
        try:
            redirect = Redirect(self._client.redirect_port or registered)
        except OSError as error:
            if self._client.redirect_port is not None:
                reason = error.strerror or error
                raise LoginError(
                    f"The port {self._client.redirect_port} can't be used for the login: {reason}."
                ) from None
            redirect = Redirect()
        is_usable = registered == redirect.port and not self._store.login.is_doubtful
        if not is_usable and self._own_client is None:
            self.context.client_info = None  # it was registered for another address, or was forgotten
        self.context.client_metadata.redirect_uris = [AnyUrl(redirect.uri)]
        return redirect

    @property
    def redirect_port(self) -> int | None:
        """Port of the address that the browser returns to; None before a login."""
        return None if self._redirect is None else self._redirect.port

    async def _note(self, response: httpx2.Response) -> None:
        """Record that the user must log in, and the scope that was missing."""
        if response.status_code == 401 and self.not_refreshed:
            return  # another login would fail too, or isn't necessary
        if response.status_code == 401 and self._store.problem is not None:
            self.needed = f"The stored login can't be read: {self._store.problem}"
            return
        if response.status_code == 401:
            self.needed = "The login expired." if self._store.login.tokens else "The server requires a login."
            return
        scope = extract_scope_from_www_auth(response)
        self.needed = MORE_PERMISSIONS + (f": {quotation(scope)}." if scope else ".")
        if scope:
            granted = self.context.current_tokens
            # Most servers name only what this request needs, and the new login replaces the permissions of this one.
            await self._store.want(union_scopes(granted.scope if granted else None, scope) or scope)

    async def _perform_authorization(self) -> httpx2.Request:
        metadata = self.context.client_metadata
        metadata.scope = union_scopes(metadata.scope, self._store.login.wanted_scope)
        return await super()._perform_authorization()

    async def _exchange_token_authorization_code(self, auth_code: str, code_verifier: str) -> httpx2.Request:
        self._choose_client_authentication()
        return await super()._exchange_token_authorization_code(auth_code, code_verifier)

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        self._store.login.wanted_scope = None
        await super()._handle_token_response(response)
        self.is_logged_in = True

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        if response.status_code in {400, 401} and _error_code(await response.aread()) == "invalid_client":
            await self._store.doubt()
        is_refreshed = await super()._handle_refresh_response(response)
        if not is_refreshed and _error_code(await response.aread()) == "invalid_grant":
            await self._store.drop_refresh_token()
        self.not_refreshed = ""
        if not is_refreshed and response.is_success:  # its body may have tokens
            self.not_refreshed = "The login can't be refreshed: the authorization server sent no valid token."
        elif not is_refreshed and response.status_code not in _REFUSALS:
            said = said_in(await response.aread(), is_html="html" in response.headers.get("content-type", ""))
            self.not_refreshed = "The login can't be refreshed: the authorization server answered with HTTP" + (
                f" {response.status_code}: {quotation(said)}." if said else f" {response.status_code}."
            )
        return is_refreshed

    def _choose_client_authentication(self) -> None:
        """Send a client secret in the way that the authorization server supports.

        A configured client has no registration that says which one, and a registration may leave it out.
        """
        info, server = self.context.client_info, self.context.oauth_metadata
        if info is None or info.token_endpoint_auth_method is not None or not info.client_secret:
            return
        supported = (server.token_endpoint_auth_methods_supported if server else None) or ["client_secret_basic"]
        known = ("client_secret_basic", "client_secret_post")
        info.token_endpoint_auth_method = next((method for method in known if method in supported), known[0])

    async def _open(self, url: str) -> None:
        assert self._log_in is not None, "the flow ends before it without a user"
        assert self._redirect is not None, "as above"
        _require_privacy(url, "login page", "so it was not opened")
        # Before the user logs in, rather than when the code is to be sent.
        _require_privacy(self._get_token_endpoint(), "token endpoint", "so you can't log in")
        self._redirect.expect(url := with_one_query(url))
        if not await self._log_in(url):
            raise LoginError("The login was declined.")
        # A page about an unknown client doesn't lead back, so that no answer says that it is unknown.
        await self._store.doubt()

    async def _receive(self) -> AuthorizationCodeResult:
        assert self._redirect is not None, "as above"
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                answer = await self._redirect.answer()
        except TimeoutError:
            raise LoginError(f"The browser didn't return within {_TIMEOUT_SECONDS / 60:g} minutes.") from None
        if "error" in answer:
            said = answer.get("error_description") or answer["error"]
            raise LoginError(f"The authorization server refused the login: {said}.")
        issuer, metadata = answer.get("iss"), self.context.oauth_metadata
        if issuer is not None and metadata is not None and self._issuer is not None:
            if issuer != self._issuer:  # RFC 9207, section 2.4: without any normalization
                raise LoginError(f"The login was answered by the issuer {issuer} instead of {self._issuer}.")
            issuer = str(metadata.issuer)  # as `_with_expected_issuer` writes it
        return AuthorizationCodeResult(code=answer.get("code", ""), state=answer.get("state"), iss=issuer)


async def _sent(
    flow: AsyncGenerator[httpx2.Request, httpx2.Response], response: httpx2.Response
) -> httpx2.Request | None:
    """Pass a response to a flow and return its next request; None at its end."""
    try:
        return await flow.asend(response)
    except StopAsyncIteration:
        return None


def _require_privacy(url: str, what: str, effect: str) -> None:
    """Raise `LoginError` if others can read requests to a URL."""
    if not is_private(url):
        parts = urlsplit(url)
        raise LoginError(f"The {what} {parts.scheme}://{parts.netloc} isn't encrypted, {effect}.")


def _is_rejected(response: httpx2.Response) -> bool:
    lacks_scope = response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return response.status_code == 401 or lacks_scope


def _error_code(body: bytes) -> str:
    """Return the code of an error of the authorization server; empty if there is none."""
    try:
        return OAuthError.model_validate_json(body).error
    except ValidationError:
        return ""
