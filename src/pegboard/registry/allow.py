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
        within: Another list that must admit a tool as well.
        reason: Why the list is as it is, for messages about tools that it doesn't admit.
    """

    def __init__(
        self, patterns: Iterable[str] | None = None, *, within: AllowList | None = None, reason: str = ""
    ) -> None:
        self._patterns = None if patterns is None else tuple(pattern.strip() for pattern in patterns if pattern.strip())
        self._within = within
        self._reason = reason

    def within(self, other: AllowList) -> AllowList:
        """Return a list that admits what both lists admit."""
        return AllowList(self._patterns, within=other, reason=self._reason)

    @classmethod
    def parse(cls, text: str) -> AllowList:
        """Reads a list as command lines give it: names and patterns separated by commas; an empty text admits none."""
        return cls(text.split(","))

    def admits(self, spec: ToolSpec) -> bool:
        """Return whether the tool may be used."""
        if self._within is not None and not self._within.admits(spec):
            return False
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
        own = "every tool" if self._patterns is None else ", ".join(self._patterns) or "no tool"
        if self._reason:
            own += f" ({self._reason})"
        within = str(self._within) if self._within is not None else "every tool"
        return own if within == "every tool" else f"{own}, within {within}"


def _matches(pattern: str, spec: ToolSpec) -> bool:
    # an alias with a dot could pose as the name of a tool that somebody else was meant to have
    return fnmatchcase(spec.name, pattern) or ("." not in pattern and pattern in spec.aliases)
