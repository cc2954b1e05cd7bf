"""Checks of the tools' requirements, shared by every page. Independent of Textual."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pegboard.models import HealthRow, Problem, Requirement, RequirementKey
    from pegboard.runtime import Runtime

_UPDATE_SECONDS = 0.1
"""Minimum interval between two updates."""
_ROWS_PER_TURN = 100
"""Rows after which the event loop gets a turn: thousands of tools may share a requirement."""


@dataclass(frozen=True, slots=True, eq=False)
class HealthState:
    """State of all requirements at one moment."""

    found: Mapping[RequirementKey, HealthRow] = field(default_factory=lambda: MappingProxyType({}))
    """Result of each check; of several tools with the same requirement, the row of one that can't do without it."""
    checking: frozenset[RequirementKey] = frozenset()
    """Requirements that are being checked."""
    is_complete: bool = False
    """Whether every requirement was checked at least once."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems of the requirements that are not met."""
        return tuple(problem for row in self.found.values() if (problem := row.problem) is not None)

    @property
    def failing(self) -> int:
        """Number of requirements that are not met."""
        return sum(row.status != "ok" for row in self.found.values())


class _Declaration(NamedTuple):
    """A requirement as one tool declares it."""

    tool: str
    requirement: Requirement


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
        self._needed: dict[RequirementKey, _Declaration] = {}
        """Declaration to show of each requirement."""
        self._found: dict[RequirementKey, HealthRow] = {}
        self._checking: Counter[RequirementKey] = Counter()
        self._update: asyncio.TimerHandle | None = None

    async def check_new(self) -> None:
        """Check the requirements of the last scan's tools that are neither known nor being checked."""
        before, self._needed = self._needed, await asyncio.to_thread(self._read_needed)
        await self._read_rows(
            [key for key in self._needed if key in self._found and self._needed[key] != before.get(key)]
        )
        unknown = [key for key in self._needed if key not in self._found and self._checking[key] <= 0]
        self._update_soon()
        if unknown:
            await self._check(unknown)

    async def recheck(self, only: Collection[RequirementKey] | None = None) -> None:
        """Check requirements again.

        Args:
            only: The requirements; by default, those of every tool.
        """
        await self._check([key for key in self._needed if only is None or key in only])

    async def read_results(self, tool: str) -> None:
        """Read the results of checks that a call of a tool has made.

        Args:
            tool: Qualified name of the tool.
        """
        rows = await asyncio.to_thread(self._runtime.health.rows, tool)
        await self._read_rows([row.requirement.key for row in rows])
        self._update_soon()

    async def _read_rows(self, keys: Collection[RequirementKey]) -> None:
        """Read the known results of requirements, as they are declared now."""
        if keys:
            rows = await asyncio.to_thread(self._declared_rows, keys)
            self._found.update((row.requirement.key, row) for row in rows)

    def _declared_rows(self, keys: Collection[RequirementKey]) -> Sequence[HealthRow]:
        tools = dict.fromkeys(self._needed[key].tool for key in keys if key in self._needed)
        return [row for tool in tools for row in self._runtime.health.rows(tool) if self._is_declaration(row)]

    def _is_declaration(self, row: HealthRow) -> bool:
        """Return whether a row has the declaration to show of its requirement."""
        return self._needed.get(row.requirement.key) == (row.tool, row.requirement)

    async def _check(self, keys: Collection[RequirementKey]) -> None:
        wanted = [self._needed[key].requirement for key in keys]
        left = set(keys)
        self._checking.update(left)
        self._update_soon()
        try:
            async with aclosing(self._runtime.health.recheck(wanted)) as rows:
                await self._read(rows, left)
            # A tool may have been changed or removed meanwhile.
            found = [self._found[key] for key in keys if key in self._found]
            await self._read_rows([row.requirement.key for row in found if not self._is_declaration(row)])
        finally:
            self._checking.subtract(left)
            self._update_soon()

    async def _read(self, rows: AsyncGenerator[HealthRow], left: set[RequirementKey]) -> None:
        count = 0
        async for row in rows:
            key = row.requirement.key
            if key in left or self._is_declaration(row):
                self._found[key] = row
            if key in left:
                left.remove(key)
                self._checking[key] -= 1
                self._update_soon()
            count += 1
            if count % _ROWS_PER_TURN == 0:
                await asyncio.sleep(0)

    def _read_needed(self) -> dict[RequirementKey, _Declaration]:
        needed: dict[RequirementKey, _Declaration] = {}
        for spec in self._runtime.tools.all():
            for requirement in spec.requirements:
                known = needed.get(requirement.key)
                is_first = known is None or requirement.precedence < known.requirement.precedence
                if is_first and requirement.kind != "server":
                    needed[requirement.key] = _Declaration(spec.name, requirement)
        if needed:
            self._runtime.health.rows("")  # imports the probing code here, in a thread
        return needed

    def _update_soon(self) -> None:
        if self._update is None:
            loop = asyncio.get_running_loop()
            self._update = loop.call_later(_UPDATE_SECONDS, self._update_now)

    def _update_now(self) -> None:
        self._update = None
        found = {key: self._found[key] for key in self._needed if key in self._found}
        looking = frozenset(key for key in self._needed if self._checking[key] > 0)
        self._changed(HealthState(MappingProxyType(found), looking, len(found) == len(self._needed)))
