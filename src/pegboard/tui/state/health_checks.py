"""Looking for what the tools need, on behalf of every place of the screen. Knows nothing of Textual."""

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

_TOLD_EVERY_SECONDS = 0.1
_TAKEN_AT_ONCE = 100
"""Rows after which the loop gets its turn: thousands of tools may need the same."""


@dataclass(frozen=True, slots=True, eq=False)
class HealthState:
    """What is known at one moment of the things that tools need."""

    found: Mapping[Thing, HealthRow] = field(default_factory=lambda: MappingProxyType({}))
    """What was found of each; the row is that of any tool that needs it."""
    looking: frozenset[Thing] = frozenset()
    """What is being looked for."""
    is_complete: bool = False
    """Whether everything was looked for at least once."""

    @property
    def unwell(self) -> int:
        """How many things aren't as they are needed."""
        return sum(row.status != "ok" for row in self.found.values())


class HealthChecks:
    """Looks for what tools need, and tells at once, but not for every row, what is known.

    Nothing ends a look but its own end: whoever asked may have gone to another place of the screen meanwhile.

    Args:
        runtime: What looks.
        tell: Takes what is known whenever that changed.
    """

    def __init__(self, runtime: Runtime, tell: Callable[[HealthState], object]) -> None:
        self._runtime = runtime
        self._tell = tell
        self._needed: dict[Thing, Requirement] = {}
        self._found: dict[Thing, HealthRow] = {}
        self._looking: Counter[Thing] = Counter()
        self._telling: asyncio.TimerHandle | None = None

    async def look(self) -> None:
        """Looks for what the tools of the last scan need, as far as that isn't known or looked for already."""
        self._needed = await asyncio.to_thread(self._read_needed)
        unknown = [thing for thing in self._needed if thing not in self._found and self._looking[thing] <= 0]
        self._tell_soon()
        if unknown:
            await self._look_for(unknown)

    async def look_again(self, things: Collection[Thing] | None = None) -> None:
        """Looks again, whatever is known.

        Args:
            things: What to look for; everything that the tools need unless given.
        """
        await self._look_for([thing for thing in self._needed if things is None or thing in things])

    async def take_over(self, tool: str) -> None:
        """Takes over what is known of a tool's requirements: a call of it looks for what was missing.

        Args:
            tool: The qualified name.
        """
        for row in await asyncio.to_thread(self._runtime.health.rows, tool):
            self._found[row.requirement.thing] = row
        self._tell_soon()

    async def _look_for(self, things: Collection[Thing]) -> None:
        wanted = [self._needed[thing] for thing in things]
        left = set(things)
        self._looking.update(left)
        self._tell_soon()
        try:
            async with aclosing(self._runtime.health.recheck(wanted)) as rows:
                await self._take(rows, left)
        finally:
            self._looking.subtract(left)
            self._tell_soon()

    async def _take(self, rows: AsyncGenerator[HealthRow], left: set[Thing]) -> None:
        taken = 0
        async for row in rows:
            thing = row.requirement.thing
            self._found[thing] = row
            if thing in left:
                left.remove(thing)
                self._looking[thing] -= 1
                self._tell_soon()
            taken += 1
            if taken % _TAKEN_AT_ONCE == 0:
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
            self._runtime.health.rows("")  # what looks for things is loaded here, beside the loop
        return needed

    def _tell_soon(self) -> None:
        if self._telling is None:
            loop = asyncio.get_running_loop()
            self._telling = loop.call_later(_TOLD_EVERY_SECONDS, self._tell_now)

    def _tell_now(self) -> None:
        self._telling = None
        found = {thing: self._found[thing] for thing in self._needed if thing in self._found}
        looking = frozenset(thing for thing in self._needed if self._looking[thing] > 0)
        self._tell(HealthState(MappingProxyType(found), looking, len(found) == len(self._needed)))
