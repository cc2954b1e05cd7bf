"""Process of a stdio server, and its pipes as the streams of an MCP client.

Unlike the SDK's `stdio_client`, buffers are bounded, lines that aren't messages cost nothing but themselves, and the
process ends with Pegboard even if that is killed, see `pegboard.worker.keeper`.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import from_json

from pegboard.data.message_id import LOOKED_AT, response_id
from pegboard.mcp.limits import LONGEST_MESSAGE
from pegboard.mcp.messages import MessageLog
from pegboard.mcp.texts import RESPONSE, OwnWords
from pegboard.results.sizes import size as size_text
from pegboard.worker.keeper import TERMINATE

_CODE = "import sys; sys.path.append(sys.argv.pop(1)); from pegboard.mcp.launch import main; main()"
_ROOT = str(Path(__file__).parents[2])

_QUEUED_LINES, _QUEUED_BYTES = 256, 4 * 2**20
"""Messages read ahead. Beyond them the pipe fills, and the server waits."""
_MOST_GARBAGE = 16 * 2**20
"""Bytes on stdout that aren't messages, after which the server is ended."""
_GARBAGE_LINE = 64
"""Bytes that each of their lines counts in addition, because reading many short lines takes long."""
_GARBAGE_AT_ONCE = 64
_LONGEST_SKIPPED = 256 * 2**20
"""Bytes of one line, after which the server is ended; what exceeds the limit of a message is dropped as it comes."""
_STDERR_LINES, _STDERR_WIDTH = 50, 500
_STDERR_KEPT = 400
"""Lines of stderr for requests that fail: the traceback of a chain of exceptions begins with the first cause."""

_CLOSE_SECONDS, _TERMINATE_SECONDS, _KILL_SECONDS = 1.5, 1.0, 3.0
"""Time for the server to end after its stdin was closed, after SIGTERM, and after SIGKILL."""


class ServerProcess:
    """A stdio server as a transport of `mcp.Client`: an async context manager that yields two streams.

    Args:
        program: Absolute path of the program.
        arguments: Its arguments.
        environment: All its environment variables.
        folder: Its working directory.
        on_stderr: Receiver of each piece of stderr.
        messages: Receives each message, each line of stdout that isn't a message, and each line of stderr.
    """

    def __init__(
        self,
        program: str,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: str,
        on_stderr: Callable[[str], None],
        messages: MessageLog,
    ) -> None:
        self._command = [program, *arguments]
        self._environment = dict(environment)
        self._folder = folder
        self._on_stderr = on_stderr
        self._messages = messages
        self._stderr: deque[str] = deque(maxlen=_STDERR_KEPT)
        self._stderr_rest = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._ended: asyncio.Event = asyncio.Event()
        self._report = b""
        self.reader = _MessageReader(self._end_soon, messages)

    @property
    def pid(self) -> int:
        """Process id of the keeper; 0 before the start."""
        return 0 if self._process is None else self._process.pid

    @property
    def stderr(self) -> tuple[str, ...]:
        """The last lines of stderr."""
        last = tuple(self._stderr)[-_STDERR_LINES:]
        return (*last, self._stderr_rest) if self._stderr_rest.strip() else last

    @property
    def kept_stderr(self) -> tuple[str, ...]:
        """The last lines of stderr, and many before them."""
        return tuple(self._stderr)

    @property
    def exit(self) -> str:
        """Reason of its end, such as `exit code 1`; empty while it runs."""
        reason, _, number = self._report.decode(errors="replace").partition(" ")
        if reason != "exit" or not number.lstrip("-").isdigit():
            return "killed" if self._ended.is_set() else ""
        status = int(number)
        if status >= 0:
            return f"exit code {status}"
        with suppress(ValueError):
            return signal.Signals(-status).name
        return f"signal {-status}"

    async def __aenter__(self) -> tuple[_MessageReader, _MessageWriter]:
        loop = asyncio.get_running_loop()
        self._control, of_keeper = socket.socketpair()
        self._control.setblocking(False)
        try:
            self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - this loop has its own thread
                [sys.executable, "-I", "-S", "-c", _CODE, _ROOT, str(of_keeper.fileno()), self._folder, *self._command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=(of_keeper.fileno(),),
                start_new_session=True,
                env=self._environment,
            )
        except OSError:
            self._control.close()
            raise
        finally:
            of_keeper.close()
        loop.add_reader(self._control, self._read_report)
        self._pipes: list[asyncio.BaseTransport] = []
        flow = _Flow()
        try:
            await self._read_pipe(self.reader, self._process.stdout)
            await self._read_pipe(_TextReader(self._add_stderr), self._process.stderr)
            stdin, _ = await loop.connect_write_pipe(lambda: flow, self._process.stdin)
        except (OSError, asyncio.CancelledError):
            self.end()
            with anyio.CancelScope(shield=True):
                await self._release()
            raise
        self._pipes.append(stdin)
        self.writer = _MessageWriter(stdin, flow, self._messages)
        return self.reader, self.writer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._stop()

    def end(self) -> None:
        """Kill the server and everything that it started."""
        with suppress(OSError):  # the keeper has ended
            self._control.shutdown(socket.SHUT_WR)

    async def wait(self, seconds: float) -> bool:
        """Wait until the process has ended; return False if it hasn't after some seconds."""
        with anyio.move_on_after(seconds):
            await self._ended.wait()
        return self._ended.is_set()

    async def _stop(self) -> None:
        self.reader.discard()
        await self.writer.aclose()
        if not await self.wait(_CLOSE_SECONDS):
            self._terminate()
            if not await self.wait(_TERMINATE_SECONDS):
                self.end()
                await self.wait(_KILL_SECONDS)
        await self._release()

    async def _release(self) -> None:
        """Wait for the end of the process, and close the pipes."""
        assert self._process is not None, "it was started"
        if not self._ended.is_set():
            self._process.kill()  # a keeper that hangs; the system then kills the server
        await asyncio.to_thread(self._process.wait)
        for pipe in self._pipes:
            pipe.close()
        asyncio.get_running_loop().remove_reader(self._control)
        self._control.close()

    def _end_soon(self) -> None:
        self._terminate()
        asyncio.get_running_loop().call_later(_TERMINATE_SECONDS, self.end)

    def _terminate(self) -> None:
        with suppress(OSError):  # the keeper has ended
            self._control.send(TERMINATE)

    def _read_report(self) -> None:
        try:
            report = self._control.recv(100)
        except BlockingIOError:
            return
        except OSError:
            report = b""
        self._report += report
        asyncio.get_running_loop().remove_reader(self._control)
        self._ended.set()

    async def _read_pipe(self, protocol: asyncio.Protocol, pipe: IO[bytes] | None) -> None:
        assert pipe is not None, "it is a pipe"
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
        self._pipes.append(transport)

    def _add_stderr(self, text: str) -> None:
        self._on_stderr(text)
        *lines, rest = (self._stderr_rest + text[-_STDERR_KEPT * _STDERR_WIDTH :]).split("\n")
        complete = [line.rstrip("\r")[:_STDERR_WIDTH] for line in lines if line.strip()]
        self._stderr.extend(complete)
        for line in complete:
            self._messages.add_stderr(line)
        self._stderr_rest = rest[-_STDERR_WIDTH:]


class _Flow(asyncio.Protocol):
    """Flow control of a pipe that is written to."""

    def __init__(self) -> None:
        self._free = asyncio.Event()
        self._free.set()
        self.is_lost = False

    def pause_writing(self) -> None:
        self._free.clear()

    def resume_writing(self) -> None:
        self._free.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._free.set()

    async def wait(self) -> None:
        """Wait until more can be written."""
        await self._free.wait()


class _TextReader(asyncio.Protocol):
    """Reader of a pipe that passes on text."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def data_received(self, data: bytes) -> None:
        self._on_text(self._decoder.decode(data))


class _MessageWriter(ObjectSendStream[SessionMessage]):
    """The server's stdin as an MCP write stream."""

    def __init__(self, transport: asyncio.WriteTransport, flow: _Flow, messages: MessageLog) -> None:
        self._transport = transport
        self._flow = flow
        self._messages = messages

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message; wait while the server doesn't read."""
        if self._flow.is_lost or self._transport.is_closing():
            raise anyio.ClosedResourceError
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        self._messages.add(line, sent=True)
        self._transport.write(line + b"\n")
        await self._flow.wait()

    async def aclose(self) -> None:
        """Close stdin, which asks the server to end. What it hasn't read is dropped."""
        if not self._transport.is_closing():
            if self._transport.get_write_buffer_size():
                self._transport.abort()
            else:
                self._transport.close()


class _MessageReader(asyncio.Protocol, ObjectReceiveStream[SessionMessage]):
    """The server's stdout as an MCP read stream, with bounded buffers.

    Args:
        on_flood: Callback for too much output that isn't messages.
        messages: Receives each line.
    """

    def __init__(self, on_flood: Callable[[], None], messages: MessageLog) -> None:
        self._on_flood = on_flood
        self._messages = messages
        self._transport: asyncio.ReadTransport | None = None
        self._lines: deque[bytes | SessionMessage] = deque()
        self._size = 0
        self._rest = bytearray()
        self._scanned = 0
        self._skipped = 0
        self._skipped_head = b""
        self._is_paused = False
        self._is_over = False
        self._is_discarding = False
        self._arrived: asyncio.Future[None] | None = None
        self.garbage = 0
        """Number of lines that weren't messages."""
        self.garbage_bytes = 0
        self.sample = ""
        """The first of them."""
        self.is_flooded = False
        """Whether there was too much of it."""

    # Receiving bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.ReadTransport), "it reads a pipe"
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._is_discarding:
            return
        self._rest += data
        start = 0
        while (end := self._rest.find(b"\n", max(start, self._scanned))) >= 0:
            self._take(bytes(self._rest[start:end]))
            start = self._scanned = end + 1
        del self._rest[:start]
        self._scanned = len(self._rest)
        if len(self._rest) > LONGEST_MESSAGE:
            self._skip(bytes(self._rest))
            self._rest.clear()
            self._scanned = 0
        self._notify()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._notify()

    def discard(self) -> None:
        """Read and drop everything from now on, so that a server that is writing can end."""
        self._is_discarding = self._is_over = True
        self._lines.clear()
        self._rest.clear()
        if self._is_paused and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        self._notify()

    def _take(self, line: bytes) -> None:
        if self._skipped:
            self._lines.append(self._too_long(line))
        elif line and not line.isspace():
            self._lines.append(line)
            self._size += len(line)
            self._messages.add(line, sent=False)
        else:
            return
        if not self._is_paused and (len(self._lines) >= _QUEUED_LINES or self._size >= _QUEUED_BYTES):
            self._is_paused = True
            assert self._transport is not None, "it is connected"
            self._transport.pause_reading()

    def _skip(self, part: bytes) -> None:
        if not self._skipped:
            self._skipped_head = part[:LOOKED_AT]
        self._skipped += len(part)
        if self._skipped > _LONGEST_SKIPPED:
            self.sample = self.sample or self._skipped_head[:200].decode("utf-8", "replace")
            self._flood()

    def _too_long(self, end: bytes) -> bytes | SessionMessage:
        """Return the failed response to a request whose response was too long; garbage if it was none."""
        number = response_id(self._skipped_head, end)
        size, self._skipped = self._skipped + len(end), 0
        if number is None:
            return b"(a line of " + size_text(size).encode() + b")"
        message = f"{RESPONSE} of {size_text(size)} exceeds the limit of {size_text(LONGEST_MESSAGE)}."
        return _failed_response(number, message)

    def _count_garbage(self, line: bytes) -> None:
        self.garbage += 1
        self.garbage_bytes += len(line) + _GARBAGE_LINE
        if not self.sample:
            self.sample = line[:200].decode("utf-8", "replace").strip()
        if self.garbage_bytes > _MOST_GARBAGE:
            self._flood()

    def _flood(self) -> None:
        if not self.is_flooded:
            self.is_flooded = True
            self._on_flood()

    def _notify(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    # Stream of messages

    async def receive(self) -> SessionMessage:
        """Return the next message.

        Raises:
            anyio.EndOfStream: The server closed its stdout.
        """
        while True:
            while not self._lines:
                if self._is_over:
                    raise anyio.EndOfStream
                self._arrived = asyncio.get_running_loop().create_future()
                await self._arrived
            line = self._lines.popleft()
            if isinstance(line, SessionMessage):
                return line
            self._size -= len(line)
            if self._is_paused and len(self._lines) < _QUEUED_LINES // 2 and self._size < _QUEUED_BYTES:
                self._is_paused = False
                if self._transport is not None and not self._transport.is_closing():
                    self._transport.resume_reading()
            try:
                # Parsing first takes a fifth of the time of `validate_json`, which tries each kind of message.
                return SessionMessage(jsonrpc_message_adapter.validate_python(_parsed(line), by_name=False))
            except ValueError as error:
                if (number := response_id(line, line)) is not None:
                    return _failed_response(number, f"{RESPONSE} is not valid JSON-RPC: {_reason(error)}.")
                self._count_garbage(line)
                if self.garbage % _GARBAGE_AT_ONCE == 0:
                    await asyncio.sleep(0)  # a flood must not keep the loop from other servers

    async def aclose(self) -> None:
        """Stop reading messages."""
        self.discard()


def _parsed(line: bytes) -> object:
    """Return a message, also if a part is nested deeply or has a lone surrogate: it must not spoil the other parts.

    Raises:
        ValueError: It is not JSON, or can't be represented.
    """
    try:
        return from_json(line)
    except ValueError as error:
        try:
            return json.loads(line.decode())
        except (ValueError, RecursionError):
            raise error from None


def _failed_response(number: int | str, message: str) -> SessionMessage:
    """Return a response that fails a request."""
    error = ErrorData(code=INTERNAL_ERROR, message=message, data=OwnWords())
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))


def _reason(error: ValueError) -> str:
    """Return the first validation error of a message in a few words."""
    if isinstance(error, ValidationError):
        return str(error.errors(include_url=False, include_input=False)[0]["msg"])
    return str(error)
