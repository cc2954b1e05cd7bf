"""Report of the removal of a value from everything that Pegboard has stored."""

from __future__ import annotations

from pegboard.models.model import DataModel


class RedactionReport(DataModel):
    """Changes of `history redact`, and places that it could not change."""

    calls: int
    """Number of changed calls."""
    messages: int
    """Number of changed chat messages, sessions and turns."""
    files: tuple[str, ...]
    """Changed or deleted files: results, presets, scripts, checks, drafts, logs, caches."""
    remaining: tuple[str, ...]
    """Sentences about places that may still contain the value."""

    @property
    def is_complete(self) -> bool:
        """Whether the value is gone from everything that Pegboard stores."""
        return not self.remaining
