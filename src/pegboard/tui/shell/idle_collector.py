"""Garbage collection while the user is idle."""

from __future__ import annotations

import asyncio
import gc
from functools import lru_cache
from time import monotonic
from typing import Any

from textual._styles_cache import StylesCache  # nothing public releases the lines of removed widgets

_IDLE_SECONDS = 0.4
_MINIMUM = 5
"""Young collections, each after about seven thousand allocations, before a full collection while idle."""
_MAXIMUM = 50
"""Young collections before a full collection even while the user types."""


def release_removed_widgets() -> None:
    """Make Textual forget the rendered lines of removed widgets.

    A cache of style pairs has the line caches of the last 1,024 widgets among its keys. Their lines are hundreds of
    thousands of objects, for which a full garbage collection blocks the loop for 100 ms and more.
    """
    cached: Any = StylesCache.get_inner_outer
    compute = getattr(cached, "__wrapped__", None)
    if compute is None:  # another version of Textual
        return
    pairs = lru_cache(1024)(lambda base, background: compute(StylesCache, base, background))

    def get_inner_outer(_: StylesCache, base_background: object, background: object) -> object:
        return pairs(base_background, background)

    StylesCache.get_inner_outer = get_inner_outer  # type: ignore[method-assign,assignment]


class IdleCollector:
    """Full garbage collections after a pause in the user's input.

    A closed form leaves thousands of objects in reference cycles. Python would collect them while the next form opens.
    """

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0.0
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*self._thresholds[:2], _MAXIMUM)
        release_removed_widgets()

    def stop(self) -> None:
        """Restore the collector's thresholds."""
        if self._timer is not None:
            self._timer.cancel()
        gc.set_threshold(*self._thresholds)

    def touch(self) -> None:
        """Note that the user did something."""
        self._last = monotonic()
        if self._timer is None:
            # A Textual timer never fires again if the machine was too slow for it once.
            self._timer = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._collect)

    def _collect(self) -> None:
        rest = self._last + _IDLE_SECONDS - monotonic()
        if rest > 0:
            self._timer = asyncio.get_running_loop().call_later(rest, self._collect)
            return
        self._timer = None
        if gc.get_count()[2] >= _MINIMUM:
            gc.collect()
