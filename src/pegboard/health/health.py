"""The report over all tools: what each needs, and what was found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias

from pegboard.health.prober import Answer, FindSecret, Looking
from pegboard.models import HealthRow, Problem, Requirement, ToolSpec, ToolState
from pegboard.sdk.findings import report_row
from pegboard.sdk.requirements import DeclaredRequirement as Wanted

if TYPE_CHECKING:
    from pegboard.sdk.findings import ProbeResult

_Needs: TypeAlias = defaultdict[Wanted, list[tuple[ToolSpec, Requirement]]]
"""What is needed, with the tools that need it."""

_TIMEOUT = 5.0
"""Seconds that a program may take to tell its version."""


class Health:
    """What the tools need, and what was found when it was last looked for.

    Every distinct thing is looked for once, however many tools need it, and again only when that is asked for: a
    requirement that changed in a tool's file is another one. Servers are not looked for here.

    Args:
        tools: Gives the tools as they are now.
        find_secret: Takes a secret's name; gives where it comes from, or None and why it is missing. It may block, and
            may be called from any thread.
        environ: The environment that programs are looked for and run in, without secrets.
        timeout: Seconds that each program may take.
    """

    def __init__(
        self,
        tools: Callable[[], Sequence[ToolSpec]],
        *,
        find_secret: FindSecret,
        environ: Mapping[str, str],
        timeout: float = _TIMEOUT,
    ) -> None:
        self._tools = tools
        self._find_secret = find_secret
        self._environ = environ
        self._timeout = timeout
        self._found: dict[Wanted, ProbeResult] = {}
        self._looks = 0
        self._found_by: dict[Wanted, int] = {}
        """Which look found it."""

    def rows(self, tools: Iterable[ToolSpec] | None = None) -> tuple[HealthRow, ...]:
        """Gives what is known, in the order of the tools; what wasn't looked for has no row.

        Args:
            tools: Whose requirements; those of all tools unless given.
        """
        return tuple(
            _row(spec, requirement, wanted, self._found[wanted])
            for spec in (self._tools() if tools is None else tools)
            for requirement, wanted in _wants(spec)
            if wanted in self._found
        )

    def state(self, spec: ToolSpec) -> ToolState:
        """Gives whether the tool can do its work, as far as is known; nothing known means that it can."""
        state: ToolState = "ready"
        for requirement, wanted in _wants(spec):
            found = self._found.get(wanted)
            if found is None or found.status == "ok":
                continue
            if found.status != "error" and not requirement.optional:
                return "blocked"
            state = "degraded"
        return state

    def blocks(self, requirement: Requirement) -> tuple[str, ...]:
        """Gives the names of the tools that can't work without something."""
        wanted = _wanted(requirement)
        return tuple(
            spec.name
            for spec in self._tools()
            if any(other == wanted and not need.optional for need, other in _wants(spec))
        )

    def check(self, tools: Iterable[ToolSpec] | None = None, *, again: bool = False) -> Generator[HealthRow]:
        """Looks for what tools need, in the order in which it is found; blocks between the rows.

        Args:
            tools: Whose requirements; those of all tools unless given.
            again: Whether to look again for what is known; until it is found, the old answer stays.

        Yields:
            A row for each thing that each tool needs; first what was known.
        """
        from queue import SimpleQueue

        needs, wanted = self._needs(tools, again)
        yield from self._known(needs, wanted)
        if not wanted:
            return
        answers: SimpleQueue[Answer | None] = SimpleQueue()
        number, looking = self._look(wanted, answers.put)
        try:
            while (answer := answers.get()) is not None:
                yield from self._kept(needs, answer, number)
        finally:
            looking.stop()

    async def checking(
        self,
        tools: Iterable[ToolSpec] | None = None,
        *,
        again: bool = False,
        only: Iterable[Requirement] | None = None,
    ) -> AsyncGenerator[HealthRow]:
        """Does what `check` does without holding the loop up; closing it ends the programs that still run.

        Args:
            tools: Whose requirements; those of all tools unless given.
            again: Whether to look again for what is known; until it is found, the old answer stays.
            only: Of what the tools need, no more than these; all of it unless given.
        """
        import asyncio

        # Thousands of tools may need something.
        needs, wanted = await asyncio.to_thread(self._needs, tools, again, only)
        for known in self._known(needs, wanted):
            yield known
        if not wanted:
            return
        loop = asyncio.get_running_loop()
        answers: asyncio.Queue[Answer | None] = asyncio.Queue()
        number, looking = self._look(wanted, lambda answer: loop.call_soon_threadsafe(answers.put_nowait, answer))
        try:
            while (answer := await answers.get()) is not None:
                for found in self._kept(needs, answer, number):
                    yield found
        finally:
            await asyncio.to_thread(looking.stop)

    async def lacking(self, spec: ToolSpec) -> Sequence[Problem]:
        """Gives what keeps the tool from working, now: what is missing is looked for again, as it may have come."""
        _, unknown = self._needs([spec], again=False)
        blocked = self.state(spec) == "blocked"
        if not blocked and not unknown:
            return ()
        async with aclosing(self.checking([spec], again=blocked)) as rows:
            return [found.problem async for found in rows if found.blocks and found.problem]

    def _needs(
        self, tools: Iterable[ToolSpec] | None, again: bool, only: Iterable[Requirement] | None = None
    ) -> tuple[_Needs, list[Wanted]]:
        """Gives who needs what, and what of it is to be looked for."""
        chosen = None if only is None else {_wanted(requirement) for requirement in only}
        needs: _Needs = defaultdict(list)
        for spec in self._tools() if tools is None else tools:
            for requirement, wanted in _wants(spec):
                if chosen is None or wanted in chosen:
                    needs[wanted].append((spec, requirement))
        return needs, [wanted for wanted in needs if again or wanted not in self._found]

    def _look(self, wanted: Sequence[Wanted], tell: Callable[[Answer | None], object]) -> tuple[int, Looking]:
        """Begins to look; gives which look it is, with what ends it."""
        self._looks += 1
        looking = Looking(wanted, tell, find_secret=self._find_secret, environ=self._environ, timeout=self._timeout)
        return self._looks, looking

    def _known(self, needs: _Needs, wanted: Sequence[Wanted]) -> Iterator[HealthRow]:
        unknown = set(wanted)
        for known, needy in needs.items():
            if known not in unknown:
                found = self._found[known]
                yield from (_row(spec, requirement, known, found) for spec, requirement in needy)

    def _kept(self, needs: _Needs, answer: Answer, look: int) -> Iterator[HealthRow]:
        """Keeps an answer, unless a look that began later has answered already."""
        wanted, found = answer
        if look >= self._found_by.get(wanted, 0):
            self._found[wanted], self._found_by[wanted] = found, look
        for spec, requirement in needs[wanted]:
            yield _row(spec, requirement, wanted, self._found[wanted])


def _wants(spec: ToolSpec) -> Iterator[tuple[Requirement, Wanted]]:
    for requirement in spec.requirements:
        wanted = _wanted(requirement)
        if wanted is not None:
            yield requirement, wanted


def _wanted(requirement: Requirement) -> Wanted | None:
    """Gives what is looked for, the same for all tools that need it; None for a server."""
    if requirement.kind == "server":
        return None
    flag, least = requirement.version_flag, requirement.min_version
    return Wanted(requirement.kind, requirement.name, version_flag=flag, min_version=least)


def _row(spec: ToolSpec, requirement: Requirement, wanted: Wanted, found: ProbeResult) -> HealthRow:
    said = report_row(spec.name, wanted, found)
    install = requirement.install or said["install"]
    return HealthRow.model_validate({**said, "install": install, "requirement": requirement})
