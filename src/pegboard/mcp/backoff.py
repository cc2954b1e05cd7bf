"""Pauses between attempts to connect."""

from __future__ import annotations

import random

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
"""Seconds between attempts to connect; each failure doubles the pause."""


def pause(failures: int) -> float:
    """Return the seconds to wait before the next attempt, with jitter, so that servers don't start together."""
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (failures - 1)) * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
