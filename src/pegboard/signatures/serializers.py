"""Serializers of pydantic, which write other values than those of the annotated type."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from pegboard.sdk.scope import Scope, statements

if TYPE_CHECKING:
    from pegboard.sdk.scope import Lineage


class Written(NamedTuple):
    """Type that a serializer returns.

    Attributes:
        annotation: The type; None if it isn't declared.
        scope: Scope of its names.
    """

    annotation: ast.expr | None
    scope: Scope


def _names(*names: str) -> frozenset[str]:
    return frozenset(f"{module}.{name}" for module in ("pydantic", "pydantic.functional_serializers") for name in names)


_OF_FIELDS = _names("field_serializer")
_OF_MODELS = _names("model_serializer")
_ANNOTATED = _names("PlainSerializer", "WrapSerializer")


def of_model(lineage: Lineage) -> Written | None:
    """Return what the serializer of a model returns, or None if it has none."""
    found = None
    for scope, node in lineage.ours:
        for method, decorator in _decorated(node, scope, _OF_MODELS):
            found = _written(method, decorator, scope)
    return found


def of_fields(scope: Scope, node: ast.ClassDef, fields: Iterable[str]) -> Iterator[tuple[str, Written]]:
    """Yield the names of fields with serializers in the body of a class, and what these return.

    Args:
        scope: Scope of the class.
        node: The class.
        fields: Names of its fields and of inherited ones.
    """
    for method, decorator in _decorated(node, scope, _OF_FIELDS):
        if isinstance(decorator, ast.Call):
            names = {name.value for name in decorator.args if isinstance(name, ast.Constant)}
            written = _written(method, decorator, scope)
            yield from ((field, written) for field in fields if field in names or "*" in names)


def beside(nodes: Iterable[ast.expr | str], scope: Scope) -> Written | None:
    """Return what a serializer among the arguments of `Annotated` returns, or None if there is none."""
    calls = [node for node in nodes if isinstance(node, ast.Call) and scope.qualified(node.func) in _ANNOTATED]
    return Written(_option(calls[-1], "return_type"), scope) if calls else None


def _decorated(node: ast.ClassDef, scope: Scope, names: frozenset[str]) -> Iterator[tuple[ast.FunctionDef, ast.expr]]:
    for statement in statements(node.body):
        if isinstance(statement.node, ast.FunctionDef):
            for decorator in statement.node.decorator_list:
                if scope.qualified(decorator.func if isinstance(decorator, ast.Call) else decorator) in names:
                    yield statement.node, decorator


def _written(method: ast.FunctionDef, decorator: ast.expr, scope: Scope) -> Written:
    declared = _option(decorator, "return_type") or method.returns
    used = _option(decorator, "when_used")
    if declared is not None and isinstance(used, ast.Constant) and "unless-none" in str(used.value):
        declared = ast.BinOp(declared, ast.BitOr(), ast.Constant(None))
    return Written(declared, scope)


def _option(call: ast.expr, name: str) -> ast.expr | None:
    keywords = call.keywords if isinstance(call, ast.Call) else []
    return next((keyword.value for keyword in keywords if keyword.arg == name), None)
