"""State of one call of a server's tool, between the connection's thread and the caller's event loop."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Literal

from pegboard.models import CallEvent, Finished, Log, Progress, ToolCall, ToolResult

_LONGEST_LOG = 65_536
_MOST_UNSEEN = 1_000
"""Events that the caller hasn't read yet; while there are as many, more output is dropped and counted."""


class RunningCall:
    """One call, its pending events and its result. Create it in the event loop of the caller.

    Args:
        call: The call.
        log_limit: Characters of output to keep; the rest is only counted.
    """

    def __init__(self, call: ToolCall, log_limit: int) -> None:
        self.call = call
        self.result: ToolResult | None = None
        self.stop: Callable[[], None] = lambda: None
        """Thread-safe callback that ends the call at the server."""
        self.dropped = 0
        """Characters of output beyond the limit."""
        self._loop = asyncio.get_running_loop()
        self._lock = Lock()
        self._unseen: deque[CallEvent] = deque()
        self._log_left = log_limit
        self._wake: asyncio.Future[None] | None = None
        self._is_waking = False

    async def next_event(self) -> CallEvent:
        """Wait for the next event; the last one is `Finished`."""
        while True:
            with self._lock:
                if self._unseen:
                    return self._unseen.popleft()
                if self.result is not None:
                    return Finished(call=self.call, result=self.result)
                self._wake = self._loop.create_future()
                self._is_waking = False
            await self._wake

    def post(self, event: CallEvent) -> None:
        """Add an event. Thread-safe."""
        with self._lock:
            if self.result is None:
                self._add(event)

    def log(self, stream: Literal["stderr", "log"], text: str) -> None:
        """Add output. Thread-safe."""
        with self._lock:
            kept = text[: self._log_left] if len(self._unseen) < _MOST_UNSEEN else ""
            self._log_left -= len(kept)
            self.dropped += len(text) - len(kept)
            if not kept or self.result is not None:
                return
            last = self._unseen[-1] if self._unseen else None
            if isinstance(last, Log) and last.stream == stream and len(last.text) + len(kept) <= _LONGEST_LOG:
                self._unseen.pop()
                kept = last.text + kept
            self._add(Log(call_id=self.call.id, stream=stream, text=kept))

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Add progress; only the latest matters. Thread-safe."""
        if not math.isfinite(done) or (total is not None and not math.isfinite(total)):
            return
        with self._lock:
            if self.result is not None:
                return
            if self._unseen and isinstance(self._unseen[-1], Progress):
                self._unseen.pop()
            self._add(Progress(call_id=self.call.id, done=done, total=total, message=message))

    def end(self, result: ToolResult) -> None:
        """End the call with a result, unless it already has one. Thread-safe."""
        with self._lock:
            if self.result is None:
                self.result = result
                self._notify()

    def _add(self, event: CallEvent) -> None:
        self._unseen.append(event)
        self._notify()

    def _notify(self) -> None:
        if self._wake is not None and not self._is_waking:
            self._is_waking = True
            with suppress(RuntimeError):  # the caller's event loop is closed
                self._loop.call_soon_threadsafe(self._resume)

    def _resume(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
