"""Selection of the functions of a file that are tools, and of the pack's name.

Discovery and plain scripts share this definition of a tool.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING

from pegboard.built_in import is_built_in
from pegboard.sdk.literals import NotLiteralError, read, text

if TYPE_CHECKING:
    from pegboard.sdk.scope import Binding, Scope, Statement

Function = ast.FunctionDef | ast.AsyncFunctionDef

PACK_NAME = re.compile(r"[A-Za-z0-9_-]+")
"""Valid pack names. A tool's name is `pack.function`, so a pack's name contains no dot."""

_TESTS = re.compile(r"test_|conftest\.")
"""Test files beside packs, whose functions need no docstrings."""

FRAMEWORK_DECORATORS = frozenset({"tool", "tool_plain", "function_tool", "kernel_function", "ai_function", "beta_tool"})
"""Last names of the decorators with which agent frameworks mark tools, such as `@server.tool()`."""

Report = Callable[..., None]
"""Callback for problems: `report(message, fix, severity, line=…)`."""

_DICTIONARY_DECORATOR = "claude_agent_sdk.tool"

_CONTEXT_MANAGERS = frozenset({"contextlib.contextmanager", "contextlib.asynccontextmanager"})

_OVERLOADS = frozenset({"typing.overload", "typing_extensions.overload"})


def docstring(node: Function) -> str:
    """Return the docstring of a function, not yet dedented; empty if missing."""
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first.value.value
    return ""


def framework_argument(node: Function, *names: str) -> ast.expr | None:
    """Return the argument with one of these names in the decorator of an agent framework, or None."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _last_name(decorator.func) in FRAMEWORK_DECORATORS:
            for keyword in decorator.keywords:
                if keyword.arg in names:
                    return keyword.value
    return None


def dictionary_decorator(node: Function, scope: Scope) -> ast.Call | None:
    """Return the decorator `@tool("name", "description", schema)` of the Claude Agent SDK, or None.

    Its function has a single parameter, which gets all arguments as one dictionary.
    """
    calls = (one for one in node.decorator_list if isinstance(one, ast.Call))
    return next((one for one in calls if scope.qualified(one.func) == _DICTIONARY_DECORATOR), None)


def spec_of_module(node: Function, scope: Scope) -> dict[str, ast.expr]:
    """Return the parts of `TOOL_SPEC = {"name": …, "inputSchema": …}` if it describes this function; otherwise none.

    That is a tool of Strands without its decorator: its function gets one dictionary, which contains the arguments.
    """
    found = scope.names.get("TOOL_SPEC")
    if not isinstance(found, ast.Dict):
        return {}
    keys = [key.value if isinstance(key, ast.Constant) else None for key in found.keys]
    parts = {key: value for key, value in zip(keys, found.values, strict=True) if isinstance(key, str)}
    return parts if "inputSchema" in parts and text(parts.get("name"), scope) == node.name else {}


def positional_or_named(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """Return an argument that a call passes by position or by name, or None."""
    named = (keyword.value for keyword in call.keywords if keyword.arg == name)
    return call.args[position] if position < len(call.args) else next(named, None)


def decorated_description(node: Function, scope: Scope) -> str:
    """Return the description that an agent framework reads instead of the docstring, or "".

    It is not yet dedented. Examples are `@mcp.tool(description="…")`, `@function_tool(description_override="…")` of the
    OpenAI Agents SDK, `@tool("name", "…", {})` of the Claude Agent SDK, and `TOOL_SPEC` of Strands.
    """
    call = dictionary_decorator(node, scope)
    found = framework_argument(node, "description", "description_override")
    if call is not None:
        found = positional_or_named(call, 1, "description")
    return (text(found or spec_of_module(node, scope).get("description"), scope) or "").strip("\n ")


def is_marked(node: Function) -> bool:
    """Return whether a function has a decorator with which agent frameworks mark tools."""
    decorators = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return any(_last_name(one) in FRAMEWORK_DECORATORS for one in decorators)


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _is_described(node: Function, scope: Scope) -> bool:
    return bool(docstring(node).strip() or decorated_description(node, scope))


def parameters(node: Function) -> list[str]:
    """Return the names of a function's parameters, without `*args` and `**kwargs`."""
    arguments = node.args
    return [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def functions(scope: Scope, report: Report) -> list[Function]:
    """Return the functions that are tools, in the order of the file.

    With `__all__`, these are the functions it lists; without, all public functions that have a docstring, or a
    description in the decorator of an agent framework.

    Args:
        scope: Scope of the file.
        report: Callback for problems.
    """
    defined = _defined(scope, report)
    names = _all(scope, report)
    for node in [node for node in defined.values() if _is_context_manager(node, scope)]:
        described = not node.name.startswith("_") and _is_described(node, scope)
        if described if names is None else node.name in names:
            report(
                f"`{node.name}` returns a context manager, which has no JSON form, so it is not a tool.",
                "Use it in a function that returns a value.",
                "hint",
                line=node.lineno,
            )
        del defined[node.name]
    if names is None:
        public = [node for name, node in defined.items() if not name.startswith("_")]
        tests = is_test_file(scope)
        for node in public:
            if not (_is_described(node, scope) or tests or node.name.startswith("test_")):
                report(
                    f"`{node.name}` has no docstring, so it is not a tool.",
                    "Describe it in a docstring, or start its name with `_`.",
                    "hint",
                    line=node.lineno,
                )
        return [node for node in public if _is_described(node, scope)]
    for name, line in names.items():
        if name not in scope.names and not scope.stars and "__getattr__" not in scope.names:
            report(f"`__all__` names `{name}`, which the file doesn't define.", "", "warning", line=line)
        elif name not in defined and (reason := _not_defined_here(scope.names.get(name), name)):
            report(
                f"`__all__` names `{name}`, which {reason}, so it is not a tool.",
                f"If it should be one, define it: `def {name}(...)`, with type hints and a docstring.",
                "hint",
                line=line,
            )
    return [node for name, node in defined.items() if name in names]


def is_test_file(scope: Scope) -> bool:
    """Return whether a file contains the tests of a pack, by its name."""
    return _TESTS.match(PurePath(scope.file).name) is not None


def _not_defined_here(binding: Binding | None, name: str) -> str | None:
    """Return why a name in `__all__` that may be a function is not a tool; None for classes and constants."""
    if name.lstrip("_")[:1].isupper() or name == "pack":
        return None
    if isinstance(binding, str):
        return "is imported"
    return "is computed" if isinstance(binding, ast.Call | ast.Lambda | ast.Name | ast.Attribute) else None


def _defined(scope: Scope, report: Report) -> dict[str, Function]:
    """Return the functions that the names refer to at the end of the file."""
    found: dict[str, Statement] = {}
    for statement in scope.body:
        node = statement.node
        if not isinstance(node, Function) or statement.typing_only or _is_overload(node, scope):
            continue
        earlier = found.pop(node.name, None)
        if earlier and not earlier.branched and not statement.branched and not node.name.startswith("_"):
            report(
                f"`{node.name}` is defined twice: in line {earlier.node.lineno}, and again in line {node.lineno}, "
                "which is used.",
                "Rename or remove one of them.",
                line=node.lineno,
            )
        found[node.name] = statement
    kept = {name: statement.node for name, statement in found.items() if _is_bound_to(scope, name, statement.node)}
    return {name: node for name, node in kept.items() if isinstance(node, Function)}


def variants(scope: Scope, node: Function) -> list[Function | None]:
    """Return the other definitions of a tool's name that may apply instead; None for one that isn't a plain function.

    A fallback such as `f = None`, which can't be called, doesn't count.

    Args:
        scope: Scope of the file.
        node: Function.
    """
    found: list[Function | None] = []
    for binding in scope.variants(node.name):
        if binding is node or isinstance(binding, ast.Constant) or _wraps(binding, node.name):
            continue
        if not isinstance(binding, Function):
            found.append(None)
        elif not _is_overload(binding, scope):
            found.append(binding)
    return found


def _is_context_manager(node: Function, scope: Scope) -> bool:
    return any(scope.qualified(decorator) in _CONTEXT_MANAGERS for decorator in node.decorator_list)


def _is_overload(node: Function, scope: Scope) -> bool:
    return any(scope.qualified(decorator) in _OVERLOADS for decorator in node.decorator_list)


def _is_bound_to(scope: Scope, name: str, node: ast.stmt) -> bool:
    """Return whether a name still refers to the function: after `f = wrapped(f)` it does, after `f = None` not."""
    binding = scope.names.get(name)
    return binding is node or _wraps(binding, name)


def _wraps(binding: Binding | None, name: str) -> bool:
    """Return whether a binding is a call with the name as its argument."""
    if not isinstance(binding, ast.Call):
        return False
    return any(isinstance(argument, ast.Name) and argument.id == name for argument in binding.args)


def name_of_file(file: str) -> str:
    """Return the name of a pack that doesn't name itself: that of its file; of a file `tools.py`, that of its folder.

    `tools` is a built-in pack, so that no other pack can have this name.
    """
    stem = _stem(file)
    if stem == "tools" and not is_built_in(file):
        folders = (folder.name for folder in PurePath(file).parents)
        stem = next((name for name in folders if name not in {"", "tools"}), stem)
    return stem if PACK_NAME.fullmatch(stem) else re.sub(r"[^A-Za-z0-9_-]+", "_", stem) or "_"


def _stem(file: str) -> str:
    return file.rpartition(os.sep)[2].removesuffix(".py")


def pack_name(scope: Scope, report: Report) -> str:
    """Return the name of the pack: the value of `pack = "name"`, or else the name of the file.

    Args:
        scope: Scope of the file.
        report: Callback for invalid names.
    """
    binding = scope.names.get("pack")
    named = text(binding, scope) if isinstance(binding, ast.Constant | ast.JoinedStr) else None
    if named is not None:
        if PACK_NAME.fullmatch(named):
            return named
        report(
            f"`pack = {named!r}` is not a valid pack name.",
            "Use letters, digits, `_` and `-` only.",
            line=getattr(binding, "lineno", None),
        )
    name, stem = name_of_file(scope.file), _stem(scope.file)
    if named is None and not PACK_NAME.fullmatch(stem):
        report(
            f"The file name is not a valid pack name, so the pack is called `{name}`.",
            'Rename the file, or write `pack = "name"` in it.',
            "warning",
        )
    return name


def _all(scope: Scope, report: Report) -> dict[str, int] | None:
    """Return the names in `__all__` with their lines, or None if it is missing or can't be read statically."""
    names: dict[str, int] | None = None
    for statement in scope.body:
        node = statement.node
        value = _value_of_all(node)
        if value is None:
            continue
        listed = _listed(value, scope)
        if listed is None:
            report(
                "`__all__` can't be read without running the file, so all public functions with docstrings are tools.",
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
    """Return the expression that a statement assigns or adds to `__all__`, or another expression that changes it."""
    match node:
        case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
            return value
        case (
            ast.AnnAssign(target=ast.Name(id="__all__"), value=value)
            | ast.AugAssign(target=ast.Name(id="__all__"), op=ast.Add(), value=value)
        ):
            return value
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="__all__"), attr=method)) as call):
            return _added(call, method)
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return next((target for target in targets if _contains_all(target)), None)
        case ast.AugAssign(target=target) if _contains_all(target):
            return target
        case _:
            return None


def _added(call: ast.Call, method: str) -> ast.expr | None:
    """Return the list that a method adds to `__all__`, or the call itself if it changes it otherwise."""
    match method, call.args, call.keywords:
        case "extend", [value], []:
            return value
        case "append", [value], []:
            return ast.List(elts=[value])
        case "sort" | "reverse", _, _:
            return None
        case _:
            return call


def _contains_all(target: ast.expr) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "__all__" for part in ast.walk(target))


def _listed(node: ast.expr, scope: Scope) -> list[str] | None:
    """Return the names in a list, a tuple, or a sum of them; `module.__all__` counts as empty."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _listed(node.left, scope), _listed(node.right, scope)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Attribute) and node.attr == "__all__":
        return []
    if isinstance(node, ast.Call) and scope.qualified(node.func) in {"builtins.list", "builtins.tuple"} and node.args:
        return _listed(node.args[0], scope)
    try:
        value = read(node, scope)
    except NotLiteralError:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return None
    return [item for item in value if isinstance(item, str)]
