"""Which functions of a file are its tools: `__all__`, the pack's name, the last definition of each name.

This is the one definition of a tool: discovery and plain scripts both use it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING

from pegboard.sdk.literals import UnreadableError, read, text

if TYPE_CHECKING:
    from pegboard.sdk.scope import Scope, Statement

Function = ast.FunctionDef | ast.AsyncFunctionDef

PACK_NAME = re.compile(r"[A-Za-z0-9_-]+")
"""What a pack may be called: a tool's name is `pack.function`, so no dots."""

_TESTS = re.compile(r"test_|conftest\.")
"""Files beside packs whose functions are no tools, and have no docstrings."""

Report = Callable[..., None]
"""Takes a problem: `report(message, fix, severity, line=…)`."""

_OVERLOADS = frozenset({"typing.overload", "typing_extensions.overload"})


def docstring(node: Function) -> str:
    """Return the docstring of a function as it is in the source; empty if there is none."""
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first.value.value
    return ""


def parameters(node: Function) -> list[str]:
    """Return the names of a function's parameters, without `*args` and `**kwargs`."""
    arguments = node.args
    return [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def functions(scope: Scope, report: Report) -> list[Function]:
    """Gives the functions that are tools, in the order of the file.

    Args:
        scope: The names of the file.
        report: Takes what is wrong.
    """
    defined = _defined(scope, report)
    names = _all(scope, report)
    if names is None:
        public = [node for name, node in defined.items() if not name.startswith("_")]
        tests = _TESTS.match(PurePath(scope.file).name) is not None
        for node in public:
            if not (docstring(node).strip() or tests or node.name.startswith("test_")):
                report(
                    f"`{node.name}` has no docstring, so it is not a tool.",
                    "Describe it in a docstring, or begin its name with `_`.",
                    "hint",
                    line=node.lineno,
                )
        return [node for node in public if docstring(node).strip()]
    for name, line in names.items():
        if name not in scope.names and not scope.stars and "__getattr__" not in scope.names:
            report(f"`__all__` names `{name}`, which the file doesn't define.", "", "warning", line=line)
    return [node for name, node in defined.items() if name in names]


def _defined(scope: Scope, report: Report) -> dict[str, Function]:
    """Gives the functions that the file's names stand for in the end."""
    found: dict[str, Statement] = {}
    for statement in scope.body:
        node = statement.node
        if not isinstance(node, Function) or statement.typing_only or _is_overload(node, scope):
            continue
        earlier = found.pop(node.name, None)
        if earlier and not earlier.branched and not statement.branched and not node.name.startswith("_"):
            report(
                f"`{node.name}` is defined twice: in line {earlier.node.lineno} and in line {node.lineno}, which wins.",
                "Rename or remove one of them.",
                line=node.lineno,
            )
        found[node.name] = statement
    kept = {name: statement.node for name, statement in found.items() if _still_means(scope, name, statement.node)}
    return {name: node for name, node in kept.items() if isinstance(node, Function)}


def _is_overload(node: Function, scope: Scope) -> bool:
    return any(scope.qualified(decorator) in _OVERLOADS for decorator in node.decorator_list)


def _still_means(scope: Scope, name: str, node: ast.stmt) -> bool:
    """Tells whether a name still stands for the function: `f = wrapped(f)` does, `f = None` doesn't."""
    binding = scope.names.get(name)
    if binding is node:
        return True
    if not isinstance(binding, ast.Call):
        return False
    return any(isinstance(argument, ast.Name) and argument.id == name for argument in binding.args)


def pack_name(scope: Scope, stem: str, report: Report) -> str:
    """Gives the name of the pack: what `pack = "name"` says, else the file's.

    Args:
        scope: The names of the file.
        stem: The file's name without `.py`.
        report: Takes what is wrong.
    """
    binding = scope.names.get("pack")
    said = text(binding, scope) if isinstance(binding, ast.Constant | ast.JoinedStr) else None
    if said is not None:
        if PACK_NAME.fullmatch(said):
            return said
        report(
            f"`pack = {said!r}` is no name for a pack.",
            "Use letters, digits, `_` and `-` only.",
            line=getattr(binding, "lineno", None),
        )
    if PACK_NAME.fullmatch(stem):
        return stem
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", stem) or "_"
    if said is None:
        report(
            f"The file's name is no name for a pack; it is called `{name}`.",
            'Rename the file, or write `pack = "name"` in it.',
            "warning",
        )
    return name


def _all(scope: Scope, report: Report) -> dict[str, int] | None:
    """Gives the names in `__all__` with their lines, or None where there is none (or none that can be read)."""
    names: dict[str, int] | None = None
    for statement in scope.body:
        node = statement.node
        value = _value_of_all(node)
        if value is None:
            continue
        listed = _listed(value, scope)
        if listed is None:
            report(
                "`__all__` is known only to the running program, so every public, documented function is a tool.",
                "Write it as a list of names.",
                "warning",
                line=node.lineno,
            )
            return None
        if names is None or isinstance(node, ast.Assign | ast.AnnAssign):
            names = {}
        names.update(dict.fromkeys(listed, node.lineno))
    return names


def _value_of_all(node: ast.stmt) -> ast.expr | None:
    """Gives what a statement assigns or adds to `__all__`."""
    match node:
        case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
            return value
        case (
            ast.AnnAssign(target=ast.Name(id="__all__"), value=value)
            | ast.AugAssign(target=ast.Name(id="__all__"), op=ast.Add(), value=value)
        ):
            return value
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id="__all__"), attr="extend"), args=[value], keywords=[])
        ):
            return value
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id="__all__"), attr="append"), args=[value], keywords=[])
        ):
            return ast.List(elts=[value])
        case _:
            return None


def _listed(node: ast.expr, scope: Scope) -> list[str] | None:
    """Gives the names in a list, a tuple, or a sum of them; what another module exports adds nothing of this file's."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _listed(node.left, scope), _listed(node.right, scope)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Attribute) and node.attr == "__all__":
        return []
    if isinstance(node, ast.Call) and scope.qualified(node.func) in {"builtins.list", "builtins.tuple"} and node.args:
        return _listed(node.args[0], scope)
    try:
        value = read(node, scope)
    except UnreadableError:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return None
    return [item for item in value if isinstance(item, str)]
