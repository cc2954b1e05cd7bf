"""Checks of the tools' requirements, shared by every page. Independent of Textual."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from pegboard.models import HealthRow, Requirement, Thing

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_UPDATE_SECONDS = 0.1
"""Minimum interval between two updates."""
_ROWS_PER_TURN = 100
"""Rows after which the event loop gets a turn: thousands of tools may share a requirement."""


@dataclass(frozen=True, slots=True, eq=False)
class HealthState:
    """State of all requirements at one moment."""

    found: Mapping[Thing, HealthRow] = field(default_factory=lambda: MappingProxyType({}))
    """Result of each check; of several tools with the same requirement, the row of any of them."""
    checking: frozenset[Thing] = frozenset()
    """Requirements that are being checked."""
    is_complete: bool = False
    """Whether every requirement was checked at least once."""

    @property
    def failing(self) -> int:
        """Number of requirements that are not met."""
        return sum(row.status != "ok" for row in self.found.values())


class HealthChecks:
    """Checks of the requirements of every tool, with updates at most every 0.1 seconds.

    A check is never cancelled: its results stay useful after the user leaves the page.

    Args:
        runtime: The runtime that performs the checks.
        changed: Callback that receives the new state after a change.
    """

    def __init__(self, runtime: Runtime, changed: Callable[[HealthState], object]) -> None:
        self._runtime = runtime
        self._changed = changed
        self._needed: dict[Thing, Requirement] = {}
        self._found: dict[Thing, HealthRow] = {}
        self._checking: Counter[Thing] = Counter()
        self._update: asyncio.TimerHandle | None = None

    async def check_new(self) -> None:
        """Check the requirements of the last scan's tools that are neither known nor being checked."""
        self._needed = await asyncio.to_thread(self._read_needed)
        unknown = [thing for thing in self._needed if thing not in self._found and self._checking[thing] <= 0]
        self._update_soon()
        if unknown:
            await self._check(unknown)

    async def recheck(self, only: Collection[Thing] | None = None) -> None:
        """Check requirements again.

        Args:
            only: The requirements; by default, those of every tool.
        """
        await self._check([thing for thing in self._needed if only is None or thing in only])

    async def read_results(self, tool: str) -> None:
        """Read the results of checks that a call of a tool has made.

        Args:
            tool: Qualified name of the tool.
        """
        for row in await asyncio.to_thread(self._runtime.health.rows, tool):
            self._found[row.requirement.thing] = row
        self._update_soon()

    async def _check(self, things: Collection[Thing]) -> None:
        wanted = [self._needed[thing] for thing in things]
        left = set(things)
        self._checking.update(left)
        self._update_soon()
        try:
            async with aclosing(self._runtime.health.recheck(wanted)) as rows:
                await self._read(rows, left)
        finally:
            self._checking.subtract(left)
            self._update_soon()

    async def _read(self, rows: AsyncGenerator[HealthRow], left: set[Thing]) -> None:
        count = 0
        async for row in rows:
            thing = row.requirement.thing
            self._found[thing] = row
            if thing in left:
                left.remove(thing)
                self._checking[thing] -= 1
                self._update_soon()
            count += 1
            if count % _ROWS_PER_TURN == 0:
                await asyncio.sleep(0)

    def _read_needed(self) -> dict[Thing, Requirement]:
        tools = self._runtime.tools.all()
        needed = {
            requirement.thing: requirement
            for spec in tools
            for requirement in spec.requirements
            if requirement.kind != "server"
        }
        if needed:
            self._runtime.health.rows("")  # imports the probing code here, in a thread
        return needed

    def _update_soon(self) -> None:
        if self._update is None:
            loop = asyncio.get_running_loop()
            self._update = loop.call_later(_UPDATE_SECONDS, self._update_now)

    def _update_now(self) -> None:
        self._update = None
        found = {thing: self._found[thing] for thing in self._needed if thing in self._found}
        looking = frozenset(thing for thing in self._needed if self._checking[thing] > 0)
        self._changed(HealthState(MappingProxyType(found), looking, len(found) == len(self._needed)))
