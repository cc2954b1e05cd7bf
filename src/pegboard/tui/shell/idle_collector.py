"""The garbage collector, run while nobody waits for the screen."""

from __future__ import annotations

import asyncio
import gc
from time import monotonic

_REST_SECONDS = 0.4
_WORTH_IT = 5
"""Collections of young objects, each after some seven thousand of them, from which on a full one is worth it."""
_AT_LATEST = 50
"""Collections of young objects after which a full one is made even while somebody types."""


class IdleCollector:
    """Makes full collections while the user rests.

    A form that is left leaves thousands of objects that refer to each other. Python would look for them amid the next
    form, and the one who opened it would wait for that.
    """

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0.0
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*self._thresholds[:2], _AT_LATEST)

    def stop(self) -> None:
        """Leaves the collector as it was."""
        if self._timer is not None:
            self._timer.cancel()
        gc.set_threshold(*self._thresholds)

    def touch(self) -> None:
        """Is to be called whenever the user does something."""
        self._last = monotonic()
        if self._timer is None:
            # Textual's timers are skipped for good where the machine is slower than their time for a moment.
            self._timer = asyncio.get_running_loop().call_later(_REST_SECONDS, self._look)

    def _look(self) -> None:
        rest = self._last + _REST_SECONDS - monotonic()
        if rest > 0:
            self._timer = asyncio.get_running_loop().call_later(rest, self._look)
            return
        self._timer = None
        if gc.get_count()[2] >= _WORTH_IT:
            gc.collect()
