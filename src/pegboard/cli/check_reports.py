"""Parts that the commands of `pegboard check` share: files, options and printed reports."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer

from pegboard.cli.exit_codes import failure_code
from pegboard.cli.root import TOOL_FAILED, USAGE

if TYPE_CHECKING:
    import asyncio

    from pegboard.checks import CheckError, CheckReport, Checks
    from pegboard.models import Problem
    from pegboard.runtime import Runtime

ReportT = TypeVar("ReportT", bound="CheckReport")
PatternArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="PATTERN",
        help="Only checks with this text in their name or tool, or that match a pattern such as 'fs.*'.",
    ),
]


def _check_junit(file: Path | None) -> Path | None:
    """Exit before any check runs if its report can't be written."""
    from pegboard import storage

    if file == Path("-"):
        fail("A JUnit report can't be written to stdout, as the results of the checks are. Name a file.")
    if file is not None:
        try:
            storage.check_writable(file)
        except OSError as error:
            _fail_to_write(file, error)
    return file


JunitOption = Annotated[
    Path | None,
    typer.Option(
        "--junit", metavar="FILE", help="Also write a JUnit XML report.", dir_okay=False, callback=_check_junit
    ),
]


def checks_of(runtime: Runtime) -> Checks:
    """Return the files of checks of the working directory and of the user."""
    from pegboard.checks import Checks

    return Checks(runtime.paths)


def cancel(task: asyncio.Task[int] | asyncio.Task[None]) -> None:
    """Cancel a task, as an interruption does."""
    task.cancel()


def print_report(report: CheckReport) -> None:
    """Print a report on a check: a line, and a line for each difference."""
    from pegboard.cli.output import print_colored, print_text
    from pegboard.results.clean import clean_line
    from pegboard.results.sizes import duration

    colors = {"passed": "green", "failed": "red", "error": "red", "skipped": "yellow"}
    print_colored(report.status, colors[report.status])
    note = "  snapshot stored" if report.updated else ""
    tool = "" if report.tool == report.check else f"  {report.tool}"
    print_text(f"  {clean_line(report.title)}{clean_line(tool)}  {duration(report.duration_ms)}{note}\n")
    for one in report.differences:
        print_text(clean_line(f"    {one.expectation}: {one.message}") + "\n")
    if report.advice:
        print_text(clean_line(f"    {report.advice}") + "\n")
    if report.problem is not None:
        print_text(clean_line(f"    {report.problem}") + "\n")


def collect(
    runtime: Runtime, running: AsyncGenerator[ReportT], show: Callable[[ReportT], None] | None
) -> tuple[list[ReportT], int]:
    """Run checks until they have ended or ctrl+c ends them.

    Args:
        runtime: The runtime, which is closed at the end.
        running: Yields the reports.
        show: Prints a report when it arrives, if wanted.

    Returns:
        The reports, and the exit code if ctrl+c ended the run, else 0.
    """
    import asyncio
    from contextlib import aclosing

    from pegboard.cli.interruption import interruptible

    reports: list[ReportT] = []

    async def run() -> int:
        task = asyncio.current_task()
        assert task is not None
        with interruptible(lambda: cancel(task)) as interruption:
            try:
                async with runtime, aclosing(running):
                    async for report in running:
                        reports.append(report)
                        if show is not None:
                            show(report)
            except asyncio.CancelledError:
                if not interruption:
                    raise
            return interruption.exit_code if interruption else 0

    return reports, asyncio.run(run())


def conclude(
    reports: Sequence[CheckReport],
    invalid: Sequence[Problem],
    *,
    junit: Path | None,
    json: bool,
    interruption: int,
) -> NoReturn:
    """Write and print what a run found, and exit: with 1 if a check failed or couldn't run.

    Args:
        reports: The reports, which are already printed unless `json` is set.
        invalid: Why files of checks are invalid.
        junit: File for a JUnit report, if one is wanted.
        json: Whether to print JSON.
        interruption: The exit code if the run was interrupted, else 0.
    """
    from pegboard.cli.output import narrate, print_json

    if junit is not None:
        _write_junit(junit, reports, invalid)
    if json:
        print_json({"checks": reports, "problems": invalid})
    else:
        narrate(summary(reports, invalid))
    failed = bool(invalid) or any(report.status != "passed" for report in reports)
    raise typer.Exit(interruption or (TOOL_FAILED if failed else 0))


def summary(reports: Sequence[CheckReport], invalid: Sequence[Problem]) -> str:
    """Return how many checks passed, failed, could not run and were skipped."""
    statuses = ("passed", "failed", "error", "skipped")
    counts = {status: sum(report.status == status for report in reports) for status in statuses}
    counts["error"] += len(invalid)
    names = {"passed": "passed", "failed": "failed", "error": "could not run", "skipped": "skipped"}
    return ", ".join(f"{count} {names[status]}" for status, count in counts.items() if count) or "0 checks"


def _write_junit(file: Path, reports: Sequence[CheckReport], invalid: Sequence[Problem]) -> None:
    from pegboard import storage
    from pegboard.checks.junit import junit

    try:
        storage.write(file, junit(reports, invalid), mode=0o666)
    except OSError as error:
        _fail_to_write(file, error)


def _fail_to_write(file: Path, error: OSError) -> NoReturn:
    fail(f"The JUnit report can't be written to {file}: {error.strerror or error}.")


def nothing(pattern: str | None) -> str:
    """Return a sentence for an empty list of checks."""
    if pattern is not None:
        return f"No check matches {pattern!r}. `pegboard check list` lists all."
    return "No checks. `pegboard check keep` makes one from a recorded call."


def fail(reason: str | CheckError) -> NoReturn:
    """Print why a command failed, and exit."""
    from pegboard.cli.output import narrate
    from pegboard.results.clean import clean_line

    narrate(clean_line(str(reason)))
    raise typer.Exit(USAGE if isinstance(reason, str) else failure_code(reason))
