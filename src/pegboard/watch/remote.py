"""Watched servers with an address: over stdio (a bridge), or over HTTP on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import httpx2

from pegboard.config.client_formats import VARIABLE
from pegboard.config.servers import pack_name
from pegboard.data.urls import url_parts
from pegboard.mcp.texts import is_old_transport, quotation, said_in
from pegboard.watch.adoption import FILLED_HEADER_VARIABLE, FROM_ENVIRONMENT, HEADER_VARIABLE, URL_VARIABLE
from pegboard.watch.gate import Gate, print_message, stated_version, too_long
from pegboard.watch.link import CLIENT, CLOSED, HOLD, OPENED, PASS, SERVER
from pegboard.watch.login import authorization
from pegboard.watch.redirections import MOVES, own_location, redirected
from pegboard.watch.remote_client import CONNECT_SECONDS, RemoteError, http_client
from pegboard.watch.sse import EventReader

if TYPE_CHECKING:
    from pegboard.mcp.authorization import ServerAuthorization

NO_SESSION: Final = 404
"""The server doesn't know the session: MCP 2025-11-25, Streamable HTTP, Session Management."""
_RESUMES: Final = 5
"""Resumptions of a stream without an event."""
_END_SECONDS: Final = 5.0
"""Time for the server to respond to messages after the client has closed stdin."""
_ORDER_SECONDS: Final = 2.0
"""Time for the server to accept a notification before the messages after it are sent."""
_CONNECTION: Final = 1
_SCOPE: Final = re.compile(r'scope="([^"]*)"')
_BREAKS: Final = re.compile(rb"[\r\n]+")


def target(url: str, environ: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the address and the headers of the server.

    Raises:
        RemoteError: The address is invalid.
    """
    if url == FROM_ENVIRONMENT:
        url = environ.get(URL_VARIABLE, "")
    parts = url_parts(url)
    if parts.scheme.lower() not in {"http", "https"} or not parts.hostname:
        raise RemoteError(
            "The server can't be watched because its URL is invalid or doesn't start with http:// or https://."
        )
    headers = {}
    numbered = sorted(name for name in environ if name.startswith((HEADER_VARIABLE, FILLED_HEADER_VARIABLE)))
    for name in numbered:
        header, colon, value = environ[name].partition(":")
        if name.startswith(FILLED_HEADER_VARIABLE):
            if missing := [used for used in VARIABLE.findall(value) if not environ.get(used)]:
                raise RemoteError(
                    f"The environment variable {missing[0]}, which the header {header} contains, is not set."
                )
            value = VARIABLE.sub(lambda found: environ[found[1]], value)
        if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", header.strip()) or "\n" in value:
            raise RemoteError(f"{name} is not a header such as `Authorization: Bearer TOKEN`.")
        headers[header.strip()] = value.strip()
    return url, headers


def server_name(url: str, name: str) -> str:
    """Return the name of a server: the given one, or one made of its host."""
    return name or pack_name((url_parts(url).hostname or "server").removeprefix("www.").replace(".", "_"))


def bridge(url: str, name: str) -> None:
    """Connect a client on stdio to a server over HTTP, until the client closes stdin.

    Raises:
        RemoteError: The address or a variable of the environment is invalid.
    """
    address, headers = target(url, os.environ)
    parent = os.getppid()
    about = {"name": server_name(address, name), "client_pid": parent}
    exit_code = asyncio.run(_Bridge(address, headers, about).run())
    sys.stdout.flush()
    os._exit(exit_code)  # The thread that reads stdin may still wait.


class _SendAgainError(httpx2.HTTPError):
    """A message is to be sent again: to another path, which is used from now on, or with a login."""

    def __init__(self) -> None:
        super().__init__("it redirects without an end")


class _Bridge:
    """Bridge of one client."""

    def __init__(self, url: str, headers: Mapping[str, str], about: Mapping[str, object]) -> None:
        self._url = url
        self._addresses = {url}
        """All addresses of the server: the given one, and those to which it redirects."""
        self._headers = dict(headers)
        self._about = about
        self._gate = Gate(print_message)
        self._link = self._gate.link
        self._session = ""
        self._protocol = ""
        self._messages: set[asyncio.Task[None]] = set()
        self._closable: dict[str, asyncio.Task[None]] = {}
        """Requests that are cancelled by closing their stream, by their ids as JSON."""
        self._login: ServerAuthorization | None = None
        self._initialize: asyncio.Task[None] | None = None
        self._notification: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        self._writing = threading.Lock()

    async def run(self) -> int:
        """Forward until stdin is closed or a signal arrives; return the exit code."""
        self._link.start()
        self._link.send(OPENED, _CONNECTION, json.dumps(self._about).encode())
        self._login = await asyncio.to_thread(authorization, self._url, self._headers)
        async with http_client(auth=self._login, event_hooks={"response": [self._check_move]}) as self._client:
            lines: asyncio.Queue[bytes] = asyncio.Queue(100)
            loop = asyncio.get_running_loop()
            threading.Thread(target=_read_lines, args=(loop, lines), daemon=True).start()
            ending: asyncio.Future[int] = loop.create_future()

            def end(number: int) -> None:
                if not ending.done():
                    ending.set_result(128 + number)

            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.add_signal_handler(number, end, number)
            while True:
                reading = asyncio.create_task(lines.get())
                await asyncio.wait((reading, ending), return_when=asyncio.FIRST_COMPLETED)
                if ending.done() or not (line := reading.result()):
                    reading.cancel()
                    break
                self._accept(line)
            self._gate.drop_all(_CONNECTION)
            if not ending.done():  # Messages from before stdin was closed still get their responses.
                responding = asyncio.gather(*self._messages, return_exceptions=True)
                await asyncio.wait((responding, ending), return_when=asyncio.FIRST_COMPLETED, timeout=_END_SECONDS)
            self._stop_listening()
            for task in self._messages:
                task.cancel()
            if self._session:
                with suppress(httpx2.HTTPError, TimeoutError):
                    async with asyncio.timeout(2.0):
                        await self._client.delete(self._url, headers=self._request_headers({}))
            self._link.send(CLOSED, _CONNECTION, b"{}")
            await asyncio.to_thread(self._link.close, 2.0)
        return ending.result() if ending.done() else 0

    def _accept(self, line: bytes) -> None:
        if not line.strip():
            return
        self._gate.cancel(_CONNECTION, line)
        message = _parsed(line)
        if (cancelled := self._closable.get(_cancelled_id(message))) is not None:
            self._link.send(CLIENT, _CONNECTION, line)
            cancelled.cancel()
            return
        is_first = isinstance(message, dict) and message.get("method") == "initialize"
        if is_first:
            self._initialize = self._notification = None
        task = asyncio.create_task(self._handle(line, message, self._initialize, self._notification))
        self._messages.add(task)
        task.add_done_callback(self._messages.discard)
        if stated_version(message) and "id" in message:  # MCP 2026-07-28, Streamable HTTP, Cancellation.
            key = json.dumps(message["id"])
            self._closable[key] = task
            task.add_done_callback(lambda _: self._closable.pop(key, None))
        if is_first:
            self._initialize = task
        elif not (isinstance(message, dict) and "id" in message):
            self._notification = task

    async def _handle(
        self,
        line: bytes,
        message: Any,  # noqa: ANN401 - any JSON
        initialize: asyncio.Task[None] | None,
        notification: asyncio.Task[None] | None,
    ) -> None:
        gate = self._gate
        if too_long(len(line)):
            is_open = await asyncio.to_thread(gate.is_open)
            if not is_open:
                text = "Pegboard rejected this message: it is too long to be checked against the rules."
                self._fail(message, text)
                return
        if gate.may_be_call(line) and not await asyncio.to_thread(gate.is_open):
            decided = await decide(gate, _CONNECTION, line)
            if decided is None:
                return
            passes, payload = decided
            if not passes:
                self._write(payload)
                return
            line = payload or line
        else:
            self._link.send(CLIENT, _CONNECTION, line)
        if initialize is not None:  # The session must be known.
            await asyncio.wait((initialize,))
        if notification is not None:  # Notifications keep their order.
            await asyncio.wait((notification,), timeout=_ORDER_SECONDS)
        try:
            for _ in range(MOVES):
                with suppress(_SendAgainError):
                    await self._post(line, message)
                    return
            await self._post(line, message)
        except httpx2.HTTPError as error:
            self._fail(message, self._unreachable(error))
        except Exception as error:  # noqa: BLE001 - such as of the login; the client waits for a response
            said = " ".join(str(error).split())[:300].removesuffix(".")
            self._fail(message, f"The message was not sent: {type(error).__name__}: {said}.")

    def _unreachable(self, error: httpx2.HTTPError) -> str:
        """Return which server can't be reached, and why."""
        if self._login is not None and self._login.unanswered:
            from pegboard.mcp.failures import authorization_unreachable

            if (failure := authorization_unreachable(self._login.unanswered, error)) is not None:
                return failure.reason
        return f"The server can't be reached: {str(error).removesuffix('.') or type(error).__name__}."

    async def _find_login(self) -> bool:
        """Use a login that was stored after the start; return whether there is one."""
        if self._login is None and (login := await asyncio.to_thread(authorization, self._url, self._headers)):
            self._client.auth = self._login = login
        return self._login is not None

    async def _check_move(self, response: httpx2.Response) -> None:
        """Use another path of the same origin from now on if the server redirects to it with the same method.

        Raises:
            _SendAgainError: It does.
        """
        if response.status_code not in (307, 308) or str(response.request.url) not in self._addresses:
            return
        after = own_location(response)
        if after is not None:
            self._url = str(after)
            self._addresses.add(self._url)
            raise _SendAgainError

    async def _post(self, line: bytes, message: Any) -> None:  # noqa: ANN401 - any JSON
        method = message.get("method") if isinstance(message, dict) else None
        if method == "initialize":  # It starts a session: MCP 2025-11-25, Streamable HTTP, Session Management.
            self._session = self._protocol = ""
            self._stop_listening()
        headers = self._request_headers(
            {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        )
        headers |= _standard_headers(message)
        is_request = isinstance(message, dict) and "id" in message and "method" in message
        may_be_slow = is_request or isinstance(message, list)
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=None if may_be_slow else CONNECT_SECONDS)
        has_login = self._login is not None
        async with self._client.stream(
            "POST", self._url, content=line.strip(), headers=headers, timeout=timeout
        ) as response:
            if response.status_code == 401 and not has_login and await self._find_login():
                raise _SendAgainError
            if session := response.headers.get("mcp-session-id"):
                self._session = session
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "text/event-stream" and response.is_success:
                await self._follow(response, message if is_request else None)
            else:
                body = await response.aread()
                received = _parsed(body) if kind == "application/json" else None
                is_response = not is_request or _responds(received, message)
                passes = _is_message(received) and (is_response or response.is_success)
                if passes:
                    self._receive(body)
                if not (is_response and (passes or response.is_success)):
                    said = said_in(body, is_html=kind == "text/html")
                    why = self._login.not_refreshed if self._login is not None and response.status_code == 401 else ""
                    has_session = bool(self._session)
                    self._fail(message, why or _explained(response, self._url, said, has_session=has_session))
        if method == "notifications/initialized" and self._listener is None:
            self._listener = asyncio.create_task(self._listen())

    async def _follow(self, response: httpx2.Response, request: Any) -> None:  # noqa: ANN401 - any JSON
        """Pass on the messages of a stream; resume it if it ends before the response to a request."""
        events = EventReader(None)
        seen = await self._read_events(response, events, request)
        left, why = _RESUMES, "The server ended the connection before it responded."
        while not seen and request is not None and events.last_id and left:
            before = events.last_id
            await asyncio.sleep(min(events.retry_seconds or 0.5, 10.0))
            extra = {"accept": "text/event-stream", "last-event-id": events.last_id.decode("latin-1")}
            try:
                async with self._client.stream("GET", self._url, headers=self._request_headers(extra)) as resumed:
                    if not resumed.is_success:
                        break
                    events.resume()
                    seen = await self._read_events(resumed, events, request)
            except httpx2.HTTPError as error:  # It may be back in a moment. The request itself must not be repeated.
                why = self._unreachable(error)
            # A server that lets its clients poll ends each stream after some events.
            left = _RESUMES if events.last_id != before else left - 1
        if request is not None and not seen:
            self._fail(request, why)

    async def _read_events(self, response: httpx2.Response, events: EventReader, request: Any) -> bool:  # noqa: ANN401 - any JSON
        seen = False
        try:
            async for chunk in response.aiter_bytes():
                for data in events.feed(chunk):
                    self._receive(data)
                    if request is not None and not seen:
                        seen = _responds(_parsed(data), request)
        except httpx2.HTTPError:
            if not events.last_id:
                raise
        return seen

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            self._listener = None

    async def _listen(self) -> None:
        """Pass on what the server sends by itself; not every server offers it."""
        events, wait = EventReader(None), 1.0
        while True:
            extra = {"accept": "text/event-stream"}
            if events.last_id:
                extra["last-event-id"] = events.last_id.decode("latin-1")
            try:
                async with self._client.stream("GET", self._url, headers=self._request_headers(extra)) as response:
                    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                    if not response.is_success or kind != "text/event-stream":
                        return
                    events.resume()
                    wait = 1.0
                    await self._read_events(response, events, None)
                    wait = events.retry_seconds or wait
            except httpx2.HTTPError:
                wait = min(wait * 2, 60.0)
            await asyncio.sleep(wait)

    def _request_headers(self, extra: Mapping[str, str]) -> dict[str, str]:
        headers = {**self._headers, **extra}
        if self._session:
            headers["mcp-session-id"] = self._session
        if self._protocol:
            headers["mcp-protocol-version"] = self._protocol
        return headers

    def _receive(self, body: bytes) -> None:
        # A line break in JSON is never part of a text, and stdio messages have none.
        line = _BREAKS.sub(b" ", body.strip()) if b"\n" in body or b"\r" in body else body
        self._write(self._gate.edits.added(_CONNECTION, line))
        if not self._protocol and b"protocolVersion" in line:
            message = _parsed(line)
            result = message.get("result") if isinstance(message, dict) else None
            version = result.get("protocolVersion") if isinstance(result, dict) else None
            self._protocol = version if isinstance(version, str) else ""
        self._link.send(SERVER, _CONNECTION, line)

    def _fail(self, request: Any, text: str) -> None:  # noqa: ANN401 - any JSON
        if isinstance(request, dict) and "id" in request and "method" in request:
            error = {"code": -32000, "message": text}
            line = json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()
            self._write(line)
            self._link.send(SERVER, _CONNECTION, line)
        print_message(text)

    def _write(self, line: bytes) -> None:
        with self._writing, suppress(OSError):
            data = line + b"\n"
            while data:
                data = data[os.write(1, data) :]


async def decide(gate: Gate, connection: int, line: bytes) -> tuple[bool, bytes] | None:
    """Wait for the decision on a call.

    Returns:
        Whether it passes, with its edited text or the response that rejects it; None if the client cancelled it.
    """
    loop = asyncio.get_running_loop()
    later: asyncio.Future[bytes] = loop.create_future()

    def settle(verdict: bytes) -> None:
        if not later.done():
            later.set_result(verdict)

    def finish(verdict: bytes, payload: bytes) -> None:
        loop.call_soon_threadsafe(settle, verdict + payload)

    decision = await asyncio.to_thread(gate.decide, connection, line, finish)
    verdict = decision.verdict
    if verdict[:1] == HOLD:
        try:
            while not later.done():
                await asyncio.wait((later,), timeout=0.2)
                if not later.done() and decision.is_dropped:
                    return None
        except asyncio.CancelledError:
            gate.drop(decision, b"disconnected")
            raise
        verdict = later.result()
    if verdict[:1] == PASS:
        return True, verdict[1:]
    return (False, verdict[1:]) if verdict[1:] else None


def _read_lines(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes]) -> None:
    with suppress(RuntimeError), os.fdopen(0, "rb", buffering=2**16, closefd=False) as stdin:
        while line := stdin.readline():
            asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
        asyncio.run_coroutine_threadsafe(lines.put(b""), loop).result()


def _parsed(line: bytes) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_message(message: Any) -> bool:  # noqa: ANN401 - any JSON
    return isinstance(message, list) or (isinstance(message, dict) and ("jsonrpc" in message or "id" in message))


def _responds(message: Any, request: Any) -> bool:  # noqa: ANN401 - any JSON
    """Return whether a message, or one of a batch of protocol 2025-03-26, is the response to a request."""
    if isinstance(message, list):
        return any(_responds(one, request) for one in message if isinstance(one, dict))
    return isinstance(message, dict) and "method" not in message and message.get("id") == request["id"]


def _cancelled_id(message: Any) -> str:  # noqa: ANN401 - any JSON
    """Return the id, as JSON, of the request that a message cancels; empty if it cancels none."""
    if not isinstance(message, dict) or message.get("method") != "notifications/cancelled":
        return ""
    params = message.get("params")
    return json.dumps(params.get("requestId")) if isinstance(params, dict) else ""


def _standard_headers(message: Any) -> dict[str, str]:  # noqa: ANN401 - any JSON
    """Return the headers that repeat a message's method and name, which protocol 2026-07-28 requires."""
    version = stated_version(message)
    if not version:
        return {}
    params = message["params"]
    headers = {"mcp-protocol-version": version, "mcp-method": str(message.get("method", ""))}
    name = params.get("name", params.get("uri"))
    if isinstance(name, str) and name.isascii() and name.isprintable():
        headers["mcp-name"] = name
    return headers


def _explained(response: httpx2.Response, url: str, said: str, *, has_session: bool) -> str:
    status = response.status_code
    challenge = response.headers.get("www-authenticate", "")
    if status == 401:
        return f"The server requires a login (HTTP {status}). Add it with `pegboard mcp add`, run `pegboard mcp login`."
    if status == 403 and "insufficient_scope" in challenge:
        scope = _SCOPE.search(challenge)
        named = f": {quotation(scope[1])}" if scope else ""
        return f"The server requires more permissions (HTTP {status}){named}. Log in again with `pegboard mcp login`."
    if status == NO_SESSION and has_session:
        return f"The server has ended the session (HTTP {status}). Reconnect the client to start a new one."
    quoted = f": {quotation(said)}" if said else ""
    if status == 403:
        return f"The server refuses access (HTTP {status}{quoted}). Check your account, or the headers in the entry."
    if 300 <= status < 400:
        return redirected(status)
    if is_old_transport(url, status):  # Its address may contain a key, so it isn't named.
        return (
            f"The server accepts no messages (HTTP {status}{quoted}); it seems to use the old HTTP+SSE transport."
            " Use the URL of its streamable HTTP endpoint; it often ends in /mcp."
        )
    return f"The server responded with HTTP {status}{quoted}."
