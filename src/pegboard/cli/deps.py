"""`pegboard deps`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.arguments import complete_tools
from pegboard.cli.root import TOOL_FAILED, AllowOption, JsonOption, PacksOption, app, find, scanned

if TYPE_CHECKING:
    from pegboard.models import HealthRow, ToolSpec
    from pegboard.runtime import Runtime

_COLOURS = {"ok": "green", "missing": "red", "outdated": "red", "error": "yellow"}
"""Colours of the statuses."""


@app.command()
def deps(
    context: typer.Context,
    tool: Annotated[
        str | None,
        typer.Argument(metavar="[TOOL]", help="Check only this tool or pack.", autocompletion=complete_tools),
    ] = None,
    json: JsonOption = False,
    tool_allow: AllowOption = None,
    packs: PacksOption = None,
) -> None:
    """Check the programs, libraries and secrets that tools need.

    For each one that is missing or unsuitable, print how to get it and exit with 1.
    """
    from pegboard.cli.output import narrate, narrate_problems, print_json

    runtime = scanned(context, tool_allow, connects=True, tool=tool)
    specs = runtime.tools.named(tool) or _exit_unknown(runtime, tool)
    narrate_problems(runtime.problems())
    if not any(spec.requirements for spec in specs) and not json:
        narrate("note: the tools have no requirements")
    table = _Table(specs)
    as_they_come = sys.stdout.isatty() and not json
    with closing(runtime.health.check_blocking(tool)) as rows:
        for row in rows:
            if as_they_come:
                table.print(row)
    found = runtime.health.rows(tool)
    if json:
        print_json(found)
    elif not as_they_come:
        for row in found:
            table.print(row)
    if any(row.status != "ok" for row in found):
        raise typer.Exit(TOOL_FAILED)


def describe_row(row: HealthRow) -> str:
    """Return one line about a requirement: its version and path, or the problem and how to fix it."""
    if row.status == "ok":
        return "  ".join(part for part in (row.version, row.path) if part) or "found"
    return f"{row.error or row.status} How to get it: {row.install}"


def _exit_unknown(runtime: Runtime, name: str | None) -> tuple[ToolSpec, ...]:
    """Exit with an error for an unknown tool or pack; return no tools if no name was passed."""
    from difflib import get_close_matches

    from pegboard.cli.output import narrate

    if name is None:
        return ()
    if near := get_close_matches(name, dict.fromkeys(spec.pack for spec in runtime.tools.all()), n=3):
        narrate(f"Unknown pack {name!r}. Nearest: {', '.join(near)}.")
    return (find(runtime, name),)


class _Table:
    """The report as aligned columns, whose widths are known before the first check ends.

    Args:
        specs: The tools in the report.
    """

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        from pegboard.results.clean import clean_line

        self._clean = clean_line
        with_requirements = [spec for spec in specs if spec.requirements]
        needs = [requirement for spec in with_requirements for requirement in spec.requirements]
        self._tool = max((len(clean_line(spec.name)) for spec in with_requirements), default=0)
        self._need = max((len(clean_line(str(need))) for need in needs), default=0)
        self._status = max(map(len, _COLOURS))
        self._coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def print(self, row: HealthRow) -> None:
        """Print one row."""
        from pegboard.cli.output import print_coloured

        status = row.status.ljust(self._status)
        if self._coloured:
            print_coloured(status, _COLOURS[row.status])
        else:
            print(status, end="")
        cells = [
            self._clean(row.tool).ljust(self._tool),
            self._clean(str(row.requirement)).ljust(self._need),
            self._clean(describe_row(row)),
        ]
        print("", *cells, sep="  ", flush=True)
