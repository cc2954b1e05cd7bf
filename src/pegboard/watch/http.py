"""Proxy of one streamable HTTP server, reachable from this machine only."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from pegboard.watch.edit_notes import NotedBody
from pegboard.watch.gate import Gate, print_message, rejections
from pegboard.watch.lines import LONGEST_PARSED, LineCopies
from pegboard.watch.link import CLIENT, CLOSED, OPENED, SERVER
from pegboard.watch.listener import HOST, is_local, listen, serve
from pegboard.watch.redirections import MOVES, own_address, own_location, redirected
from pegboard.watch.remote import NO_SESSION, decide, server_name, target
from pegboard.watch.remote_client import http_client
from pegboard.watch.sse import EventReader

_HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_EVENT_ID: Final = re.compile(rb"(?:^|[\r\n])id:")
_REST_SECONDS: Final = 5.0
"""Time for the rest of a response that isn't a stream of events, after the client has left."""
_MOST_SESSIONS: Final = 1_000
"""Sessions that are known. Many clients never end theirs."""
_TOO_LONG: Final = b"Pegboard rejected this message: it is too long to be checked against the rules."
_NO_LOGIN: Final = (
    "the server requires a login (HTTP 401). Clients refuse to log in through a proxy, because its address isn't the"
    " server's. Watch the server as a bridge, as `pegboard guide watch` describes, or configure an `Authorization`"
    " header in the client."
)
_COMPRESSED: Final = b"Pegboard rejected this message: it is compressed, so it can't be checked against the rules."

AsgiMessage = MutableMapping[str, Any]  # of ASGI
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]


class HttpProxy:
    """The proxy, an ASGI application.

    Args:
        url: Address of the server.
        name: Name of the server.
        port: Port to listen on; 0 for a free one.

    Raises:
        RemoteError: The port can't be used.
    """

    def __init__(self, url: str, name: str, port: int) -> None:
        parts = urlsplit(url)
        self._base = f"{parts.scheme}://{parts.netloc}"
        self._host = parts.netloc.rpartition("@")[2]
        self._origin = f"{parts.scheme}://{self._host}"
        self._path = parts.path or "/"
        self._query = parts.query
        self._name = name
        self._socket = listen(port)
        self._port = self._socket.getsockname()[1]
        self._gate = Gate(print_message)
        self._link = self._gate.link
        self._connections: OrderedDict[bytes, int] = OrderedDict()
        """Sessions, the most recently used last, and their connections."""
        self._busy: Counter[int] = Counter()
        """Number of running requests of each connection."""
        self._sessionless: set[int] = set()
        self._count = 0
        self._is_login_explained = False
        self._started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    async def run(self, started: Callable[[str], object]) -> int:
        """Serve until a signal ends the program; return the exit code for the signal.

        Args:
            started: Called with the address.
        """
        self._link.start()
        async with http_client() as self._client:
            exit_code = await serve(self, self._socket, lambda: started(f"http://{HOST}:{self._port}{self._path}"))
            for connection in self._connections.values():
                self._link.send(CLOSED, connection, b"{}")
            await asyncio.to_thread(self._link.close, 2.0)
        return exit_code

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            return
        headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        if not is_local(headers, self._port):
            await _respond(send, 403, b"The request does not come from this machine.", b"text/plain")
            return
        address = self._address(scope)
        if address is None:
            await _respond(send, 400, b"The target of the request is not a path, or is too long.", b"text/plain")
            return
        exchange = _Exchange(self, address, scope, headers, receive, send)
        try:
            await exchange.run()
        except _LeftError:
            return
        except httpx2.HTTPError as error:
            text = f"The server can't be reached: {str(error).removesuffix('.') or type(error).__name__}."
            exchange.fail(text)
            if not exchange.has_started:
                await _respond(send, 502, text.encode(), b"text/plain")
        finally:
            exchange.close()

    def _address(self, scope: AsgiMessage) -> httpx2.URL | None:
        """Return the server's address for a request; None if the request's target is invalid or no path."""
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        own: bytes = scope.get("query_string") or b""
        query = "&".join(part for part in (self._query, own.decode("latin-1")) if part)
        return own_address(self._base, path.decode("latin-1"), query)

    # Used by `_Exchange`

    @property
    def gate(self) -> Gate:
        """The decisions on calls."""
        return self._gate

    @property
    def client(self) -> httpx2.AsyncClient:
        """The client of the server."""
        return self._client

    def path(self, address: httpx2.URL) -> bytes:
        """Return the path and query of the proxy for an address of the server."""
        path, _, query = address.raw_path.partition(b"?")
        given = self._query.encode("latin-1", "replace")
        if given and (query + b"&").startswith(given + b"&"):  # It is added to each request.
            query = query[len(given) + 1 :]
        return path + (b"?" + query if query else b"")

    def upstream_headers(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Return the headers to forward."""
        named = {word.strip().lower() for name, value in headers if name == b"connection" for word in value.split(b",")}
        gone = _HOP_BY_HOP | named | {b"host", b"accept-encoding", b"content-length", b"origin"}
        kept = [(name, value) for name, value in headers if name not in gone]
        if any(name == b"origin" for name, _ in headers):
            kept.append((b"origin", self._origin.encode()))
        # Bodies must be readable for the record.
        return [(b"host", self._host.encode()), *kept, (b"accept-encoding", b"identity")]

    def connection(self, session: bytes) -> int:
        """Return the connection of a session."""
        found = self._connections.get(session)
        if found is None:
            found = self._connections[session] = self.open_connection()
            self._forget_sessions()
        self._connections.move_to_end(session)
        return found

    def begin_request(self, connection: int) -> None:
        """Keep a connection until a request ends."""
        self._busy[connection] += 1

    def end_request(self, connection: int) -> None:
        """End a request; end its connection too if it had no session and began none."""
        self._busy[connection] -= 1
        if not self._busy[connection]:
            del self._busy[connection]
        self.close_sessionless(connection)

    def open_connection(self, *, sessionless: bool = False) -> int:
        """Return a new connection."""
        self._count += 1
        about = {"name": self._name, "started": self._started, "sessionless": sessionless}
        self._link.send(OPENED, self._count, json.dumps(about).encode())
        return self._count

    def open_sessionless(self) -> int:
        """Return a new connection for one request without a session."""
        connection = self.open_connection(sessionless=True)
        self._sessionless.add(connection)
        return connection

    def close_sessionless(self, connection: int) -> None:
        """End the connection of a request that had no session and began none."""
        if connection in self._sessionless:
            self._sessionless.remove(connection)
            self._close(connection)

    def cancel(self, connection: int, body: bytes) -> None:
        """Stop holding the call that a body cancels; without a session, that of any request without one."""
        for one in self._sessionless if connection in self._sessionless else (connection,):
            self._gate.cancel(one, body)

    def assign(self, session: bytes, connection: int) -> None:
        """Note the session that the server began with a request."""
        self._sessionless.discard(connection)
        self._link.send(OPENED, connection, b"{}")  # Again: it has a session now.
        self._connections.setdefault(session, connection)
        self._forget_sessions()

    def end(self, session: bytes) -> None:
        """End the connection of a session that the server no longer knows."""
        connection = self._connections.pop(session, None)
        if connection is not None:
            self._close(connection)

    def _forget_sessions(self) -> None:
        """End the connections of sessions that weren't used for the longest time, if there are too many."""
        excess = len(self._connections) - _MOST_SESSIONS
        if excess > 0:
            *earlier, _ = self._connections  # The last one is in use.
            idle = (session for session in earlier if self._connections[session] not in self._busy)
            for session in [*islice(idle, excess)]:
                self.end(session)

    def explain_login(self) -> None:
        """Say once how to use a server that requires a login."""
        if not self._is_login_explained:
            self._is_login_explained = True
            print_message(_NO_LOGIN)

    def _close(self, connection: int) -> None:
        self._gate.drop_all(connection)
        self._link.send(CLOSED, connection, b"{}")


class _LeftError(Exception):
    """The client disconnected before its request was complete."""


class _Exchange:
    """One request and its response."""

    def __init__(
        self,
        proxy: HttpProxy,
        address: httpx2.URL,
        scope: AsgiMessage,
        headers: list[tuple[bytes, bytes]],
        receive: Receive,
        send: Send,
    ) -> None:
        self._proxy = proxy
        self._address = address
        self._scope = scope
        self._headers = headers
        self._receive = receive
        self._send = send
        self._session = next((value for name, value in headers if name == b"mcp-session-id"), b"")
        self._sent = b""
        self._long_body = LineCopies()
        self._connection = proxy.connection(self._session) if self._session else proxy.open_sessionless()
        proxy.begin_request(self._connection)
        self._is_edited = False
        self.has_started = False
        """Whether the response has begun."""
        self._is_resumable = False
        """Whether the client can get the rest of the response in a later request, because its events have ids."""

    async def run(self) -> None:
        """Forward the request and its response."""
        gate, link = self._proxy.gate, self._proxy.gate.link
        body, is_whole = await self._read_body()
        if body and self._is_compressed() and not await asyncio.to_thread(gate.is_open):
            await _respond(self._send, 415, _COMPRESSED, b"text/plain")
            return
        if not is_whole:
            if not await asyncio.to_thread(gate.is_open):
                await _respond(self._send, 413, _TOO_LONG, b"text/plain")
                return
        elif body:
            self._proxy.cancel(self._connection, body)
            if gate.may_be_call(body) and not await asyncio.to_thread(gate.is_open):
                decided = await self._decide(body)
                if decided is None:
                    await _respond(self._send, 202, b"", b"text/plain")
                    return
                passes, payload = decided
                if not passes:
                    await _respond(self._send, 200, payload, b"application/json")
                    return
                self._is_edited = bool(payload)
                body = payload or body
            else:
                link.send(CLIENT, self._connection, body)
            self._sent = body
        response = await self._forward(body, is_whole=is_whole)
        method = response.request.method
        try:
            if method == "POST" and "location" in response.headers and self._leads_away(response):
                text = redirected(response.status_code)
                self.fail(text)
                await _respond(self._send, 502, text.encode(), b"text/plain")
                return
            await self._pass_on(response)
        finally:
            await response.aclose()
        if self._requires_login(response):
            self._proxy.explain_login()
        if response.is_error:
            self.fail(f"The server responded with HTTP {response.status_code}.")
        is_deleted = method == "DELETE" and response.is_success
        if self._session and (is_deleted or (method == "POST" and response.status_code == NO_SESSION)):
            self._proxy.end(self._session)

    def fail(self, text: str) -> None:
        """Record that the calls of the request failed, unless they have a response."""
        self._send_long_copy()
        if failed := rejections(self._sent, text):
            self._proxy.gate.link.send(SERVER, self._connection, failed)

    def close(self) -> None:
        """End the request."""
        self._proxy.end_request(self._connection)

    def _is_compressed(self) -> bool:
        return any(name == b"content-encoding" and value.lower() != b"identity" for name, value in self._headers)

    async def _forward(self, body: bytes, *, is_whole: bool) -> httpx2.Response:
        """Send the request and return the response; follow redirections of messages to another path of the server."""
        method = self._scope["method"]
        address = self._address
        left = MOVES if is_whole and method == "POST" else 0
        while True:
            content = body if is_whole else self._rest_of(body)
            request = httpx2.Request(
                method,
                address,
                headers=self._request_headers(len(body) if is_whole else None),
                content=content if not is_whole or body or method == "POST" else None,
            )
            response = await self._proxy.client.send(request, stream=True)
            after = own_location(response) if response.status_code in (307, 308) else None
            if after is None or not left:
                return response
            await response.aclose()
            address, left = after, left - 1

    def _requires_login(self, response: httpx2.Response) -> bool:
        is_authorized = any(name == b"authorization" for name, _ in self._headers)
        return response.status_code == 401 and "www-authenticate" in response.headers and not is_authorized

    @staticmethod
    def _leads_away(response: httpx2.Response) -> bool:
        """Return whether a response redirects past the proxy, where nothing would be checked or recorded."""
        return 300 <= response.status_code < 400 and own_location(response) is None

    async def _read_body(self) -> tuple[bytes, bool]:
        body = bytearray()
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise _LeftError
            body += message.get("body", b"")
            if not message.get("more_body"):
                return bytes(body), True
            if len(body) > LONGEST_PARSED:
                return bytes(body), False

    async def _rest_of(self, start: bytes) -> AsyncIterator[bytes]:
        chunk, is_last = start, False
        while True:
            [*self._long_body.feed(chunk.replace(b"\n", b" "))]
            if is_last:
                self._send_long_copy()  # First, so that the response can't overtake it.
            yield chunk
            if is_last:
                return
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise httpx2.WriteError("The client disconnected.")
            chunk, is_last = message.get("body", b""), not message.get("more_body")

    def _send_long_copy(self) -> None:
        """Send the ends of a body that was too long to be read as a whole to the observer, unless they were sent."""
        for line in self._long_body.feed(b"\n"):
            if line:
                self._sent = line
                self._proxy.gate.link.send(CLIENT, self._connection, line)

    async def _decide(self, body: bytes) -> tuple[bool, bytes] | None:
        """Wait for the decision on a call, or until the client disconnects."""
        deciding = asyncio.create_task(decide(self._proxy.gate, self._connection, body))
        leaving = asyncio.create_task(self._wait_for_leaving())
        try:
            await asyncio.wait((deciding, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not deciding.done():
                deciding.cancel()
                with suppress(asyncio.CancelledError):
                    await deciding
                return None
            return deciding.result()
        finally:
            leaving.cancel()

    def _request_headers(self, length: int | None) -> list[tuple[bytes, bytes]]:
        headers = self._proxy.upstream_headers(self._headers)
        had_length = any(name == b"content-length" for name, _ in self._headers)
        if length is not None and (length or had_length):
            headers.append((b"content-length", str(length).encode()))
        return headers

    async def _pass_on(self, response: httpx2.Response) -> None:
        raw = [(name.lower(), value) for name, value in response.headers.raw]
        dropped = {*_HOP_BY_HOP, b"content-length"} if self._is_edited else _HOP_BY_HOP
        headers = [(name, value) for name, value in raw if name not in dropped]
        if (after := own_location(response)) is not None:  # The client must not follow it past the proxy.
            headers = [(name, self._proxy.path(after) if name == b"location" else value) for name, value in headers]
        session = dict(headers).get(b"mcp-session-id")
        if session and not self._session:
            self._proxy.assign(session, self._connection)
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        events, lines = EventReader(), LineCopies()
        await self._send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        self.has_started = True
        link = self._proxy.gate.link
        leaving = asyncio.create_task(self._wait_for_leaving())
        passing = asyncio.create_task(self._pass_body(response, is_stream, events, lines))
        try:
            await asyncio.wait((leaving, passing), return_when=asyncio.FIRST_COMPLETED)
            if not is_stream:  # The server is done, so the record can have the result without the client.
                await asyncio.wait((passing,), timeout=_REST_SECONDS)
            has_left = not passing.done()
            if not has_left:
                passing.result()
        finally:
            for task in (leaving, passing):
                task.cancel()
        if not is_stream:
            for line in lines.feed(b"\n"):
                if line:
                    link.send(SERVER, self._connection, line)
        if has_left and self._session and not self._is_resumable:  # without a session, the connection ends anyway
            self.fail("The client disconnected before the response, so its outcome is unknown.")

    async def _pass_body(
        self, response: httpx2.Response, is_stream: bool, events: EventReader, lines: LineCopies
    ) -> None:
        gate, link = self._proxy.gate, self._proxy.gate.link
        noted = NotedBody(gate.edits, self._connection, is_stream=is_stream) if self._is_edited else None
        async for chunk in response.aiter_raw():
            to_client = chunk if noted is None else noted.feed(chunk)
            if to_client:
                await self._send({"type": "http.response.body", "body": to_client, "more_body": True})
            if is_stream:
                self._is_resumable |= _EVENT_ID.search(chunk) is not None
                for data in events.feed(chunk):
                    link.send(SERVER, self._connection, data)
            else:
                [*lines.feed(chunk.replace(b"\n", b" "))]
        await self._send({"type": "http.response.body", "body": b"" if noted is None else noted.rest()})

    async def _wait_for_leaving(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


def serve_http(url: str, name: str, port: int, started: Callable[[str], object]) -> int:
    """Forward HTTP requests on this machine to a server, until a signal ends the program.

    Args:
        url: Address of the server.
        name: The server's name in rules and records; empty to derive it from the address.
        port: Port to listen on; 0 for a free one.
        started: Called with the address of the proxy.

    Returns:
        The exit code for the signal.

    Raises:
        RemoteError: The address or a variable of the environment is invalid, or the port can't be used.
    """
    address, _ = target(url, os.environ)
    return asyncio.run(HttpProxy(address, server_name(address, name), port).run(started))


async def _respond(send: Send, status: int, body: bytes, kind: bytes) -> None:
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
