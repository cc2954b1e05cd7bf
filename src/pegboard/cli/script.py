"""`pegboard script run | check | list | show | save | rename | delete`."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.arguments import complete_scripts
from pegboard.cli.exit_codes import failure_code
from pegboard.cli.root import (
    OK,
    TOOL_FAILED,
    USAGE,
    AllowOption,
    JsonOption,
    PacksOption,
    group,
    open_runtime,
    recorded_call,
    scanned,
)
from pegboard.cli.servers import ElicitOption, answer_questions
from pegboard.data.mask import REDACTED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pegboard.models import CallEvent, Finished, ScriptAnalysis
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

SavedArgument = Annotated[
    str, typer.Argument(metavar="SCRIPT", help="Name of a saved script.", autocompletion=complete_scripts)
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

    Print its output and exit with its code; with --json, print {"stdout": …, "stderr": …, "exit_code": …, "calls": …}
    and exit with 0 if it ran.
    """
    import asyncio

    from pegboard.cli.interruption import run_to_end
    from pegboard.cli.output import narrate, narrate_problems, print_json
    from pegboard.models import ToolResult
    from pegboard.models.call import new_call_id

    runtime = scanned(context, tool_allow, connects=True)
    answer_questions(context, runtime, elicit)
    text = _read(runtime, file)
    narrate_problems(runtime.problems(packs=False))
    output = _ScriptOutput(new_call_id(), prints=not json)

    async def run() -> tuple[Finished | None, int]:
        events = runtime.scripts.run(text, call_id=output.id, timeout=timeout)
        return await run_to_end(runtime, output.id, events, output.event)

    finished, interruption = asyncio.run(run())
    if output.lacks_command:
        narrate_problems(runtime.problems())
    cancelled = ToolResult.failed("execution_error", "The script was cancelled.", "cancelled")
    result = finished.result if finished else cancelled
    if result.error is not None:
        narrate(f"{result.error.code}: {result.error.message}")
    ended = {"exit_code": interruption or TOOL_FAILED, **(result.data if isinstance(result.data, dict) else {})}
    if json:
        calls = [{"call": done.call.shown(), "result": done.result} for done in output.calls]
        print_json({**output.printed, **ended, "calls": calls})
        raise typer.Exit(interruption or (OK if result.error is None else TOOL_FAILED))
    code = ended["exit_code"]
    raise typer.Exit(interruption or (code if isinstance(code, int) else TOOL_FAILED))


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

    from pegboard.cli.output import narrate, narrate_problems, print_json, print_table

    runtime = scanned(context, tool_allow, connects=True)
    analysis = runtime.scripts.orchestrator().analyze(_read(runtime, file))
    if analysis.missing:
        narrate_problems(runtime.problems())
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
    from pegboard.cli.output import print_json, print_table

    with _exit_on_error():
        found = open_runtime(context).scripts.saved.list()
    if json:
        print_json(found)
        return
    print_table(
        [(one.name, f"{one.changed.astimezone():%Y-%m-%d %H:%M}") for one in found],
        ("SCRIPT", "CHANGED"),
        empty="No saved scripts. Save one on the Script page of the app or with `pegboard script save`, or write an"
        " example with `pegboard new --example shop`.",
    )


@script.command()
def show(context: typer.Context, name: SavedArgument, packs: PacksOption = None) -> None:
    """Print a saved script."""
    from pegboard.cli.output import print_text

    with _exit_on_error():
        print_text(open_runtime(context).scripts.saved.read(name))


@script.command()
def save(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="SCRIPT", help="Name to save it under.")],
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="Script file; - reads it from stdin.")] = None,
    call: Annotated[
        list[str] | None,
        typer.Option("--call", metavar="ID", help="Save a script that repeats this recorded call; can be repeated."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a script of the same name.")] = False,
    packs: PacksOption = None,
) -> None:
    """Save a file, or recorded calls, as a script that `run` and `check` accept by its name.

    Examples: `pegboard script save report report.sh`, `pegboard script save morning --call 01a2 --call 01a3`.
    """
    from pegboard.cli.output import narrate

    if (file is None) is (call is None):
        narrate("Name a file, or recorded calls with --call." if file is None else "Name a file or calls, not both.")
        raise typer.Exit(USAGE)
    runtime = scanned(context, connects=call is not None)
    text = (
        _read(runtime, file)
        if file is not None
        else runtime.scripts.from_records(recorded_call(runtime, one) for one in call or ())
    )
    with _exit_on_error():
        _write(runtime, name, text, replace=force)


def _write(runtime: Runtime, name: str, text: str, *, replace: bool) -> None:
    from pegboard.errors import SavedScriptError

    try:
        runtime.scripts.saved.write(name, text, replace=replace)
    except SavedScriptError as error:
        if isinstance(error.__cause__, FileExistsError):
            raise SavedScriptError(f"{str(error).removesuffix('.')}, or add --force.") from error.__cause__
        raise


@script.command()
def rename(
    context: typer.Context,
    name: SavedArgument,
    new: Annotated[str, typer.Argument(metavar="NEW", help="New name.")],
    packs: PacksOption = None,
) -> None:
    """Rename a saved script."""
    with _exit_on_error():
        open_runtime(context).scripts.saved.rename(name, new)


@script.command()
def delete(context: typer.Context, name: SavedArgument, packs: PacksOption = None) -> None:
    """Delete a saved script."""
    with _exit_on_error():
        open_runtime(context).scripts.saved.delete(name)


@contextmanager
def _exit_on_error() -> Iterator[None]:
    """Print why a saved script can't be used, and exit."""
    from pegboard.cli.output import narrate
    from pegboard.errors import SavedScriptError
    from pegboard.results.clean import clean_line

    try:
        yield
    except SavedScriptError as error:
        narrate(clean_line(str(error)))
        raise typer.Exit(failure_code(error)) from error


def _read(runtime: Runtime, file: str) -> str:
    """Return the text of a script, from a file before a saved script; exit if it can't be read."""
    from pegboard.cli.output import narrate
    from pegboard.errors import SavedScriptError

    name = "Standard input" if file == "-" else file
    try:
        script_ = (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        narrate(f"{name} is not UTF-8.")
        raise typer.Exit(USAGE) from error
    except (FileNotFoundError, IsADirectoryError):
        try:
            script_ = runtime.scripts.saved.read(file)
        except SavedScriptError as error:
            narrate(f"{file} is a folder." if Path(file).is_dir() else f"The file {file} doesn't exist. {error}")
            raise typer.Exit(USAGE) from error
        if REDACTED in script_:
            narrate(f"The saved script {file} contains {REDACTED} in place of a value. Enter one first.")
            raise typer.Exit(USAGE) from None
    except (OSError, ValueError) as error:
        narrate(f"{name} can't be read: {getattr(error, 'strerror', None) or error}.")
        raise typer.Exit(USAGE) from error
    if not script_:
        narrate(f"{name} is empty.")
        raise typer.Exit(USAGE)
    if "\r\n" in script_:
        narrate(
            f"note: {name} has Windows line ends. Bash takes the carriage return as part of the last word of a line;"
            " remove it, such as with `sed -i 's/\\r$//' FILE`."
        )
    return script_


class _ScriptOutput:
    """Output of a script as it runs, or what it printed and called.

    Args:
        id_: Id of the script's own call.
        prints: Whether to print the script's output instead of keeping it and its calls.
    """

    def __init__(self, id_: str, *, prints: bool) -> None:
        self.id = id_
        self.printed = {"stdout": "", "stderr": ""}
        self.lacks_command = False
        """Whether a command wasn't found, so that a problem of a pack or server may be the reason."""
        self._prints = prints
        self._calls: dict[str, Finished | None] = {}

    @property
    def calls(self) -> list[Finished]:
        """The finished calls, in the order in which they started."""
        return [done for done in self._calls.values() if done is not None]

    def event(self, event: CallEvent) -> None:
        """Handle an event."""
        from pegboard.models import Finished, Log, Started

        match event:
            case Log(stream=stream, text=text) if event.owner == self.id:
                self.lacks_command |= stream == "stderr" and ": command not found" in text
                if self._prints:
                    self._print(stream, text)
                else:
                    self.printed[stream] += text
            case _ if self._prints:
                pass
            case Started() if event.call.parent == self.id:
                self._calls[event.owner] = None
            case Finished() if event.call.parent == self.id:
                self._calls[event.owner] = event

    def _print(self, stream: str, text: str) -> None:
        from pegboard.cli.output import print_text

        print_text(text, to_stderr=stream == "stderr")
