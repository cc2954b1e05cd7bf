"""Input pipe of the worker: requests, and replies to questions of running tools."""

from __future__ import annotations

from _thread import allocate_lock
from contextlib import suppress
from json import loads
from os import read

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable
    from typing import Any  # fields of messages, described in `wire`

_CHUNK = 65_536


class Inbox:
    """Reader of the input pipe without a thread of its own: one of the waiting threads reads for all.

    Args:
        descriptor: Read end of the pipe.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pieces: list[bytes] = []
        self._requests: list[dict[str, Any]] = []
        self._waiting: dict[int, _Waiting] = {}
        self._reading = allocate_lock()
        self._has_ended = False

    def request(self) -> dict[str, Any] | None:
        """Wait for the next request; return None at the end of the pipe."""
        with self._reading:
            while not self._requests and not self._has_ended:
                self._read()
        return self._requests.pop(0) if self._requests else None

    def reply(self, number: int, ask: Callable[[], None]) -> dict[str, Any]:
        """Send a question and wait for the reply. Thread-safe.

        Args:
            number: Unique number of the question.
            ask: Function that sends the question.

        Raises:
            RuntimeError: The pipe was closed without a reply.
        """
        waiting = self._waiting[number] = _Waiting()
        try:
            ask()
            while waiting.reply is None:
                if self._has_ended:
                    raise RuntimeError("Pegboard ended during the call.")
                if self._reading.acquire(blocking=False):
                    try:
                        self._read_for(waiting)
                    finally:
                        self._reading.release()
                else:
                    waiting.turn.acquire()
            return waiting.reply
        finally:
            del self._waiting[number]
            self._wake_next_reader()

    def _wake_next_reader(self) -> None:
        for waiting in [*self._waiting.values()]:
            if waiting.reply is None:
                waiting.wake()
                return

    def _read_for(self, waiting: _Waiting) -> None:
        while waiting.reply is None and not self._has_ended:
            self._read()

    def _read(self) -> None:
        data = read(self._descriptor, _CHUNK)
        self._has_ended = not data
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._pieces, lines[0]))
            self._pieces.clear()
        self._pieces.append(rest)
        for line in lines:
            self._dispatch(loads(line))

    def _dispatch(self, message: dict[str, Any]) -> None:
        if "reply" not in message:
            self._requests.append(message)
            return
        waiting = self._waiting.get(message["reply"])
        if waiting is not None:  # otherwise the waiting thread was interrupted
            waiting.reply = message
            waiting.wake()


class _Waiting:
    """Thread that waits for its reply or for its turn to read."""

    def __init__(self) -> None:
        self.reply: dict[str, Any] | None = None
        self.turn: LockType = allocate_lock()
        self.turn.acquire()

    def wake(self) -> None:
        with suppress(RuntimeError):  # already awake
            self.turn.release()
