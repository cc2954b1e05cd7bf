"""Time limits of the running calls of one server."""

from __future__ import annotations

import math
from collections.abc import Iterator, KeysView
from contextlib import contextmanager

import anyio

from pegboard.mcp.running_call import RunningCall


class TimeLimits:
    """Time limits of the running calls of one server, which pause together while one of them waits for the user."""

    def __init__(self) -> None:
        self._scopes: dict[RunningCall, anyio.CancelScope] = {}
        self._pauses = 0
        self._left: dict[RunningCall, float] = {}
        """Seconds that are left to the calls whose time limits are paused."""

    @property
    def calls(self) -> KeysView[RunningCall]:
        """The running calls, the earliest first."""
        return self._scopes.keys()

    @contextmanager
    def limit(self, call: RunningCall, seconds: float) -> Iterator[anyio.CancelScope]:
        """Limit the time of a call; yield the scope that is cancelled then."""
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
            self._scopes[call] = scope
            try:
                yield scope
            finally:
                del self._scopes[call]
                self._left.pop(call, None)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the limits of the calls that are running now; they continue after the last of several pauses."""
        now = anyio.current_time()
        self._pauses += 1
        for call, scope in self._scopes.items():
            if call not in self._left:
                self._left[call], scope.deadline = scope.deadline - now, math.inf
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                now = anyio.current_time()
                for call, seconds in self._left.items():
                    self._scopes[call].deadline = now + seconds
                self._left.clear()
