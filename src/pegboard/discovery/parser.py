"""One source file as tools and problems. Nothing in it is imported or run."""

from __future__ import annotations

import ast
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from pegboard.discovery import functions, requirements
from pegboard.discovery.files import content
from pegboard.discovery.sibling_modules import Helpers
from pegboard.schema.definitions import Definitions
from pegboard.schema.source import PARSED_AS
from pegboard.sdk import exports
from pegboard.sdk.scope import Scope

if TYPE_CHECKING:
    from pegboard.discovery.parsed import PlainProblem, Reading
    from pegboard.discovery.sibling_modules import Seen


def read_source(source: str | bytes, file: str, helpers: Helpers | None = None) -> Reading:
    """Reads the tools of a source; what can't be parsed is a problem, never an exception.

    Args:
        source: The text, or the bytes with the encoding that they declare.
        file: The absolute path that it has (or would have).
        helpers: The helpers beside it; those in its folder unless given.
    """
    helpers = helpers or Helpers(str(PurePath(file).parent))
    stem = PurePath(file).stem
    try:
        tree = ast.parse(source, PARSED_AS)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return _unparsed(stem, file, error)
    try:
        return _read_tree(tree, source, stem, file, helpers)
    except RecursionError:
        return failed(stem, file, "Its definitions are nested too deeply.")


def read_file(file: str) -> tuple[bytes | None, Reading, tuple[Seen, ...]]:
    """Reads the tools of a file.

    Args:
        file: Its absolute path.

    Returns:
        The file's bytes, None where they can't be had, what it holds, and the helpers that it took types from.
    """
    try:
        source = content(file)
    except OSError as error:
        return None, failed(PurePath(file).stem, file, f"It can't be read: {error.strerror or error}."), ()
    if isinstance(source, str):
        return None, failed(PurePath(file).stem, file, source), ()
    helpers = Helpers(str(PurePath(file).parent))
    return source, read_source(source, file, helpers), tuple(helpers.seen)


def failed(stem: str, file: str, reason: str, fix: str = "", line: int | None = None) -> Reading:
    """Gives the reading of a file that nothing could be learned from."""
    problem: PlainProblem = {
        "message": reason,
        "fix": fix,
        "severity": "error",
        "file": file,
        "line": line,
        "pack": stem,
        "tool": None,
    }
    return {"pack": stem, "tools": [], "problems": [problem]}


def _unparsed(stem: str, file: str, error: SyntaxError | ValueError | RecursionError | MemoryError) -> Reading:
    if isinstance(error, SyntaxError):
        reason = (error.msg or "it isn't valid Python").rstrip(".")
        return failed(stem, file, f"It can't be parsed: {reason}.", line=error.lineno or None)
    if isinstance(error, ValueError):
        return failed(stem, file, f"It can't be parsed: {str(error).rstrip('.')}.")
    return failed(stem, file, "It can't be parsed: its code is nested too deeply.")


def _read_tree(tree: ast.Module, source: str | bytes, stem: str, file: str, helpers: Helpers) -> Reading:
    problems: list[PlainProblem] = []

    def report(
        message: str,
        fix: str = "",
        severity: Literal["error", "warning", "hint"] = "error",
        *,
        line: int | None = None,
    ) -> None:
        problems.append(
            {
                "message": message,
                "fix": fix,
                "severity": severity,
                "file": file,
                "line": line,
                "pack": stem,
                "tool": None,
            }
        )

    scope = Scope(tree, file, helpers.scope)
    found = exports.functions(scope, report)
    if not found:
        return {"pack": stem, "tools": [], "problems": problems}
    pack = exports.pack_name(scope, stem, report)
    needs = requirements.read(tree, source, {node.name for node in found})
    for item in needs.unreadable_elsewhere() if needs else ():
        report(item.message, item.fix, "warning", line=item.line)
    for problem in problems:
        problem["pack"] = pack
    definitions = Definitions(scope)
    tools = [functions.tool(node, definitions, pack, file, needs) for node in found]
    return {"pack": pack, "tools": tools, "problems": problems}
