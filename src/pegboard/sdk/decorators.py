"""`@hints(...)` and `@aliases(...)` of the SDK, read where they stand above a function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from pegboard.sdk.literals import UnreadableError, read
from pegboard.sdk.scope import Scope

Report = Callable[..., None]
"""Takes a problem: `report(message, fix, line=…)`."""

_BOOLEANS = ("read_only", "destructive", "idempotent", "open_world")
_SECONDS = ("timeout", "cache_seconds")
_HINTS = (*_BOOLEANS, *_SECONDS, "stdin")


def calls(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, scope: Scope) -> Iterable[ast.Call]:
    """Gives the decorators of a function that are calls of `pegboard.sdk`'s `name`, topmost first."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _is_ours(scope.qualified(decorator.func), name):
            yield decorator


def _check_parentheses(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, scope: Scope, report: Report) -> None:
    """Report a decorator without parentheses, which says nothing."""
    for decorator in node.decorator_list:
        if _is_ours(scope.qualified(decorator), name):
            report(f"`@{name}` has no arguments.", f"Write `@{name}(...)`.", line=decorator.lineno)


def _is_ours(qualified: str | None, name: str) -> bool:
    return qualified is not None and qualified.startswith("pegboard.sdk.") and qualified.endswith(f".{name}")


def hints(
    node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, parameters: Iterable[str], report: Report
) -> dict[str, bool | float | str] | None:
    """Gives what `@hints` says, checked; None where nothing is said.

    Args:
        node: The function.
        scope: The names of its file.
        parameters: The names of its parameters.
        report: Takes what is wrong.
    """
    _check_parentheses(node, "hints", scope, report)
    said: dict[str, bool | float | str] = {}
    for call in calls(node, "hints", scope):
        for keyword in call.keywords:
            if keyword.arg not in _HINTS:
                report(f"`@hints` knows no `{keyword.arg or '**'}`.", _nearest(keyword.arg, _HINTS), line=call.lineno)
                continue
            try:
                value = read(keyword.value, scope)
            except UnreadableError:
                report(
                    f"`@hints({keyword.arg}=…)` is known only to the running program.",
                    "Write the value as a literal.",
                    line=call.lineno,
                )
                continue
            if value is None:
                continue
            fault = _fault(keyword.arg, value, parameters)
            if fault:
                report(f"`@hints({keyword.arg}=…)` {fault}.", line=call.lineno)
            elif isinstance(value, bool | int | float | str):
                said[keyword.arg] = value
    return said or None


def _fault(key: str, value: object, parameters: Iterable[str]) -> str | None:
    if key in _BOOLEANS:
        return None if isinstance(value, bool) else "takes True or False"
    if key == "stdin":
        return None if isinstance(value, str) and value in parameters else "names no parameter of the function"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "takes a number of seconds"
    if value < 0 or (key == "timeout" and value == 0):
        return "takes a positive number of seconds"
    return None


def _nearest(name: str | None, known: Iterable[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name or "", list(known), n=1)
    return f"Did you mean `{close[0]}`?" if close else ""


def aliases(
    node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, parameters: Iterable[str], report: Report
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Gives the other names of a function and of its parameters (alias → parameter).

    Args:
        node: The function.
        scope: The names of its file.
        parameters: The names of its parameters.
        report: Takes what is wrong.
    """
    _check_parentheses(node, "aliases", scope, report)
    names: dict[str, None] = {}
    renamed: dict[str, str] = {}
    parameters = list(parameters)
    for call in calls(node, "aliases", scope):
        for argument in call.args:
            names.update(dict.fromkeys(_texts(argument, "a name", scope, call, report)))
        for keyword in call.keywords:
            parameter = keyword.arg
            if parameter not in parameters:
                fix = _nearest(parameter, parameters)
                report(f"`@aliases` names a parameter that isn't there: `{parameter or '**'}`.", fix, line=call.lineno)
                continue
            for alias in _texts(keyword.value, f"`{parameter}`", scope, call, report):
                if alias in parameters or renamed.get(alias, parameter) != parameter:
                    report(f"The alias `{alias}` of `{parameter}` is taken by another parameter.", line=call.lineno)
                else:
                    renamed[alias] = parameter
    return tuple(names), renamed


def _texts(node: ast.expr, of: str, scope: Scope, call: ast.Call, report: Report) -> list[str]:
    """Gives the string, or the strings of a tuple or list."""
    try:
        value = read(node, scope)
    except UnreadableError:
        value = None
    values = value if isinstance(value, list) else [value]
    texts = [item for item in values if isinstance(item, str) and item]
    if len(texts) != len(values):
        report(f"`@aliases`: an alias of {of} is no literal text.", "Write it as a string.", line=call.lineno)
    return texts
