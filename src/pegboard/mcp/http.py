"""Connection to an HTTP server: bounded responses, and what went wrong with the last one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
from mcp.client._transport import TransportStreams  # the SDK exports this type nowhere else
from mcp.client.streamable_http import streamable_http_client

from pegboard.data.message_id import message_id
from pegboard.mcp.limits import LONGEST_MESSAGE
from pegboard.mcp.messages import MessageLog
from pegboard.mcp.specs import readable_message
from pegboard.mcp.texts import LONGEST_ERROR, RESPONSE, error_in, said_in
from pegboard.results.sizes import size

_CONNECT_SECONDS, _READ_SECONDS = 15.0, 24 * 3600.0
"""The caller limits the time of requests; a stream for events may be silent for hours."""
_KEPT_CONNECTIONS = 20
"""Idle connections that are kept. The number of others has no limit: each call uses one until its result."""
_DATA = b"data:"
TOO_LONG = f"{RESPONSE} exceeds the limit of {size(LONGEST_MESSAGE)}."
"""Error of a response that isn't read to its end."""


@dataclass
class LastResponse:
    """The last response of the server, for explanations."""

    status: int = 0
    """HTTP status; 0 before the first response."""
    kind: str = ""
    """Media type of the body."""
    text: str = ""
    """Start of the body of a failed or unreadable response, or the message of its error: untrusted text."""
    is_error: bool = False
    """Whether the body is a JSON-RPC error, with or without an id."""
    too_long: bool = False
    """Whether a response exceeded the limit."""
    lost: set[str] = field(default_factory=set)
    """Ids of requests that the server rejected because it doesn't know their session."""

    @property
    def is_html(self) -> bool:
        """Whether the body is an HTML page."""
        return self.kind == "text/html"


class _Bounded(httpx2.AsyncByteStream):
    """Body of a response that fails beyond the limit.

    Args:
        stream: The body.
        last: Is updated.
        has_failed: Whether the response is an error, whose body just ends at a lower limit: an exception while it is
            read would end the connection.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, last: LastResponse, *, has_failed: bool) -> None:
        self._stream = stream
        self._last = last
        self._has_failed = has_failed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for chunk in self._stream:
            total += len(chunk)
            if self._has_failed and total > LONGEST_ERROR:
                yield chunk
                return
            if total > LONGEST_MESSAGE:
                self._last.too_long = True
                raise httpx2.StreamError(TOO_LONG)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Readable(httpx2.AsyncByteStream):
    """Body in which a tool that can't be passed on spoils no other: the SDK parses a list as a whole.

    Args:
        stream: The body.
        is_events: Whether it is a stream of events, whose lines are messages; else it is one message.
        messages: Receives each message; None if they aren't messages of the server.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, *, is_events: bool, messages: MessageLog | None) -> None:
        self._stream = stream
        self._is_events = is_events
        self._messages = messages

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held: list[bytes] = []
        length = 0
        has_return = False
        async for part in self._stream:
            chunk = part.removeprefix(b"\n") if has_return else part
            if self._is_events:  # Their lines may end in a carriage return, with or without a line feed.
                has_return = chunk.endswith(b"\r")
                chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            *lines, rest = chunk.split(b"\n") if self._is_events else (chunk,)
            for line in lines:
                yield self._readable(b"".join([*held, line])) + b"\n"
                held.clear()
                length = 0
            held.append(rest)
            length += len(rest)
            if length > LONGEST_MESSAGE:  # the SDK rejects it
                yield b"".join(held)
                held.clear()
                length = 0
        yield self._readable(b"".join(held))

    def _readable(self, text: bytes) -> bytes:
        if self._is_events and not text.startswith(_DATA):
            return text
        message = text.removeprefix(_DATA) if self._is_events else text
        if self._messages is not None and message and not message.isspace():
            self._messages.add(message, sent=False)
        return (_DATA if self._is_events else b"") + readable_message(message)

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Hook:
    """Hook that notes the last response and bounds bodies.

    Args:
        last: Is updated at each response.
        messages: Receives each message.
    """

    def __init__(self, last: LastResponse, messages: MessageLog) -> None:
        self._last = last
        self._messages = messages

    async def sending(self, request: httpx2.Request) -> None:
        """Keep a message that is sent; requests for a login aren't messages."""
        if request.method == "POST" and _is_for_messages(request):
            self._messages.add(await request.aread(), sent=True)  # of a redirected request, it isn't read yet

    async def __call__(self, response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream), "the client is asynchronous"
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.headers.get("content-encoding", "identity") != "identity":
            # Not asked for, and a small body could become endless when it is decompressed.
            raise httpx2.RemoteProtocolError("The server sent a compressed response, which was not accepted.")
        has_failed = response.status_code >= 300
        is_events = kind == "text/event-stream" and not has_failed  # a failed response is read to its end
        if not is_events:
            response.stream = _Bounded(response.stream, self._last, has_failed=has_failed)
        if is_events or kind == "application/json":
            assert isinstance(response.stream, httpx2.AsyncByteStream), "as above"
            response.stream = _Readable(
                response.stream,
                is_events=is_events,
                messages=self._messages if _is_for_messages(response.request) else None,
            )
        if response.request.method == "POST" and _is_for_messages(response.request):
            await self._note(response, kind)

    async def _note(self, response: httpx2.Response, kind: str) -> None:
        self._last.status, self._last.kind, self._last.text = response.status_code, kind, ""
        self._last.is_error = False
        if response.status_code >= 300 or kind not in ("application/json", "text/event-stream", ""):
            body = await response.aread()
            self._last.text = said_in(body, is_html=self._last.is_html)
            if "mcp-session-id" in response.request.headers:
                self._note_lost(response.request.content, response.status_code, body)
            if (message := error_in(body)) is not None:
                self._last.text, self._last.is_error = message, True

    def _note_lost(self, sent: bytes, status: int, body: bytes) -> None:
        """Note a request whose session the server doesn't know.

        A server that has read the request answers with its id, also with these statuses, and may have run a tool.
        """
        # The specification requires 404; many servers copy an example that answers 400.
        is_rejected = status == 404 or (status == 400 and "session" in self._last.text.lower())
        number = message_id(sent, sent)
        if is_rejected and number is not None and message_id(body, body) != number:
            self._last.lost.add(str(number))


def _is_for_messages(request: httpx2.Request) -> bool:
    """Return whether a request carries or awaits messages, unlike those of a login."""
    return "event-stream" in request.headers.get("accept", "")


@asynccontextmanager
async def http_streams(
    url: str, headers: Mapping[str, str], last: LastResponse, messages: MessageLog, auth: httpx2.Auth | None = None
) -> AsyncGenerator[TransportStreams]:
    """Connect to a streamable HTTP endpoint; yield the streams of an MCP client.

    Args:
        url: The endpoint.
        headers: Headers of every request, with secrets.
        last: Is updated at each response.
        messages: Receives each message.
        auth: Authorization of the requests.
    """
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=_READ_SECONDS, pool=None)
    hook = _Hook(last, messages)
    client = httpx2.AsyncClient(
        headers={**headers, "accept-encoding": "identity"},
        timeout=timeout,
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=_KEPT_CONNECTIONS),
        auth=auth,
        event_hooks={"request": [hook.sending], "response": [hook]},
    )
    async with client, streamable_http_client(url, http_client=client, max_sse_event_size=LONGEST_MESSAGE) as streams:
        yield streams
