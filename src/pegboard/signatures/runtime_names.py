"""Annotations that a worker can't evaluate, because they need names that exist only for type checkers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pegboard.signatures.expressions import PARSED_AS
from pegboard.signatures.generics import GENERIC
from pegboard.signatures.names import BARE, SIMPLE, canonical

if TYPE_CHECKING:
    from pegboard.sdk.scope import Scope

_NATIVE = frozenset(
    {name for name, schema in SIMPLE.items() if not schema.keys() & {"format", "anyOf"}}
    - {"fractions.Fraction", "builtins.complex", "pydantic.NaiveDatetime", "pydantic.Json"}
    - {"numpy.ndarray", "numpy.typing.NDArray"}
    - {"pandas.DataFrame", "pandas.Series", "polars.DataFrame", "polars.Series"}
    | {"builtins.list", "builtins.dict", "typing.Optional", "typing.Union"}
    | {"typing." + name for name in ("List", "Sequence", "MutableSequence", "Iterable", "Collection", "Container")}
    | {"typing." + name for name in ("Dict", "Mapping", "MutableMapping", "Reversible")}
)
"""Types whose values are as they come from JSON."""

_TYPED_DICTS = frozenset({"typing.TypedDict", "typing_extensions.TypedDict"})
_DEEPEST = 50


def unconverted(annotation: ast.expr | None, scope: Scope) -> str | None:
    """Return the name that prevents the conversion of a parameter's values, or None if they need no conversion.

    Args:
        annotation: Annotation of the parameter.
        scope: Scope of its file.
    """
    if annotation is None or not scope.typing_only:
        return None
    missing = next((name for name in _names(annotation) if name in scope.typing_only), None)
    return missing if missing and not _is_native(annotation, scope, _DEEPEST) else None


def _names(node: ast.AST) -> list[str]:
    names: list[str] = []
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            names.append(inner.id)
        elif isinstance(inner, ast.Constant) and (parsed := _unquoted(inner)) is not None:
            names += _names(parsed)
    return names


def _unquoted(node: ast.Constant) -> ast.expr | None:
    if not isinstance(node.value, str):
        return None
    try:
        parsed = ast.parse(node.value.strip(), PARSED_AS, "eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return None if isinstance(parsed, ast.Constant) else parsed


def _is_native(node: ast.expr, scope: Scope, depth: int) -> bool:
    """Return whether JSON values of a type need no conversion. Unknown types, which are reported elsewhere, count."""
    if depth == 0:
        return False
    match node:
        case ast.Constant():
            inner = _unquoted(node)
            return inner is None or _is_native(inner, scope, depth - 1)
        case ast.BinOp(left=left, right=right):
            return _is_native(left, scope, depth - 1) and _is_native(right, scope, depth - 1)
        case ast.Subscript(value=value, slice=arguments):
            return _is_native_generic(value, arguments, scope, depth - 1)
        case ast.Name() | ast.Attribute():
            return _is_native_name(node, scope, depth - 1)
        case _:
            return True


def _is_native_generic(value: ast.expr, arguments: ast.expr, scope: Scope, depth: int) -> bool:
    name = canonical(scope.qualified(value))
    if name == "typing.Literal":
        return True
    parts = arguments.elts if isinstance(arguments, ast.Tuple) else [arguments]
    if name == "typing.Annotated":
        return _is_native(parts[0], scope, depth)
    return _is_native(value, scope, depth) and all(_is_native(part, scope, depth) for part in parts)


def _is_native_name(node: ast.expr, scope: Scope, depth: int) -> bool:
    found = scope.find(node)
    if found is None:
        name = canonical(scope.qualified(node)) or ""
        return name in _NATIVE or not (name in SIMPLE or name in BARE or name in GENERIC)
    if isinstance(found.definition, ast.ClassDef):
        return not found.scope.lineage(found.definition).foreign.isdisjoint(_TYPED_DICTS)
    return isinstance(found.definition, ast.expr) and _is_native(found.definition, found.scope, depth)
