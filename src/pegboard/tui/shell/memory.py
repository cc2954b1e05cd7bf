"""Memory of the process after the first frame."""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import Final

_M_ARENA_MAX: Final = -8
"""Parameter of glibc's `mallopt`."""


def enable_collector() -> None:
    """Enable the garbage collector if the start disabled it; it need not visit what lives until the end."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def share_heap() -> None:
    """Let all threads use one heap, where there is glibc: otherwise each keeps the memory that it freed."""
    import ctypes

    with suppress(OSError, AttributeError, TypeError):  # another C library, or Windows
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
