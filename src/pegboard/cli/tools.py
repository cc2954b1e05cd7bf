"""`pegboard tools list | info | invoke`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pegboard.cli.arguments import (
    ArgOption,
    ArgsOption,
    ArgumentError,
    NameArgument,
    complete_presets,
    complete_tools,
    read_arguments,
    read_arguments_of_unknown,
)
from pegboard.cli.root import (
    NOT_FOUND,
    OK,
    TOOL_FAILED,
    USAGE,
    AllowOption,
    JsonOption,
    PacksOption,
    advice_on,
    find,
    group,
    message_of,
    refuse_beside,
    refuse_json_beside_data,
    scanned,
)
from pegboard.cli.servers import ElicitOption, answer_questions, narrate_messages

if TYPE_CHECKING:
    from pegboard.forms import CopyKind
    from pegboard.models import CallEvent, Finished, JsonObject, ToolCall, ToolResult, ToolSpec, ToolUses
    from pegboard.runtime import Runtime, ToolDetails


tools = group("tools", "List, describe and call tools.")


@tools.command("list")
def list_(
    context: typer.Context,
    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="PATTERN",
            help="List only tools with this text in their name, alias or summary, or whose name matches a pattern such"
            " as 'fs.*'.",
            autocompletion=complete_tools,
        ),
    ] = None,
    json: JsonOption = False,
    tool_allow: AllowOption = None,
    packs: PacksOption = None,
) -> None:
    """List the tools, and print problems of their packs on stderr."""
    from pegboard.cli.listing import show_tools

    show_tools(scanned(context, tool_allow, connects=True), pattern, json=json)


@tools.command()
def info(
    context: typer.Context,
    name: NameArgument,
    json: JsonOption = False,
    tool_allow: AllowOption = None,
    packs: PacksOption = None,
) -> None:
    """Describe a tool: its schema, origin, requirements and use."""
    from pegboard.cli.output import narrate_problems, print_json
    from pegboard.results.definition import token_weight

    runtime = scanned(context, tool_allow, connects=True, tool=name)
    spec = find(runtime, name)
    details = runtime.tools.details(spec)
    narrate_problems(runtime.problems())
    if json:
        print_json(details)
        return
    _describe(details, token_weight(spec))


@tools.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def invoke(
    context: typer.Context,
    name: NameArgument,
    args: ArgsOption = None,
    arg: ArgOption = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="Start from saved arguments; --args and --arg change them.",
            autocompletion=complete_presets,
        ),
    ] = None,
    print_: Annotated[
        Literal["cli", "script", "json", "python", "mcp"] | None,
        typer.Option("--print", help="Print the call as text for another program instead of running it."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0.001, help="Timeout of the call in seconds.")
    ] = None,
    elicit: ElicitOption = None,
    messages: Annotated[
        bool, typer.Option("--messages", help="Also print all messages to and from the tool's MCP server, on stderr.")
    ] = False,
    data: Annotated[bool, typer.Option("--data", help="Print only the result's data, text unchanged.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print call and result as JSON (the default).")] = False,
    tool_allow: AllowOption = None,
    packs: PacksOption = None,
) -> None:
    """Call a tool and print {"call": …, "result": …}; its logs go to stderr."""
    from pegboard.models import ToolCall

    if unexpected := [name] if name.startswith("-") else context.args:
        context.fail(f"Unexpected {unexpected[0]!r}. Write arguments of the tool as --arg KEY=VALUE or --args JSON.")
    if print_ is not None:
        unused = {"--timeout": timeout, "--elicit": elicit, "--messages": messages, "--data": data, "--json": json}
        refuse_beside("--print", unused, "a printed call doesn't run")
    refuse_json_beside_data(data=data, json=json)
    runtime = scanned(context, tool_allow, connects=True, tool=name, calls=True)
    answer_questions(context, runtime, elicit)
    spec = runtime.tools.get(name)
    call = ToolCall(name=name, source="cli", timeout=timeout)
    interruption = 0
    try:
        # The call itself reports an unknown tool.
        pairs = arg or []
        read = (
            read_arguments_of_unknown(args, pairs)
            if spec is None
            else read_arguments(runtime, spec, args, pairs, preset)
        )
        if print_ is not None:
            _print_call(runtime, find(runtime, name), read, print_)
            return
        call, result, interruption = run_call(runtime, call.model_copy(update={"args": read}))
    except ArgumentError as unreadable:
        call = call.model_copy(update={"name": spec.name if spec else name, "args": unreadable.arguments})
        call, result = reject(runtime, call, unreadable, records=print_ is None)
    if messages:
        narrate_messages(runtime, name, spec)
    print_outcome(runtime, call, result, only_data=data)
    raise typer.Exit(interruption or exit_code_of(result))


def print_outcome(runtime: Runtime, call: ToolCall, result: ToolResult, *, only_data: bool) -> None:
    """Print a call and its result, or only the result's whole data; problems, notes and the error go to stderr."""
    from pegboard.cli.output import narrate, narrate_problems, print_json

    narrate_problems(runtime.problems(packs=result.error is not None and result.error.code == "tool_not_found"))
    if dropped := result.meta.log_bytes_dropped:
        from pegboard.results.sizes import size

        narrate(f"note: {size(dropped)} more output of {call.name} was dropped. `log_limit` under `[tools]` limits it.")
    if result.error:
        narrate(f"{result.error.code}: {message_of(result.error)}{advice_on(result.error, runtime, call.name)}")
    if only_data:
        from pegboard.cli.whole_results import print_whole_data

        print_whole_data(result)
    else:
        print_json({"call": call.shown(), "result": result})


def reject(
    runtime: Runtime, call: ToolCall, why: ArgumentError, *, records: bool = True
) -> tuple[ToolCall, ToolResult]:
    """Return a call whose arguments can't be read, without secrets, and its result; record them if asked to."""
    import asyncio

    from pegboard.models import ToolResult

    result = ToolResult.failed("invalid_args", str(why), None, *why.faults)
    if records:
        return asyncio.run(runtime.reject(call, result))
    return call.model_copy(update={"args": runtime.redacted_args(call.args)}), result


def exit_code_of(result: ToolResult) -> int:
    """Return the exit code of a command that ran a call."""
    if result.error is None:
        return OK
    return {"tool_not_found": NOT_FOUND, "invalid_args": USAGE}.get(result.error.code, TOOL_FAILED)


def _print_call(runtime: Runtime, spec: ToolSpec, args: JsonObject, kind: CopyKind) -> None:
    """Print a call as text for another program; exit if its arguments are invalid."""
    from pegboard.cli.output import narrate, print_data
    from pegboard.errors import FormFaults
    from pegboard.forms import copied_as

    try:
        args = runtime.tools.prepare(spec, args)
    except FormFaults as faults:
        narrate(f"invalid_args: the arguments of {spec.name} are invalid: {faults}")
        raise typer.Exit(USAGE) from faults
    print_data(copied_as(kind, spec, args, options=runtime.tools.options(spec)))


def run_call(runtime: Runtime, call: ToolCall, *, rerun: bool = False) -> tuple[ToolCall, ToolResult, int]:
    """Run the call; the first ctrl+c cancels it, a second one ends the program.

    Args:
        runtime: The runtime.
        call: The call.
        rerun: Whether it repeats a recorded call, which may be a script that the user ran.

    Returns:
        The call as it was made, its result, and the exit code if it was interrupted, else 0.
    """
    import asyncio

    from pegboard.cli.interruption import run_to_end
    from pegboard.models import ToolResult

    async def run() -> tuple[Finished | None, int]:
        start = runtime.activity.run if rerun else runtime.call
        return await run_to_end(runtime, call.id, start(call), _narrate_event)

    finished, interruption = asyncio.run(run())
    if finished is None:
        return call, ToolResult.failed("execution_error", "The call was cancelled.", "cancelled"), interruption
    return finished.call, finished.result, interruption


def _narrate_event(event: CallEvent) -> None:
    from pegboard.cli.output import narrate, narrate_log
    from pegboard.models import Log, Progress
    from pegboard.results.sizes import amount

    match event:
        case Log(text=text):
            narrate_log(text)
        case Progress(done=done, total=total, message=message):
            figures = amount(done) if total is None else f"{amount(done)}/{amount(total)}"
            narrate(f"progress {figures.replace(',', '')} {message}".rstrip())


def _use(uses: ToolUses) -> str:
    not_run = f", {uses.rejected:,} not run" if uses.rejected else ""
    return f"{uses.calls:,} ×{not_run}, {uses.failures:,} failed"


def _describe(details: ToolDetails, tokens: int) -> None:
    from inspect import cleandoc  # servers indent texts of several lines as in their source

    from pegboard.cli.deps import describe_row
    from pegboard.cli.output import print_data
    from pegboard.results.sizes import count

    where = details.location
    rows = [
        ("state", details.state),
        ("from", f"{where.file}:{where.line}" if where.file else where.server or ""),
        ("timeout", f"{details.timeout:g} s"),
        ("size", f"≈ {count(tokens, 'token')} in each turn of a model"),
        ("hints", ", ".join(f"{name}={value}" for name, value in details.annotations.items())),
        ("aliases", ", ".join(details.aliases)),
        *(("needs", f"{row.requirement}: {row.status}, {describe_row(row)}") for row in details.requirements),
        ("used", _use(details.uses)),
        *(("problem", str(problem)) for problem in details.problems),
    ]
    facts = "\n".join(f"{label:<9}{value}" for label, value in rows if value)
    print_data(f"{details.signature}\n\n{cleandoc(details.description)}\n\n{facts}\n\ninput schema")
    print_data(details.input_schema)
    if details.output_schema is not None:
        print_data("output schema")
        print_data(details.output_schema)
