"""Static reading of the decorators `@hints(...)` and `@aliases(...)`, and of MCP annotations."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pegboard.sdk.exports import framework_argument
from pegboard.sdk.literals import NotLiteralError, read
from pegboard.sdk.scope import Binding, Scope

Report = Callable[..., None]
"""Callback for problems: `report(message, fix, line=…)`."""

StaticHints = dict[str, bool | float | str]
"""Valid arguments of `@hints`."""

_CAREFUL = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}
"""Values to assume for hints that can't be read."""
_ANNOTATIONS = {name.replace("_", "") + "hint": name for name in _CAREFUL}
"""Hints by the names of MCP's annotations, in lower case and without `_`."""
_MOST_STEPS = 10
"""Maximum number of assignments of one name to another."""
_MOST_DEFINITIONS = 100
"""Maximum number of definitions to read for one decorator."""
_SECONDS = ("timeout", "cache_seconds")
_HINTS = (*_CAREFUL, *_SECONDS, "stdin")


class _Decorator(NamedTuple):
    """A decorator that calls a function of `pegboard.sdk`.

    Attributes:
        call: The call, or None if it is inside of a function or class of the project that is the decorator.
        scope: Scope of the file that contains it.
        line: Line of the decorator.
        is_certain: Whether no other call may have the name, depending on a condition that can't be evaluated.
    """

    call: ast.Call | None
    scope: Scope
    line: int
    is_certain: bool


def _calls(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, scope: Scope) -> Iterator[_Decorator]:
    """Yield the decorators of a function that call `name` of `pegboard.sdk`, topmost first.

    A decorator can also be the name of such a call, as in `reads = hints(read_only=True)`.
    """
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(decorator, ast.Call) and _is_ours(scope.origin(target), name):
            yield _Decorator(decorator, scope, decorator.lineno, is_certain=True)
            continue
        definitions = _definitions(target, scope)
        if not any(_mentions(definition, name, where) for definition, where in definitions):
            continue
        call, where = definitions[-1]
        is_certain = len(definitions) == 1
        if isinstance(decorator, ast.Call) and isinstance(call, ast.AST) and _is_ours(where.origin(call), name):
            yield _Decorator(decorator, scope, decorator.lineno, is_certain)  # `declare = hints`
        elif isinstance(call, ast.Call) and _is_ours(where.origin(call.func), name):
            yield _Decorator(call, where, decorator.lineno, is_certain)
        else:
            yield _Decorator(None, where, decorator.lineno, is_certain=False)


def _definitions(node: ast.expr, scope: Scope) -> list[tuple[Binding, Scope]]:
    """Return all definitions that a name may have, each with its scope, the likeliest last.

    Names that are assigned to it, as in `removes = erases`, are replaced by their definitions.
    """
    found: list[tuple[Binding, Scope]] = []
    first = scope.find(node)
    waiting = [first] if first else []
    for _ in range(_MOST_STEPS):
        if not waiting:
            break
        one = waiting.pop()
        for variant in one.variants():
            deeper = one.scope.find(variant) if isinstance(variant, ast.Name | ast.Attribute) else None
            if deeper is None:
                found.append((variant, one.scope))
            else:
                waiting.append(deeper)
    return found


def _mentions(definition: Binding, name: str, scope: Scope) -> bool:
    """Return whether a definition contains the function `name` of `pegboard.sdk`, or is that function.

    Functions and classes of the project that it uses are included, without their own decorators.
    """
    found = scope.mentions.get((definition, name))
    if found is None:
        found = scope.mentions[definition, name] = _uses(definition, name, scope)
    return found


def _uses(definition: Binding, name: str, scope: Scope) -> bool:
    waiting = [(definition, scope)]
    seen: set[Binding] = set()
    while waiting and len(seen) < _MOST_DEFINITIONS:
        current, where = waiting.pop(0)
        if current in seen:
            continue
        seen.add(current)
        if isinstance(current, str):
            if _is_ours(current, name):
                return True
            continue
        for part in _parts(current):
            if isinstance(part, ast.ImportFrom):
                if any(_is_ours(f"{part.module}.{imported.name}", name) for imported in part.names):
                    return True
            elif isinstance(part, ast.Name | ast.Attribute):
                if _is_ours(where.origin(part), name):
                    return True
                if found := where.find(part):
                    waiting += [(variant, found.scope) for variant in found.variants()]
    return False


def _parts(definition: ast.AST) -> Iterator[ast.AST]:
    """Yield a definition and the nodes inside of it, without its own decorators."""
    yield definition
    decorators = getattr(definition, "decorator_list", [])
    for child in ast.iter_child_nodes(definition):
        if child not in decorators:
            yield from ast.walk(child)


def _check_parentheses(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, scope: Scope, report: Report) -> None:
    """Report a decorator without parentheses."""
    for decorator in node.decorator_list:
        if _is_ours(scope.origin(decorator), name):
            report(f"`@{name}` has no arguments.", f"Write `@{name}(...)`.", line=decorator.lineno)


def _is_ours(qualified: str | None, name: str) -> bool:
    return qualified is not None and qualified.startswith("pegboard.sdk.") and qualified.endswith(f".{name}")


def hints(
    node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, parameters: Iterable[str], report: Report
) -> StaticHints | None:
    """Return the valid arguments of `@hints`, and for the others MCP annotations; None if there are none.

    Args:
        node: Function.
        scope: Scope of its file.
        parameters: Names of its parameters.
        report: Callback for invalid arguments.
    """
    _check_parentheses(node, "hints", scope, report)
    valid = _annotations(node, scope)
    for call, where, line, is_certain in _calls(node, "hints", scope):
        if call is None or not is_certain:
            valid |= _CAREFUL
            message = (
                f"Which `@hints` apply to `{node.name}` can't be known without running the file, so the most careful"
            )
            message += " are assumed."
            fix = "Define the decorator once." if call else "Write `@hints(...)` above the function itself."
            report(message, fix, line=line)
            continue
        for keyword in call.keywords:
            if keyword.arg not in _HINTS:
                report(f"`@hints` has no parameter `{keyword.arg or '**'}`.", _nearest(keyword.arg, _HINTS), line=line)
                continue
            try:
                value = read(keyword.value, where)
            except NotLiteralError:
                message = f"The value of `@hints({keyword.arg}=…)` can't be read without running the file"
                if keyword.arg in _CAREFUL:
                    valid[keyword.arg] = _CAREFUL[keyword.arg]
                    message += f", so {_CAREFUL[keyword.arg]} is assumed"
                report(f"{message}.", "Write the value as a literal.", line=line)
                continue
            if value is None:
                continue
            problem = _problem(keyword.arg, value, parameters)
            if problem:
                report(f"`@hints({keyword.arg}=…)` {problem}.", line=line)
            elif isinstance(value, bool | int | float | str):
                valid[keyword.arg] = value
    return valid or None


def _annotations(node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> StaticHints:
    """Return the hints of a function of an MCP server: `@mcp.tool(annotations=ToolAnnotations(readOnlyHint=True))`.

    The names are those of MCP's `ToolAnnotations`, or of the Python SDK's class: `read_only_hint`.
    """
    written = framework_argument(node, "annotations")
    if isinstance(written, ast.Name) and written.id in scope.names:
        return most_careful(_stated(value, scope) for value in scope.variants(written.id)) or {}
    return _stated(written, scope)


def _stated(annotations: Binding | None, scope: Scope) -> StaticHints:
    """Return the hints that a `ToolAnnotations(…)` or a dictionary states; none for anything else."""
    pairs: Iterable[tuple[object, ast.expr]] = ()
    if isinstance(annotations, ast.Dict):
        keys = (key.value if isinstance(key, ast.Constant) else None for key in annotations.keys)
        pairs = zip(keys, annotations.values, strict=True)
    elif isinstance(annotations, ast.Call) and (scope.qualified(annotations.func) or "").endswith(".ToolAnnotations"):
        pairs = ((keyword.arg, keyword.value) for keyword in annotations.keywords)
    found: StaticHints = {}
    for name, item in pairs:
        if name is None:  # `**more`, or a key that can't be read: it may replace earlier ones
            found = {hint: _CAREFUL[hint] for hint in found}
        hint = _ANNOTATIONS.get(str(name).lower().replace("_", ""))
        if hint is None:
            continue
        try:
            stated = read(item, scope)
        except NotLiteralError:
            stated = _CAREFUL[hint]
        if isinstance(stated, bool):
            found[hint] = stated
    return found


def check_requirements(node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, report: Report) -> None:
    """Report decorators that declare a requirement in a place where it isn't read.

    That is another file, a function or class that is the decorator, or an assignment that a condition chooses.

    Args:
        node: Function.
        scope: Scope of its file.
        report: Callback for such decorators.
    """
    for name in ("requires_cli", "requires_lib", "requires_secret"):
        for call, where, line, is_certain in _calls(node, name, scope):
            if call is None or where is not scope or not is_certain or not _is_ours(scope.qualified(call.func), name):
                report(
                    f"A decorator of `{node.name}` declares a requirement in a place where it isn't read.",
                    f"Write `@{name}(...)` above the function itself.",
                    line=line,
                )


def assumed_hints() -> StaticHints:
    """Return the hints to assume for a function whose definition can't be read."""
    return dict(_CAREFUL)


def most_careful(definitions: Iterable[StaticHints | None]) -> StaticHints | None:
    """Combine the hints of definitions of which any may apply; None for one without hints.

    The tool is destructive if any definition is, and read-only if all are. Hints that differ otherwise are omitted.
    """
    stated = [definition or {} for definition in definitions]
    combined: StaticHints = {}
    for key in _HINTS:
        values = {hints.get(key) for hints in stated}
        careful = _CAREFUL.get(key)
        value = careful if careful in values else values.pop() if len(values) == 1 else None
        if value is not None:
            combined[key] = value
    return combined or None


def _problem(key: str, value: object, parameters: Iterable[str]) -> str | None:
    if key in _CAREFUL:
        return None if isinstance(value, bool) else "must be True or False"
    if key == "stdin":
        return None if isinstance(value, str) and value in parameters else "must name a parameter of the function"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "must be a number of seconds"
    if value < 0 or (key == "timeout" and value == 0):
        return "must be a positive number of seconds"
    return None


def _nearest(name: str | None, known: Iterable[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name or "", list(known), n=1)
    return f"Did you mean `{close[0]}`?" if close else ""


def aliases(
    node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, parameters: Iterable[str], report: Report
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the aliases of a function, and those of its parameters (alias → parameter).

    Args:
        node: Function.
        scope: Scope of its file.
        parameters: Names of its parameters.
        report: Callback for invalid aliases.
    """
    _check_parentheses(node, "aliases", scope, report)
    names: dict[str, None] = {}
    renamed: dict[str, str] = {}
    parameters = list(parameters)
    for call, where, line, _ in _calls(node, "aliases", scope):
        if call is None:
            message = f"The names that `@aliases` adds to `{node.name}` can't be known without running the file."
            report(message, "Write `@aliases(...)` above the function itself.", line=line)
            continue
        for argument in call.args:
            names.update(dict.fromkeys(_texts(argument, "a name", where, line, report)))
        for keyword in call.keywords:
            parameter = keyword.arg
            if parameter not in parameters:
                fix = _nearest(parameter, parameters)
                report(f"`@aliases` names an unknown parameter: `{parameter or '**'}`.", fix, line=line)
                continue
            for alias in _texts(keyword.value, f"`{parameter}`", where, line, report):
                if alias in parameters or renamed.get(alias, parameter) != parameter:
                    report(f"The alias `{alias}` of `{parameter}` already belongs to another parameter.", line=line)
                else:
                    renamed[alias] = parameter
    return tuple(names), renamed


def _texts(node: ast.expr, of: str, scope: Scope, line: int, report: Report) -> list[str]:
    """Return the string, or the strings of a tuple or list, and report anything else."""
    try:
        value = read(node, scope)
    except NotLiteralError:
        value = None
    values = value if isinstance(value, list) else [value]
    texts = [item for item in values if isinstance(item, str) and item]
    if len(texts) != len(values):
        report(f"`@aliases`: an alias of {of} is not a string literal.", "Write it as a string.", line=line)
    return texts
