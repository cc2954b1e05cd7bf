"""Static reading of the requirements and secrets that a pack's source declares."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pegboard.sdk.requirements import DeclaredRequirement

Function = ast.FunctionDef | ast.AsyncFunctionDef

_FIELDS = {
    "requires_cli": ("name", "version_flag", "min_version", "install"),
    "requires_lib": ("name", "min_version", "install"),
    "requires_secret": ("name", "hint"),
}
"""Decorator → its parameters, in order."""

_SECRET_ARGUMENT = {
    "requires_secret": (0, "name"),
    "get_secret": (0, "name"),
    "api_headers": (0, "secret_name"),
    "lazy_client": (1, "secret_name"),
}
"""Function → the position and name of the argument that is the name of a secret."""


@dataclass(frozen=True)
class Unreadable:
    """Declaration that is ignored because its arguments are not literals."""

    line: int
    function: str | None
    """Function that it decorates or is inside of; None at the top level."""
    message: str
    fix: str


@dataclass(frozen=True)
class DeclaredRequirements:
    """Requirements and secrets declared in the source of a pack."""

    pack: tuple[DeclaredRequirement, ...] = ()
    """Requirements of every tool."""
    functions: Mapping[str, tuple[DeclaredRequirement, ...]] = field(default_factory=dict)
    """Function → requirements declared on it, without those of the pack."""
    secrets: Mapping[str, int] = field(default_factory=dict)
    """Secret granted to the pack → first line that names it."""
    extras: frozenset[str] = frozenset()
    """Secrets that the tools work completely without."""
    unreadable: tuple[Unreadable, ...] = ()

    def of(self, function: str) -> tuple[DeclaredRequirement, ...]:
        """Return the requirements of one tool, including those of the pack, without duplicates."""
        return tuple(dict.fromkeys((*self.pack, *self.functions.get(function, ()))))


def read_requirements(tree: ast.Module) -> DeclaredRequirements:
    """Return the requirements and secrets that a pack declares.

    This visits every node. Skip files that don't contain the word `pegboard`.

    Args:
        tree: Syntax tree of the pack.
    """
    return _SourceReader(tree).reading()


def parse_file(file: str) -> ast.Module | None:
    """Parse a file; return None if it can't be read or is not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about a pack's strings concern only its author
            return ast.parse(Path(file).read_bytes(), file)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is imported, including those in blocks such as `if`."""
    for node in body:
        match node:
            case (
                ast.If(body=first, orelse=other)
                | ast.For(body=first, orelse=other)
                | ast.While(body=first, orelse=other)
            ):
                yield from statements([*first, *other])
            case ast.Try(body=first, orelse=other) | ast.TryStar(body=first, orelse=other):
                handled = [statement for handler in node.handlers for statement in handler.body]
                yield from statements([*handled, *first, *other, *node.finalbody])
            case ast.With(body=first):
                yield from statements(first)
            case ast.Match(cases=cases):
                yield from statements([statement for case in cases for statement in case.body])
            case _:
                yield node


class _DynamicError(Exception):
    """The value can't be determined without running the file."""


class _NotTextError(Exception):
    """The argument with this name is not text."""


class _SourceReader:
    """Reader of one syntax tree."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._body = list(statements(tree.body))
        self._imported = dict(_imports(tree))
        self._values = _values(self._body)
        self._unreadable: dict[tuple[int, str], Unreadable] = {}

    def reading(self) -> DeclaredRequirements:
        functions = {
            node.name: tuple(found)
            for node in self._body
            if isinstance(node, Function) and (found := list(self._declared_on(node)))
        }
        pack = [
            requirement
            for node in self._body
            if isinstance(node, ast.Expr) and (requirement := self._requirement(node.value, None))
        ]
        secrets, extras = self._secrets()
        return DeclaredRequirements(tuple(pack), functions, secrets, extras, tuple(self._unreadable.values()))

    def _declared_on(self, node: Function) -> Iterator[DeclaredRequirement]:
        for decorator in node.decorator_list:
            bare = (self._dotted(decorator) or "").removeprefix("pegboard.sdk.").rpartition(".")[2]
            if bare in _FIELDS:
                self._report(
                    decorator, node.name, f"`@{bare}` has no arguments.", f'Name the requirement: `@{bare}("...")`.'
                )
                continue
            value = self._values.get(decorator.id) if isinstance(decorator, ast.Name) else decorator
            requirement = self._requirement(value, node.name)
            if requirement:
                yield requirement

    def _requirement(self, node: ast.expr | None, function: str | None) -> DeclaredRequirement | None:
        decorator = self._sdk_function(node)
        if decorator not in _FIELDS or not isinstance(node, ast.Call):
            return None
        try:
            arguments = self._arguments(node, _FIELDS[decorator])
        except _NotTextError as wrong:
            self._report(node, function, f"`@{decorator}({wrong}=…)` is not text.", f'Write `{wrong}="..."`.')
            return None
        except _DynamicError:
            self._report(
                node,
                function,
                f"`@{decorator}` can't be read without running the file.",
                "Write its arguments as literals.",
            )
            return None
        name = arguments.get("name")
        if not name:
            self._report(
                node, function, f"`@{decorator}` has no name.", f'Name the requirement: `@{decorator}("...")`.'
            )
            return None
        least = arguments.get("min_version")
        if mistake := _mistake(name if decorator == "requires_lib" else "", least):
            self._report(node, function, *mistake)
            return None
        install = arguments.get("hint") if decorator == "requires_secret" else arguments.get("install")
        flag = arguments.get("version_flag")
        return DeclaredRequirement(
            "cli" if decorator == "requires_cli" else "lib" if decorator == "requires_lib" else "secret",
            name,
            version_flag="--version" if flag is None else flag,
            min_version=least,
            install=install,
        )

    def _arguments(self, call: ast.Call, fields: Sequence[str]) -> dict[str, str | None]:
        if len(call.args) > len(fields):
            raise _DynamicError
        nodes: dict[str | None, ast.expr] = dict(zip(fields, call.args, strict=False))
        nodes |= {keyword.arg: keyword.value for keyword in call.keywords}
        arguments: dict[str, str | None] = {}
        for name, node in nodes.items():
            if name not in fields:
                raise _DynamicError
            arguments[str(name)] = self._field(str(name), node)
        return arguments

    def _field(self, name: str, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            node = self._values.get(node.id, node)
        if isinstance(node, ast.Constant) and type(node.value) is int and name == "min_version":
            return str(node.value)
        if isinstance(node, ast.Constant) and not isinstance(node.value, str | None):
            raise _NotTextError(name)  # such as a float: version 1.10 is not 1.1
        return self._text(node)

    def _text(self, node: ast.expr) -> str | None:
        """Return the text of a literal, or of the constant that a name refers to."""
        if isinstance(node, ast.Name):
            node = self._values.get(node.id, node)
        if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, str)):
            return node.value
        raise _DynamicError

    def _secrets(self) -> tuple[dict[str, int], frozenset[str]]:
        found: dict[str, int] = {}
        required: set[str] = set()
        for call, function in _calls(self._tree):
            name = self._sdk_function(call)
            if name not in _SECRET_ARGUMENT:
                continue
            position, keyword = _SECRET_ARGUMENT[name]
            given = [item.value for item in call.keywords if item.arg == keyword] or call.args[position : position + 1]
            try:
                secret = self._text(given[0]) if given else None
            except _DynamicError:
                if name not in _FIELDS:  # decorators are reported with all their arguments
                    self._report(
                        call,
                        function,
                        f"The secret of `{name}` is not granted, because its name can't be read without running the "
                        "file.",
                        "Write the name as a literal, or add it to `secrets` in the pack's configuration.",
                    )
                continue
            if secret:
                found[secret] = min(call.lineno, found.get(secret, call.lineno))
                required.update(() if _is_extra(call) else (secret,))
        return found, frozenset(found.keys() - required)

    def _sdk_function(self, node: ast.expr | None) -> str | None:
        """Return the name of the SDK function that an expression calls, or None."""
        if not isinstance(node, ast.Call):
            return None
        dotted = self._dotted(node.func)
        return dotted.rpartition(".")[2] if dotted and dotted.startswith("pegboard.sdk.") else None

    def _dotted(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Attribute):
            base = self._dotted(node.value)
            return f"{base}.{node.attr}" if base else None
        if not isinstance(node, ast.Name):
            return None
        if node.id in self._imported:
            return self._imported[node.id]
        return f"pegboard.sdk.{node.id}" if "*" in self._imported and node.id not in self._values else None

    def _report(self, node: ast.expr, function: str | None, message: str, fix: str) -> None:
        self._unreadable.setdefault((node.lineno, message), Unreadable(node.lineno, function, message, fix))


def _mistake(library: str, min_version: str | None) -> tuple[str, str] | None:
    """Return a problem and its fix if a requirement is written as for pip, such as `httpx>=0.28`; None otherwise."""
    bare = re.match(r"[\w.-]*", library)
    if bare and bare[0] != library:
        version = re.search(r"[>=~]\s*(\d[\w.]*)", library)
        example = f'"{bare[0]}", min_version="{version[1]}"' if version else f'"{bare[0]}"'
        return f"`{library}` is not the name of a library.", f"Write `requires_lib({example})`."
    if min_version is not None and not re.match(r"\s*v?\d", min_version):
        version = re.search(r"\d[\w.]*", min_version)
        return (
            f'`min_version="{min_version}"` is not a version.',
            f'Write only the lowest version, such as `min_version="{version[0] if version else 1}"`.',
        )
    return None


def _is_extra(call: ast.Call) -> bool:
    values = [item.value for item in call.keywords if item.arg == "extra"]
    return bool(values) and isinstance(values[0], ast.Constant) and values[0].value is True


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names under which a file imports the SDK and its functions; `*` for a star import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "pegboard":
            for name in node.names:
                yield name.asname or name.name, f"{node.module}.{name.name}"
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name.split(".")[0] == "pegboard":
                    yield (name.asname, name.name) if name.asname else ("pegboard", "pegboard")


def _values(body: Iterable[ast.stmt]) -> dict[str, ast.expr]:
    """Return the values of the module's names that are assigned exactly once."""
    found: dict[str, ast.expr] = {}
    again: set[str] = set()
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        for target in targets:
            if isinstance(target, ast.Name):
                again.update({target.id} & found.keys())
                if isinstance(value, ast.expr):
                    found[target.id] = value
    return {name: value for name, value in found.items() if name not in again}


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str | None]]:
    """Yield every call in a file with the top-level function that it is inside of or decorates, or None."""
    waiting: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while waiting:
        node, function = waiting.pop()
        if isinstance(node, ast.Call):
            yield node, function
        if isinstance(node, Function) and function is None:
            function = node.name
        waiting += [(child, function) for child in ast.iter_child_nodes(node)]
