"""Parser of pack files: returns tools and problems, without importing or running the file."""

from __future__ import annotations

import ast
import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from pegboard import sdk
from pegboard.discovery import functions, requirements
from pegboard.discovery.files import content
from pegboard.discovery.project_modules import ProjectModules
from pegboard.discovery.unlisted import report_unlisted
from pegboard.sdk import exports
from pegboard.sdk.scope import Scope
from pegboard.signatures.definitions import Definitions
from pegboard.signatures.expressions import PARSED_AS

if TYPE_CHECKING:
    from pegboard.discovery.parsed import ParsedFile, PlainProblem
    from pegboard.discovery.project_modules import Seen


def read_source(source: str | bytes, file: str, modules: ProjectModules | None = None) -> ParsedFile:
    """Return the tools and problems of a source. A syntax error is a problem, never an exception.

    Args:
        source: Text, or bytes in the encoding that they declare.
        file: Absolute path of the file; it need not exist.
        modules: Modules of its project; by default those that its folder implies.
    """
    modules = modules or ProjectModules(str(PurePath(file).parent))
    stem = PurePath(file).stem
    try:
        tree = ast.parse(source, PARSED_AS)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return _unparsed(source, stem, file, error)
    try:
        return _read_tree(tree, source, stem, file, modules)
    except RecursionError:
        return failed(stem, file, "The file could not be read: its definitions are nested too deeply.")


def read_file(file: str) -> tuple[bytes | None, ParsedFile, tuple[Seen, ...]]:
    """Read and parse a file.

    Args:
        file: Absolute path.

    Returns:
        The bytes of the file (None if it can't be read), its parsed content, and the modules that it uses.
    """
    try:
        source = content(file)
    except OSError as error:
        return None, failed(PurePath(file).stem, file, f"The file could not be read: {error.strerror or error}."), ()
    if isinstance(source, str):
        return None, failed(PurePath(file).stem, file, source), ()
    modules = ProjectModules(str(PurePath(file).parent))
    return source, read_source(source, file, modules), tuple(modules.seen)


def failed(stem: str, file: str, reason: str, fix: str = "", line: int | None = None) -> ParsedFile:
    """Return the content of a file that could not be parsed: one problem."""
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


def _unparsed(
    source: str | bytes, stem: str, file: str, error: SyntaxError | ValueError | RecursionError | MemoryError
) -> ParsedFile:
    if isinstance(error, SyntaxError):
        reason = (error.msg or "it is not valid Python").rstrip(".")
        from pegboard.discovery.newer_syntax import newer_python

        fix = newer_python(source, error)
        return failed(stem, file, f"The file could not be parsed: {reason}.", fix, line=error.lineno or None)
    if isinstance(error, ValueError):
        return failed(stem, file, f"The file could not be parsed: {str(error).rstrip('.')}.")
    return failed(stem, file, "The file could not be parsed: its code is nested too deeply.")


def _read_tree(tree: ast.Module, source: str | bytes, stem: str, file: str, modules: ProjectModules) -> ParsedFile:
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

    scope = Scope(tree, file, modules.scope)
    found = exports.functions(scope, report)
    report_unlisted(scope, source, report)
    if not found:
        return {"pack": stem, "tools": [], "problems": problems}
    pack = exports.pack_name(scope, report)
    needs = requirements.read(tree, source, {node.name for node in found})
    for item in needs.unreadable_elsewhere() if needs else ():
        report(item.message, item.fix, "warning", line=item.line)
    _check_imports(tree, report)
    for problem in problems:
        problem["pack"] = pack
    definitions = Definitions(scope)
    tools = [functions.tool(node, definitions, pack, file, needs) for node in found]
    for tool in tools:  # only after all tools, because they share definitions
        tool["handler"]["helpers"] = tuple(file for file, *_ in modules.seen)
    return {"pack": pack, "tools": tools, "problems": problems}


def _check_imports(tree: ast.Module, report: exports.Report) -> None:
    """Report names that can't be imported from Pegboard: the file can't run, and its hints may be ignored."""
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom) or node.level or node.module not in {"pegboard", sdk.__name__}:
            continue
        for name in (alias.name for alias in node.names):
            if node.module == "pegboard" and name in sdk.__all__:
                fix = f"Write `from {sdk.__name__} import {name}`."
            elif not (name in sdk.__all__ or name == "*" or name.startswith("__") or _is_module(node.module, name)):
                from pegboard.sdk.names import nearest, suggestion

                fix = f"Packs use `{sdk.__name__}`; tools are plain functions."
                if node.module == sdk.__name__:
                    fix = suggestion(nearest(name, sdk.__all__)).strip()
            else:
                continue
            report(f"`{name}` can't be imported from `{node.module}`.", fix, line=node.lineno)


def _is_module(package: str, name: str) -> bool:
    """Return whether a package of Pegboard contains a module or a package."""
    folder = os.path.dirname(sdk.__file__)  # noqa: PTH120 - for each scan
    place = os.path.join(folder if package == sdk.__name__ else os.path.dirname(folder), name)  # noqa: PTH118, PTH120
    return os.path.exists(f"{place}.py") or os.path.exists(place)  # noqa: PTH110 - for each scan
