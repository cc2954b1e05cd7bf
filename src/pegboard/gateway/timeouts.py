"""Timeouts of calls."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from pegboard.models import ToolCall, ToolSpec


class Timeouts:
    """Timeouts by precedence: the call's own, the configured one, the tool's, the default.

    Args:
        default: Default timeout in seconds.
        by_tool: Tool name or pattern → seconds; the first match applies.
    """

    def __init__(self, default: float = 8.0, by_tool: Mapping[str, float] | None = None) -> None:
        self._default = default
        self._by_tool = dict(by_tool or {})

    def of(self, spec: ToolSpec, call: ToolCall | None = None) -> float:
        """Return the timeout of `call`, or of any call of the tool, in seconds."""
        if call is not None and call.timeout is not None:
            return call.timeout
        for pattern, seconds in self._by_tool.items():
            if fnmatchcase(spec.name, pattern):
                return seconds
        return self._default if spec.hints.timeout is None else spec.hints.timeout
