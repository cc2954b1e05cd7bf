"""`pegboard script run | check | list`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.arguments import complete_scripts
from pegboard.cli.root import (
    OK,
    TOOL_FAILED,
    USAGE,
    AllowOption,
    JsonOption,
    PacksOption,
    group,
    open_runtime,
    scanned,
)
from pegboard.cli.servers import ElicitOption, answer_questions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pegboard.models import CallEvent, Finished, ScriptAnalysis, ToolResult
    from pegboard.runtime import Runtime

script = group("script", "Run bash scripts whose commands are tools.")

FileArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Script file, or the name of a saved script; - reads it from stdin.",
        autocompletion=complete_scripts,
    ),
]


@script.command()
def run(
    context: typer.Context,
    file: FileArgument,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0.001, help="Timeout of the script in seconds.")
    ] = None,
    elicit: ElicitOption = None,
    json: JsonOption = False,
    tool_allow: AllowOption = None,
    packs: PacksOption = None,
) -> None:
    """Run a script in a sandbox.

    Print its output, or {"stdout": …, "calls": …} with --json, and exit with its code.
    """
    import asyncio

    from pegboard.cli.output import narrate, narrate_problems, print_json

    runtime = scanned(context, tool_allow, connects=True)
    answer_questions(runtime, elicit)
    text = _read(runtime, file)
    narrate_problems(runtime.problems(packs=False))
    output = _ScriptOutput(prints=not json)
    result, interruption = asyncio.run(_run(runtime, text, output, timeout))
    if result.error is not None:
        narrate(f"{result.error.code}: {result.error.message}")
        raise typer.Exit(interruption or TOOL_FAILED)
    assert isinstance(result.data, dict), "the output schema requires it"
    if json:
        calls = [{"call": done.call.shown(), "result": done.result} for done in output.calls]
        print_json({**result.data, "calls": calls})
    code = result.data["exit_code"]
    raise typer.Exit(code if isinstance(code, int) else TOOL_FAILED)


@script.command()
def check(
    context: typer.Context,
    file: FileArgument,
    json: JsonOption = False,
    tool_allow: AllowOption = None,
    packs: PacksOption = None,
) -> None:
    """Show the calls of a script without running it; exit with 2 if one of them can't work."""
    from dataclasses import asdict

    from pegboard.cli.output import narrate, print_json, print_table

    runtime = scanned(context, tool_allow, connects=True)
    analysis = runtime.scripts.orchestrator().analyze(_read(runtime, file))
    errors = [*_missing(runtime, analysis), *_blocked(runtime, analysis)]
    if json:
        print_json({**asdict(analysis), "errors": errors})
    else:
        print_table(
            [(call.tool, " ".join("?" if word is None else word for word in call.words)) for call in analysis.calls],
            empty="" if errors or analysis.unknown or analysis.error else "The script calls no tools.",
        )
        for sentence in analysis.unknown:
            narrate(f"unknown: {sentence}")
        for sentence in errors:
            narrate(f"error: {sentence}")
        for call in analysis.calls:
            for fault in call.faults:
                narrate(f"error: {call.tool}: {fault}")
        if analysis.error is not None:
            narrate(f"error: {analysis.error}")
    is_wrong = bool(errors) or analysis.error is not None or any(call.faults for call in analysis.calls)
    raise typer.Exit(USAGE if is_wrong else OK)


def _missing(runtime: Runtime, analysis: ScriptAnalysis) -> Iterator[str]:
    """Yield why commands don't exist: misspelled, or not allowed."""
    for command in analysis.missing:
        for name in (command.name, command.name.replace("_", ".", 1)):
            found = runtime.tools.why_not(name)
            if found is not None and found.error is not None and found.error.detail == "not_allowed":
                yield found.error.message
                break
        else:
            yield str(command)


def _blocked(runtime: Runtime, analysis: ScriptAnalysis) -> Iterator[str]:
    """Yield the missing requirements of tools that the script calls."""
    for tool in dict.fromkeys(call.tool for call in analysis.calls):
        rows = [row for row in runtime.health.check_blocking(tool) if row.blocks]
        if rows:
            reasons = "; ".join(f"{row.error or f'{row.name} is {row.status}'} {row.install}".strip() for row in rows)
            yield f"{tool} is blocked: {reasons}"


@script.command("list")
def list_(context: typer.Context, json: JsonOption = False, packs: PacksOption = None) -> None:
    """List the saved scripts, which run and check accept by name."""
    from pegboard.cli.output import narrate, print_json, print_table
    from pegboard.errors import SavedScriptError

    try:
        found = open_runtime(context).scripts.saved.list()
    except SavedScriptError as error:
        narrate(str(error))
        raise typer.Exit(TOOL_FAILED) from error
    if json:
        print_json(found)
        return
    print_table(
        [(one.name, f"{one.changed.astimezone():%Y-%m-%d %H:%M}") for one in found],
        ("SCRIPT", "CHANGED"),
        empty="No saved scripts. Save one on the Script page of the app, or write an example with"
        " `pegboard new --example shop`.",
    )


def _read(runtime: Runtime, file: str) -> str:
    """Return the text of a script, from a file before a saved script; exit if it can't be read."""
    from pegboard.cli.output import narrate
    from pegboard.errors import SavedScriptError

    try:
        script_ = (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        narrate(f"{file} is not UTF-8.")
        raise typer.Exit(USAGE) from error
    except (FileNotFoundError, IsADirectoryError):
        try:
            script_ = runtime.scripts.saved.read(file)
        except SavedScriptError as error:
            narrate(f"The file {file} doesn't exist. {error}")
            raise typer.Exit(USAGE) from error
    except (OSError, ValueError) as error:
        narrate(f"{file} can't be read: {getattr(error, 'strerror', None) or error}.")
        raise typer.Exit(USAGE) from error
    if not script_:
        narrate(f"{file} is empty.")
        raise typer.Exit(USAGE)
    return script_


async def _run(runtime: Runtime, text: str, output: _ScriptOutput, seconds: float | None) -> tuple[ToolResult, int]:
    """Run the script; the first ctrl+c cancels it, a second one ends the program.

    Returns:
        Its result, and the exit code if it was interrupted, else 0.
    """
    import asyncio
    from contextlib import aclosing

    from pegboard.cli.interruption import interruptible
    from pegboard.models import Finished
    from pegboard.models.call import new_call_id

    loop = asyncio.get_running_loop()
    call_id = new_call_id()
    cancelling: list[asyncio.Task[bool]] = []
    event: CallEvent | None = None
    with interruptible(lambda: cancelling.append(loop.create_task(runtime.cancel(call_id)))) as interruption:
        async with runtime, aclosing(runtime.scripts.run(text, call_id=call_id, timeout=seconds)) as events:
            async for event in events:
                output.event(event, call_id)
    assert isinstance(event, Finished), "a call always ends with Finished"
    return event.result, interruption.exit_code if interruption else 0


class _ScriptOutput:
    """Output of a script as it runs, or the list of its calls.

    Args:
        prints: Whether to print the script's output instead of keeping its calls.
    """

    def __init__(self, *, prints: bool) -> None:
        self._prints = prints
        self._calls: dict[str, Finished | None] = {}

    @property
    def calls(self) -> list[Finished]:
        """The finished calls, in the order in which they started."""
        return [done for done in self._calls.values() if done is not None]

    def event(self, event: CallEvent, script_id: str) -> None:
        """Handle an event."""
        from pegboard.models import Finished, Log, Started

        match event:
            case Log(stream=stream, text=text) if self._prints and event.owner == script_id:
                self._print(stream, text)
            case _ if self._prints:
                pass
            case Started() if event.call.parent == script_id:
                self._calls[event.owner] = None
            case Finished() if event.call.parent == script_id:
                self._calls[event.owner] = event

    def _print(self, stream: str, text: str) -> None:
        from pegboard.cli.output import print_text

        print_text(text, to_stderr=stream == "stderr")
