"""The loopback address to which the browser returns after a login."""

from __future__ import annotations

import asyncio
import html
import secrets
import socket
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Final, Self
from urllib.parse import parse_qsl, urlsplit

_PATH: Final = "/callback"
_LONGEST_LINE: Final = 16_384
_PAGE: Final = """<!doctype html><meta charset="utf-8"><title>Pegboard</title>
<body style="font:16px system-ui;margin:4rem auto;max-width:32rem"><h1>{title}</h1><p>{text}</p>"""


class Redirect:
    """A web server on 127.0.0.1 that receives one answer of an authorization server.

    Args:
        port: The port; any free one if None.
    """

    def __init__(self, port: int | None = None) -> None:
        # Bound before the first request, because its address is part of the registration.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port or 0))
        except OSError:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]
        self._server: asyncio.Server | None = None
        self._state = ""
        self._answer: asyncio.Future[dict[str, str]] | None = None

    @property
    def uri(self) -> str:
        """The address."""
        return f"http://127.0.0.1:{self.port}{_PATH}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, sock=self._socket, limit=_LONGEST_LINE)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        self._socket.close()

    def expect(self, authorization_url: str) -> None:
        """Wait from now on for the answer to this authorization request, and ignore every other request."""
        self._state = dict(parse_qsl(urlsplit(authorization_url).query)).get("state", "")
        self._answer = asyncio.get_running_loop().create_future()

    async def answer(self) -> Mapping[str, str]:
        """Return the parameters of the answer."""
        assert self._answer is not None, "`expect` comes first"
        return await self._answer

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            async with asyncio.timeout(10):
                request = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                status, title, text = self._receive(request.split(" ", 2))
                page = _PAGE.format(title=html.escape(title), text=html.escape(text)).encode()
                head = (
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(page)}\r\n"
                    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"
                )
                writer.write(head.encode() + page)
                await writer.drain()
        writer.close()

    def _receive(self, request: list[str]) -> tuple[str, str, str]:
        target = urlsplit(request[1]) if len(request) > 2 and request[0] == "GET" else None
        answer = dict(parse_qsl(target.query)) if target is not None and target.path == _PATH else {}
        state = answer.get("state", "")
        if self._answer is None or not self._state or not secrets.compare_digest(state.encode(), self._state.encode()):
            # Another page or program; it must not be able to end the login.
            return (
                "404 Not Found",
                "Unknown request",
                "Pegboard isn't waiting for this response. Start the login again.",
            )
        if not self._answer.done():
            self._answer.set_result(answer)
        if "error" in answer:
            return "200 OK", "Not logged in", answer.get("error_description") or answer["error"]
        return "200 OK", "Return to Pegboard", "You can close this window."


def with_one_query(url: str) -> str:
    """Return a URL whose query the SDK added although the authorization endpoint has a query of its own."""
    start, mark, rest = url.partition("?")
    return start + mark + rest.replace("?response_type=", "&response_type=", 1)
