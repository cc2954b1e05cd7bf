"""Progress of a batch."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

from pegboard.results.sizes import count

_RECENT_SECONDS = 10.0


@dataclass
class BatchProgress:
    """Counts of a batch so far.

    Attributes:
        succeeded: Rows that succeeded, in this run.
        failed: Rows that failed, in this run, the unknown ones among them.
        unknown: Rows with an unknown outcome, in this run.
        before: Rows that already had a result when the batch was resumed.
        failed_before: Those of them that failed.
        position: Bytes of the input that were read.
        size: Size of the input in bytes; None if it isn't known.
        is_read: Whether the whole input was read.
        waiting: Rows that were read and have no result yet.
        started: Time of the start, as of `time.monotonic`.
    """

    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    before: int = 0
    failed_before: int = 0
    position: int = 0
    size: int | None = None
    is_read: bool = False
    waiting: int = 0
    started: float = field(default_factory=time.monotonic)
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    @property
    def done(self) -> int:
        """Rows that finished in this run."""
        return self.succeeded + self.failed

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def rate(self) -> float:
        """Return the rows per second over the last 10 seconds; call it about every second or less."""
        now = time.monotonic()
        recent = self._recent
        recent.append((now, self.done))
        while len(recent) > 2 and recent[1][0] < now - _RECENT_SECONDS:
            recent.popleft()
        began, before = recent[0] if len(recent) > 1 else (self.started, 0)
        return (self.done - before) / (now - began) if now > began else 0.0

    def fraction(self) -> float | None:
        """Return the finished part of the input; None if its size isn't known."""
        rows = self.done + self.before + self.waiting
        if not self.size or not rows:
            return 1.0 if self.is_read and not self.waiting else None
        return min(1.0, self.position / self.size) * (self.done + self.before) / rows

    def seconds_left(self, rate: float) -> float | None:
        """Return an estimate of the remaining seconds at a rate; None if there is none."""
        part = self.fraction()
        if part is None or part <= 0 or rate <= 0:
            return None
        return (self.done + self.before) * (1 - part) / part / rate

    def line(self) -> str:
        """Return the progress as one line: `1,204 rows, 31/s, 3 failed, 0:42 left (58 %)`."""
        rate = self.rate()
        parts = [count(self.done + self.before, "row"), f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"]
        parts.append(f"{self.failed + self.failed_before:,} failed")
        left, part = self.seconds_left(rate), self.fraction()
        if left is not None and part is not None:
            parts.append(f"{duration(left)} left ({part:.0%})")
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """Return a duration such as `0:42` or `3:05:10`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
