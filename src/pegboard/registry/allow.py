"""Which tools may be used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
        return any(_matches(pattern, spec) for pattern in self._patterns)

    def names(self, spec: ToolSpec) -> bool:
        """Tell whether a pattern is the exact name of the tool."""
        return spec.name in (self._patterns or ())

    def unmatched(self, specs: Sequence[ToolSpec]) -> tuple[str, ...]:
        """Return the patterns that match none of these tools."""
        patterns = dict.fromkeys(self._patterns or ())
        return tuple(pattern for pattern in patterns if not any(_matches(pattern, spec) for spec in specs))

    def __str__(self) -> str:
        if self._patterns is None:
            return "every tool"
        return ", ".join(self._patterns) or "no tool"


def _matches(pattern: str, spec: ToolSpec) -> bool:
    # an alias with a dot could pose as the name of a tool that somebody else was meant to have
    return fnmatchcase(spec.name, pattern) or ("." not in pattern and pattern in spec.aliases)
