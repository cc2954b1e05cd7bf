"""The HTTP transport, behind checks of Host, Origin and a token.

A page in a browser could reach a server on this machine. Every request needs the right Host and, if a page sent it, the
right Origin; only then is the token compared. Nothing of a request is read before.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import PlainTextResponse

from pegboard.config.loopback import is_loopback
from pegboard.errors import PegboardError
from pegboard.serve.service import DISCONNECTED
from pegboard.serve.stdio import LONGEST_MESSAGE

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from pegboard.serve.service import Service
    from pegboard.serve.token import Token

PATH: Final = "/mcp"
_MOST_SESSIONS: Final = 1_000
_MOST_CONNECTIONS: Final = 1_000
_END_SECONDS: Final = 1
_WILDCARDS: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - they are rejected


class AddressError(PegboardError):
    """The address can't be used; the message names it, and says what to do."""


class Address:
    """A bound address.

    Args:
        host: The host name or address that clients use.
        port: The port, or 0 for a free one.

    Raises:
        AddressError: The address can't be used.
    """

    def __init__(self, host: str, port: int) -> None:
        if host in _WILDCARDS:
            raise AddressError(
                f"--host {host} can't be used, because the Host of requests couldn't be checked. Name the host or"
                " address that clients use."
            )
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            # asyncio turns Nagle's algorithm off only if the protocol is stated.
            self.socket = socket.socket(found[0], socket.SOCK_STREAM, socket.IPPROTO_TCP)
        except OSError as error:
            raise AddressError(f"The host {host} of --host was not found: {error.strerror}.") from error
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind(found[4])
        except OSError as error:
            self.socket.close()
            raise AddressError(
                f"Port {port} on {host} can't be used: {error.strerror}. Choose another one after --http."
            ) from error
        self.port: int = self.socket.getsockname()[1]
        self._host = f"[{host}]" if ":" in host else host
        self._names = {self._host, "127.0.0.1", "localhost", "[::1]"} if is_loopback(host) else {self._host}

    @property
    def url(self) -> str:
        """The address of the server's endpoint."""
        return f"http://{self._host}:{self.port}{PATH}"

    @property
    def authorities(self) -> frozenset[str]:
        """Every right value of Host, in lower case."""
        with_port = {f"{name}:{self.port}".lower() for name in self._names}
        return frozenset(with_port | ({name.lower() for name in self._names} if self.port == 80 else set()))


async def serve_http(service: Service, address: Address, token: Token, started: Callable[[], None]) -> None:
    """Serve clients until this is cancelled.

    Args:
        service: The service.
        address: The bound address.
        token: Which every request needs.
        started: Is called when clients can connect.
    """
    manager = StreamableHTTPSessionManager(
        service.server, max_request_body_size=LONGEST_MESSAGE, max_sessions=_MOST_SESSIONS
    )
    guard = _Guard(manager.asgi_app, address, token)
    config = uvicorn.Config(
        guard,
        log_config=None,
        log_level="critical",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_END_SECONDS,
    )
    server = _Uvicorn(config)
    async with service.running(), manager.run():
        await service.introduced()
        address.socket.listen(128)
        serving = asyncio.create_task(server.serve(sockets=[address.socket]))
        started()
        try:
            await asyncio.shield(serving)
        finally:
            # Some clients wait for a result forever if the connection ends.
            await service.cancel_calls()
            server.should_exit = True
            await asyncio.wait({serving})


class _Uvicorn(uvicorn.Server):
    """Server that leaves signals to the command."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle no signals."""
        yield


class _Guard:
    """ASGI application that admits only requests with the right Host, Origin and token.

    Args:
        app: Answers admitted requests.
        address: The bound address.
        token: Which every request needs.
    """

    def __init__(self, app: ASGIApp, address: Address, token: Token) -> None:
        self._app = app
        self._token = token
        self._authorities = address.authorities
        self._origins = {f"http://{authority}" for authority in self._authorities}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or reject it."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        # No events are kept for a client that connects again, and the SDK answers nothing when it asks for them.
        scope["headers"] = [(name, value) for name, value in scope["headers"] if name != b"last-event-id"]
        gone = scope[DISCONNECTED] = asyncio.Event()

        async def receive_and_watch() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            return message

        await self._app(scope, receive_and_watch, send)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        """Return the response that rejects a request; None for one that is admitted."""

        def values(name: bytes) -> list[str]:
            return [value.decode("latin-1").lower() for key, value in scope["headers"] if key == name]

        hosts = values(b"host")
        if len(hosts) != 1 or hosts[0] not in self._authorities:
            return PlainTextResponse("The Host of the request is not this server.\n", 421)
        if any(origin not in self._origins for origin in values(b"origin")):
            return PlainTextResponse("Pages of other sites can't use this server.\n", 403)
        tokens = [value for key, value in scope["headers"] if key == b"authorization"]
        if len(tokens) != 1 or not self._token.is_in(tokens[0]):
            message = "The request needs the header `Authorization: Bearer TOKEN` with the token of `pegboard serve`.\n"
            return PlainTextResponse(message, 401, {"WWW-Authenticate": "Bearer"})
        if scope["path"] not in (PATH, f"{PATH}/"):
            return PlainTextResponse(f"The endpoint is {PATH}.\n", 404)
        return None
