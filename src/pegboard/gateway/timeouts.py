"""How long a call may take."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from pegboard.models import ToolCall, ToolSpec


class Timeouts:
    """Who says how long a call may take: the caller, else the configuration, else the tool, else the default.

    Args:
        default: Seconds, where nobody says anything.
        by_tool: Tool name or pattern → seconds; the first that matches counts.
    """

    def __init__(self, default: float = 8.0, by_tool: Mapping[str, float] | None = None) -> None:
        self._default = default
        self._by_tool = dict(by_tool or {})

    def of(self, spec: ToolSpec, call: ToolCall | None = None) -> float:
        """Gives the seconds that `call`, or any call of the tool, may take."""
        if call is not None and call.timeout is not None:
            return call.timeout
        for pattern, seconds in self._by_tool.items():
            if fnmatchcase(spec.name, pattern):
                return seconds
        return self._default if spec.hints.timeout is None else spec.hints.timeout
