"""The requirements of tools. A tool is found by any of its names, all tools of a pack by the pack's name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.models import HealthRow, Requirement, ToolSpec, ToolState
    from pegboard.runtime.parts import Parts
    from pegboard.runtime.tools import Tools


class ToolHealth:
    """Requirements of tools and their status.

    Args:
        parts: The parts of the runtime.
        tools: The tools that can be used.
    """

    def __init__(self, parts: Parts, tools: Tools) -> None:
        self._parts = parts
        self._tools = tools

    def state(self, spec: ToolSpec) -> ToolState:
        """Return the state of a tool from the checks so far; ready if nothing was checked."""
        return self._parts.health.state(spec) if spec.requirements else "ready"

    def rows(self, tool: str | None = None) -> tuple[HealthRow, ...]:
        """Return the rows of the requirements that were checked, in the order of the tools.

        Args:
            tool: A tool or a pack; every tool that can be used by default.
        """
        return self._parts.health.rows(self._tools.named(tool))

    def check(self, tool: str | None = None, *, again: bool = False) -> AsyncGenerator[HealthRow]:
        """Check requirements, and yield each row of the report as soon as it is known.

        Closing the iterator stops the checks.

        Args:
            tool: A tool or a pack; every tool that can be used by default.
            again: Whether to repeat checks with a known result.
        """
        return self._parts.health.check_async(self._tools.named(tool), again=again)

    def check_blocking(self, tool: str | None = None, *, again: bool = False) -> Generator[HealthRow]:
        """Check requirements as `check` does, without an event loop; block between the rows."""
        return self._parts.health.check(self._tools.named(tool), again=again)

    def recheck(self, requirements: Iterable[Requirement]) -> AsyncGenerator[HealthRow]:
        """Check requirements again for all tools that have them, as `check` does.

        Args:
            requirements: Requirements of any tools; each is checked once.
        """
        return self._parts.health.check_async(self._tools.all(), again=True, only=requirements)
