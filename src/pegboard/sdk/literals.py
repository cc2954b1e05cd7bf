"""Static evaluation of expressions: literals, constants, enumeration members, plain arithmetic."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pegboard.sdk.scope import Binding, Scope, statements

if TYPE_CHECKING:
    from pydantic import JsonValue

_DEEPEST = 40
_MOST_NODES = 10_000
_MOST_MEMBERS = 2_000
_LONGEST = 65_536
_WIDEST_BITS = 1024

_FLAGS = frozenset({"enum.Flag", "enum.IntFlag"})
MIXED_IN: dict[str, Callable[..., JsonValue]] = {
    "builtins.str": str,
    "builtins.int": int,
    "builtins.float": float,
    "enum.StrEnum": str,
    "enum.IntEnum": int,
    "enum.IntFlag": int,
}
"""Types of members: the value of `class Color(str, Enum): RED = 1` is "1"."""

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
"""Values of constructors without arguments."""

_TEXTS = frozenset(
    {
        "pathlib.Path",
        "pathlib.PurePath",
        "pathlib.PosixPath",
        "pathlib.PurePosixPath",
        "decimal.Decimal",
        "uuid.UUID",
        "zoneinfo.ZoneInfo",
        "builtins.str",
    }
)
"""Constructors whose only argument is also the JSON form of their value."""

_COLLECTIONS = frozenset({"builtins.frozenset", "builtins.set", "builtins.tuple", "builtins.list"})


class NotLiteralError(Exception):
    """The value can't be determined without running the file."""


def read(node: ast.AST, scope: Scope) -> JsonValue:
    """Return the value of an expression as JSON; tuples and sets become lists.

    Args:
        node: Expression.
        scope: Scope of its file.

    Raises:
        NotLiteralError: The value is dynamic, has no JSON form, or is too large.
    """
    if type(node) is ast.Constant and (node.value is None or node.value is True or node.value is False):
        return node.value
    return _LiteralReader(scope).read(node)


class _LiteralReader:
    """State of one evaluation, with limits: nested constants could otherwise exhaust memory."""

    __slots__ = ("depth", "left", "scope")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.depth = 0
        self.left = _MOST_NODES

    def read(self, node: ast.AST) -> JsonValue:
        """Return the value of one expression."""
        read = _READERS.get(type(node))
        self.left -= 1
        if read is None or self.left < 0 or self.depth > _DEEPEST:
            raise NotLiteralError
        self.depth += 1
        try:
            return read(node, self)
        finally:
            self.depth -= 1

    @contextmanager
    def inside(self, scope: Scope) -> Iterator[None]:
        """Resolve names in the scope of another file, inside the `with` block."""
        outside, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = outside


def text(node: ast.AST | None, scope: Scope) -> str | None:
    """Return the value of an expression if it is a static string, or None."""
    if node is None:
        return None
    try:
        value = read(node, scope)
    except NotLiteralError:
        return None
    return value if isinstance(value, str) else None


def is_enum(node: ast.AST | None, scope: Scope) -> bool:
    """Return whether a node defines an enumeration."""
    return isinstance(node, ast.ClassDef) and not _ENUMS.isdisjoint(scope.lineage(node).foreign)


def is_flag(node: ast.ClassDef, scope: Scope) -> bool:
    """Return whether an enumeration consists of flags, whose members can be combined."""
    return not _FLAGS.isdisjoint(scope.lineage(node).foreign)


def is_plain_member(node: ast.AST, scope: Scope) -> bool:
    """Return whether an expression such as `Color.RED` is an enumeration's member that doesn't equal its value."""
    owner = scope.find(node.value) if isinstance(node, ast.Attribute) else None
    if owner is None or not isinstance(owner.definition, ast.ClassDef) or not is_enum(owner.definition, owner.scope):
        return False
    return owner.scope.lineage(owner.definition).foreign.isdisjoint(MIXED_IN)


def enum_members(node: ast.ClassDef, scope: Scope) -> dict[str, JsonValue]:
    """Return the members of an enumeration with their values.

    Raises:
        NotLiteralError: A value is dynamic.
    """
    return _members(node, _LiteralReader(scope))


def _members(node: ast.ClassDef, reader: _LiteralReader) -> dict[str, JsonValue]:
    members: dict[str, JsonValue] = {}
    lineage = reader.scope.lineage(node)
    texts = "enum.StrEnum" in lineage.foreign
    flags = not _FLAGS.isdisjoint(lineage.foreign)
    methods = {getattr(item, "name", "") for _, ancestor in lineage.ours for item in ancestor.body}
    if "__new__" in methods:  # it determines the values
        raise NotLiteralError
    for target, assigned in _assignments(node):
        if len(members) > _MOST_MEMBERS:
            raise NotLiteralError
        if isinstance(target, ast.Name) and not target.id.startswith("_"):
            value = _member(assigned, reader, target.id, members, texts=texts, flags=flags)
            if isinstance(value, list | dict) or ("_generate_next_value_" in methods and _is_auto(assigned, reader)):
                raise NotLiteralError
            members[target.id] = value
    return dict(zip(members, member_values([*members.values()], lineage.foreign), strict=True))


def member_values(values: list[JsonValue], bases: Collection[str]) -> list[JsonValue]:
    """Return the values of an enumeration's members, converted to the type that it mixes in, if any.

    Args:
        values: The values as they are assigned.
        bases: Qualified names of its base classes.

    Raises:
        NotLiteralError: The type doesn't accept one of them.
    """
    mixed_in = next((MIXED_IN[name] for name in MIXED_IN if name in bases), None)
    try:
        return [mixed_in(value) for value in values] if mixed_in else values
    except (ValueError, TypeError, OverflowError) as error:
        raise NotLiteralError from error


def _assignments(node: ast.ClassDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of the assignments in a class, each with its value."""
    for statement in statements(node.body):
        match statement.node:
            case ast.Assign(targets=targets, value=value):
                yield from ((target, value) for target in targets)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield target, value


def _is_auto(node: ast.expr, reader: _LiteralReader) -> bool:
    return isinstance(node, ast.Call) and reader.scope.qualified(node.func) == "enum.auto"


def _member(
    node: ast.expr, reader: _LiteralReader, name: str, before: dict[str, JsonValue], *, texts: bool, flags: bool
) -> JsonValue:
    if _is_auto(node, reader):
        if texts:
            return name.lower()
        highest = max((value for value in before.values() if isinstance(value, int)), default=0)
        return (1 << highest.bit_length()) if flags else highest + 1
    if isinstance(node, ast.Name) and node.id in before:
        return before[node.id]
    return reader.read(node)


def _constant(node: ast.Constant, reader: _LiteralReader) -> JsonValue:
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
    raise NotLiteralError


def _is_sound(value: str) -> bool:
    """Return whether a string can be encoded as UTF-8; lone surrogates can't."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _items(node: ast.List | ast.Tuple | ast.Set, reader: _LiteralReader) -> JsonValue:
    return [reader.read(item) for item in node.elts]


def _mapping(node: ast.Dict, reader: _LiteralReader) -> JsonValue:
    result: dict[str, JsonValue] = {}
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        key = None if key_node is None else reader.read(key_node)
        if not isinstance(key, str):
            raise NotLiteralError
        result[key] = reader.read(value_node)
    return result


def _signed(node: ast.UnaryOp, reader: _LiteralReader) -> JsonValue:
    value = reader.read(node.operand)
    if isinstance(node.op, ast.Not):
        return not value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(node.op, ast.USub):
            return -value
        if isinstance(node.op, ast.UAdd):
            return value
    raise NotLiteralError


def _computed(node: ast.BinOp, reader: _LiteralReader) -> JsonValue:
    left, right = reader.read(node.left), reader.read(node.right)
    if isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add):
        if len(left) + len(right) > _LONGEST:
            raise NotLiteralError
        return left + right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return _calculate(node.op, left, right)
    raise NotLiteralError


def _calculate(op: ast.operator, left: float, right: float) -> float:
    if isinstance(op, ast.Pow | ast.LShift):
        if not isinstance(left, int) or not isinstance(right, int) or not 0 <= right <= _WIDEST_BITS // 8:
            raise NotLiteralError
        if isinstance(op, ast.Pow) and left.bit_length() * right > _WIDEST_BITS:
            raise NotLiteralError
        result: float = left << right if isinstance(op, ast.LShift) else left**right
    else:
        compute = _OPERATORS.get(type(op))
        if compute is None:
            raise NotLiteralError
        try:
            result = compute(left, right)
        except (ArithmeticError, ValueError) as error:
            raise NotLiteralError from error
    if isinstance(result, int):
        if result.bit_length() > _WIDEST_BITS:
            raise NotLiteralError
    elif not math.isfinite(result):
        raise NotLiteralError
    return result


def _name(node: ast.Name | ast.Attribute, reader: _LiteralReader) -> JsonValue:
    found = reader.scope.find(node)
    if found is None:
        raise NotLiteralError
    first, *others = found.scope.variants(found.name)
    with reader.inside(found.scope):
        value = _variant(first, reader)
        if any(_variant(other, reader) != value for other in others):
            raise NotLiteralError
    return value


def _variant(binding: Binding, reader: _LiteralReader) -> JsonValue:
    """Return the value of a name in one branch."""
    if isinstance(binding, str):
        raise NotLiteralError
    return reader.read(binding)


def _attribute(node: ast.Attribute, reader: _LiteralReader) -> JsonValue:
    """Read `Color.RED`, `Color.RED.value` or `Color.RED.name`."""
    if node.attr in {"value", "name"} and isinstance(node.value, ast.Attribute):
        value = _of_enum(node.value, reader)
        if value is not None:
            return node.value.attr if node.attr == "name" else value[0]
    value = _of_enum(node, reader)
    if value is not None:
        return value[0]
    return _name(node, reader)


def _of_enum(node: ast.Attribute, reader: _LiteralReader) -> tuple[JsonValue] | None:
    """Return the value of `Color.RED` in a tuple, or None if `Color` is not an enumeration."""
    owner = reader.scope.find(node.value)
    if owner is None or not isinstance(owner.definition, ast.ClassDef) or not is_enum(owner.definition, owner.scope):
        return None
    with reader.inside(owner.scope):
        members = _members(owner.definition, reader)
    if node.attr not in members:
        raise NotLiteralError
    return (members[node.attr],)


def _call(node: ast.Call, reader: _LiteralReader) -> JsonValue:
    name = reader.scope.qualified(node.func)
    if name is None or node.keywords:
        raise NotLiteralError
    if not node.args:
        if name in {"pathlib.Path", "pathlib.PurePath"}:
            return "."
        if name not in _EMPTY:
            raise NotLiteralError
        empty = _EMPTY[name]
        return empty.copy() if isinstance(empty, list | dict) else empty
    value = reader.read(node.args[0])
    if len(node.args) > 1:
        raise NotLiteralError
    if (name in _TEXTS and isinstance(value, str)) or (name in _COLLECTIONS and isinstance(value, list)):
        return value
    raise NotLiteralError


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
