"""`pegboard history [QUERY] | show | rerun | diff | export | redact | stats | delete | restore | pin`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer.core import TyperGroup

from pegboard.cli.arguments import (
    ArgOption,
    ArgsOption,
    ArgumentError,
    read_arguments,
    read_arguments_of_unknown,
    read_object,
)
from pegboard.cli.root import (
    MOST,
    NOT_FOUND,
    TOOL_FAILED,
    USAGE,
    JsonOption,
    PacksOption,
    app,
    open_runtime,
    or_stdout,
    recorded_call,
    refuse_beside,
    refuse_json_beside_data,
    scanned,
)
from pegboard.data.mask import unrecorded_secret
from pegboard.results.sizes import count, duration, local_time

if TYPE_CHECKING:
    from pegboard.models import HistoryQuery, JsonObject, RecordedCall
    from pegboard.runtime import Runtime

_HELP = """List past calls from every source, the newest first.

Without a command, list the calls that match QUERY: words, "phrases", and the filters tool: source: session: agent:
status: since: before: slower: parent: pinned:. For example: pegboard history tool:ckan status:failed since:2h.
`pegboard history list --help` describes the options."""


class _QueryGroup(TyperGroup):
    """Commands of the history; anything that is not a command is a query to list."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # typer's own context
        """Insert the command `list` before a query."""
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


commands = type(app)(
    name="history",
    cls=_QueryGroup,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)
app.add_typer(commands)


@commands.callback()
def _options() -> None:
    """Keep `history` a group."""


commands.info.help = _HELP

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of a call, or its first characters.")]
IdsArgument = Annotated[list[str], typer.Argument(metavar="ID", help="Ids of calls, or their first characters.")]
QueryArgument = Annotated[list[str] | None, typer.Argument(metavar="QUERY", help="Words and filters.")]


@commands.command("list")
def list_(
    context: typer.Context,
    query: QueryArgument = None,
    json: JsonOption = False,
    tool: Annotated[
        str | None, typer.Option("--tool", metavar="NAME", help="List only calls of this tool, pack or pattern.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="List only failed calls.")] = False,
    source: Annotated[
        str | None, typer.Option("--source", metavar="NAME", help="List only calls from this source, such as ask.")
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="List only calls of this chat session.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="List only calls since then: 30m, 2h, 7d or a date.")
    ] = None,
    turns: Annotated[bool, typer.Option("--turns", help="List model turns too.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST, help="List at most this many calls.")] = 50,
    packs: PacksOption = None,
) -> None:
    """List the calls that match a query, the newest first."""
    from pegboard.cli.call_table import print_calls
    from pegboard.cli.output import narrate, narrate_problems, print_json

    runtime = open_runtime(context)
    given = {"tool": tool, "source": source, "session": session, "since": since, "status": "failed" if failed else None}
    wanted = _query(runtime, query or [], {key: value for key, value in given.items() if value is not None})
    with _exit_on_error():
        calls = runtime.activity.page(wanted.model_copy(update={"turns": turns}), limit=limit).calls
        dropped = runtime.activity.dropped() if not calls else None
    narrate_problems(runtime.problems())
    if json:
        print_json([call.model_dump(mode="json", by_alias=True, exclude={"position"}) for call in calls])
        return
    only_tool = tool and not (query or failed or source or session or since)
    empty = "No recorded calls yet. `pegboard tools invoke` runs a tool."
    if not wanted.is_empty:
        empty = f"No recorded calls of {tool}." if only_tool else "No recorded call matches."
    print_calls(calls, empty)
    if dropped is not None:
        narrate(
            f"Pegboard removed {count(dropped.calls, 'call')} until {local_time(dropped.until)} because the history"
            f" exceeded {dropped.size_limit:,} bytes (`size_limit` under `[history]`)."
        )


@commands.command()
def show(
    context: typer.Context,
    call_id: IdArgument,
    data: Annotated[bool, typer.Option("--data", help="Print only the result's data, text unchanged.")] = False,
    print_: Annotated[
        Literal["cli", "script", "json", "python", "mcp"] | None,
        typer.Option("--print", help="Print the call as text for another program."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print record and result as JSON (the default).")] = False,
    packs: PacksOption = None,
) -> None:
    """Print a call with its arguments and its whole result."""
    from pegboard.cli.output import narrate, narrate_problems, print_data, print_json
    from pegboard.cli.whole_results import complete_result, print_whole_data

    if print_ is not None:
        refuse_beside("--print", {"--data": data, "--json": json}, "it prints the call without its result")
    refuse_json_beside_data(data=data, json=json)
    runtime = open_runtime(context) if print_ is None else scanned(context, connects=False)
    with _exit_on_error():
        call = recorded_call(runtime, call_id)
        if print_ is not None:
            if call.is_turn or call.is_batch:
                narrate(f"{call.tool} was not printed as a call: {runtime.activity.unrepeatable(call)}")
                raise typer.Exit(TOOL_FAILED)
            print_data(runtime.activity.copied_as(print_, call))
            if hidden := unrecorded_secret(call.args):
                narrate(f"note: {hidden} Enter it where you use the text.")
            return
        result = runtime.activity.result(call.id)
    narrate_problems(runtime.record_problems())
    if data:
        if result is None:
            print_data(None)
        else:
            print_whole_data(result)
        return
    if result is not None:
        result = complete_result(result)
    print_json({"call": call.model_dump(mode="json", by_alias=True, exclude={"position"}), "result": result})


@commands.command()
def rerun(
    context: typer.Context,
    call_id: IdArgument,
    args: ArgsOption = None,
    arg: ArgOption = None,
    data: Annotated[bool, typer.Option("--data", help="Print only the result's data, text unchanged.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print call and result as JSON (the default).")] = False,
    packs: PacksOption = None,
) -> None:
    """Run a call again, with changed arguments if --arg or --args is given."""
    from pegboard.cli.output import narrate
    from pegboard.cli.tools import exit_code_of, print_outcome, reject, run_call
    from pegboard.models import ToolCall

    refuse_json_beside_data(data=data, json=json)
    runtime = open_runtime(context)
    with _exit_on_error():
        recorded = recorded_call(runtime, call_id)
        if reason := runtime.activity.unrepeatable(recorded):
            narrate(f"{recorded.tool} was not run again: {reason}")
            raise typer.Exit(TOOL_FAILED)
    runtime = scanned(context, connects=True, tool=recorded.tool, calls=True)
    call = ToolCall(name=recorded.tool, args=recorded.args, source="cli")
    interruption = 0
    try:
        changed = _changed_arguments(runtime, recorded, args, arg or [])
        call, result, interruption = run_call(runtime, call.model_copy(update={"args": changed}), rerun=True)
    except ArgumentError as unreadable:
        call, result = reject(runtime, call, unreadable, records=bool(unreadable.faults))
    print_outcome(runtime, call, result, only_data=data)
    raise typer.Exit(interruption or exit_code_of(result))


def _changed_arguments(runtime: Runtime, recorded: RecordedCall, args: str | None, pairs: list[str]) -> JsonObject:
    import json

    given = {**recorded.args, **(read_object(args) if args is not None else {})}
    spec = runtime.tools.get(recorded.tool)
    if pairs:
        text = json.dumps(given)
        given = read_arguments(runtime, spec, text, pairs) if spec else read_arguments_of_unknown(text, pairs)
    if hidden := unrecorded_secret(given):
        raise ArgumentError(f"{recorded.tool} was not run again: {hidden} Enter it with --arg or --args.")
    return given


@commands.command("diff")
def diff_(
    context: typer.Context,
    before: IdArgument,
    after: Annotated[str, typer.Argument(metavar="ID", help="Id of the other call.")],
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Compare the arguments and results of two calls: JSON by path, text by line."""
    from pegboard.cli.differences import difference_lines
    from pegboard.cli.output import narrate, print_json, print_text

    runtime = open_runtime(context)
    with _exit_on_error():
        found = runtime.activity.diff(recorded_call(runtime, before), recorded_call(runtime, after))
    if found.problem:
        narrate(found.problem)
    if json:
        shown = found.model_dump(mode="json", by_alias=True, exclude={"before": {"position"}, "after": {"position"}})
        print_json(shown)
        return
    for name, values in (("arguments", found.arguments), ("result", found.result)):
        if values is not None:
            print_text("\n".join(difference_lines(name, values)), "\n")


@commands.command()
def export(
    context: typer.Context,
    query: QueryArgument = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write to this new file instead of stdout.", callback=or_stdout
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, max=MOST, help="Export at most this many calls.")
    ] = None,
    packs: PacksOption = None,
) -> None:
    """Print the calls that match a query with their results as JSON Lines, the newest first."""
    from pegboard import storage
    from pegboard.cli.interruption import ended_by_exceptions
    from pegboard.cli.output import narrate, narrate_problems, print_line_of_json

    runtime = open_runtime(context)
    wanted = _query(runtime, query or [], {})
    with _exit_on_error():
        incomplete: list[str] = []
        lines = runtime.activity.export_matching(wanted, limit, incomplete.append)
        written = 0
        if out is None:
            for line in lines:
                print_line_of_json(line.encode())
        else:
            try:
                with ended_by_exceptions(), storage.replacing(out, replace=False) as file:
                    for line in lines:
                        file.write(f"{line}\n".encode())
                        written += 1
            except OSError as error:
                narrate(f"{out} was not written: {error.strerror or error}. Choose another file.")
                raise typer.Exit(USAGE) from error
    narrate_problems(runtime.record_problems())
    if incomplete:
        verb = "is" if len(incomplete) == 1 else "are"
        narrate(f"{count(len(incomplete), 'result')} {verb} incomplete because a file can't be read: {incomplete[0]}.")
    if out is not None:
        narrate(f"{count(written, 'call')} written to {out}.")


@commands.command(context_settings={"allow_extra_args": True})
def redact(context: typer.Context, json: JsonOption = False, packs: PacksOption = None) -> None:
    """Remove a value from everything that Pegboard has stored.

    That is: arguments, results, chat sessions, the search index, presets, scripts, your own checks, drafts, logs and
    caches. Pegboard asks for the value without showing it, or reads it from stdin if that is a pipe. Exit code 1: it
    may remain somewhere; stderr says where. To redact it from future calls too, write it to the `.env` file beside the
    configuration file, under a name such as OLD_TOKEN.
    """
    from pegboard.cli.auth import ask_value
    from pegboard.cli.output import narrate, print_json
    from pegboard.errors import ShortValueError

    if context.args:
        narrate(
            "The value can't be an argument because it would be stored in the history of your shell."
            " Leave it out; pegboard asks for it."
        )
        raise typer.Exit(USAGE)
    value = ask_value("Value to redact: ")
    runtime = open_runtime(context)
    with _exit_on_error("The value may remain in what Pegboard has stored because the history can't be changed"):
        try:
            report = runtime.activity.redact(value)
        except ShortValueError as error:
            narrate(str(error))
            raise typer.Exit(USAGE) from error
    for remaining in report.remaining:
        narrate(remaining)
    if json:
        print_json(report)
    else:
        narrate(
            f"Redacted in {count(report.calls, 'call')}, {count(report.messages, 'chat message')} and"
            f" {count(len(report.files), 'file')}."
        )
    raise typer.Exit(0 if report.is_complete else TOOL_FAILED)


@commands.command()
def stats(
    context: typer.Context,
    tool: Annotated[list[str] | None, typer.Argument(metavar="TOOL", help="Only these tools.")] = None,
    session: Annotated[
        str | None,
        typer.Option(
            "--session", metavar="ID", help="Print the timeline of a session instead: its model turns and calls."
        ),
    ] = None,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Print how often each tool was called, how often it failed and how long it took."""
    from pegboard.cli.output import narrate, print_json, print_table

    if session is not None:
        refuse_beside("--session", {"TOOL": tool or None}, "the timeline shows all calls of the session")
    runtime = open_runtime(context)
    with _exit_on_error():
        if session is not None:
            timeline = runtime.activity.timeline(session)
            if not timeline.bars and runtime.sessions.get(timeline.session) is None:
                narrate(
                    f"No session has the id {session}, and no single one an id that starts with it."
                    " `pegboard sessions list` and `pegboard history list --json` show the ids."
                )
                raise typer.Exit(NOT_FOUND)
            if json:
                print_json(timeline)
                return
            print_table(
                [
                    (
                        local_time(bar.start),
                        duration((bar.end - bar.start).total_seconds() * 1000),
                        bar.kind,
                        bar.outcome,
                        bar.label,
                    )
                    for bar in timeline.bars
                ],
                ("START", "DURATION", "KIND", "RESULT", "TOOL OR TEXT"),
                empty=f"The session {timeline.session} has no calls yet.",
            )
            return
        found = runtime.activity.statistics(tool or None)
    if json:
        print_json(found)
        return
    print_table(
        [
            (
                one.tool,
                f"{one.calls:,}",
                f"{one.failure_rate:.1%}",
                "" if one.p50_ms is None else duration(one.p50_ms),
                "" if one.p95_ms is None else duration(one.p95_ms),
                "" if one.last_at is None else local_time(one.last_at),
            )
            for one in found
        ],
        ("TOOL", "CALLS", "FAILED", "P50", "P95", "LAST"),
        empty="" if tool else "No recorded calls yet. `pegboard tools invoke` runs a tool.",
    )
    for missing in sorted({*(tool or ())} - {one.tool for one in found}):
        narrate(f"No recorded calls of {missing}.")


@commands.command()
def delete(context: typer.Context, ids: IdsArgument, packs: PacksOption = None) -> None:
    """Delete calls with the calls that they made; `restore` undoes it within an hour."""
    from pegboard.cli.output import narrate

    runtime = open_runtime(context)
    with _exit_on_error("Nothing was deleted"):
        wanted = list(dict.fromkeys(recorded_call(runtime, one).id for one in ids))
        deleted = runtime.activity.delete(wanted)
    if not deleted:
        narrate("Nothing was deleted because a running call can't be deleted. Delete it when it has ended.")
        raise typer.Exit(TOOL_FAILED)
    running = [one for one in wanted if one not in deleted]
    for one in running:
        narrate(f"{one} was not deleted because it is running. Delete it when it has ended.")
    # The calls that a deleted call made are restored with it.
    undo = deleted if running else wanted
    narrate(f"Deleted {count(len(deleted), 'call')}. Undo: pegboard history restore {' '.join(undo)}")
    if running:
        raise typer.Exit(TOOL_FAILED)


@commands.command()
def restore(
    context: typer.Context,
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="Ids of deleted calls.")],
    packs: PacksOption = None,
) -> None:
    """Restore calls that were deleted within the last hour, with the calls that they made."""
    from pegboard.cli.output import narrate

    runtime = open_runtime(context)
    with _exit_on_error("Nothing was restored"):
        restored = runtime.activity.restore(ids)
    for missing in ids:
        if missing not in restored:
            narrate(f"No call deleted within the last hour has the id {missing}.")
    if not restored:
        raise typer.Exit(NOT_FOUND)
    narrate(f"Restored {count(len(restored), 'call')}.")


@commands.command()
def pin(
    context: typer.Context,
    ids: IdsArgument,
    off: Annotated[bool, typer.Option("--off", help="Unpin them.")] = False,
    packs: PacksOption = None,
) -> None:
    """Pin calls, so that the size limit never removes them."""
    from pegboard.cli.output import narrate

    runtime = open_runtime(context)
    with _exit_on_error("Nothing was changed"):
        changed = runtime.activity.pin([recorded_call(runtime, one).id for one in ids], pinned=not off)
    narrate(f"{'Unpinned' if off else 'Pinned'} {count(len(changed), 'call')}.")


def _query(runtime: Runtime, words: Sequence[str], filters: dict[str, str]) -> HistoryQuery:
    """Parse a query and the options that add to it; exit if a part is invalid."""
    from pegboard.cli.output import narrate

    # The shell has removed quotes around a phrase: a word that contains spaces is one.
    text = " ".join(f'"{word}"' if " " in word and '"' not in word and ":" not in word else word for word in words)
    typed = runtime.activity.parse(text.strip()).query.model_fields_set
    parsed = runtime.activity.parse(" ".join([text, *(f'{key}:"{value}"' for key, value in filters.items())]).strip())
    wrong = [problem.message for problem in parsed.problems]
    wrong += [
        f"{key}: in the query can't be combined with {'--failed' if key == 'status' else f'--{key}'}."
        for key, value in filters.items()
        if not wrong and typed & runtime.activity.parse(f'{key}:"{value}"').query.model_fields_set
    ]
    for message in wrong:
        narrate(message)
    if wrong:
        raise typer.Exit(USAGE)
    return parsed.query


@contextmanager
def _exit_on_error(failed: str = "The history can't be read") -> Iterator[None]:
    from pegboard.cli.output import narrate
    from pegboard.errors import StoreError, explained

    try:
        yield
    except StoreError as error:
        narrate(explained(error, failed))
        raise typer.Exit(TOOL_FAILED) from error
