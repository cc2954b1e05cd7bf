"""Allow lists: which tools may be used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.models import ToolSpec


class AllowList:
    """Patterns of tool names such as `fs.*` or `time.now`. Tools that match none can't be called.

    Args:
        patterns: Shell patterns matched case-sensitively against qualified names. A pattern without a dot also
            matches an identical alias. None allows every tool, an empty list none.
        within: Another list that must allow a tool too.
        reason: Reason for the restriction, which error messages quote instead of the list.
    """

    def __init__(
        self, patterns: Iterable[str] | None = None, *, within: AllowList | None = None, reason: str = ""
    ) -> None:
        self._patterns = None if patterns is None else tuple(pattern.strip() for pattern in patterns if pattern.strip())
        self._within = within
        self.reason = reason

    def within(self, other: AllowList) -> AllowList:
        """Return a list that allows the tools that both lists allow."""
        return AllowList(self._patterns, within=other, reason=self.reason or other.reason)

    @classmethod
    def parse(cls, text: str) -> AllowList:
        """Parse comma-separated names and patterns. An empty text allows no tool."""
        return cls(text.split(","))

    def admits(self, spec: ToolSpec) -> bool:
        """Return whether the tool may be used."""
        if self._within is not None and not self._within.admits(spec):
            return False
        if self._patterns is None:
            return True
        return any(_matches(pattern, spec) for pattern in self._patterns)

    def may_admit(self, name: str) -> bool:
        """Return whether a tool with this name, which isn't known, could be used."""
        if self._within is not None and not self._within.may_admit(name):
            return False
        return self._patterns is None or any(fnmatchcase(name, pattern) for pattern in self._patterns)

    def refusal(self, spec: ToolSpec) -> str:
        """Return the message for a call of a tool that is not allowed: why, and how to allow it."""
        if self.reason:
            return f"{spec.name} is not allowed because {self.reason}"
        fix = "Add it to `allow` under `[tools]`, or to `--tool-allow`."
        return f"{spec.name} is not on the allow list ({self}). {fix}"

    def names(self, spec: ToolSpec) -> bool:
        """Return whether a pattern is exactly the tool's qualified name."""
        return spec.name in (self._patterns or ())

    def unmatched(self, specs: Sequence[ToolSpec]) -> tuple[str, ...]:
        """Return the patterns that match none of these tools."""
        patterns = dict.fromkeys(self._patterns or ())
        return tuple(pattern for pattern in patterns if not any(_matches(pattern, spec) for spec in specs))

    def __str__(self) -> str:
        own = "every tool" if self._patterns is None else ", ".join(self._patterns) or "no tool"
        within = str(self._within) if self._within is not None else "every tool"
        return own if within == "every tool" else f"{own}, within {within}"


def _matches(pattern: str, spec: ToolSpec) -> bool:
    # An alias with a dot could impersonate the qualified name of another tool.
    return fnmatchcase(spec.name, pattern) or ("." not in pattern and pattern in spec.aliases)
