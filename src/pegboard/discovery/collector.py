"""The garbage collector, kept out of the way."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keeps the garbage collector from running: it finds nothing in what is made here, and takes its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            # Set aside what was made: else the first collection, due at once, would look through all of it in one go.
            gc.freeze()
            gc.enable()
