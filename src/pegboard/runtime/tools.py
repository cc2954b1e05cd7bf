"""The tools that may be used."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from pegboard.models import JsonObject, Problem, ToolInfo, ToolResult, ToolSpec, ToolUses

if TYPE_CHECKING:
    import asyncio

    from pegboard.runtime.parts import Parts

ALLOW_FIX = "See `pegboard tools list` for the names."


class ToolDetails(ToolInfo):
    """What `pegboard tools info` tells beyond the listing."""

    timeout: float
    """Seconds that a call may take."""
    signature: str
    uses: ToolUses


class Tools:
    """The tools that packs and other sources offer, as far as the allow list admits them.

    Args:
        parts: The parts of the runtime.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def scan(self) -> bool:
        """Looks for tools again; blocks while it does. Gives whether anything changed."""
        return self._parts.registry.scan()

    def all(self) -> tuple[ToolSpec, ...]:
        """Return the tools that may be used, by name, as the last scan found them."""
        return self._parts.usable()

    def get(self, name: str) -> ToolSpec | None:
        """Return the tool with this name or alias, or None if there is none that may be used."""
        return self._parts.usable_tool(name)

    def hidden(self) -> int:
        """Gives how many tools the last scan found that the allow list keeps out."""
        return sum(not self._parts.allow.admits(spec) for spec in self._parts.registry.tools())

    def allow_problems(self) -> tuple[Problem, ...]:
        """Return a warning for each pattern of the allow list that matches no tool of the last scan."""
        unmatched = self._parts.allow.unmatched(self._parts.registry.tools())
        told = [(f'"{pattern}" in the allow list matches no tool.', ALLOW_FIX) for pattern in unmatched]
        if self._parts.allow_is_given:
            return tuple(Problem(message=message, fix=fix, severity="warning") for message, fix in told)
        return tuple(self._parts.settings.warning("tools.allow", message, fix) for message, fix in told)

    def named(self, name: str | None) -> tuple[ToolSpec, ...]:
        """Gives the tool of that name or alias, or all of the pack of that name, as far as they may be used.

        Args:
            name: A tool or a pack; every tool if None.
        """
        if name is None:
            return self.all()
        spec = self.get(name)
        return tuple(known for known in self.all() if known.pack == name) if spec is None else (spec,)

    def packs_option(self, spec: ToolSpec) -> str:
        """Gives the folder that another run must be given with `--packs` to find the tool; empty where it needn't."""
        file = spec.location.file
        return self._parts.given.get(os.path.realpath(os.path.dirname(file)), "") if file else ""  # noqa: PTH120 - as above

    def why_not(self, name: str) -> ToolResult | None:
        """Gives the answer to a call of a tool that isn't there or isn't allowed; None where it can be called."""
        found = self._parts.registry.find(name, self._parts.allow)
        return found if isinstance(found, ToolResult) else None

    def timeout(self, spec: ToolSpec) -> float:
        """Gives the seconds that a call of the tool may take."""
        return self._parts.timeouts.of(spec)

    def info(self, spec: ToolSpec) -> ToolInfo:
        """Gives the tool as a listing shows it; looks for what it needs unless that is known, and then blocks."""
        if not spec.requirements:
            return ToolInfo.of(spec)
        for _ in self._parts.health.check([spec]):
            pass
        return ToolInfo.of(spec, self._parts.health.state(spec), self._parts.health.rows([spec]))

    def details(self, spec: ToolSpec) -> ToolDetails:
        """Gives all that is known of the tool, its use so far included; as `info`, and reads the history."""
        return ToolDetails(
            **dict(self.info(spec)),
            timeout=self.timeout(spec),
            signature=spec.signature,
            uses=self._parts.history.uses(spec.name),
        )

    def prepare(self, spec: ToolSpec, arguments: JsonObject) -> JsonObject:
        """Gives arguments as a call of the tool would have them: by the schema's names, with required defaults.

        Raises:
            FormFaults: They don't fit; all faults at once.
        """
        from pegboard.schema.arguments import prepare

        return prepare(spec, arguments)

    async def watch(self) -> AsyncGenerator[None]:
        """Scans and follows the packs folders; never ends by itself.

        Yields after the first scan, and after each live rescan that changed something. Nothing that happens in between
        is missed.
        """
        import asyncio

        stop = asyncio.Event()
        # what the folders are compared with is taken here, before the scan
        changes = await asyncio.to_thread(self._changes, stop)
        try:
            await asyncio.to_thread(self.scan)
            yield
            async for _ in changes:
                if await asyncio.to_thread(self.scan):
                    yield
        finally:
            stop.set()
            await changes.aclose()

    def _changes(self, stop: asyncio.Event) -> AsyncGenerator[frozenset[str]]:
        from pegboard.discovery import watch

        return watch(self._parts.folders, stop=stop)
