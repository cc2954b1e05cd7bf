"""`pegboard deps`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.arguments import complete_tools
from pegboard.cli.root import TOOL_FAILED, AllowOption, JsonOption, PacksOption, app, find, scanned

if TYPE_CHECKING:
    from pegboard.models import HealthRow, RequirementKey, ToolSpec
    from pegboard.runtime import Runtime

_COLORS = {"ok": "green", "missing": "red", "outdated": "red", "error": "yellow"}
"""Colors of the statuses."""
_KINDS = {"cli": "program", "lib": "library", "secret": "secret", "server": "server"}
_MOST_NAMES = 8
"""Number of tools to name beside a requirement."""


@app.command()
def deps(
    context: typer.Context,
    tool: Annotated[
        str | None,
        typer.Argument(metavar="TOOL", help="Check only this tool or pack.", autocompletion=complete_tools),
    ] = None,
    json: JsonOption = False,
    tool_allow: AllowOption = None,
    packs: PacksOption = None,
) -> None:
    """Check the requirements of tools (programs, libraries, secrets, servers), and show which tools have each one.

    For each one that is missing or unsuitable, print how to get it and exit with 1. With --json, print one row per
    tool and requirement.
    """
    from pegboard.cli.output import narrate, narrate_problems, print_json

    runtime = scanned(context, tool_allow, connects=True, tool=tool)
    specs = runtime.tools.named(tool) or _exit_unknown(runtime, tool)
    narrate_problems(runtime.problems())
    if not any(spec.requirements for spec in specs) and not json:
        narrate("note: the tools have no requirements")
    report = _Report(specs)
    as_they_come = sys.stdout.isatty() and not json
    with closing(runtime.health.check_blocking(tool)) as rows:
        for row in rows:
            if as_they_come and (complete := report.add(row)):
                report.print(complete)
    found = runtime.health.rows(tool)
    if json:
        print_json(found)
    elif not as_they_come:
        for group in report.groups(found):
            report.print(group)
    if any(row.status != "ok" for row in found):
        raise typer.Exit(TOOL_FAILED)


def describe_row(row: HealthRow) -> str:
    """Return one line about a requirement: its version and path, or the problem and how to fix it."""
    if row.status == "ok":
        return "  ".join(part for part in (row.version, row.path) if part) or "found"
    error = row.error or row.status
    return f"{error}{'' if error.endswith(('.', '!', '?')) else '.'} How to get it: {row.install}"


def _exit_unknown(runtime: Runtime, name: str | None) -> tuple[ToolSpec, ...]:
    """Exit with an error for an unknown tool or pack; return no tools if no name was passed."""
    from difflib import get_close_matches

    from pegboard.cli.output import narrate
    from pegboard.cli.unloaded import unloaded_pack

    if name is None:
        return ()
    near = get_close_matches(name, dict.fromkeys(spec.pack for spec in runtime.tools.all()), n=3)
    if near and not unloaded_pack(runtime, name):
        narrate(f"Unknown pack {name!r}. Nearest: {', '.join(near)}.")
    return (find(runtime, name),)


class _Report:
    """Requirements with their tools. The widths of the columns are known before the first check ends.

    Args:
        specs: The tools in the report.
    """

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        from collections import Counter

        from pegboard.results.clean import clean_line

        self._clean = clean_line
        self._left = Counter(requirement.key for spec in specs for requirement in spec.requirements)
        self._rows: dict[RequirementKey, list[HealthRow]] = {}
        self._name = max((len(clean_line(str(key))) for key in self._left), default=0)
        self._kind = max(map(len, _KINDS.values()))
        self._status = max(map(len, _COLORS))
        self._colored = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def add(self, row: HealthRow) -> Sequence[HealthRow]:
        """Add a row; return all rows of its requirement if it is the last one, else nothing."""
        key = row.requirement.key
        rows = self._rows.setdefault(key, [])
        rows.append(row)
        self._left[key] -= 1
        return () if self._left[key] else rows

    def groups(self, rows: Iterable[HealthRow]) -> list[list[HealthRow]]:
        """Return the rows of each requirement: first those that block tools, then others with a problem."""
        groups: dict[RequirementKey, list[HealthRow]] = {}
        for row in rows:
            groups.setdefault(row.requirement.key, []).append(row)
        return sorted(groups.values(), key=_rank)

    def print(self, rows: Sequence[HealthRow]) -> None:
        """Print a requirement, and the tools that need it on a second line."""
        from pegboard.cli.output import print_colored

        row = min(rows, key=lambda row: row.requirement.precedence)
        status = row.status.ljust(self._status)
        if self._colored:
            print_colored(status, _COLORS[row.status])
        else:
            print(status, end="")
        cells = [
            self._clean(str(row.requirement.key)).ljust(self._name),
            _KINDS[row.kind].ljust(self._kind),
            self._clean(describe_row(row)),
        ]
        print("", *cells, sep="  ")
        print(f"{'':{self._status}}  {self._clean(_tools_of(rows))}", flush=True)


def _rank(rows: Sequence[HealthRow]) -> int:
    if any(row.blocks for row in rows):
        return 0
    return 2 if rows[0].status == "ok" else 1


def _tools_of(rows: Sequence[HealthRow]) -> str:
    """Return the tools of a requirement, those that it blocks first, and how many they are."""
    from pegboard.results.sizes import count

    blocked = [row.tool for row in rows if row.blocks]
    others = [row.tool for row in rows if not row.blocks]
    names = [*blocked, *others]
    listed = ", ".join(names[:_MOST_NAMES])
    if len(names) > _MOST_NAMES:
        listed += f" and {len(names) - _MOST_NAMES:,} more"
    number = count(len(names), "tool")
    if blocked:
        number = f"blocks {number}" if not others else f"blocks {len(blocked):,} of {number}"
    elif all(row.requirement.optional for row in rows):
        number = f"optional for {number}"
    return f"{number}: {listed}"
