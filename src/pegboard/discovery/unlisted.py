"""Tools of agent frameworks that Pegboard can't call: methods, functions inside functions, and classes."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from pegboard.sdk.exports import Function, is_marked, is_test_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pegboard.sdk.exports import Report
    from pegboard.sdk.scope import Scope

_INDENTED = re.compile(rb"^[ \t]+@[\w.]*(?:tool|tool_plain|kernel_function|ai_function)\b", re.MULTILINE)
"""Such a decorator in a class or a function: a file without it isn't searched, which saves time in each scan."""

_BASES = frozenset({"Tool", "BaseTool", "Toolkit", "BaseToolkit", "BaseToolSpec"})
"""Last names of the classes from which agent frameworks derive tools and sets of tools."""

_MOST_NAMES = 3


def report_unlisted(scope: Scope, source: str | bytes, report: Report) -> None:
    """Report, as hints, what an agent framework would offer as a tool, but isn't a function of the file.

    Args:
        scope: Scope of the file.
        source: Text of the file.
        report: Callback for problems.
    """
    if "__all__" in scope.names or is_test_file(scope):
        return
    marked = _INDENTED.search(source.encode() if isinstance(source, str) else source) is not None
    for node in (statement.node for statement in scope.body):
        if isinstance(node, Function) and marked:
            _report_nested(node, report)
        elif isinstance(node, ast.ClassDef):
            methods = [one.name for one in node.body if isinstance(one, Function) and is_marked(one)] if marked else []
            if methods:
                _report(methods, "a method of", "methods of", node, "Call {} in a function of the file.", report)
            elif not node.name.startswith("_") and _is_derived(node, scope):
                report(
                    f"`{node.name}` is a class, so it is not a tool: tools are functions of the file.",
                    "Use it in a function, with type hints and a docstring.",
                    "hint",
                    line=node.lineno,
                )


def _report_nested(node: Function, report: Report) -> None:
    nested = [one.name for one in _inner_functions(node) if is_marked(one)]
    if nested:
        _report(nested, "defined in", "defined in", node, "Define {} at the top level of the file.", report)


def _report(names: list[str], one: str, several: str, outer: Function | ast.ClassDef, fix: str, report: Report) -> None:
    shown = [f"`{name}`" for name in names[:_MOST_NAMES]]
    if len(names) > _MOST_NAMES:
        shown.append(f"{len(names) - _MOST_NAMES} more")
    if len(names) == 1:
        text = f"{shown[0]} is {one} `{outer.name}`, so it is not a tool: tools are functions of the file."
    else:
        listed = f"{', '.join(shown[:-1])} and {shown[-1]}"
        text = f"{listed} are {several} `{outer.name}`, so they are not tools: tools are functions of the file."
    report(text, fix.format("it" if len(names) == 1 else "them"), "hint", line=outer.lineno)


def _inner_functions(node: Function) -> Iterator[Function]:
    """Yield the functions inside a function, at any depth of its statements, in the order of the file."""
    waiting: list[ast.AST] = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Function) and current is not node:
            yield current
        waiting.extend(reversed([one for one in ast.iter_child_nodes(current) if not isinstance(one, ast.expr)]))


def _is_derived(node: ast.ClassDef, scope: Scope) -> bool:
    """Return whether a class is derived from a class of tools that another package defines."""
    foreign = scope.lineage(node).foreign if node.bases else ()
    return any(package and name in _BASES for package, _, name in (base.rpartition(".") for base in foreign))
