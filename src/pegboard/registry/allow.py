"""Which tools may be used."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from pegboard.models import ToolSpec


class AllowList:
    """Patterns of tool names (`fs.*`, `time.now`): what none of them matches can't be called.

    Args:
        patterns: Shell patterns, matched with case against a tool's qualified name; one without a dot is another name
            of a tool, to the letter. None admits every tool, an empty list none.
    """

    def __init__(self, patterns: Iterable[str] | None = None) -> None:
        self._patterns = None if patterns is None else tuple(pattern.strip() for pattern in patterns if pattern.strip())

    @classmethod
    def parse(cls, text: str) -> AllowList:
        """Reads a list as command lines give it: names and patterns separated by commas; an empty text admits none."""
        return cls(text.split(","))

    def admits(self, spec: ToolSpec) -> bool:
        """Tells whether the tool may be used."""
        if self._patterns is None:
            return True
        # an alias with a dot could pose as the name of a tool that somebody else was meant to have
        return any(
            fnmatchcase(spec.name, pattern) or ("." not in pattern and pattern in spec.aliases)
            for pattern in self._patterns
        )

    def __str__(self) -> str:
        if self._patterns is None:
            return "every tool"
        return ", ".join(self._patterns) or "no tool"
