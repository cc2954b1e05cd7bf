"""Scripts as a tool: `script.run`, its source and its runner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from time import perf_counter
from typing import Final, NamedTuple

from pegboard.models import (
    CallEvent,
    CallSource,
    Finished,
    Hints,
    JsonObject,
    Log,
    Problem,
    ResultMeta,
    ScriptHandler,
    Started,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from pegboard.ports import Calls
from pegboard.scripts.commands import CallOrigin
from pegboard.scripts.execution import Limits, ScriptResult
from pegboard.scripts.orchestrator import INPUT_SCHEMA, OUTPUT_SCHEMA, OrchestratorTool
from pegboard.scripts.sandbox import Sandboxes

NAME: Final = "script.run"

_DESCRIPTION: Final = """\
Run a bash script in which all other tools are commands, and return its output.

Use it for several calls, or for small parts of large results: the script makes the calls, and only its output is
returned. A tool `fs.list_dir` is the command `fs.list_dir` or `fs_list_dir`; `help` lists the tools, and `help TOOL`
describes one. Flags are `--name value`; required arguments may be passed in order without them. Text is printed as it
is, anything else as JSON on one line, for `jq`. A tool that fails prints the reason to stderr and has a nonzero exit
code. `a & b & wait` and `xargs -P 8` run calls concurrently. The script has its own temporary files, and no programs or
network except the tools."""
_BY_HAND: Final[frozenset[CallSource]] = frozenset({"form", "cli", "script"})


def script_tool(seconds: float) -> ToolSpec:
    """Return the tool that runs scripts.

    Args:
        seconds: Timeout of a script.
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
    """Source of the tool that runs scripts; a `pegboard.ports.ToolSource`.

    Args:
        seconds: Timeout of a script.
    """

    def __init__(self, seconds: float) -> None:
        self._spec = script_tool(seconds)

    def scan(self) -> tuple[Sequence[ToolSpec], Sequence[Problem]]:
        """Return the tool."""
        return (self._spec,), ()


class _Running(NamedTuple):
    task: asyncio.Task[ScriptResult]
    calls: set[str]
    """Ids of the calls made within the script, at any depth."""


class ScriptRunner:
    """Runner of scripts; a `pegboard.ports.ToolRunner`.

    Args:
        calls: Function that returns the pipeline for the calls within scripts.
        limits: Limits of each script.
    """

    def __init__(self, calls: Callable[[], Calls], limits: Limits | None = None) -> None:
        self._calls = calls
        self._limits = limits or Limits()
        self._sandboxes = Sandboxes(self._limits.memory)
        self._running: dict[str, _Running] = {}

    def orchestrator(self) -> OrchestratorTool:
        """Return an orchestrator of all tools that may be called now."""
        calls = self._calls()
        specs = [spec for spec in calls.callable() if not isinstance(spec.handler, ScriptHandler)]
        builder = OrchestratorTool.builder(NAME).short_description(_DESCRIPTION).specs(specs, calls)
        return builder.limits(self._limits).sandboxes(self._sandboxes).build()

    async def run(
        self,
        spec: ToolSpec,
        call: ToolCall,
        *,
        timeout: float,  # noqa: ASYNC109 - it limits the script, not the caller's wait
        calls: Calls | None = None,
    ) -> AsyncGenerator[CallEvent]:
        """Run one script.

        Yield `Started`, then its output as `Log`s and the events of its calls, then `Finished`. Closing the iterator
        ends the script and its calls. Calls of a script that the user runs have the source `script`; others have the
        source of the script, and so need the same approvals.

        Args:
            spec: The tool that runs scripts.
            call: The call; its arguments are valid.
            timeout: Timeout of the script, in seconds.
            calls: Ignored: scripts always use the pipeline passed to the constructor.
        """
        del spec, calls
        if any(call.parent in running.calls for running in self._running.values()):
            refusal = "The script was not run because scripts, and tools that they call, can't run other scripts."
            yield Finished(call=call, result=ToolResult.failed("execution_error", refusal, "too_deep"))
            return
        yield Started(call=call)
        events: asyncio.Queue[CallEvent | None] = asyncio.Queue()
        within: set[str] = set()
        printed: dict[str, list[str]] = {"stdout": [], "stderr": []}

        def on_event(event: CallEvent) -> None:
            if isinstance(event, Started):
                within.add(event.call.id)
            elif isinstance(event, Log) and event.call_id == call.id:
                printed[event.stream].append(event.text)
            events.put_nowait(event)

        source = "script" if call.source in _BY_HAND else call.source
        origin = CallOrigin(call.id, source, call.session, call.unattended, call.turn)
        began = perf_counter()
        task = asyncio.create_task(self._execute(call, on_event, origin, timeout))
        task.add_done_callback(lambda _: events.put_nowait(None))
        self._running[call.id] = _Running(task, within)
        try:
            while (event := await events.get()) is not None:
                yield event
            yield Finished(call=call, result=_result(task, printed, (perf_counter() - began) * 1000))
        finally:
            del self._running[call.id]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def cancel(self, call_id: str) -> bool:
        """End a running script, which then finishes with the detail `cancelled`; return False if it isn't running."""
        running = self._running.get(call_id)
        if running is None:
            return False
        running.task.get_loop().call_soon_threadsafe(running.task.cancel)
        return True

    async def close(self) -> None:
        """End all running scripts and processes."""
        tasks = [running.task for running in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self._sandboxes.close)

    async def _execute(
        self, call: ToolCall, on_event: Callable[[CallEvent], None], origin: CallOrigin, seconds: float
    ) -> ScriptResult:
        commands = str(call.args["commands"])
        orchestrator = await asyncio.to_thread(self.orchestrator)
        return await orchestrator.execute(
            commands, on_event=on_event, origin=origin, seconds=seconds, keeps_calls=False
        )


def _result(task: asyncio.Task[ScriptResult], printed: Mapping[str, Sequence[str]], milliseconds: float) -> ToolResult:
    """Return the result of a script.

    Args:
        task: The task that ran it.
        printed: Its output by stream.
        milliseconds: Its duration.
    """
    if task.cancelled():
        result = ToolResult.failed("execution_error", "The script was cancelled.", "cancelled").timed(milliseconds)
        so_far = {stream: "".join(pieces) for stream, pieces in printed.items()}
        return result.model_copy(update={"data": so_far}) if any(so_far.values()) else result
    try:
        done = task.result()
    except OSError as error:
        return ToolResult.failed("execution_error", f"The script was not run: no process can be started: {error}")
    except ValueError as error:
        return ToolResult.failed("invalid_args", str(error))
    data: JsonObject = {"stdout": done.stdout, "stderr": done.stderr, "exit_code": done.exit_code}
    return ToolResult(ok=True, data=data, meta=ResultMeta(duration_ms=milliseconds, exit_code=done.exit_code))
