"""What can be known of a value without running the file: literals, constants, enum members, plain arithmetic."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pegboard.errors import PegboardError
from pegboard.sdk.scope import Scope, statements

if TYPE_CHECKING:
    from pydantic import JsonValue

_DEEPEST = 40
_MOST_NODES = 10_000
_MOST_MEMBERS = 2_000
_LONGEST = 65_536
_WIDEST_BITS = 1024

_ENUMS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag", "enum.ReprEnum"})

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

_EMPTY: dict[str, JsonValue] = {
    "builtins.list": [],
    "builtins.tuple": [],
    "builtins.set": [],
    "builtins.frozenset": [],
    "builtins.dict": {},
    "builtins.str": "",
    "builtins.int": 0,
    "builtins.float": 0.0,
    "builtins.bool": False,
}
"""What the constructors give without arguments."""

_TEXTS = frozenset(
    {
        "pathlib.Path",
        "pathlib.PurePath",
        "pathlib.PosixPath",
        "pathlib.PurePosixPath",
        "decimal.Decimal",
        "uuid.UUID",
        "builtins.str",
    }
)
"""Constructors whose one argument is also how their value is written in JSON."""


_COLLECTIONS = frozenset({"builtins.frozenset", "builtins.set", "builtins.tuple", "builtins.list"})


class UnreadableError(PegboardError):
    """The value is known only to the running program."""


def read(node: ast.AST, scope: Scope) -> JsonValue:
    """Gives the value of an expression as JSON has it (tuples and sets become lists).

    Args:
        node: The expression.
        scope: The names of the file it stands in.

    Raises:
        UnreadableError: It can't be known, JSON can't hold it, or it is very large.
    """
    if type(node) is ast.Constant and (node.value is None or node.value is True or node.value is False):
        return node.value
    return _Reader(scope).read(node)


class _Reader:
    """One reading of a value, with limits: constants that multiply one another could fill the memory."""

    __slots__ = ("depth", "left", "scope")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.depth = 0
        self.left = _MOST_NODES

    def read(self, node: ast.AST) -> JsonValue:
        """Gives the value of one expression."""
        read = _READERS.get(type(node))
        self.left -= 1
        if read is None or self.left < 0 or self.depth > _DEEPEST:
            raise UnreadableError
        self.depth += 1
        try:
            return read(node, self)
        finally:
            self.depth -= 1

    @contextmanager
    def inside(self, scope: Scope) -> Iterator[None]:
        """Reads what stands in another file, for a while."""
        outside, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = outside


def text(node: ast.AST | None, scope: Scope) -> str | None:
    """Gives the value of an expression if it is a known string, else None."""
    if node is None:
        return None
    try:
        value = read(node, scope)
    except UnreadableError:
        return None
    return value if isinstance(value, str) else None


def is_enum(node: ast.AST | None, scope: Scope) -> bool:
    """Tells whether a node is an enumeration that this file defines."""
    return isinstance(node, ast.ClassDef) and not _ENUMS.isdisjoint(scope.lineage(node).foreign)


def enum_members(node: ast.ClassDef, scope: Scope) -> dict[str, JsonValue]:
    """Gives the members of an enumeration of this file with their values.

    Raises:
        UnreadableError: A value can't be known.
    """
    return _members(node, _Reader(scope))


def _members(node: ast.ClassDef, reader: _Reader) -> dict[str, JsonValue]:
    members: dict[str, JsonValue] = {}
    foreign = reader.scope.lineage(node).foreign
    texts = "enum.StrEnum" in foreign
    flags = not foreign.isdisjoint({"enum.Flag", "enum.IntFlag"})
    for statement in statements(node.body):
        assign = statement.node
        if not isinstance(assign, ast.Assign):
            continue
        for target in assign.targets:
            if len(members) > _MOST_MEMBERS:
                raise UnreadableError
            if isinstance(target, ast.Name) and not target.id.startswith("_"):
                members[target.id] = _member(assign.value, reader, target.id, members, texts=texts, flags=flags)
    return members


def _member(
    node: ast.expr, reader: _Reader, name: str, before: dict[str, JsonValue], *, texts: bool, flags: bool
) -> JsonValue:
    if isinstance(node, ast.Call) and reader.scope.qualified(node.func) == "enum.auto":
        if texts:
            return name.lower()
        highest = max((value for value in before.values() if isinstance(value, int)), default=0)
        return (1 << highest.bit_length()) if flags else highest + 1
    if isinstance(node, ast.Name) and node.id in before:
        return before[node.id]
    return reader.read(node)


def _constant(node: ast.Constant, reader: _Reader) -> JsonValue:
    value = node.value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and value.bit_length() <= _WIDEST_BITS:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, str) and len(value) <= _LONGEST and _is_sound(value):
        reader.left -= len(value) // 16
        return value
    raise UnreadableError


def _is_sound(value: str) -> bool:
    """Tells whether a string can be written as UTF-8 (lone surrogates can't)."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _items(node: ast.List | ast.Tuple | ast.Set, reader: _Reader) -> JsonValue:
    return [reader.read(item) for item in node.elts]


def _mapping(node: ast.Dict, reader: _Reader) -> JsonValue:
    result: dict[str, JsonValue] = {}
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        key = None if key_node is None else reader.read(key_node)
        if not isinstance(key, str):
            raise UnreadableError
        result[key] = reader.read(value_node)
    return result


def _signed(node: ast.UnaryOp, reader: _Reader) -> JsonValue:
    value = reader.read(node.operand)
    if isinstance(node.op, ast.Not):
        return not value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(node.op, ast.USub):
            return -value
        if isinstance(node.op, ast.UAdd):
            return value
    raise UnreadableError


def _computed(node: ast.BinOp, reader: _Reader) -> JsonValue:
    left, right = reader.read(node.left), reader.read(node.right)
    if isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add):
        if len(left) + len(right) > _LONGEST:
            raise UnreadableError
        return left + right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return _reckoned(node.op, left, right)
    raise UnreadableError


def _reckoned(op: ast.operator, left: float, right: float) -> float:
    if isinstance(op, ast.Pow | ast.LShift):
        if not isinstance(left, int) or not isinstance(right, int) or not 0 <= right <= _WIDEST_BITS // 8:
            raise UnreadableError
        if isinstance(op, ast.Pow) and left.bit_length() * right > _WIDEST_BITS:
            raise UnreadableError
        result: float = left << right if isinstance(op, ast.LShift) else left**right
    else:
        compute = _OPERATORS.get(type(op))
        if compute is None:
            raise UnreadableError
        try:
            result = compute(left, right)
        except (ArithmeticError, ValueError) as error:
            raise UnreadableError from error
    if isinstance(result, int):
        if result.bit_length() > _WIDEST_BITS:
            raise UnreadableError
    elif not math.isfinite(result):
        raise UnreadableError
    return result


def _name(node: ast.Name, reader: _Reader) -> JsonValue:
    found = reader.scope.find(node)
    if found is None:
        raise UnreadableError
    with reader.inside(found.scope):
        return reader.read(found.definition)


def _attribute(node: ast.Attribute, reader: _Reader) -> JsonValue:
    """Reads `Color.RED`, also as `Color.RED.value` and `Color.RED.name`."""
    if node.attr in {"value", "name"} and isinstance(node.value, ast.Attribute):
        value = _of_enum(node.value, reader)
        if value is not None:
            return node.value.attr if node.attr == "name" else value[0]
    value = _of_enum(node, reader)
    if value is not None:
        return value[0]
    found = reader.scope.find(node)
    if found is None:
        raise UnreadableError
    with reader.inside(found.scope):
        return reader.read(found.definition)


def _of_enum(node: ast.Attribute, reader: _Reader) -> tuple[JsonValue] | None:
    """Gives the value of `Color.RED`, in a tuple; None if that is no enumeration."""
    owner = reader.scope.find(node.value)
    if owner is None or not isinstance(owner.definition, ast.ClassDef) or not is_enum(owner.definition, owner.scope):
        return None
    with reader.inside(owner.scope):
        members = _members(owner.definition, reader)
    if node.attr not in members:
        raise UnreadableError
    return (members[node.attr],)


def _call(node: ast.Call, reader: _Reader) -> JsonValue:
    name = reader.scope.qualified(node.func)
    if name is None or node.keywords:
        raise UnreadableError
    if not node.args:
        if name in {"pathlib.Path", "pathlib.PurePath"}:
            return "."
        if name not in _EMPTY:
            raise UnreadableError
        empty = _EMPTY[name]
        return empty.copy() if isinstance(empty, list | dict) else empty
    value = reader.read(node.args[0])
    if len(node.args) > 1:
        raise UnreadableError
    if (name in _TEXTS and isinstance(value, str)) or (name in _COLLECTIONS and isinstance(value, list)):
        return value
    raise UnreadableError


_READERS: dict[type[ast.AST], Callable[..., JsonValue]] = {
    ast.Constant: _constant,
    ast.List: _items,
    ast.Tuple: _items,
    ast.Set: _items,
    ast.Dict: _mapping,
    ast.UnaryOp: _signed,
    ast.BinOp: _computed,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
}
