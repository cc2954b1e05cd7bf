"""`pegboard check run | list | new | keep | delete | ask | watch | compat`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pegboard.cli.arguments import ArgOption, ArgsOption, ArgumentError, NameArgument, complete_checks, read_arguments
from pegboard.cli.check_ask import ask
from pegboard.cli.check_reports import (
    JunitOption,
    PatternArgument,
    cancel,
    checks_of,
    collect,
    conclude,
    fail,
    nothing,
    print_report,
    summary,
)
from pegboard.cli.engines import EMBEDDED, ClusterCalls, EngineOption, InsecureOption
from pegboard.cli.root import TOOL_FAILED, USAGE, JsonOption, PacksOption, find, group, open_runtime, scan, scanned
from pegboard.cli.servers import ElicitOption, answer_questions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from pegboard.checks import Check, CheckReport, Checks
    from pegboard.checks.compatibility import ToolCompatibility
    from pegboard.runtime import Runtime

_CALLS_PRINTED = 10

check = group("check", "Keep calls as checks, run them, and compare the schemas of tools.")
check.command()(ask)

CheckNameOption = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="Name of the check; by default that of the tool.")
]
OwnOption = Annotated[
    bool, typer.Option("--own", help="Write to the data folder, even if the working directory is trusted.")
]


@check.command("run")
def run_(
    context: typer.Context,
    pattern: PatternArgument = None,
    junit: JunitOption = None,
    update: Annotated[bool, typer.Option("--update", help="Store the new data of snapshots that differ.")] = False,
    engine: EngineOption = None,
    insecure: InsecureOption = False,
    elicit: ElicitOption = None,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Run checks and print what differs; exit with 1 if a check fails.

    Every check is a call with your rights. Checks of a folder run only if you trust it, see `pegboard trust`.
    Example: `pegboard check run 'fs.*' --junit report.xml`.
    """
    from pegboard.checks import CheckError
    from pegboard.cli.output import narrate, narrate_problems

    runtime = open_runtime(context, context.meta.get("pegboard.allow"))
    files = checks_of(runtime)
    checks, invalid = files.list(pattern)
    scan(context, runtime, connects=True, tools={one.tool for one in checks}, calls=True)
    answer_questions(context, runtime, elicit)
    narrate_problems(invalid)
    if not checks and not invalid:
        narrate(nothing(pattern))
        if pattern is not None:
            raise typer.Exit(USAGE)
    try:
        on = None if engine in (None, EMBEDDED) else ClusterCalls(runtime, engine or "", insecure=insecure)
        running = _reports(runtime, files, checks, on, update=update)
        reports, interruption = collect(runtime, running, None if json else print_report)
    except CheckError as error:
        fail(str(error))
    if any(report.status != "passed" for report in reports):
        narrate_problems(runtime.problems(packs=True))
    if interruption:
        from pegboard.checks.run import interrupted

        ended = {report.file for report in reports}
        reports += [interrupted(one) for one in checks if one.file not in ended]
    conclude(reports, invalid, junit=junit, json=json, interruption=interruption)


@check.command("list")
def list_(
    context: typer.Context, pattern: PatternArgument = None, json: JsonOption = False, packs: PacksOption = None
) -> None:
    """List the checks of the working directory and your own."""
    from pegboard.cli.output import narrate, narrate_problems, print_json, print_table
    from pegboard.config.trust import REVIEW

    runtime = open_runtime(context)
    files = checks_of(runtime)
    checks, invalid = files.list(pattern)
    narrate_problems(invalid)
    if json:
        print_json(checks)
        return
    print_table(
        [(one.name, one.tool, ", ".join(_expected(one)), one.file) for one in checks],
        ("NAME", "TOOL", "EXPECTS", "FILE"),
        empty=nothing(pattern),
    )
    if any(not files.is_runnable(one) for one in checks):
        narrate(f"note: checks of this folder don't run because it is not trusted. {REVIEW}")


@check.command()
def new(
    context: typer.Context,
    tool: NameArgument,
    name: CheckNameOption = None,
    args: ArgsOption = None,
    arg: ArgOption = None,
    question: Annotated[
        list[str] | None,
        typer.Option(
            "--question", metavar="TEXT", help="A message to which a model should make this call; can be repeated."
        ),
    ] = None,
    own: OwnOption = False,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Write a check of a tool without running it, and print its file.

    It expects success, the tool's output schema, and the snapshot that `pegboard check run --update` stores. Example:
    `pegboard check new fs.list_dir --arg path=src`.
    """
    from pegboard.checks.keep import new_check
    from pegboard.errors import FormFaults

    if not all(text.strip() for text in question or ()):
        raise typer.BadParameter("A question is empty.", param_hint="--question")
    runtime = scanned(context, connects=True, tool=tool)
    spec = find(runtime, tool)
    files = checks_of(runtime)
    try:
        arguments = read_arguments(runtime, spec, args, arg or [])
        runtime.tools.prepare(spec, arguments)
    except ArgumentError as error:
        fail(str(error))
    except FormFaults as faults:
        fail(f"The check was not written because the arguments of {spec.name} are invalid: {faults}")
    _save(files, new_check(spec, name or files.free_name(spec.name), arguments, question or ()), own=own, as_json=json)


@check.command()
def keep(
    context: typer.Context,
    call: Annotated[
        str, typer.Argument(metavar="CALL_ID", help="Id of a recorded call, or its first characters; `-` is the last.")
    ],
    name: CheckNameOption = None,
    expect: Annotated[
        Literal["snapshot", "exact", "schema", "outcome"],
        typer.Option("--expect", help="What to expect of the data; outcome and error are always expected."),
    ] = "snapshot",
    own: OwnOption = False,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Write a check from a recorded call, and print its file.

    Example: `pegboard check keep - --name read-me`.
    """
    from pegboard.checks import CheckError
    from pegboard.checks.keep import kept_check, recorded

    runtime = scanned(context)
    files = checks_of(runtime)
    try:
        record, result = recorded(runtime, call)
        kept = kept_check(runtime, record, result, name or files.free_name(record.tool), expect)
    except CheckError as error:
        fail(str(error))
    _save(files, kept, own=own, as_json=json)


@check.command()
def delete(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="CHECK", help="Name of the check.", autocompletion=complete_checks)],
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Delete a check, even a damaged one.

    One of the working directory precedes your own of the same name.
    """
    from pegboard.checks import CheckError
    from pegboard.cli.output import narrate, print_json

    files = checks_of(open_runtime(context))
    try:
        file = files.find(name)
        files.delete(file)
    except CheckError as error:
        fail(error)
    if json:
        print_json({"deleted": name, "file": str(file)})
    else:
        narrate(f"Deleted {file}.")


@check.command()
def watch(context: typer.Context, pattern: PatternArgument = None, packs: PacksOption = None) -> None:
    """Run the checks of a pack whenever its file changes, until ctrl+c.

    Only checks of read-only tools run, and those that a rule in approvals.toml allows.
    """
    import asyncio

    from pegboard.checks.watch import changed_packs
    from pegboard.cli.interruption import interruptible
    from pegboard.cli.output import narrate, narrate_problems

    runtime = open_runtime(context)
    files = checks_of(runtime)

    async def follow() -> None:
        from contextlib import aclosing

        from pegboard.checks.run import CheckRunner

        runner = CheckRunner(runtime, files, unattended=True)
        async with runtime, aclosing(changed_packs(runtime)) as changes:
            async for changed in changes:
                narrate_problems(runtime.problems())
                if not changed:
                    narrate("Waiting for changes of packs. ctrl+c ends this.")
                    continue
                checks, invalid = await asyncio.to_thread(files.list, pattern)
                narrate_problems(invalid)
                names = {spec.name: spec.pack for spec in runtime.tools.all()}
                wanted = [one for one in checks if names.get(one.tool, one.tool.partition(".")[0]) in changed]
                narrate(f"{', '.join(sorted(changed))} changed.")
                reports = []
                async with aclosing(runner.run(wanted)) as found:
                    async for report in found:
                        reports.append(report)
                        print_report(report)
                narrate(summary(reports, ()))

    async def run() -> int:
        task = asyncio.create_task(follow())
        with interruptible(lambda: cancel(task)) as interruption:
            try:
                await task
            except asyncio.CancelledError:
                if not interruption:
                    raise
            return interruption.exit_code

    raise typer.Exit(asyncio.run(run()))


@check.command()
def compat(
    context: typer.Context,
    tool: Annotated[
        str | None, typer.Argument(metavar="TOOL", help="Only this tool, or the tools of this pack.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="REV|DATE",
            help="Compare with a git revision of the packs, or with the schemas seen at a date such as 2026-07-31.",
        ),
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Accept the current schemas as the new baseline.")] = False,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Compare the schemas of tools with earlier ones and with recorded calls; exit with 1 on breaking changes.

    Without --since, the earlier schemas are those that Pegboard saw before the first breaking change that you haven't
    accepted. Example for CI: `pegboard --packs tools check compat --since origin/main`.
    """
    import asyncio

    from pegboard.checks import CheckError
    from pegboard.checks.comparable import is_comparable
    from pegboard.checks.compatibility import Compatibility, is_date
    from pegboard.cli.output import narrate, narrate_problems, print_json
    from pegboard.cli.servers import narrate_not_compared

    if accept and since is not None:
        fail("--accept and --since can't be combined.")
    has_servers = since is None or is_date(since)
    runtime = scanned(context, connects=has_servers or tool is not None, tool=tool)
    narrate_problems(runtime.problems())
    if tool is not None and not runtime.tools.named(tool):
        find(runtime, tool)
    is_incomplete = narrate_not_compared(runtime, tool, has_servers=has_servers)
    specs = [spec for spec in runtime.tools.named(tool) if tool is not None or is_comparable(spec)]
    comparison = Compatibility(runtime)
    removed = "" if tool is None else f"{tool}." if all(spec.pack == tool for spec in specs) else None

    async def compare() -> tuple[ToolCompatibility, ...]:
        async with runtime:
            if since is not None:
                return await comparison.since(specs, since, removed=removed)
            return await asyncio.to_thread(comparison.against_baseline, specs, removed=removed)

    try:
        found = asyncio.run(compare())
        if accept:
            comparison.accept(specs, found)
    except CheckError as error:
        fail(str(error))
    except OSError as error:
        fail(
            f"The schemas of tools can't be stored: {error.strerror or error}. "
            "Check the disk space and the permissions of the state folder, then repeat the command."
        )
    if json:
        print_json(found)
    else:
        for one in found:
            if tool is not None or one.status != "compatible" or one.changes:
                _print_compatibility(one)
        narrate(_compatibility_summary(found, since))
    unread = comparison.unread() if since is not None and tool is None else []
    _narrate_not_compared({spec.name for spec in specs if spec.file} - {one.tool for one in found}, unread)
    breaks = bool(unread) or any(one.status in {"breaking", "removed"} for one in found)
    if accept and found:
        narrate("The current schemas are the baseline now.")
    raise typer.Exit(TOOL_FAILED if is_incomplete or (breaks and not accept) else 0)


def _narrate_not_compared(tools: set[str], unread: list[str]) -> None:
    from pegboard.cli.output import narrate
    from pegboard.results.clean import clean_line
    from pegboard.results.sizes import count

    for file in unread:
        narrate(clean_line(f"Not compared, because its tools can't be read: {file}."))
    if tools:
        names = f"{', '.join(sorted(tools)[:5])}{', …' if len(tools) > 5 else ''}"
        narrate(f"Not compared, because not in a git repository: {count(len(tools), 'tool')} ({names}).")


def _print_compatibility(one: ToolCompatibility) -> None:
    from pegboard.cli.output import print_colored, print_text
    from pegboard.results.clean import clean_line
    from pegboard.results.sizes import count, local_time

    colors = {"compatible": "green", "new": "green", "breaking": "red", "removed": "red"}
    print_colored(one.status, colors[one.status])
    print_text(f"  {clean_line(one.tool)}: {clean_line(one.summary)}\n")
    for change in one.changes:
        kind = "breaking" if change.breaking else "compatible"
        print_text(clean_line(f"    {kind}, {change.side}: {change.message}") + "\n")
    for call in one.broken_calls[:_CALLS_PRINTED]:
        print_text(clean_line(f"    call {call.id} of {local_time(call.at)}: {call.reason}") + "\n")
    if one.broken > _CALLS_PRINTED:
        print_text(f"    and {count(one.broken - _CALLS_PRINTED, 'more call')}\n")


def _compatibility_summary(found: tuple[ToolCompatibility, ...], since: str | None) -> str:
    from pegboard.results.sizes import count

    bad = sum(one.status in {"breaking", "removed"} for one in found)
    known = sum(bool(one.since) for one in found)
    unknown = f" No earlier schema of {count(len(found) - known, 'tool')} is known." if known < len(found) else ""
    if not found:
        return "No tool to compare." if since is None else f"No tool to compare with {since}."
    return f"{count(len(found), 'tool')} compared, {bad} with breaking changes.{unknown}"


async def _reports(
    runtime: Runtime, files: Checks, checks: Sequence[Check], cluster: ClusterCalls | None, *, update: bool
) -> AsyncGenerator[CheckReport]:
    """Run checks, on the cluster if there is one, and yield the reports.

    Raises:
        CheckError: The cluster can't be reached.
    """
    from contextlib import aclosing

    from pegboard.checks.run import CheckRunner

    try:
        if cluster is not None and checks:
            await cluster.open()
        runner = CheckRunner(runtime, files, cluster.result if cluster is not None else None)
        async with aclosing(runner.run(checks, update=update)) as found:
            async for report in found:
                yield report
    finally:
        if cluster is not None:
            await cluster.close()


def _save(files: Checks, made: Check, *, own: bool, as_json: bool) -> None:
    from pegboard.checks import CheckError
    from pegboard.cli.output import print_json, print_text

    try:
        saved = files.save(made, own=own)
    except CheckError as error:
        fail(error)
    if as_json:
        print_json(saved)
    else:
        print_text(f"{saved.file}\n")


def _expected(one: Check) -> list[str]:
    """Return the names of the expectations of a check."""
    names: list[str] = [one.expect.outcome]
    names += ["error"] if one.expect.error is not None else []
    names += ["schema"] if one.expect.result_schema is not None else []
    names += [name for name in ("exact", "subset") if name in one.expect.model_fields_set]
    names += ["jq"] if one.expect.jq else []
    names += ["snapshot"] if one.expect.snapshot is not None else []
    names += ["max_seconds"] if one.expect.max_seconds is not None else []
    return names + (["questions"] if one.questions else [])
