"""Socket between the proxy and its observer: frames with a kind, a connection, a number, a time and a payload."""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

from pegboard.watch.lines import KEPT_ENDS, Clipped

TYPE_CHECKING = False  # `typing` delays the start
if TYPE_CHECKING:
    from typing import NamedTuple

    class Frame(NamedTuple):
        """One message between the proxy and the observer."""

        kind: bytes
        connection: int
        number: int
        at: float
        payload: bytes
else:
    from collections import namedtuple

    Frame = namedtuple("Frame", "kind connection number at payload")  # noqa: PYI024 - see above

OPENED, CLIENT, SERVER, CLIPPED_CLIENT, CLIPPED_SERVER, GONE, CLOSED = b"o", b"c", b"s", b"C", b"S", b"g", b"e"
"""Kinds of frames from the proxy: a connection, its lines, a held call that won't be forwarded, its end."""
HELLO, VERDICT, MESSAGE = b"h", b"v", b"m"
"""Kinds of frames from the observer: the files that decide whether calls are checked, a decision, text for stderr."""
PASS, HOLD, REJECT = b"p", b"h", b"r"
"""First byte of a decision. After `PASS` follow the edited line and, after a null byte, the note for the agent, if any;
after `REJECT` the response."""

_HEADER = struct.Struct("!cIIdQ")
_SIZE = struct.Struct("!Q")
_MOST_QUEUED = 64 * 2**20
"""Bytes that wait for the observer. Beyond them, only the ends of messages are kept."""
_OBSERVER = "pegboard.watch.observer"
_CODE = (
    "import sys; sys.path.append(sys.argv[1]); from importlib import import_module;"
    " import_module(sys.argv[2]).main(*sys.argv[3:])"
)


def clip(line: bytes) -> bytes:
    """Return the payload of a clipped line: the size of the whole, its start and its end."""
    total = line.total if isinstance(line, Clipped) else len(line)
    return _SIZE.pack(total) + bytes(line[:KEPT_ENDS]) + bytes(line[KEPT_ENDS:][-KEPT_ENDS:])


def clipped(payload: bytes) -> tuple[int, bytes]:
    """Return the size of a clipped line, and its start and end."""
    return _SIZE.unpack_from(payload)[0], payload[_SIZE.size :]


def pack(kind: bytes, connection: int, number: int, payload: bytes, at: float | None = None) -> bytes:
    """Return a frame as bytes."""
    return _HEADER.pack(kind, connection, number, time.time() if at is None else at, len(payload)) + payload


def frames(receive: Callable[[int], bytes]) -> Iterator[Frame]:
    """Yield frames until the other side closes the socket.

    Args:
        receive: Returns at most so many bytes; none at the end.
    """
    buffer = bytearray()
    while True:
        while len(buffer) >= _HEADER.size:
            kind, connection, number, at, length = _HEADER.unpack_from(buffer)
            end = _HEADER.size + length
            if len(buffer) < end:
                break
            payload = bytes(buffer[_HEADER.size : end])
            del buffer[:end]
            yield Frame(kind, connection, number, at, payload)
        chunk = receive(2**18)
        if not chunk:
            return
        buffer += chunk


def spawn(module: str, descriptor: int, *arguments: str) -> None:
    """Start the `main` of a module in a process that outlives this one and its group, to have time to record.

    Args:
        module: The module.
        descriptor: The descriptor of a socket that the process inherits, the first argument of `main`.
        arguments: More arguments.

    Raises:
        OSError: It can't be started.
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.set_inheritable(descriptor, True)
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-c", _CODE, root, module, str(descriptor), *arguments],
            os.environb,
            file_actions=[(os.POSIX_SPAWN_DUP2, nothing, standard) for standard in range(3)],
            setsid=True,
        )
    finally:
        os.close(nothing)


class ObserverLink:
    """The proxy's side: sending never blocks, and never raises.

    Args:
        on_frame: Called on a thread of its own with each frame from the observer.
        on_lost: Called on that thread when the observer has ended.
    """

    def __init__(self, on_frame: Callable[[Frame], None], on_lost: Callable[[], None]) -> None:
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._lock = threading.Lock()
        self._queue: deque[bytes | memoryview] = deque()
        self._queued = 0
        self._queue_filled = threading.Event()
        self._sender: threading.Thread | None = None
        self._socket: socket.socket | None = None
        self._is_closing = False
        self.is_lost = False
        """Whether the observer has ended, or never started."""

    def start(self) -> None:
        """Start the observer."""
        ours, theirs = socket.socketpair()
        try:
            spawn(_OBSERVER, theirs.fileno())
        except OSError:
            self.is_lost = True
            ours.close()
            self._on_lost()
            return
        finally:
            theirs.close()
        ours.setblocking(False)  # macOS ignores MSG_DONTWAIT for sending
        self._socket = ours
        threading.Thread(target=self._receive, daemon=True).start()

    def send(self, kind: bytes, connection: int, payload: bytes, number: int = 0) -> None:
        """Send a frame, or queue it; drop it if the observer has ended."""
        if self._socket is None or self.is_lost:
            return
        if isinstance(payload, Clipped):
            kind, payload = kind.upper(), clip(payload)
        with self._lock:
            if self._queued > _MOST_QUEUED and kind in (CLIENT, SERVER):
                kind, payload = kind.upper(), clip(payload)
            header = _HEADER.pack(kind, connection, number, time.time(), len(payload))
            parts: tuple[bytes, bytes | memoryview] = (header, payload)
            if not self._queue:
                try:
                    sent = self._socket.sendmsg(parts)
                except BlockingIOError:
                    sent = 0
                except OSError:
                    self.is_lost = True
                    return
                if sent == len(header) + len(payload):
                    return
                parts = (header[sent:], memoryview(payload)[max(0, sent - len(header)) :])
            for part in parts:
                if part:
                    self._queue.append(part)
                    self._queued += len(part)
            if self._sender is None:
                self._sender = threading.Thread(target=self._send_queue, daemon=True)
                self._sender.start()
            self._queue_filled.set()

    def close(self, seconds: float) -> None:
        """Send the queue, for at most some seconds, and close the socket."""
        self._is_closing = True
        end = time.monotonic() + seconds
        while self._queue and not self.is_lost and time.monotonic() < end:
            time.sleep(0.002)
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)

    def _send_queue(self) -> None:
        assert self._socket is not None, "it was started"
        while True:
            self._queue_filled.wait()
            self._queue_filled.clear()
            while self._queue:
                frame = self._queue[0]
                try:
                    _send_all(self._socket, frame)
                except OSError:
                    self.is_lost = True
                    self._queue.clear()
                    return
                with self._lock:  # It stays in the queue until it is sent, so that no other frame overtakes it.
                    self._queue.popleft()
                    self._queued -= len(frame)

    def _receive(self) -> None:
        assert self._socket is not None, "it was started"
        link = self._socket

        def receive(size: int) -> bytes:
            while True:
                _wait_for(link, select.POLLIN)
                with suppress(BlockingIOError):
                    return link.recv(size)

        with suppress(OSError):
            for frame in frames(receive):
                self._on_frame(frame)
        self.is_lost = True
        if not self._is_closing:
            self._on_lost()


def _send_all(link: socket.socket, data: bytes | memoryview) -> None:
    """Wait until all of the data is sent.

    Raises:
        OSError: The other side has ended.
    """
    rest = memoryview(data)
    while rest:
        _wait_for(link, select.POLLOUT)
        with suppress(BlockingIOError):  # the buffer has space, but not enough
            rest = rest[link.send(rest) :]


def _wait_for(link: socket.socket, event: int) -> None:
    poll = select.poll()
    poll.register(link, event)
    poll.poll()
