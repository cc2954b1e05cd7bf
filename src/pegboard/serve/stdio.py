"""The stdio transport: one message per line.

It differs from the SDK's in three ways: reading and writing need no threads for usual messages, a line is bounded, and
a client that doesn't read can't keep the program from ending.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import stat
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from pegboard.data.message_id import LOOKED_AT, request_id

if TYPE_CHECKING:
    from pegboard.serve.service import Service

LONGEST_MESSAGE: Final = 32 * 2**20
"""Bytes of one message."""
_CHUNK: Final = 2**18
_MOST_CHUNKS: Final = 16
"""Chunks that wait for the server beyond which no more are read."""

_REASONS: Final = {
    "recursion limit": "it is nested too deeply",
    "out of range": "it has a number with too many digits",
    "hex escape": "it has half a character",
    "unicode code point": "it is not UTF-8",
}
"""Parts of a parser's message → what they mean for valid JSON."""


class _LongLine(NamedTuple):
    """A line that is too long."""

    start: bytes
    end: bytes


async def serve_stdio(service: Service) -> None:
    """Serve the client on stdin and stdout until stdin ends. Other output of this process goes to stderr."""
    async with service.running(), _streams() as (read, write):
        await service.introduced()
        await service.server.run(read, write, service.server.create_initialization_options())


@asynccontextmanager
async def _streams() -> AsyncIterator[
    tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
]:
    wire_in, wire_out = _claim()
    received, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, sent = anyio.create_memory_object_stream[SessionMessage](0)
    out = _Output(wire_out)
    async with anyio.create_task_group() as group:
        group.start_soon(_receive, wire_in, received, out)
        group.start_soon(_send, sent, out)
        yield read, write
        group.cancel_scope.cancel()


def _claim() -> tuple[int, int]:
    """Return descriptors of the client's pipes; replace stdin by nothing and stdout by stderr for everything else."""
    sys.stdout.flush()
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return wire_in, wire_out


async def _receive(wire: int, received: MemoryObjectSendStream[SessionMessage | Exception], out: _Output) -> None:
    async with received:
        async for line in _lines(wire):
            if isinstance(line, _LongLine):
                number = request_id(line.start, line.end)
                await out.reject(INVALID_REQUEST, f"The message is longer than {LONGEST_MESSAGE} bytes.", number)
                continue
            if not line.strip():
                continue
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except (ValidationError, RecursionError) as error:
                await out.reject(*_unreadable(error), request_id(line, line))
                continue
            if isinstance(message, JSONRPCNotification) and _has_id(message, line):
                await out.reject(INVALID_REQUEST, "The id of a request is a string or an integer.", None)
                continue
            try:
                await received.send(SessionMessage(message))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return


async def _send(sent: MemoryObjectReceiveStream[SessionMessage], out: _Output) -> None:
    async with sent:
        async for message in sent:
            with suppress(OSError):  # The client no longer reads; the end of stdin ends the program.
                await out.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")


def _has_id(message: JSONRPCNotification, line: bytes) -> bool:
    """Return whether a message is a request whose id is of another type, which the SDK reads as a notification."""
    return not message.method.startswith("notifications/") and "id" in json.loads(line)


def _unreadable(error: ValidationError | RecursionError) -> tuple[int, str]:
    """Return the code and the text of the response to a message that can't be read."""
    first = error.errors(include_url=False)[0] if isinstance(error, ValidationError) else None
    if first is not None and first["type"] != "json_invalid":
        return INVALID_REQUEST, "This is not a message of JSON-RPC 2.0; batches aren't supported."
    found = str(first["ctx"]["error"]) if first is not None else "recursion limit exceeded"
    reason = next((reason for part, reason in _REASONS.items() if part in found), "")
    return PARSE_ERROR, f"The message can't be read: {reason}." if reason else f"This is not JSON: {found}."


async def _lines(wire: int) -> AsyncIterator[bytes | _LongLine]:
    """Yield lines; only the start and the end of one that is too long."""
    pending = bytearray()
    start_of_long = b""
    async for chunk in _chunks(wire):
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            pending += chunk[start:end]
            start = end + 1
            if start_of_long or len(pending) > LONGEST_MESSAGE:
                yield _LongLine(start_of_long or bytes(pending[:LOOKED_AT]), bytes(pending[-LOOKED_AT:]))
            else:
                yield bytes(pending)
            pending.clear()
            start_of_long = b""
        pending += chunk[start:]
        if len(pending) > LONGEST_MESSAGE:
            start_of_long = start_of_long or bytes(pending[:LOOKED_AT])
            del pending[:-LOOKED_AT]


async def _chunks(wire: int) -> AsyncIterator[bytes]:
    """Yield what arrives; wait without a thread if the descriptor can be polled."""
    loop = asyncio.get_running_loop()
    arrived: deque[bytes] = deque()
    changed = asyncio.Event()
    is_paused = False

    def read() -> None:
        nonlocal is_paused
        # Read here and not in the task: until then, the event loop would report the same data again.
        try:
            arrived.append(os.read(wire, _CHUNK))
        except OSError:  # the terminal was closed
            arrived.append(b"")
        if not arrived[-1] or len(arrived) >= _MOST_CHUNKS:
            is_paused = True
            loop.remove_reader(wire)
        changed.set()

    if not _is_watched(wire, read):
        while chunk := os.read(wire, _CHUNK):
            yield chunk
            await asyncio.sleep(0)
        return
    try:
        while True:
            await changed.wait()
            changed.clear()
            while arrived:
                if not arrived[0]:
                    return
                yield arrived.popleft()
            if is_paused:
                is_paused = False
                loop.add_reader(wire, read)
    finally:
        loop.remove_reader(wire)


def _is_watched(wire: int, read: Callable[[], None]) -> bool:
    """Have the event loop call `read` for what arrives; return False for a regular file.

    Linux refuses to watch a file, and macOS never reports its end.
    """
    if stat.S_ISREG(os.fstat(wire).st_mode):
        return False
    try:
        asyncio.get_running_loop().add_reader(wire, read)
    except (OSError, NotImplementedError):
        return False
    return True


class _Output:
    """Writer of whole messages, one after the other.

    Args:
        wire: The descriptor; it stays in blocking mode, because other processes may share it.
    """

    def __init__(self, wire: int) -> None:
        self._wire = wire
        self._poll = select.poll()
        self._poll.register(wire, select.POLLOUT)
        self._lock = asyncio.Lock()

    async def reject(self, code: int, message: str, number: int | str | None) -> None:
        """Answer a message that can't be read with an error, unless the client no longer reads.

        Args:
            code: Code of the error.
            message: Text of the error.
            number: Id of the request; None if it is unknown.
        """
        error = JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=message))
        with suppress(OSError):
            await self.write(error.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def write(self, data: bytes) -> None:
        """Write a message; wait until the client accepts it.

        Raises:
            BrokenPipeError: The client no longer reads.
        """
        async with self._lock:
            # A pipe that is ready accepts this much without blocking.
            if len(data) <= select.PIPE_BUF and self._poll.poll(0):
                os.write(self._wire, data)
            else:
                await self._write_in_thread(data)

    async def _write_in_thread(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def finish(error: OSError | None) -> None:
            if not done.done():
                if error is None:
                    done.set_result(None)
                else:
                    done.set_exception(error)

        def write() -> None:
            error = None
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(self._wire, left) :]
            except OSError as raised:
                error = raised
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(finish, error)

        # A daemon, so that a client that doesn't read can't keep this process alive.
        threading.Thread(target=write, daemon=True).start()
        await done
