"""Control of the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_MANY: Final = 50_000
"""New objects whose first visit by the collector would block the app noticeably."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector inside the `with` block, where many objects without cycles are created."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            # Otherwise the next collection would immediately visit all new objects. But frozen objects that become
            # garbage are never freed, so repeated scans of a few packs must not do it.
            if gc.get_count()[0] > _MANY:
                gc.freeze()
            gc.enable()
