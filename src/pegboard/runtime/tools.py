"""The tools that can be used."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final

from pegboard import models
from pegboard.errors import StoreError

if TYPE_CHECKING:
    import asyncio

    from pydantic import JsonValue

    from pegboard.models import JsonObject, Problem, ToolInfo, ToolResult, ToolSpec, ToolUses
    from pegboard.runtime.details import ToolDetails
    from pegboard.runtime.parts import Parts

ALLOW_FIX = "See `pegboard tools list` for the names."
_MOST_FLAWS = 10
"""Invalid parts of a schema that are listed; of more, their number."""

_LABELS: Final = {"type", "title", "description"}
_SCALARS: Final[dict[str, type]] = {"string": str, "integer": int, "number": float, "boolean": bool}
"""Types whose values a schema of nothing but a type and labels accepts."""
_ELSEWHERE: Final = {"$ref", "allOf", "anyOf", "oneOf", "patternProperties"}
"""Keywords that may describe properties, too."""


class Tools:
    """The tools of packs and other sources that the allow list admits.

    Args:
        parts: The parts of the runtime.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def scan(self) -> bool:
        """Scan for tools again, and return whether anything changed; block until it is done."""
        return self._parts.registry.scan()

    def all(self) -> tuple[ToolSpec, ...]:
        """Return the tools that can be used, by name, from the last scan."""
        return self._parts.usable()

    def get(self, name: str) -> ToolSpec | None:
        """Return the tool with this name or alias, or None if no tool that can be used has it."""
        return self._parts.usable_tool(name)

    def current(self, spec: ToolSpec) -> ToolSpec:
        """Return a tool in the present version of its file, or as it was if it is gone; may scan, which blocks."""
        if self._parts.registry.stale(spec):
            self.scan()
        return self.get(spec.name) or spec

    def hidden(self) -> int:
        """Return the number of tools in the last scan that the allow list excludes."""
        return sum(not self._parts.allow.admits(spec) for spec in self._parts.registry.tools())

    def allow_problems(self) -> tuple[Problem, ...]:
        """Return a warning for each pattern of the allow list that matches no tool of the last scan."""
        unmatched = self._parts.allow.unmatched(self._parts.registry.tools())
        warnings = [(f'"{pattern}" in the allow list matches no tool.', ALLOW_FIX) for pattern in unmatched]
        if self._parts.allow_is_given:
            return tuple(models.Problem(message=message, fix=fix, severity="warning") for message, fix in warnings)
        return tuple(self._parts.settings.warning("tools.allow", message, fix) for message, fix in warnings)

    def named(self, name: str | None) -> tuple[ToolSpec, ...]:
        """Return the tool with this name or alias, or all tools of the pack with this name.

        Args:
            name: A tool or a pack; every tool if None.
        """
        if name is None:
            return self.all()
        spec = self.get(name)
        return tuple(known for known in self.all() if known.pack == name) if spec is None else (spec,)

    def packs_option(self, spec: ToolSpec) -> str:
        """Return the folder that another run needs as `--packs` to find the tool; empty if it needs none."""
        file = spec.file
        return self._parts.given.get(os.path.realpath(os.path.dirname(file)), "") if file else ""  # noqa: PTH120 - as above

    def options(self, spec: ToolSpec) -> tuple[str, ...]:
        """Return the options that another run needs to find the tool, `--packs` or `--mcp`; empty if it needs none."""
        from pegboard.config import given_option

        if isinstance(spec.handler, models.McpHandler) and not spec.handler.saved:
            config = self._parts.hub.config(spec.handler.server)
            return () if config is None else ("--mcp", given_option(spec.handler.server, config))
        folder = self.packs_option(spec)
        return ("--packs", folder) if folder else ()

    def why_not(self, name: str) -> ToolResult | None:
        """Return the failed result for a tool that doesn't exist or isn't allowed; None if it can be called."""
        found = self._parts.registry.find(name, self._parts.allow)
        return None if isinstance(found, models.ToolSpec) else found

    def why_missing(self, name: str) -> str:
        """Return why no tool with this name can be used, such as the problem of its pack; empty if one can be used."""
        error = found.error if (found := self.why_not(name)) is not None else None
        if error is None:
            return ""
        pack = name.partition(".")[0]
        problems = (one for one in self._parts.registry.problems() if one.pack == pack and one.severity == "error")
        problem = next((one for one in problems if one.tool in {None, name}), None)
        if error.detail is not None or problem is None:
            return error.message
        return f"No tool is named {name!r} because its pack has a problem: {problem}"

    def timeout(self, spec: ToolSpec) -> float:
        """Return the timeout of the tool in seconds."""
        return self._parts.timeouts.of(spec)

    def info(self, spec: ToolSpec) -> ToolInfo:
        """Return the tool as listings show it; check its requirements unless they are known, which blocks."""
        if not spec.requirements:
            return models.ToolInfo.of(spec)
        for _ in self._parts.health.check([spec]):
            pass
        return models.ToolInfo.of(spec, self._parts.health.state(spec), self._parts.health.rows([spec]))

    def details(self, spec: ToolSpec) -> ToolDetails:
        """Return all details of the tool, including its use so far; like `info`, and read the history."""
        from pegboard.runtime.details import ToolDetails

        return ToolDetails(
            **{**dict(self.info(spec)), "problems": (*spec.problems, *self.schema_problems(spec))},
            timeout=self.timeout(spec),
            signature=spec.signature,
            uses=self._uses(spec.name),
        )

    def _uses(self, tool: str) -> ToolUses:
        from pegboard.history.reader import Reader
        from pegboard.history.statistics import statistics

        reader = Reader(self._parts.history)
        try:
            found = statistics(reader, [tool])
        except StoreError:
            return self._parts.history.uses(tool)  # it reports why the history can't be read
        finally:
            reader.close()
        return models.ToolUses.model_validate(found[0], from_attributes=True) if found else models.ToolUses()

    def prepare(self, spec: ToolSpec, arguments: JsonObject) -> JsonObject:
        """Return arguments in the form of a call: by the schema's names, with required defaults.

        Raises:
            FormFaults: The arguments are invalid.
        """
        from pegboard.schema.arguments import prepare

        return prepare(spec, arguments)

    def schema_problems(self, spec: ToolSpec) -> tuple[Problem, ...]:
        """Return a warning for each invalid part of the tool's schemas, which validation ignores.

        Another one names arguments that the tool requires but doesn't describe.
        """
        from pegboard.results.sizes import count
        from pegboard.schema.validation import validator

        wrong: list[str] = []
        for name, schema in (("input", spec.input_schema), ("output", spec.output_schema)):
            flaws = [] if schema is None else [f"`{one.path or '/'}`: {one.message}" for one in validator(schema).flaws]
            if name == "input" and spec.input_schema.get("type", "object") != "object":
                flaws.insert(0, "`/type`: must be `object`; no call is valid")
            more = len(flaws) - _MOST_FLAWS
            wrong += [f"The {name} schema of {spec.name} is invalid: {flaw}." for flaw in flaws[:_MOST_FLAWS]]
            if more > 0:
                wrong.append(f"The {name} schema of {spec.name} has {count(more, 'more invalid part')}.")
        found = (
            models.Problem(message=message, severity="warning", file=spec.file, pack=spec.pack, tool=spec.name)
            for message in wrong
        )
        return (*found, *_undescribed(spec))

    def output_fault(self, spec: ToolSpec, data: JsonValue) -> str:
        """Return why data doesn't match the tool's output schema; empty if it does, or if the tool has none."""
        schema = spec.output_schema
        if schema is None or (schema.keys() <= _LABELS and type(data) is _SCALARS.get(str(schema.get("type")))):
            return ""
        from pegboard.schema.validation import validator

        fault = next(iter(validator(schema).faults(data)), None)
        return "" if fault is None else f"{fault.where or 'it'} {fault.message}."

    async def watch(self) -> AsyncGenerator[None]:
        """Scan, then watch the packs folders and connect to the servers until the iterator is closed.

        Yields after the first scan, and after each rescan that changed something, also if another caller scanned.
        Changes between two scans aren't missed. Connecting starts after the first scan was received, so that nothing
        waits for it.
        """
        import asyncio

        stop = asyncio.Event()
        # The baseline for changes is taken here, before the scan.
        changes = await asyncio.to_thread(self._changes, stop)
        changed, loop = asyncio.Event(), asyncio.get_running_loop()
        following: asyncio.Task[None] | None = None

        def wake(*_: object) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(changed.set)

        async def follow() -> None:
            async with aclosing(changes):
                async for _ in changes:
                    changed.set()

        ignore = self._parts.listen_to_servers(wake)
        try:
            await asyncio.to_thread(self.scan)
            yielded = self._parts.registry.changes
            yield
            following = asyncio.create_task(follow())
            following.add_done_callback(wake)
            if self._parts.has_servers:
                self._parts.hub.start()
            while not following.done():
                await changed.wait()
                changed.clear()
                await asyncio.to_thread(self.scan)
                if yielded != (latest := self._parts.registry.changes):
                    yielded = latest
                    yield
        finally:
            ignore()
            stop.set()
            if following is None:
                await changes.aclose()
            else:
                following.cancel()
                await asyncio.wait({following})

    def _changes(self, stop: asyncio.Event) -> AsyncGenerator[frozenset[str]]:
        from pegboard.discovery import watch

        return watch(self._parts.folders, stop=stop, modules=self._parts.registry.files)


def _undescribed(spec: ToolSpec) -> tuple[Problem, ...]:
    """Return a warning if the input schema requires arguments that are not among its properties."""
    schema = spec.input_schema
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or not isinstance(properties, dict) or schema.keys() & _ELSEWHERE:
        return ()
    missing = [f"`{name}`" for name in required if isinstance(name, str) and name not in properties]
    if not missing:
        return ()
    effect = " No call is valid." if schema.get("additionalProperties") is False else ""
    message = f"The input schema of {spec.name} requires {', '.join(missing)}, not listed in `properties`.{effect}"
    fix = "Correct `required` or `properties`."
    return (models.Problem(message=message, fix=fix, severity="warning", pack=spec.pack, tool=spec.name),)
