"""Time limits of the running calls and other requests of one server."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from pegboard.mcp.running_call import RunningCall


class TimeLimits:
    """Time limits of the requests to one server, which pause together while one of them waits for the user."""

    def __init__(self) -> None:
        self._scopes: dict[anyio.CancelScope, RunningCall | None] = {}
        self._pauses = 0
        self._left: dict[anyio.CancelScope, float] = {}
        """Seconds that are left to the requests whose time limits are paused."""

    @property
    def calls(self) -> list[RunningCall]:
        """The running calls, the earliest first."""
        return [call for call in self._scopes.values() if call is not None]

    @contextmanager
    def limit(self, seconds: float, call: RunningCall | None = None) -> Iterator[anyio.CancelScope]:
        """Limit the time of a request; yield the scope that is cancelled then.

        Args:
            seconds: The limit.
            call: The call, if the request is one.
        """
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
            self._scopes[scope] = call
            try:
                yield scope
            finally:
                del self._scopes[scope]
                self._left.pop(scope, None)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the limits of the requests that are open now; they continue after the last of several pauses."""
        now = anyio.current_time()
        self._pauses += 1
        for scope in self._scopes:
            if scope not in self._left:
                self._left[scope], scope.deadline = scope.deadline - now, math.inf
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                now = anyio.current_time()
                for scope, seconds in self._left.items():
                    scope.deadline = now + seconds
                self._left.clear()
