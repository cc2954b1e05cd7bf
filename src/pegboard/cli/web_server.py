"""The app in a browser: textual-serve behind checks of Host, Origin and a token.

textual-serve opens a terminal for anyone who can connect: it checks neither the origin of a request nor who sends it.
A page of another site could open its WebSocket. Here, every request needs the right Host, a request from a page the
right Origin, and all of them the session cookie, which a browser receives for the token in the printed address.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import shlex
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from aiohttp import web
from textual_serve.server import Server

from pegboard.cli.interruption import interruptible
from pegboard.errors import PegboardError

HOST: Final = "127.0.0.1"
TOKEN: Final = "token"  # noqa: S105 - the name of the parameter
_WEBSOCKET: Final = "/ws"
_PAGE: Final = Path(__file__).with_name("web_page")
"""Folder of the page, which is called as textual-serve expects."""
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
        " font-src 'self' data:; connect-src 'self' ws://{authority}; form-action 'none'; base-uri 'none';"
        " frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every response: nothing is kept, framed, or loaded from other servers."""


class PortError(PegboardError):
    """The port can't be used; the message names it."""


class WebServer(Server):
    """Server of an app on this machine, for one user.

    Args:
        command: The command line of the app; each connection starts it once.
        port: The port, or 0 for a free one.

    Raises:
        PortError: The port can't be used.
    """

    def __init__(self, command: Sequence[str], port: int) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port))
            self._socket.listen()  # before the address is printed: earlier connections then wait
        except OSError as error:
            self._socket.close()
            raise PortError(
                f"Port {port} on {HOST} can't be used: {error.strerror}. Choose another one with --port."
            ) from error
        port = self._socket.getsockname()[1]
        super().__init__(shlex.join(command), HOST, port, title="Pegboard", templates_path=_PAGE)
        self.authority = f"{HOST}:{self.port}"
        """Host and port of every request."""
        self.public_url = f"http://{self.authority}"
        self._token, self._session = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        # Cookies are shared by all ports of a host.
        self._cookie = f"pegboard-{self.port}"
        self._headers = {name: value.format(authority=self.authority) for name, value in _HEADERS.items()}

    @property
    def address(self) -> str:
        """The address that admits a browser."""
        return f"{self.public_url}/?{TOKEN}={self._token}"

    def run(self) -> int:
        """Serve until a signal ends the program, and return the exit code of the signal."""
        logging.getLogger("textual-serve").setLevel(logging.ERROR)
        return asyncio.run(self._run())

    async def _run(self) -> int:
        stopped = asyncio.Event()
        runner = web.AppRunner(await self._make_app(), access_log=None, handler_cancellation=True, shutdown_timeout=2.0)
        with interruptible(stopped.set) as interruption:
            await runner.setup()
            try:
                await web.SockSite(runner, self._socket).start()
                await stopped.wait()
            finally:
                await runner.cleanup()
        return interruption.exit_code

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: the command prints the address."""

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._middleware())
        app.on_response_prepare.append(self._add_headers)
        return app

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(self._headers)

    def _middleware(self) -> Callable[..., Awaitable[web.StreamResponse]]:
        @web.middleware
        async def check(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            if reason := self._refusal(request):
                return web.Response(status=403, text=f"{reason}\n")
            if request.path == "/" and TOKEN in request.query:
                return self._admit(request)
            if not _is_same(request.cookies.get(self._cookie), self._session):
                return web.Response(
                    status=403, text="Open the address that `pegboard web` printed: it contains the token.\n"
                )
            return await handler(request)

        return check

    def _refusal(self, request: web.Request) -> str | None:
        """Return why a request is refused even with the token, or None."""
        if request.headers.getall("Host", []) != [self.authority]:
            return f"The Host of the request must be {self.authority}."
        if request.method not in ("GET", "HEAD"):
            return "Only GET is allowed."
        origins = request.headers.getall("Origin", [])
        if origins not in ([], [self.public_url]) or (not origins and request.path == _WEBSOCKET):
            return f"The Origin of the request must be {self.public_url}."
        return None

    def _admit(self, request: web.Request) -> web.StreamResponse:
        """Exchange the token for the cookie, so that the token leaves the address bar."""
        if not _is_same(request.query[TOKEN], self._token):
            return web.Response(status=403, text="The token is wrong. Open the address that `pegboard web` printed.\n")
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(self._cookie, self._session, httponly=True, samesite="Strict", path="/")
        return response


def _is_same(given: str | None, expected: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())
