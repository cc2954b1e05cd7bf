"""Parameters that a decorator of the file or its project fills in itself, such as `db` of `@with_db`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.sdk.scope import Scope

Function = ast.FunctionDef | ast.AsyncFunctionDef


def filled_by_decorators(node: Function, scope: Scope) -> frozenset[str]:
    """Return the parameters of a function that its decorators fill in for each call.

    Args:
        node: Function.
        scope: Scope of its file.
    """
    positional = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    found: set[str] = set()
    for decorator in node.decorator_list:
        called = isinstance(decorator, ast.Call)
        target = scope.find(decorator.func if isinstance(decorator, ast.Call) else decorator)
        outer = target.definition if target else None
        if called and isinstance(outer, Function):  # the function inside of it decorates
            outer = next((inner for inner in reversed(outer.body) if isinstance(inner, Function)), None)
        if isinstance(outer, Function) and outer.args.args:
            for wrapper in (inner for inner in outer.body if isinstance(inner, Function)):
                found.update(_filled(wrapper, outer.args.args[0].arg, positional))
    return frozenset(found)


def _filled(wrapper: Function, function: str, positional: list[str]) -> Iterator[str]:
    """Yield the parameters that a wrapper passes to a function besides its own `**kwargs`.

    Those that it computes from an argument of the call stay parameters of the tool.
    """
    rest, more = wrapper.args.kwarg, wrapper.args.vararg
    if rest is None:
        return
    own = {argument.arg for argument in (*wrapper.args.posonlyargs, *wrapper.args.args, *wrapper.args.kwonlyargs)}
    given = {*own, rest.arg, *([more.arg] if more else [])}
    keys = [node.value for node in ast.walk(wrapper) if isinstance(node, ast.Constant)]
    for node in ast.walk(wrapper):
        for parameter, value in _passed(node, function, rest.arg, positional):
            uses = {inner.id for inner in ast.walk(value) if isinstance(inner, ast.Name)}
            read = keys.count(parameter) > isinstance(node, ast.Assign)
            if parameter not in own and not read and uses.isdisjoint(given):
                yield parameter


def _passed(node: ast.AST, function: str, rest: str, positional: list[str]) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters with their values that a call of the function, or an assignment to `kwargs["…"]`, passes."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name == function and any(
            keyword.arg is None for keyword in keywords
        ):
            yield from ((keyword.arg, keyword.value) for keyword in keywords if keyword.arg)
            yield from zip(positional, takewhile(lambda value: not isinstance(value, ast.Starred), args), strict=False)
        case ast.Assign(
            targets=[ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key)))], value=value
        ) if name == rest:
            yield key, value
