"""Limits of a provider's responses: the size, enforced while they arrive, and the turn, at whose end they are closed.

Imported late: it loads the library.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

import httpx2

LARGEST_EVENT: Final = 16 * 2**20
"""Bytes of one event of a stream; large enough for a complete answer."""
LARGEST_ANSWER: Final = 512 * 2**20
"""Bytes of a whole stream: each token comes with some hundred bytes of JSON."""
LARGEST_ERROR: Final = 64 * 2**10
"""Bytes that are read of an error's body."""

_END_OF_EVENT: Final = re.compile(rb"\n\r?\n|\r\r")
_END_MARKER: Final = re.compile(rb"[\r\n]data: ?\[DONE\]")
"""The last event of OpenAI's protocol; within JSON, a line can't start like this."""
_TAIL: Final = 16
"""Bytes of which the end of an event and the marker consist at most."""

_COMPRESSED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""First bytes of gzip and Zstandard, which can't begin a text."""


_OPEN: Final[ContextVar[list[httpx2.Response]]] = ContextVar("open responses")
"""The responses to the requests of the current turn."""


class ResponseTooLargeError(httpx2.ReadError):
    """A response, or one event of it, exceeded its limit; the connection is closed."""


class CompressedResponseError(httpx2.ReadError):
    """A response is compressed, although the request allowed no compression."""


@asynccontextmanager
async def closed_at_end() -> AsyncGenerator[None]:
    """Close all responses within the block at its end.

    Google's library leaves the response open if an answer is interrupted, or contains an error: the server would
    continue to write it.
    """
    responses: list[httpx2.Response] = []
    _OPEN.set(responses)
    try:
        yield
    finally:
        while responses:
            await responses.pop().aclose()


async def bounded(response: httpx2.Response) -> None:
    """Limit the body of a response, and close it with the turn; a hook of the client."""
    # Never decompressed: a few bytes could become gigabytes. No compression was requested.
    response.headers.pop("content-encoding", None)
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream), "the client is asynchronous"
    stream = _PlainStream(stream, is_answer=response.is_success)
    response.stream = _BoundedStream(_Events(stream) if response.is_success else stream, is_answer=response.is_success)
    if (responses := _OPEN.get(None)) is not None:
        responses.append(response)


def has_end_marker(response: httpx2.Response) -> bool:
    """Return whether the server has marked the end of the answer with `[DONE]`."""
    return isinstance(response.stream, _BoundedStream) and response.stream.has_end_marker


def is_foreign(response: httpx2.Response) -> bool:
    """Return whether a redirect leads to another server, or has an invalid location."""
    try:
        target = response.url.join(response.headers["location"])
    except httpx2.InvalidURL:
        return True
    return _origin(target) != _origin(response.url)


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


class _Events(httpx2.AsyncByteStream):
    """Body of an answer; one that is a JSON object becomes an event, as the library looks for errors only in events.

    Args:
        stream: The body as it arrives.
    """

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        is_json: bool | None = None
        async for chunk in self._stream:
            if is_json is None and (start := chunk.lstrip()):
                is_json = start.startswith(b"{")
                if is_json:
                    yield b"data: "
            yield chunk.replace(b"\n", b"\ndata: ") if is_json else chunk
        if is_json:
            yield b"\n\n"

    async def aclose(self) -> None:
        await self._stream.aclose()


class _PlainStream(httpx2.AsyncByteStream):
    """Body of a response: one that is compressed fails if it is an answer; the body of an error is empty instead.

    Args:
        stream: The body as it arrives.
        is_answer: Whether it is a stream of events.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, *, is_answer: bool) -> None:
        self._stream = stream
        self._is_answer = is_answer

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        is_first = True
        async for chunk in self._stream:
            # By its content: servers also declare a compression that they don't apply.
            if is_first and chunk.startswith(_COMPRESSED):
                if self._is_answer:
                    raise CompressedResponseError("It is compressed, although the request allowed no compression.")
                return
            is_first = is_first and not chunk
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """Body of a response with a size limit.

    Args:
        stream: The body as it arrives.
        is_answer: Whether it is a stream of events, which fails at the limit; an error's body is shortened instead.

    Attributes:
        has_end_marker: Whether the event `[DONE]` has arrived.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, *, is_answer: bool) -> None:
        self._stream = stream
        self._is_answer = is_answer
        self.has_end_marker = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._events() if self._is_answer else self._beginning()

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def _events(self) -> AsyncGenerator[bytes]:
        total = of_event = 0
        tail = b"\n"
        async for chunk in self._stream:
            total += len(chunk)
            of_event += len(chunk)
            seen = tail + chunk
            self.has_end_marker = self.has_end_marker or _END_MARKER.search(seen) is not None
            end = max((match.end() for match in _END_OF_EVENT.finditer(seen)), default=None)
            if end is not None:
                of_event = len(seen) - end
            tail = seen[-_TAIL:]
            if of_event > LARGEST_EVENT:
                raise ResponseTooLargeError(
                    f"It sent more than {LARGEST_EVENT // 2**20} MiB without completing an event."
                )
            if total > LARGEST_ANSWER:
                raise ResponseTooLargeError(f"It sent more than {LARGEST_ANSWER // 2**20} MiB.")
            yield chunk

    async def _beginning(self) -> AsyncGenerator[bytes]:
        left = LARGEST_ERROR
        async for chunk in self._stream:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return
