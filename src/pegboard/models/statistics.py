"""Statistics of recorded calls."""

from __future__ import annotations

from datetime import datetime

from pegboard.models.model import DataModel


class ToolStatistics(DataModel):
    """Uses, failures and durations of one tool."""

    tool: str
    calls: int
    failures: int
    """Failed calls, without cancelled and rejected ones."""
    rejected: int = 0
    """Calls for which the tool didn't run, because their arguments were invalid, or they were denied or not allowed."""
    last_at: datetime | None
    p50_ms: float | None
    """Median duration of the latest calls that ran; None without any."""
    p95_ms: float | None
    durations_ms: tuple[float, ...]
    """Median durations of consecutive groups of the latest calls, the oldest first, for a sparkline."""
    sampled: int
    """Number of the latest calls that the durations are computed from."""

    @property
    def failure_rate(self) -> float:
        """Share of failed calls among those that weren't rejected, 0 to 1."""
        ran = self.calls - self.rejected
        return self.failures / ran if ran > 0 else 0.0
