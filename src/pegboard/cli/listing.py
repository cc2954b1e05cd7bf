"""The list of tools. It needs no command-line parser, which takes longer to load than the tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.cli.output import narrate, narrate_problems, print_json, print_table
from pegboard.cli.unloaded import unloaded_pack
from pegboard.results.sizes import count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pegboard.models import ToolSpec
    from pegboard.runtime import Runtime


def list_without_parser(*, json: bool) -> bool:
    """Run `pegboard tools list` with no other option than `--json`.

    Args:
        json: Whether to print JSON.

    Returns:
        Whether the command ran. It doesn't if there are MCP servers to connect to.
    """
    from pegboard.cli import crash
    from pegboard.runtime import Runtime

    runtime = Runtime.from_environment()
    if runtime.settings.mcp.servers:
        return False
    crash.follow(runtime)
    runtime.tools.scan()
    narrate_problems(runtime.tools.allow_problems())
    show_tools(runtime, json=json)
    narrate_problems(runtime.record_problems())
    return True


def show_tools(runtime: Runtime, pattern: str | None = None, *, json: bool = False) -> None:
    """Print the tools on stdout, and problems of their packs on stderr.

    Args:
        runtime: The runtime, scanned.
        pattern: A text or a pattern that the tools match; None for all.
        json: Whether to print JSON.
    """
    narrate_problems(runtime.problems())
    found = [spec for spec in runtime.tools.all() if pattern is None or _fits(spec, pattern)]
    _check_requirements(runtime, found)
    if hidden := runtime.tools.hidden():
        narrate(f"note: the allow list excludes {count(hidden, 'more tool')}")
    if json:
        print_json([runtime.tools.info(spec) for spec in found])
        return
    empty = "No tools."
    if pattern is not None:
        advice = unloaded_pack(runtime, pattern) or " `pegboard tools list` lists all."
        empty = f"No tool matches {pattern!r}.{advice}"
    print_table(
        [(spec.name, runtime.health.state(spec), _access(spec), spec.summary) for spec in found],
        empty=empty,
    )


def _fits(spec: ToolSpec, pattern: str) -> bool:
    """Return whether a tool matches a pattern with wildcards, or has a text in its names or summary."""
    names = (spec.name, *spec.aliases)
    if set(pattern) & set("*?["):
        from fnmatch import fnmatchcase

        return any(fnmatchcase(name, pattern) for name in names)
    return any(pattern.casefold() in text.casefold() for text in (*names, spec.summary))


def _check_requirements(runtime: Runtime, specs: Iterable[ToolSpec]) -> None:
    """Check the requirements of all tools concurrently, if one of these tools has any."""
    from contextlib import closing

    if any(spec.requirements for spec in specs):
        with closing(runtime.health.check_blocking()) as rows:
            for _ in rows:
                pass


def _access(spec: ToolSpec) -> str:
    hints = spec.hints
    return "read-only" if hints.read_only else "destructive" if hints.destructive else "-"
