"""What a pack needs and which secrets it names, read from its source without running it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pegboard.sdk.requirements import Requirement

Function = ast.FunctionDef | ast.AsyncFunctionDef

_FIELDS = {
    "requires_cli": ("name", "version_flag", "min_version", "install"),
    "requires_lib": ("name", "min_version", "install"),
    "requires_secret": ("name", "hint"),
}
"""The parameters of the decorators, in their order."""

_SECRET_ARGUMENT = {
    "requires_secret": (0, "name"),
    "get_secret": (0, "name"),
    "api_headers": (0, "secret_name"),
    "lazy_client": (1, "secret_name"),
}
"""Whose literal arguments name a secret: the position and the keyword."""


@dataclass(frozen=True)
class Unreadable:
    """Something that is known only to the running program, and therefore doesn't count."""

    line: int
    function: str | None
    """The function that it stands above, or inside; None for the module."""
    message: str
    fix: str


@dataclass(frozen=True)
class Reading:
    """What the source of a pack says."""

    pack: tuple[Requirement, ...] = ()
    """What holds for every tool."""
    functions: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)
    """What stands above each function that has any; `of` gives it together with the pack's."""
    secrets: Mapping[str, int] = field(default_factory=dict)
    """The secrets that the pack may read, each with the first line that names it."""
    extras: frozenset[str] = frozenset()
    """Those of them that nothing is lacking without."""
    unreadable: tuple[Unreadable, ...] = ()

    def of(self, function: str) -> tuple[Requirement, ...]:
        """Gives all that one tool needs, each thing once."""
        return tuple(dict.fromkeys((*self.pack, *self.functions.get(function, ()))))


def read_requirements(tree: ast.Module) -> Reading:
    """Reads what the tools of a pack need, and the secrets that it names.

    It looks at every node: a file without the word `pegboard` in it need not be read.

    Args:
        tree: The pack's source, parsed.
    """
    return _Reader(tree).reading()


def parsed(file: str) -> ast.Module | None:
    """Parses a file; None if it can't be read, or is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python has to say of a pack's strings is for its author
            return ast.parse(Path(file).read_bytes(), file)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Gives the statements that run when a module is imported, those inside `if`, `try` and `with` too."""
    for node in body:
        match node:
            case ast.If(body=first, orelse=other):
                yield from statements([*first, *other])
            case ast.Try(body=first, orelse=other) | ast.TryStar(body=first, orelse=other):
                handled = [statement for handler in node.handlers for statement in handler.body]
                yield from statements([*handled, *first, *other, *node.finalbody])
            case ast.With(body=first):
                yield from statements(first)
            case _:
                yield node


class _Unknown(Exception):  # noqa: N818 - it reads as a sentence where it is raised
    """The value is known only to the running program."""


class _WrongError(Exception):
    """The parameter of this name isn't a text."""


class _Reader:
    """One reading of one tree."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._body = list(statements(tree.body))
        self._imported = dict(_imports(tree))
        self._values = _values(self._body)
        self._unreadable: dict[tuple[int, str], Unreadable] = {}

    def reading(self) -> Reading:
        functions = {
            node.name: tuple(found)
            for node in self._body
            if isinstance(node, Function) and (found := list(self._above(node)))
        }
        pack = [
            requirement
            for node in self._body
            if isinstance(node, ast.Expr) and (requirement := self._requirement(node.value, None))
        ]
        secrets, extras = self._secrets()
        return Reading(tuple(pack), functions, secrets, extras, tuple(self._unreadable.values()))

    def _above(self, node: Function) -> Iterator[Requirement]:
        for decorator in node.decorator_list:
            bare = (self._dotted(decorator) or "").removeprefix("pegboard.sdk.").rpartition(".")[2]
            if bare in _FIELDS:
                self._report(
                    decorator, node.name, f"`@{bare}` has no arguments.", f'Name what is required: `@{bare}("...")`.'
                )
                continue
            said = self._values.get(decorator.id) if isinstance(decorator, ast.Name) else decorator
            requirement = self._requirement(said, node.name)
            if requirement:
                yield requirement

    def _requirement(self, node: ast.expr | None, function: str | None) -> Requirement | None:
        name = self._ours(node)
        if name not in _FIELDS or not isinstance(node, ast.Call):
            return None
        try:
            said = self._said(node, _FIELDS[name])
        except _WrongError as wrong:
            self._report(node, function, f"`@{name}({wrong}=…)` is not text.", f'Write `{wrong}="..."`.')
            return None
        except _Unknown:
            self._report(
                node, function, f"`@{name}` is known only to the running program.", "Write its arguments as literals."
            )
            return None
        thing = said.get("name")
        if not thing:
            self._report(node, function, f"`@{name}` names nothing.", "Name what is needed.")
            return None
        install = said.get("hint") if name == "requires_secret" else said.get("install")
        flag = said.get("version_flag")
        return Requirement(
            "cli" if name == "requires_cli" else "lib" if name == "requires_lib" else "secret",
            thing,
            version_flag="--version" if flag is None else flag,
            min_version=said.get("min_version"),
            install=install,
        )

    def _said(self, call: ast.Call, fields: Sequence[str]) -> dict[str, str | None]:
        if len(call.args) > len(fields):
            raise _Unknown
        nodes: dict[str | None, ast.expr] = dict(zip(fields, call.args, strict=False))
        nodes |= {keyword.arg: keyword.value for keyword in call.keywords}
        said: dict[str, str | None] = {}
        for name, node in nodes.items():
            if name not in fields:
                raise _Unknown
            said[str(name)] = self._field(str(name), node)
        return said

    def _field(self, name: str, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            node = self._values.get(node.id, node)
        if isinstance(node, ast.Constant) and type(node.value) is int and name == "min_version":
            return str(node.value)
        if isinstance(node, ast.Constant) and not isinstance(node.value, str | None):
            raise _WrongError(name)  # a float, say: version 1.10 is not 1.1
        return self._text(node)

    def _text(self, node: ast.expr) -> str | None:
        """Gives the text that an expression is, or that the name of a constant stands for."""
        if isinstance(node, ast.Name):
            node = self._values.get(node.id, node)
        if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, str)):
            return node.value
        raise _Unknown

    def _secrets(self) -> tuple[dict[str, int], frozenset[str]]:
        found: dict[str, int] = {}
        missed: set[str] = set()
        for call, function in _calls(self._tree):
            name = self._ours(call)
            if name not in _SECRET_ARGUMENT:
                continue
            position, keyword = _SECRET_ARGUMENT[name]
            given = [item.value for item in call.keywords if item.arg == keyword] or call.args[position : position + 1]
            try:
                secret = self._text(given[0]) if given else None
            except _Unknown:
                if name not in _FIELDS:  # that was told already, with all its arguments
                    self._report(
                        call,
                        function,
                        f"Which secret `{name}` reads here is known only to the running program, so it isn't granted.",
                        "Name it as a literal, or in `secrets` of the pack's configuration.",
                    )
                continue
            if secret:
                found[secret] = min(call.lineno, found.get(secret, call.lineno))
                missed.update(() if _is_extra(call) else (secret,))
        return found, frozenset(found.keys() - missed)

    def _ours(self, node: ast.expr | None) -> str | None:
        """Gives the name of the SDK's function that an expression calls."""
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


def _is_extra(call: ast.Call) -> bool:
    said = [item.value for item in call.keywords if item.arg == "extra"]
    return bool(said) and isinstance(said[0], ast.Constant) and said[0].value is True


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Gives the names under which a file has the SDK and what is in it; `*` where it took everything."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "pegboard":
            for name in node.names:
                yield name.asname or name.name, f"{node.module}.{name.name}"
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name.split(".")[0] == "pegboard":
                    yield (name.asname, name.name) if name.asname else ("pegboard", "pegboard")


def _values(body: Iterable[ast.stmt]) -> dict[str, ast.expr]:
    """Gives what the module's names stand for that are assigned exactly once."""
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
    """Gives every call in a file with the module-level function that it stands in or above."""
    waiting: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while waiting:
        node, function = waiting.pop()
        if isinstance(node, ast.Call):
            yield node, function
        if isinstance(node, Function) and function is None:
            function = node.name
        waiting += [(child, function) for child in ast.iter_child_nodes(node)]
