"""The scan for tools and problems, shared by every page. Independent of Textual."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING

from pegboard import models
from pegboard.results.sizes import count
from pegboard.tui.state.catalogue import Catalogue, ToolEntry
from pegboard.tui.state.tool_scan import ToolScan

if TYPE_CHECKING:
    from pegboard.checks.compatibility import Compatibility, ToolCompatibility
    from pegboard.models import Problem, ToolSpec
    from pegboard.runtime import Runtime

_FREED_AT_ONCE = 100
_SCHEMAS_SECONDS = 0.5
"""Delay of the comparison of schemas, so that it doesn't compete with the list."""
_REST_SECONDS = 0.001
"""Pause between the schemas of two packs: a thread that often releases the interpreter's lock only for an instant, to
read a file, keeps the event loop from getting it."""
_SERVERS_SECONDS = 0.2
"""Minimum interval between two updates of the states of servers."""


class ToolScanner:
    """Scan for tools, and again whenever a pack, a state or a problem changes.

    Args:
        runtime: The runtime that finds the tools.
        changed: Callback that receives each new scan.
    """

    def __init__(self, runtime: Runtime, changed: Callable[[ToolScan], object]) -> None:
        self._runtime = runtime
        self._changed = changed
        self._scan = ToolScan()
        self._own_problems: tuple[Problem, ...] = ()
        self._found: tuple[Problem, ...] = ()
        self._schema_changes: dict[str, ToolCompatibility] = {}
        self._comparison: Compatibility | None = None
        self._listing = asyncio.Lock()

    async def follow(self) -> None:
        """Scan, then watch the packs folders; never return."""
        async for _ in self._runtime.tools.watch():
            await self._list()

    async def follow_servers(self) -> None:
        """Publish the states of the MCP servers whenever one changes; never return."""
        changed, loop = asyncio.Event(), asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(changed.set)

        ignore = self._runtime.servers.listen(wake)
        try:
            while True:
                await changed.wait()
                changed.clear()
                await self.update_servers()
                await asyncio.sleep(_SERVERS_SECONDS)
        finally:
            ignore()

    async def update_servers(self) -> None:
        """Read the states of the MCP servers again."""
        async with self._listing:
            catalogue = self._scan.catalogue.with_servers(self._runtime.servers.all())
            if not self._scan.scanning and catalogue.packs != self._scan.catalogue.packs:
                self._publish(catalogue, self._scan.hidden, scanning=False)

    async def rescan(self) -> int:
        """Scan again; return the number of tools."""
        await asyncio.to_thread(self._runtime.tools.scan)
        await self._list()
        return len(self._scan.catalogue.entries)

    async def update_states(self) -> None:
        """List the tools again if the state of any has changed."""
        if await asyncio.to_thread(self._states_changed):
            await self._list()

    async def read_problems(self) -> None:
        """Read the problems again."""
        found = await asyncio.to_thread(lambda: tuple(self._runtime.problems()))
        if found != self._found:
            self._found = found
            self._publish(self._scan.catalogue, self._scan.hidden, scanning=self._scan.scanning)

    def set_own_problems(self, problems: tuple[Problem, ...]) -> None:
        """List problems of the interface, such as those of themes and keys, before those of packs."""
        self._own_problems = problems
        self._publish(self._scan.catalogue, self._scan.hidden, scanning=self._scan.scanning)

    async def compare_schemas(self) -> None:
        """Compare the schemas of the tools with those that callers rely on, a moment after the last scan."""
        await asyncio.sleep(_SCHEMAS_SECONDS)
        found = await asyncio.to_thread(self._changed_schemas)
        if found != self._schema_changes:
            self._schema_changes = found
            self._publish(self._scan.catalogue, self._scan.hidden, scanning=self._scan.scanning)

    def _changed_schemas(self) -> dict[str, ToolCompatibility]:
        from pegboard.checks.comparable import is_comparable

        specs = self._runtime.tools.all()
        if not any(map(is_comparable, specs)):
            return {}
        from pegboard.checks.compatibility import Compatibility

        self._comparison = self._comparison or Compatibility(self._runtime)
        found: dict[str, ToolCompatibility] = {}
        # Without a folder for the state there are no earlier schemas; the history reports the same reason.
        with suppress(OSError):
            for _, tools in groupby(specs, key=lambda spec: spec.pack):
                found.update((one.tool, one) for one in self._comparison.changed([*tools]))
                time.sleep(_REST_SECONDS)
        return found

    async def _list(self) -> None:
        """Publish the tools of the last scan."""
        async with self._listing:
            earlier = list(self._scan.catalogue.entries)
            catalogue, self._found = await asyncio.to_thread(self._read_catalogue)
            self._publish(catalogue, await asyncio.to_thread(self._runtime.tools.hidden), scanning=False)
            await asyncio.to_thread(_free_in_batches, earlier)

    def _publish(self, catalogue: Catalogue, hidden: int, *, scanning: bool) -> None:
        of_schemas = (
            schema_problem(one.spec, self._schema_changes[one.spec.name])
            for one in catalogue.entries
            if one.spec.name in self._schema_changes
        )
        problems = (*self._own_problems, *self._found, *of_schemas)
        empty = self._scan.empty if scanning else self._why_empty(hidden)
        self._scan = ToolScan(catalogue, problems, self._schema_changes, hidden, empty, scanning)
        self._changed(self._scan)

    def _why_empty(self, hidden: int) -> str:
        if hidden:
            return (
                f"No tools: the allow list excludes {count(hidden, 'tool')}.\n\n"
                "Change it in [tools] of the config or with --tool-allow."
            )
        return f"No tools yet.\n\nAdd a Python file with a documented function to\n{self._runtime.paths.packs}"

    def _read_catalogue(self) -> tuple[Catalogue, tuple[Problem, ...]]:
        problems = tuple(self._runtime.problems())
        catalogue = Catalogue.of(self._runtime.tools.all(), problems, self._runtime.health.state)
        catalogue = catalogue.with_servers(self._runtime.servers.all())
        if self._scan.scanning:
            # Imports until the first scan live until the end. A later scan would freeze the widgets on the
            # screen too, which are in cycles and would never be freed.
            gc.freeze()
        return catalogue, problems

    def _states_changed(self) -> bool:
        return any(self._runtime.health.state(entry.spec) != entry.state for entry in self._scan.catalogue.entries)


def schema_problem(spec: ToolSpec, changed: ToolCompatibility) -> Problem:
    """Return the problem of a tool whose schema changed so that it breaks callers."""
    summary = changed.summary
    return models.Problem(
        message=f"The schema of {spec.name} changed: {summary}.",
        fix="Open “Checks” (alt+c by default) on the tool's page to see the calls, or to accept the new schema.",
        severity="warning",
        file=spec.file,
        line=spec.location.line,
        pack=spec.pack,
        tool=spec.name,
    )


def _free_in_batches(entries: list[ToolEntry]) -> None:
    """Free the tools of an earlier scan in small batches: freeing all of them together blocks the event loop."""
    while entries:
        del entries[-_FREED_AT_ONCE:]
