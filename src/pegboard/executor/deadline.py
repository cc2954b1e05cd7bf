"""What waits for the user's word, and the time that stands still meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pegboard.models import ApprovalRequested, CallEvent, Finished, Started


class Unanswered:
    """The calls that wait until the user has said whether they may run."""

    def __init__(self) -> None:
        self._calls: set[tuple[str, str]] = set()

    def __bool__(self) -> bool:
        """Says whether any call waits."""
        return bool(self._calls)

    def heard(self, event: CallEvent, within: str) -> None:
        """Learns what happened.

        Args:
            event: What happened.
            within: The id of the call that was watched: that which it happened to, or that which this one was made in.
        """
        match event:
            case ApprovalRequested(call=call):
                self._calls.add((within, call.id))
            case Finished(call=call) if call.id == within:  # those in it too are nobody's any more
                self._calls = {waiting for waiting in self._calls if waiting[0] != within}
            case Started(call=call) | Finished(call=call):
                self._calls.discard((within, call.id))
            case _:
                pass


class Clock:
    """How long a tool may still take; made, and running, once the tool runs.

    Args:
        seconds: How long it may take.
        late: Called when the time is over.
    """

    def __init__(self, seconds: float, late: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._late = late
        self._left = seconds
        self._timer: asyncio.TimerHandle | None = None
        self.go()

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self._left if self._timer is None else self._timer.when() - self._loop.time()

    def stand(self) -> None:
        """Stands still from now on."""
        if self._timer is not None:
            self._left = max(self.left, 0.0)
            self._timer.cancel()
            self._timer = None

    def go(self) -> None:
        """Goes on."""
        if self._timer is None:
            self._timer = self._loop.call_later(self._left, self._late)
