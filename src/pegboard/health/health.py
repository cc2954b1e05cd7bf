"""Report on the requirements of all tools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias

from pegboard.health.prober import Prober
from pegboard.models import HealthRow, Requirement, ToolSpec
from pegboard.sdk.findings import report_row
from pegboard.sdk.requirements import DeclaredRequirement as SdkRequirement

if TYPE_CHECKING:
    from pegboard.health.prober import Probed
    from pegboard.models import Problem, ToolState
    from pegboard.sdk.findings import ProbeResult
    from pegboard.sdk.probes import FindSecret

_Tools: TypeAlias = defaultdict[SdkRequirement, list[tuple[ToolSpec, Requirement]]]
"""Each requirement with the tools that have it."""

_TIMEOUT = 5.0
"""Seconds that a program may take to print its version."""


class Health:
    """Requirements of the tools, with the results of their last check.

    Each distinct requirement is checked once, however many tools have it, and again only on request. Servers are not
    checked here.

    Args:
        tools: Returns the current tools.
        find_secret: Returns the source of a secret, or None and the reason it is missing. It may block and
            is called from any thread.
        environ: Environment to find and run programs in, without secrets.
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
        self._found: dict[SdkRequirement, ProbeResult] = {}
        self._checks = 0
        self._found_by: dict[SdkRequirement, int] = {}
        """Number of the check that produced each result."""

    def rows(self, tools: Iterable[ToolSpec] | None = None) -> tuple[HealthRow, ...]:
        """Return the known results in the order of the tools. Unchecked requirements have no row.

        Args:
            tools: Tools to report on; None for all.
        """
        return tuple(
            _row(spec, requirement, wanted, self._found[wanted])
            for spec in (self._tools() if tools is None else tools)
            for requirement, wanted in _wants(spec)
            if wanted in self._found
        )

    def state(self, spec: ToolSpec) -> ToolState:
        """Return whether the tool can run, as far as is known. A tool without known problems is ready."""
        state: ToolState = "ready"
        for requirement, wanted in _wants(spec):
            found = self._found.get(wanted)
            if found is None or found.status == "ok":
                continue
            if found.status != "error" and not requirement.optional:
                return "blocked"
            state = "degraded"
        return state

    def check(self, tools: Iterable[ToolSpec] | None = None, *, again: bool = False) -> Generator[HealthRow]:
        """Check requirements and yield their rows as results arrive. Block between rows.

        Args:
            tools: Tools whose requirements to check; None for all.
            again: Whether to repeat known checks. The old result is kept until the new one arrives.

        Yields:
            A row for each requirement of each tool; known results come first.
        """
        from queue import SimpleQueue

        tools_by_requirement, wanted = self._collect(tools, again)
        yield from self._known_rows(tools_by_requirement, wanted)
        if not wanted:
            return
        results: SimpleQueue[Probed | None] = SimpleQueue()
        number, prober = self._start(wanted, results.put)
        try:
            while (result := results.get()) is not None:
                yield from self._store(tools_by_requirement, result, number)
        finally:
            prober.stop()

    async def check_async(
        self,
        tools: Iterable[ToolSpec] | None = None,
        *,
        again: bool = False,
        only: Iterable[Requirement] | None = None,
    ) -> AsyncGenerator[HealthRow]:
        """Check requirements like `check`, without blocking the event loop. Closing it ends running programs.

        Args:
            tools: Tools whose requirements to check; None for all.
            again: Whether to repeat known checks. The old result is kept until the new one arrives.
            only: Requirements to check; None for all of the tools' requirements.
        """
        import asyncio

        from pegboard.until_done import until_done

        # Collecting the requirements of thousands of tools takes long.
        tools_by_requirement, wanted = await asyncio.to_thread(self._collect, tools, again, only)
        for known in self._known_rows(tools_by_requirement, wanted):
            yield known
        if not wanted:
            return
        loop = asyncio.get_running_loop()
        results: asyncio.Queue[Probed | None] = asyncio.Queue()
        number, prober = self._start(wanted, lambda result: loop.call_soon_threadsafe(results.put_nowait, result))
        try:
            while (result := await results.get()) is not None:
                for found in self._store(tools_by_requirement, result, number):
                    yield found
        finally:
            await until_done(asyncio.to_thread(prober.stop))

    async def missing(self, spec: ToolSpec) -> Sequence[Problem]:
        """Return the problems that prevent the tool from running now. Missing requirements are checked again."""
        _, unknown = self._collect([spec], again=False)
        blocked = self.state(spec) == "blocked"
        if not blocked and not unknown:
            return ()
        async with aclosing(self.check_async([spec], again=blocked)) as rows:
            return [found.problem async for found in rows if found.blocks and found.problem]

    def _collect(
        self, tools: Iterable[ToolSpec] | None, again: bool, only: Iterable[Requirement] | None = None
    ) -> tuple[_Tools, list[SdkRequirement]]:
        """Return each requirement with its tools, and the requirements to check."""
        chosen = None if only is None else {_wanted(requirement) for requirement in only}
        tools_by_requirement: _Tools = defaultdict(list)
        for spec in self._tools() if tools is None else tools:
            for requirement, wanted in _wants(spec):
                if chosen is None or wanted in chosen:
                    tools_by_requirement[wanted].append((spec, requirement))
        return tools_by_requirement, [wanted for wanted in tools_by_requirement if again or wanted not in self._found]

    def _start(self, wanted: Sequence[SdkRequirement], report: Callable[[Probed | None], object]) -> tuple[int, Prober]:
        """Start a check; return its number and the prober that runs it."""
        self._checks += 1
        prober = Prober(wanted, report, find_secret=self._find_secret, environ=self._environ, timeout=self._timeout)
        return self._checks, prober

    def _known_rows(self, tools_by_requirement: _Tools, wanted: Sequence[SdkRequirement]) -> Iterator[HealthRow]:
        unknown = set(wanted)
        for known, pairs in tools_by_requirement.items():
            if known not in unknown:
                found = self._found[known]
                yield from (_row(spec, requirement, known, found) for spec, requirement in pairs)

    def _store(self, tools_by_requirement: _Tools, result: Probed, number: int) -> Iterator[HealthRow]:
        """Store a result, unless a later check has already produced one."""
        wanted, found = result
        if number >= self._found_by.get(wanted, 0):
            self._found[wanted], self._found_by[wanted] = found, number
        for spec, requirement in tools_by_requirement[wanted]:
            yield _row(spec, requirement, wanted, self._found[wanted])


def _wants(spec: ToolSpec) -> Iterator[tuple[Requirement, SdkRequirement]]:
    for requirement in spec.requirements:
        wanted = _wanted(requirement)
        if wanted is not None:
            yield requirement, wanted


def _wanted(requirement: Requirement) -> SdkRequirement | None:
    """Return the SDK's requirement, which is equal for all tools that share it; None for a server."""
    if requirement.kind == "server":
        return None
    flag, least = requirement.version_flag, requirement.min_version
    return SdkRequirement(requirement.kind, requirement.name, version_flag=flag, min_version=least)


def _row(spec: ToolSpec, requirement: Requirement, wanted: SdkRequirement, found: ProbeResult) -> HealthRow:
    report = report_row(spec.name, wanted, found)
    install = requirement.install or report["install"]
    return HealthRow.model_construct(
        tool=report["tool"],
        kind=report["kind"],
        name=report["name"],
        status=report["status"],
        version=report["version"],
        min_version=report["minVersion"],
        path=report["path"],
        install=install,
        error=report["error"],
        requirement=requirement,
    )
