"""Scripts as a tool among others: `script.run`, what offers it and what runs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from time import perf_counter
from typing import Final, NamedTuple

from pegboard.models import (
    CallEvent,
    CallSource,
    Finished,
    Hints,
    JsonObject,
    Problem,
    ResultMeta,
    ScriptHandler,
    Started,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from pegboard.ports import Calls
from pegboard.scripts.commands import Origin
from pegboard.scripts.execution import Limits, ScriptResult
from pegboard.scripts.orchestrator import INPUT_SCHEMA, OUTPUT_SCHEMA, OrchestratorTool
from pegboard.scripts.sandbox import Sandboxes

NAME: Final = "script.run"

_DESCRIPTION: Final = """\
Run a bash script in which all other tools are commands, and get what it prints.

Use it where several calls are needed, or little of large results: the calls are made within the script, and only what
it prints comes back. A tool `fs.list_dir` is the command `fs.list_dir` or `fs_list_dir`; `help` lists the tools, and
`help TOOL` tells all of one. Flags are `--name value`, required arguments may be given in order without them; a text is
printed as it is, anything else as JSON on one line, for `jq`. A tool that fails says why on stderr and has an exit code
that isn't 0. `a & b & wait` and `xargs -P 8` run calls at once. The script has its own files, and neither programs nor
network but the tools."""
_BY_HAND: Final[frozenset[CallSource]] = frozenset({"form", "cli", "script"})


def script_tool(seconds: float) -> ToolSpec:
    """Describes the tool that runs scripts.

    Args:
        seconds: How long a script may take.
    """
    return ToolSpec(
        name=NAME,
        pack="script",
        description=_DESCRIPTION,
        input_schema=INPUT_SCHEMA,
        output_schema=OUTPUT_SCHEMA,
        handler=ScriptHandler(),
        signature=f"{NAME}(*, commands: str) -> Output",
        hints=Hints(timeout=seconds),
    )


class ScriptSource:
    """Offers the tool that runs scripts; a `pegboard.ports.ToolSource`.

    Args:
        seconds: How long a script may take.
    """

    def __init__(self, seconds: float) -> None:
        self._spec = script_tool(seconds)

    def scan(self) -> tuple[Sequence[ToolSpec], Sequence[Problem]]:
        """Gives the one tool."""
        return (self._spec,), ()


class _Running(NamedTuple):
    task: asyncio.Task[ScriptResult]
    calls: set[str]
    """The ids of the calls made within it, at whatever depth."""


class ScriptRunner:
    """Runs scripts; a `pegboard.ports.ToolRunner`.

    Args:
        calls: Gives the road that the calls within scripts take, which knows the tools too.
        limits: How far a script may go.
    """

    def __init__(self, calls: Callable[[], Calls], limits: Limits | None = None) -> None:
        self._calls = calls
        self._limits = limits or Limits()
        self._sandboxes = Sandboxes(self._limits.memory)
        self._running: dict[str, _Running] = {}

    def orchestrator(self) -> OrchestratorTool:
        """Gives what runs scripts over the tools that may be called now."""
        calls = self._calls()
        specs = [spec for spec in calls.callable() if not isinstance(spec.handler, ScriptHandler)]
        builder = OrchestratorTool.builder(NAME).short_description(_DESCRIPTION).specs(specs, calls)
        return builder.limits(self._limits).sandboxes(self._sandboxes).build()

    async def run(
        self,
        spec: ToolSpec,
        call: ToolCall,
        *,
        timeout: float,  # noqa: ASYNC109 - it bounds the script, not the caller's waiting
        calls: Calls | None = None,
    ) -> AsyncGenerator[CallEvent]:
        """Runs one script.

        Yields `Started`, then what is printed as `Log`s and what happens to the calls within, then `Finished`. Whoever
        stops iterating before the end ends the script and its calls. The calls of a script that the user runs have the
        source `script`; those of any other have the source of the script, and so need the same approvals.

        Args:
            spec: The tool that runs scripts.
            call: The call; its arguments are valid.
            timeout: Seconds that the script may take.
            calls: Nobody's: scripts always use the road that they were given.
        """
        del spec, calls
        if any(call.parent in running.calls for running in self._running.values()):
            refusal = "A script can't run another one, nor can the tools that it calls."
            yield Finished(call=call, result=ToolResult.failed("execution_error", refusal, "too_deep"))
            return
        yield Started(call=call)
        events: asyncio.Queue[CallEvent | None] = asyncio.Queue()
        within: set[str] = set()

        def tell(event: CallEvent) -> None:
            if isinstance(event, Started):
                within.add(event.call.id)
            events.put_nowait(event)

        source = "script" if call.source in _BY_HAND else call.source
        origin = Origin(call.id, source, call.session)
        began = perf_counter()
        task = asyncio.create_task(self._execute(call, tell, origin, timeout))
        task.add_done_callback(lambda _: events.put_nowait(None))
        self._running[call.id] = _Running(task, within)
        try:
            while (event := await events.get()) is not None:
                yield event
            yield Finished(call=call, result=_result(task, (perf_counter() - began) * 1000))
        finally:
            del self._running[call.id]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def cancel(self, call_id: str) -> bool:
        """Ends a running script, which then finishes with the detail `cancelled`; False if there is none."""
        running = self._running.get(call_id)
        if running is None:
            return False
        running.task.get_loop().call_soon_threadsafe(running.task.cancel)
        return True

    async def close(self) -> None:
        """Ends every running script and every process."""
        tasks = [running.task for running in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self._sandboxes.close)

    async def _execute(
        self, call: ToolCall, tell: Callable[[CallEvent], None], origin: Origin, seconds: float
    ) -> ScriptResult:
        commands = str(call.args["commands"])
        orchestrator = await asyncio.to_thread(self.orchestrator)
        return await orchestrator.execute(commands, tell=tell, origin=origin, seconds=seconds, keeps_calls=False)


def _result(task: asyncio.Task[ScriptResult], milliseconds: float) -> ToolResult:
    if task.cancelled():
        return ToolResult.failed("execution_error", "The script was cancelled.", "cancelled")
    try:
        done = task.result()
    except OSError as error:
        return ToolResult.failed("execution_error", f"No process for the script can be started: {error}")
    except ValueError as error:
        return ToolResult.failed("invalid_args", str(error))
    data: JsonObject = {"stdout": done.stdout, "stderr": done.stderr, "exit_code": done.exit_code}
    return ToolResult(ok=True, data=data, meta=ResultMeta(duration_ms=milliseconds))
