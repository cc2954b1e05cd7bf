"""A call from its request to its response."""

from __future__ import annotations

from dataclasses import dataclass

from pegboard.models import ToolCall


@dataclass
class Flight:
    """A call in flight."""

    key: str
    call: ToolCall
    at: float
    note: str = ""
    """What a person did with the call, such as an edit."""
    released: float = 0.0
    """When it was forwarded or rejected, if it waited; its duration starts then."""

    def milliseconds(self, end: float) -> float:
        """Return its duration, without the time for which it waited."""
        return max(0.0, end - max(self.at, self.released)) * 1000
