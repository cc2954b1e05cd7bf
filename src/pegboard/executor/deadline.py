"""Time limits that are paused while calls await approval."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pegboard.models import ApprovalRequested, CallEvent, Finished, Started

_LATE_SECONDS: Final = 0.5
"""A time limit that ends later than this was missed because the process was stopped, as by ctrl+z."""
_GRACE_SECONDS: Final = 1.0
"""Time to read a result that came while the process was stopped."""


class PendingApprovals:
    """Calls that await approval."""

    def __init__(self) -> None:
        self._calls: set[tuple[str, str]] = set()

    def __bool__(self) -> bool:
        """Return whether any call awaits approval."""
        return bool(self._calls)

    def update(self, event: CallEvent, within: str) -> None:
        """Update the pending calls.

        Args:
            event: Event of a call.
            within: Id of the observed call: the call of the event, or an outer one.
        """
        match event:
            case ApprovalRequested(call=call):
                self._calls.add((within, call.id))
            case Finished(call=call) if call.id == within:  # which ends its nested calls too
                self._calls = {waiting for waiting in self._calls if waiting[0] != within}
            case Started(call=call) | Finished(call=call):
                self._calls.discard((within, call.id))
            case _:
                pass


class CallClock:
    """Time limit that can be paused. It starts running when created.

    Args:
        seconds: Time limit in seconds.
        late: Callback for when the time is over.
    """

    def __init__(self, seconds: float, late: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._late = late
        self._left = seconds
        self._timer: asyncio.TimerHandle | None = None
        self.resume()

    @property
    def left(self) -> float:
        """Remaining time in seconds."""
        return self._left if self._timer is None else self._timer.when() - self._loop.time()

    def pause(self) -> None:
        """Pause the time limit; do nothing if it is paused."""
        if self._timer is not None:
            self._left = max(self.left, 0.0)
            self._timer.cancel()
            self._timer = None

    def resume(self) -> None:
        """Resume the time limit; do nothing if it is running."""
        if self._timer is None:
            self._timer = self._loop.call_later(self._left, self._end)

    def _end(self) -> None:
        """Report that the time is over, unless a result may have come while the process was stopped."""
        assert self._timer is not None, "`resume` sets it, and `pause` cancels the timer"
        if self._loop.time() - self._timer.when() < _LATE_SECONDS:
            self._late()
        else:
            self._timer = self._loop.call_later(_GRACE_SECONDS, self._end)
