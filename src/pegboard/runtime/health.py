"""The requirements of tools: a tool can be given by any of its names, or all tools of a pack by the pack's."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterable
from typing import TYPE_CHECKING

from pegboard.models import HealthRow, Requirement, ToolSpec, ToolState

if TYPE_CHECKING:
    from pegboard.runtime.parts import Parts
    from pegboard.runtime.tools import Tools


class ToolHealth:
    """What tools require, and what of it was found.

    Args:
        parts: The parts of the runtime.
        tools: The tools that may be used.
    """

    def __init__(self, parts: Parts, tools: Tools) -> None:
        self._parts = parts
        self._tools = tools

    def state(self, spec: ToolSpec) -> ToolState:
        """Gives whether the tool can do its work, as far as was checked; until then it is taken to be ready."""
        return self._parts.health.state(spec) if spec.requirements else "ready"

    def rows(self, tool: str | None = None) -> tuple[HealthRow, ...]:
        """Gives what is known of what tools need, in their order; what wasn't looked for yet has no row.

        Args:
            tool: A tool or a pack; every tool that may be used if left out.
        """
        return self._parts.health.rows(self._tools.named(tool))

    def check(self, tool: str | None = None, *, again: bool = False) -> AsyncGenerator[HealthRow]:
        """Looks for what tools need, and yields each row of the report as soon as it is known.

        Closing it ends what still runs.

        Args:
            tool: A tool or a pack; every tool that may be used if left out.
            again: Whether to look again for what is known already.
        """
        return self._parts.health.checking(self._tools.named(tool), again=again)

    def check_blocking(self, tool: str | None = None, *, again: bool = False) -> Generator[HealthRow]:
        """Does what `check` does where there is no loop; blocks between the rows."""
        return self._parts.health.check(self._tools.named(tool), again=again)

    def recheck(self, requirements: Iterable[Requirement]) -> AsyncGenerator[HealthRow]:
        """Looks for these things again, for all tools that need them, as `check` does.

        Args:
            requirements: What tools need, in any tool's words; each thing is looked for once.
        """
        return self._parts.health.checking(self._tools.all(), again=True, only=requirements)

    def blocked_by(self, requirement: Requirement) -> tuple[str, ...]:
        """Gives the names of the tools that can't work without something."""
        return self._parts.health.blocks(requirement)
