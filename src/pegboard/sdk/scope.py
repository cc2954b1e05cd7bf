"""Static resolution of the names in a file: imports, classes, functions, assignments."""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

Binding = str | ast.AST
"""Meaning of a name: the dotted name of an import, or the defining node (a class, the value of `x = value`)."""

_UNKNOWN = ast.Pass()
"""Binding of a name by other means, such as `for x in values`."""

Modules = Callable[[str], "Scope | None"]
"""Function that returns the scope of a module of the same project by its name (`.models`, `app.models`), or None."""

_MOST_STEPS = 10
"""Maximum number of modules that re-export a name."""

_BUILTINS = frozenset(dir(builtins))


class Statement(NamedTuple):
    """A statement that runs (or may run) when its file is imported."""

    node: ast.stmt
    branched: bool
    """Whether it is inside an `if` or `try`, so that another branch may define the same name."""
    typing_only: bool
    """Whether only type checkers see it."""


def statements(body: Sequence[ast.stmt], *, branched: bool = False, typing_only: bool = False) -> Iterator[Statement]:
    """Yield the statements of a module or class, including those in blocks such as `if`; the likelier branch last.

    `with`, `for`, `while` and `match` come before the statements in their blocks.

    Args:
        body: Statements of the block.
        branched: Whether the block is itself a branch.
        typing_only: Whether only type checkers see the block.
    """
    for node in body:
        if isinstance(node, ast.If):
            yield from _branches(node, branched=branched, typing_only=typing_only)
        elif isinstance(node, ast.Try | ast.TryStar):
            for handler in node.handlers:
                yield from statements(handler.body, branched=True, typing_only=typing_only)
            yield from statements(node.body, branched=True, typing_only=typing_only)
            yield from statements(node.orelse, branched=True, typing_only=typing_only)
            yield from statements(node.finalbody, branched=branched, typing_only=typing_only)
        elif isinstance(node, ast.With):
            yield Statement(node, branched, typing_only)
            # `with suppress(ImportError)` may skip the rest of its body
            yield from statements(node.body, branched=True, typing_only=typing_only)
        elif isinstance(node, ast.For | ast.While):
            yield Statement(node, branched=True, typing_only=typing_only)
            yield from statements([*node.orelse, *node.body], branched=True, typing_only=typing_only)
        elif isinstance(node, ast.Match):
            yield Statement(node, branched=True, typing_only=typing_only)
            for case in reversed(node.cases):
                yield from statements(case.body, branched=True, typing_only=typing_only)
        else:
            yield Statement(node, branched, typing_only)


def _branches(node: ast.If, *, branched: bool, typing_only: bool) -> Iterator[Statement]:
    if _ends_with(node.test, "TYPE_CHECKING"):
        yield from statements(node.body, branched=True, typing_only=True)
        yield from statements(node.orelse, branched=branched, typing_only=typing_only)
        return
    truth = _static_truth(node.test)
    branched = branched or truth is None
    if truth is not True:
        yield from statements(node.orelse, branched=branched, typing_only=typing_only)
    if truth is not False:
        yield from statements(node.body, branched=branched, typing_only=typing_only)


class Lineage(NamedTuple):
    """Ancestors of a class.

    Attributes:
        ours: The class and its ancestors from the same file and project, base classes first, each with its scope.
        foreign: Dotted names of all other base classes.
    """

    ours: tuple[tuple[Scope, ast.ClassDef], ...]
    foreign: frozenset[str]


class Scope:
    """Names of one file.

    Args:
        tree: Syntax tree of the file.
        file: Path of the file; empty if unknown.
        modules: Function that finds modules of the same project.

    Attributes:
        names: Binding of each name at the end of the file; the likeliest, if branches bind it differently.
        typing_only: Names that only type checkers see.
        stars: Modules of all `from module import *`.
        type_parameters: Names in the brackets of `def f[T]`, `class C[T]` and `type X[T]`.
        body: Statements of the file, flattened.
        mentions: Whether a definition uses a function of `pegboard.sdk`, as far as `sdk.decorators` has looked.
    """

    def __init__(self, tree: ast.Module, file: str = "", modules: Modules | None = None) -> None:
        self.file = file
        self.names: dict[str, Binding] = {}
        self.typing_only: set[str] = set()
        self._variants: dict[str, list[Binding]] = {}
        self._statement: Statement
        self.stars: list[str] = []
        self.type_parameters: set[str] = set()
        self.body = list(statements(tree.body))
        self._modules = modules
        self._lineages: dict[ast.ClassDef, Lineage] = {}
        self.mentions: dict[tuple[Binding, str], bool] = {}
        for statement in self.body:
            bind = _BINDERS.get(type(statement.node))
            if bind:
                self._statement = statement
                bind(self, statement.node)
            for parameter in getattr(statement.node, "type_params", ()):  # since Python 3.12
                self.type_parameters.add(parameter.name)

    def bind(self, name: str, binding: Binding) -> None:
        """Bind a name in the current statement; in a branch, keep what the other branches may bind it to."""
        _, branched, typing_only = self._statement
        if not branched:
            self._variants.pop(name, None)
        elif not typing_only:
            earlier = [self.names[name]] if name in self.names else []
            self._variants.setdefault(name, earlier).append(binding)
        self.names[name] = binding
        if typing_only:
            self.typing_only.add(name)
        else:
            self.typing_only.discard(name)

    def unbind(self, name: str) -> None:
        """Forget a name."""
        self.names.pop(name, None)
        self._variants.pop(name, None)

    def variants(self, name: str) -> Sequence[Binding]:
        """Return all bindings of a name, one of which applies, depending on conditions that can't be evaluated."""
        return self._variants.get(name) or [self.names[name]]

    def qualified(self, node: ast.AST) -> str | None:
        """Return the dotted name that a name or attribute refers to (`t.Optional` → `typing.Optional`).

        A builtin is `builtins.NAME`. Definitions of the file itself, and other expressions, return None.
        """
        if isinstance(node, ast.Attribute):
            base = self.qualified(node.value)
            return f"{base}.{node.attr}" if base else None
        if not isinstance(node, ast.Name):
            return None
        binding = self.names.get(node.id)
        if isinstance(binding, str):
            return binding
        if binding is not None:
            return None
        if node.id in _BUILTINS:
            return f"builtins.{node.id}"
        return f"{self.stars[-1]}.{node.id}" if self.stars else None

    def definition(self, node: ast.AST) -> ast.AST | None:
        """Return the node that defines a name in this file, or None."""
        if not isinstance(node, ast.Name):
            return None
        binding = self.names.get(node.id)
        return binding if isinstance(binding, ast.AST) and binding is not _UNKNOWN else None

    def find(self, node: ast.AST) -> NameDefinition | None:
        """Return the definition of a name in this file or in the module of its project that defines it, or None."""
        scope, last = self._follow(node)
        definition = scope.definition(last)
        if definition is not None and isinstance(last, ast.Name):
            return NameDefinition(scope, last.id, definition)
        return _find_inner(last, scope)

    def origin(self, node: ast.AST) -> str | None:
        """Return the same as `qualified`, but for a name that modules of the project re-export, its origin."""
        scope, last = self._follow(node)
        return scope.qualified(last)

    def _follow(self, node: ast.AST) -> tuple[Scope, ast.AST]:
        """Return the scope in which a name is defined, or imported from outside of the project, and its name there."""
        scope = self
        for _ in range(_MOST_STEPS):
            if scope.definition(node) is not None:
                break
            module, name = _split(scope.qualified(node) or "")
            found = scope._modules(module) if scope._modules and module else None
            if found is None:
                break
            scope, node = found, ast.Name(name)
        return scope, node

    def lineage(self, node: ast.ClassDef) -> Lineage:
        """Return the ancestors of a class of this file."""
        known = self._lineages.get(node)
        if known:
            return known
        ours: dict[ast.ClassDef, Scope] = {}
        foreign: set[str] = set()
        waiting = [(self, node)]
        while waiting:
            scope, current = waiting.pop()
            if current in ours:
                continue
            ours[current] = scope
            for base in current.bases:
                bare = base.value if isinstance(base, ast.Subscript) else base
                found = scope.find(bare)
                if found and isinstance(found.definition, ast.ClassDef):
                    waiting.append((found.scope, found.definition))
                else:
                    foreign.add(scope.qualified(bare) or "")
        lineage = Lineage(tuple((scope, ancestor) for ancestor, scope in reversed(ours.items())), frozenset(foreign))
        self._lineages[node] = lineage
        return lineage


class NameDefinition(NamedTuple):
    """Definition of a name.

    Attributes:
        scope: Scope of the file that contains the definition.
        name: Name in that file.
        definition: Class, or value of `x = value`.
    """

    scope: Scope
    name: str
    definition: ast.AST

    def variants(self) -> Sequence[Binding]:
        """Return all bindings of the name, one of which applies, depending on conditions that can't be evaluated."""
        return self.scope.variants(self.name) if self.name in self.scope.names else (self.definition,)

    def inner(self, name: str) -> NameDefinition | None:
        """Return the definition of a class inside this class, or None."""
        body = self.definition.body if isinstance(self.definition, ast.ClassDef) else ()
        found = next((node for node in body if isinstance(node, ast.ClassDef) and node.name == name), None)
        return None if found is None else NameDefinition(self.scope, f"{self.name}.{name}", found)


def _find_inner(node: ast.AST, scope: Scope) -> NameDefinition | None:
    """Return the definition of a class inside a class (`Tank.Shrimp`), or None."""
    if not isinstance(node, ast.Attribute):
        return None
    outer = scope.find(node.value)
    return None if outer is None else outer.inner(node.attr)


def _split(qualified: str) -> tuple[str, str]:
    """Return the module of a qualified name, with its leading dots, and the name in the module."""
    path = qualified.lstrip(".")
    module, _, name = path.rpartition(".")
    return qualified[: len(qualified) - len(path)] + module, name


def _import(scope: Scope, node: ast.Import) -> None:
    for name in node.names:
        if name.asname:
            scope.bind(name.asname, name.name)
        else:
            top = name.name.partition(".")[0]
            scope.bind(top, top)


def _import_from(scope: Scope, node: ast.ImportFrom) -> None:
    module = "." * node.level + (node.module or "")
    for name in node.names:
        if name.name == "*":
            scope.stars.append(module)
        else:
            scope.bind(name.asname or name.name, f"{module}.{name.name}" if node.module else f"{module}{name.name}")


def _define(scope: Scope, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    scope.bind(node.name, node)


def _assign(scope: Scope, node: ast.Assign) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            if isinstance(node.value, ast.Name) and node.value.id == target.id:
                continue
            scope.bind(target.id, node.value)
        else:
            _bind_parts(scope, target)


def _bind_parts(scope: Scope, *targets: ast.AST | None) -> None:
    """Bind the names in targets such as `a, *b`, or in patterns."""
    for part in (part for target in targets if target for part in ast.walk(target)):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            scope.bind(part.id, _UNKNOWN)
        elif isinstance(part, ast.MatchAs | ast.MatchStar) and part.name:
            scope.bind(part.name, _UNKNOWN)
        elif isinstance(part, ast.MatchMapping) and part.rest:
            scope.bind(part.rest, _UNKNOWN)


def _loop(scope: Scope, node: ast.For) -> None:
    _bind_parts(scope, node.target)


def _with(scope: Scope, node: ast.With) -> None:
    _bind_parts(scope, *(item.optional_vars for item in node.items))


def _match(scope: Scope, node: ast.Match) -> None:
    _bind_parts(scope, *(case.pattern for case in node.cases))


def _annotated_assign(scope: Scope, node: ast.AnnAssign) -> None:
    if isinstance(node.target, ast.Name) and node.value is not None:
        scope.bind(node.target.id, node.value)


def _delete(scope: Scope, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            scope.unbind(target.id)


def _type_alias(scope: Scope, node: ast.AST) -> None:
    name = getattr(node, "name", None)  # `ast.TypeAlias` exists from Python 3.12 on
    value = getattr(node, "value", None)
    if isinstance(name, ast.Name) and isinstance(value, ast.AST):
        scope.bind(name.id, value)


_BINDERS: dict[type[ast.stmt], Callable[..., None]] = {
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.ClassDef: _define,
    ast.FunctionDef: _define,
    ast.AsyncFunctionDef: _define,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated_assign,
    ast.Delete: _delete,
    ast.For: _loop,
    ast.With: _with,
    ast.Match: _match,
}
if hasattr(ast, "TypeAlias"):
    _BINDERS[ast.TypeAlias] = _type_alias


_SYSTEM = {"sys.platform": sys.platform, "os.name": os.name}
"""Values that identify the operating system."""


def _static_truth(test: ast.expr) -> bool | None:
    """Return the value of a condition, or None if it can't be evaluated without running the file.

    The condition may compare `sys.platform`, `os.name`, the Python version or `__name__`.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        truth = _static_truth(test.operand)
        # the body of `if not TYPE_CHECKING` runs, its `else` doesn't
        if _ends_with(test.operand, "TYPE_CHECKING"):
            return True
        return None if truth is None else not truth
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.BoolOp):
        decisive = isinstance(test.op, ast.Or)
        truths = {_static_truth(value) for value in test.values}
        return decisive if decisive in truths else None if None in truths else not decisive
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compare(test.left, test.ops[0], test.comparators[0])
    return _starts_with(test)


def _compare(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> bool | None:
    if isinstance(left, ast.Name) and left.id == "__name__" and isinstance(right, ast.Constant):
        return (right.value == "__main__") is isinstance(operator, ast.NotEq)
    name, value = ast.unparse(left), _literal(right)
    if name in _SYSTEM:
        return _compare_system(_SYSTEM[name], operator, value)
    if name in {"sys.version_info", "version_info"}:
        return _compare_version(operator, value)
    return None


def _compare_version(operator: ast.cmpop, version: object) -> bool | None:
    if not isinstance(version, tuple) or not all(isinstance(part, int) for part in version):
        return None
    here = sys.version_info[: len(version)] if len(version) < 3 else sys.version_info[:3]
    match operator:
        case ast.GtE():
            return sys.version_info[:3] >= version
        case ast.Lt():
            return sys.version_info[:3] < version
        case ast.Eq():
            return here == version
        case _:
            return None


def _compare_system(system: str, operator: ast.cmpop, value: object) -> bool | None:
    if isinstance(operator, ast.Eq | ast.NotEq) and isinstance(value, str):
        return (system == value) is isinstance(operator, ast.Eq)
    if isinstance(operator, ast.In | ast.NotIn) and isinstance(value, str | tuple | list | set):
        return (system in value) is isinstance(operator, ast.In)
    return None


def _starts_with(test: ast.expr) -> bool | None:
    """Return the value of `sys.platform.startswith(...)`, or None for other expressions."""
    match test:
        case ast.Call(func=ast.Attribute(value=ast.Attribute() as of, attr="startswith"), args=[prefix], keywords=[]):
            system, value = _SYSTEM.get(ast.unparse(of)), _literal(prefix)
            prefixes = value if isinstance(value, tuple) else (value,)
            if system is not None and all(isinstance(item, str) for item in prefixes):
                return system.startswith(prefixes)
    return None


def _literal(node: ast.expr) -> object:
    """Return the value of a literal, or None."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _ends_with(node: ast.AST, name: str) -> bool:
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)
