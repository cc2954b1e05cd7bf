"""`pegboard batch`."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.cli.arguments import ArgOption, ArgsOption, ArgumentError, complete_tools, read_arguments
from pegboard.cli.engines import EngineOption, InsecureOption, configured_engine, engine_at
from pegboard.cli.root import MOST, OK, TOOL_FAILED, USAGE, AllowOption, PacksOption, app, find, or_stdout, scanned
from pegboard.cli.servers import ElicitOption, answer_questions

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from pegboard.batch.engine import Engine
    from pegboard.batch.errors import BatchError
    from pegboard.batch.plan import BatchPlan
    from pegboard.batch.record import Ended
    from pegboard.batch.results import RowResult
    from pegboard.batch.run import Batch
    from pegboard.cli.interruption import Interruption
    from pegboard.models import JsonObject, ToolSpec
    from pegboard.runtime import Runtime

_LINE_SECONDS = 0.25
_FAILURES_SHOWN = 5
"""Failures whose messages are printed while the batch runs; the results have all of them."""
_EXAMPLES = """Call a tool with every row of a JSON Lines or CSV file.

Print or write one line of JSON per row, in the order in which they finish: {row, ok, data, error, durationMs, attempts,
call}. Exit with 1 if a row failed.

Examples:

pegboard batch fs.read_file --from files.csv --map path=file --out texts.jsonl

pegboard batch fs.read_file --from files.csv --map path=file --out texts.jsonl --resume

pegboard batch web.fetch --from - --jobs 4 --rate 5/s --retry 3 < urls.jsonl"""


@app.command(help=_EXAMPLES, short_help="Call a tool with every row of a JSON Lines or CSV file.")
def batch(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="TOOL", help="A tool, such as fs.read_file.", autocompletion=complete_tools)
    ],
    source: Annotated[
        str, typer.Option("--from", metavar="FILE", help="JSON Lines or CSV file; - reads standard input.")
    ],
    maps: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="PARAM=COLUMN",
            help="Fill a parameter from a column with another name; can be repeated. Columns with the name of a"
            " parameter need no --map.",
        ),
    ] = None,
    args: ArgsOption = None,
    arg: ArgOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write the results to a file, as CSV if it ends with .csv; its journal is beside it.",
            callback=or_stdout,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, max=1000, help="Concurrent calls; by default as many as cores."),
    ] = None,
    engine: EngineOption = None,
    insecure: InsecureOption = False,
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="N/s", help="Start at most N calls per s, min or h.")
    ] = None,
    retry: Annotated[
        int,
        typer.Option(
            "--retry",
            metavar="N",
            min=0,
            max=1000,
            help="Repeat a row up to N times if a connection can't be made; after a timeout, a lost connection or a"
            " crash only if the tool is idempotent or read-only.",
        ),
    ] = 0,
    stop_after: Annotated[
        int | None,
        typer.Option("--stop-after", metavar="N", min=1, max=MOST, help="Start no more rows after N failures."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted batch with the same --out.")
    ] = False,
    retry_unknown: Annotated[
        bool,
        typer.Option(
            "--retry-unknown",
            help="With --resume, repeat interrupted calls even if the tool is neither idempotent nor read-only.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing results.")] = False,
    encoding: Annotated[
        str | None, typer.Option("--encoding", metavar="NAME", help="Encoding of the rows; UTF-8 by default.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0.001, help="Timeout of each call in seconds.")
    ] = None,
    elicit: ElicitOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON; needs --out.")] = False,
    tool_allow: AllowOption = None,
    packs: PacksOption = None,
) -> None:
    """Call a tool with every row of a JSON Lines or CSV file."""
    import asyncio

    from pegboard.batch.errors import BatchError
    from pegboard.batch.plan import BatchPlan, read_rate
    from pegboard.cli.output import narrate, narrate_problems

    if json and out is None:
        narrate("--json prints a summary instead of the results, so it needs --out.")
        raise typer.Exit(USAGE)
    if retry_unknown and not resume:
        narrate("--retry-unknown needs --resume.")
        raise typer.Exit(USAGE)
    if force and out is None:
        narrate("--force replaces the results of --out, so it needs --out.")
        raise typer.Exit(USAGE)
    if source == "-" and args == "-":
        narrate("Standard input can be read only once: use it for --from or for --args.")
        raise typer.Exit(USAGE)
    runtime = scanned(context, tool_allow, connects=True, tool=name, calls=True)
    answer_questions(context, runtime, elicit)
    spec = find(runtime, name)
    narrate_problems(runtime.problems(packs=False))
    try:
        plan = BatchPlan(
            spec=spec,
            source=source,
            maps=tuple(maps or ()),
            given=_given(runtime, spec, args, arg or []),
            jobs=jobs,
            rate=None if rate is None else read_rate(rate),
            retry=retry,
            out=out,
            resume=resume,
            retry_unknown=retry_unknown,
            stop_after=stop_after,
            timeout=timeout,
            encoding=encoding,
            replace=force,
        )
        code = asyncio.run(_run(runtime, plan, _engine(engine, insecure=insecure), json=json))
    except (ArgumentError, BatchError) as error:
        narrate(str(error))
        raise typer.Exit(USAGE) from error
    raise typer.Exit(code)


def _given(runtime: Runtime, spec: ToolSpec, args: str | None, pairs: list[str]) -> JsonObject | None:
    """Return the arguments that every row starts from, or None if the command line has none."""
    return read_arguments(runtime, spec, args, pairs) if args is not None or pairs else None


def _engine(address: str | None, *, insecure: bool) -> Callable[[Runtime, BatchPlan], Engine]:
    """Return a function that builds the engine within a running event loop."""

    def build(runtime: Runtime, plan: BatchPlan) -> Engine:
        return engine_at(runtime, address or configured_engine(runtime), plan.jobs, insecure=insecure)

    return build


async def _run(runtime: Runtime, plan: BatchPlan, engine: Callable[[Runtime, BatchPlan], Engine], *, json: bool) -> int:
    """Run a batch; ctrl+c lets the running calls finish, and a second one ends them."""
    from pegboard.batch.errors import BatchError
    from pegboard.batch.run import Batch
    from pegboard.cli.interruption import interruptible
    from pegboard.cli.output import narrate

    running = Batch(plan, engine(runtime, plan), runtime.pipelines.recorder)
    output = _Output(running)

    def interrupt() -> None:
        output.say("Stopping when the running calls have finished. Press ctrl+c again to end them.")
        running.stop()

    failure: BatchError | None = None
    ended: Ended = "stopped"
    async with runtime:
        with interruptible(interrupt) as interruption:
            try:
                ended = await output.during(running.run(output.result))
            except BatchError as error:
                failure = error
            except BrokenPipeError:  # a reader such as `head` has read enough
                output.end()
                raise
            except BaseException:
                # ctrl+c for the second time: the loop cancels the batch, whose files are complete by now.
                output.end()
                narrate(_resumable(plan))
                raise
    output.end()
    return _finish(running, failure, ended, interruption, json=json)


def _finish(running: Batch, failure: BatchError | None, ended: Ended, interruption: Interruption, *, json: bool) -> int:
    """Print the summary, and return the exit code."""
    from pegboard.batch.errors import MappingError
    from pegboard.cli.output import narrate, print_json
    from pegboard.results.clean import clean_line
    from pegboard.results.sizes import count

    plan, progress = running.plan, running.progress
    if running.ignored:
        ignored = ", ".join(clean_line(name) or "(a column without a name)" for name in running.ignored)
        narrate(f"note: these columns fill no parameter and were ignored: {ignored}")
    if failure is not None:
        narrate(f"error: {failure}")
        if isinstance(failure, MappingError):
            narrate("`--map PARAMETER=COLUMN` maps a column, and `--arg PARAMETER=VALUE` sets an argument of all rows.")
    summary = {
        "tool": plan.spec.name,
        "batch": running.id,
        "rows": progress.done + progress.before,
        "ok": progress.succeeded + progress.before - progress.failed_before,
        "failed": progress.failed + progress.failed_before,
        "unknown": progress.unknown,
        "before": progress.before,
        "seconds": round(progress.seconds, 3),
        "ended": "error" if failure else ended,
        "error": None if failure is None else str(failure),
        "out": None if plan.out is None else str(plan.out),
    }
    if json:
        print_json(summary)
    parts = [
        count(progress.done + progress.before, "row"),
        f"{summary['ok']:,} succeeded",
        f"{summary['failed']:,} failed",
    ]
    if progress.unknown:
        parts.append(f"{progress.unknown:,} of them with an unknown outcome")
    if progress.before:
        parts.append(f"{progress.before:,} finished before")
    if failure is None or progress.done or progress.before:
        narrate(f"{', '.join(parts)}, in {progress.seconds:.1f} s")
    if ended == "failures":
        narrate(f"Stopped after {count(progress.failed, 'failure')}.")
    if ended != "complete" and running.has_started and (failure is None or progress.done or progress.before):
        narrate(_resumable(plan))
    if interruption:
        return interruption.exit_code
    if failure is not None:
        return USAGE
    return TOOL_FAILED if summary["failed"] else OK


def _resumable(plan: BatchPlan) -> str:
    """Return how to continue a batch."""
    from pegboard.batch.rows import STDIN

    if plan.out is None or plan.source == STDIN:
        return "This batch can't be resumed: only a batch that reads a file and has --out can be."
    words = ["pegboard", *sys.argv[1:]]
    end = words.index("--") if "--" in words else len(words)  # only arguments follow it
    options = [word for word in words[:end] if word not in {"--resume", "--force"}]
    return f"Continue with: {' '.join(map(_quoted, [*options, '--resume', *words[end:]]))}"


def _quoted(word: str) -> str:
    """Return a word of the command line for a shell, with escaped bytes if it is not UTF-8."""
    if word.isprintable():
        return shlex.quote(word)
    escaped = os.fsencode(word).decode("latin-1").encode("unicode_escape").decode().replace("'", "\\'")
    return f"$'{escaped}'"


class _Output:
    """Results on stdout unless they are written to a file, progress and the first failures on stderr.

    Args:
        running: The batch.
    """

    def __init__(self, running: Batch) -> None:
        self._batch = running
        self._prints = running.plan.out is None
        self._failures = 0
        self._has_line = False

    def result(self, result: RowResult) -> None:
        """Handle the result of a row."""
        if self._prints:
            from pegboard.cli.output import print_line_of_json

            self._clear()
            print_line_of_json(result.line())
        if result.error is None:
            return
        self._failures += 1
        if self._failures <= _FAILURES_SHOWN:
            from pegboard.results.clean import clean_line

            self.say(f"row {result.row}: {clean_line(result.error.message)[:300]}")
        elif self._failures == _FAILURES_SHOWN + 1:
            self.say("Further failures are only counted here; the results have their messages.")

    def say(self, text: str) -> None:
        """Print a message above the line of progress."""
        from pegboard.cli.output import narrate

        self._clear()
        narrate(text)

    async def during(self, running: Coroutine[Any, Any, Ended]) -> Ended:
        """Show the progress until the batch ends, and return how it ended."""
        import asyncio

        if not sys.stderr.isatty():
            return await running
        showing = asyncio.create_task(self._show())
        try:
            return await running
        finally:
            showing.cancel()

    def end(self) -> None:
        """Remove the line of progress."""
        self._clear()

    async def _show(self) -> None:
        import asyncio

        from pegboard.cli.output import write_status

        while True:
            write_status(self._batch.progress.line())
            self._has_line = True
            await asyncio.sleep(_LINE_SECONDS)

    def _clear(self) -> None:
        if self._has_line:
            from pegboard.cli.output import write_status

            write_status("")
            self._has_line = False
