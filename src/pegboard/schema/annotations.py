"""Annotations as JSON Schema, read from the syntax tree: nothing is evaluated, imported or run.

`Annotations` turns one node into one schema; the tables at the end say which function does it for which kind of node,
generic type or call. The plain names are in `pegboard.schema.names`, classes of the file and of helpers beside it are
the affair of `pegboard.schema.classes`, limits and notes that of `pegboard.schema.constraints`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from pegboard.schema import classes, constraints
from pegboard.schema.definitions import Definition, Definitions, Report
from pegboard.schema.names import BARE, CONSTRAINED, LISTS, MAPPINGS, SETS, SIMPLE, WRAPPERS, canonical
from pegboard.schema.source import PARSED_AS, written
from pegboard.sdk.literals import NotLiteralError, enum_members, is_enum, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from pegboard.models import JsonObject
    from pegboard.sdk.scope import Scope

_DEEPEST = 50
_MOST_NODES = 3_000
"""Aliases that multiply one another could fill the memory; no honest annotation comes near."""


class TooLargeError(Exception):
    """The annotation is nested too deeply or unfolds into too much."""


class Field(NamedTuple):
    """A parameter of a function or a field of a class.

    Attributes:
        schema: What values it takes.
        required: Whether it must be given.
        alias: The name it has in JSON, where another.
    """

    schema: JsonObject
    required: bool
    alias: str | None


class Annotations:
    """Turns the annotations of one signature into schemas that share one `$defs`.

    Attributes:
        scope: The names of the file, or of the helper whose definition is being read.
        report: Takes what can't be resolved.
    """

    def __init__(self, definitions: Definitions, report: Report) -> None:
        """Takes the definitions of the file, and what is told about everything that can't be resolved."""
        self.scope = definitions.scope
        self.report = report
        self._definitions = definitions
        self._plain = definitions.plain(self.scope)
        self._used: dict[str, None] = {}
        self._depth = 0
        self._left = _MOST_NODES
        self._line: int | None = None

    def definitions(self) -> dict[str, JsonValue]:
        """Gives what belongs into the root's `$defs`, and reports what in it couldn't be resolved."""
        if not self._used:
            return {}
        found: dict[str, JsonValue] = {}
        for name in self._definitions.reached(self._used):
            definition = self._definitions.found[name]
            found[name] = definition.schema
            for text, line in definition.reports:
                self.report(text, line)
        return found

    def field(self, annotation: ast.expr | None, default: ast.expr | None = None, line: int | None = None) -> Field:
        """Gives the schema of a parameter or field with its limits, notes and default.

        Args:
            annotation: Its annotation, or None.
            default: Its default, or None.
            line: Where it stands, if that isn't where the whole signature does.
        """
        self._line = line
        try:
            schema, beside = self._unwrapped(annotation)
        except (TooLargeError, RecursionError):
            self.say("its annotation is too large")
            schema, beside = {}, []
        if not beside and (default is None or type(default) is ast.Constant):
            if default is not None:
                constraints.set_default(schema, default, self.scope)
            return Field(schema, default is None, None)
        return self._described(schema, beside, default)

    def _described(self, schema: JsonObject, beside: list[ast.expr | str], default: ast.expr | None) -> Field:
        facts = constraints.FieldFacts()
        optional: bool | None = None
        for node in beside:
            if isinstance(node, str):
                optional = node == "NotRequired" if optional is None else optional
            else:
                _merge(facts, constraints.apply(schema, node, self.scope, self.say))
        if default is not None and constraints.is_field(default, self.scope):
            _merge(facts, constraints.apply(schema, default, self.scope, self.say))
        elif default is not None:
            constraints.set_default(schema, default, self.scope)
            facts.has_default = True
        if facts.discriminator and "anyOf" in schema:
            schema["oneOf"] = self._tagged(schema.pop("anyOf"), facts.discriminator)
            schema["discriminator"] = {"propertyName": facts.discriminator}
        return Field(schema, not (facts.has_default if optional is None else optional), facts.alias)

    def _tagged(self, variants: JsonValue, tag: str) -> JsonValue:
        """Requires the tag of each variant that has it: a union is read by it, though classes give it a default."""
        if not isinstance(variants, list):
            return variants
        tagged: list[JsonValue] = []
        for variant in variants:
            name = variant.get("$ref") if isinstance(variant, dict) else None
            found = self._definitions.found.get(name.removeprefix("#/$defs/")) if isinstance(name, str) else None
            properties = found.schema.get("properties") if found is not None and found.schema else None
            has_tag = isinstance(properties, dict) and tag in properties
            tagged.append({**variant, "required": [tag]} if has_tag and isinstance(variant, dict) else variant)
        return tagged

    def say(self, text: str) -> None:
        """Reports something in the annotation at hand."""
        self.report(text, self._line)

    def _unwrapped(self, annotation: ast.expr | None) -> tuple[JsonObject, list[ast.expr | str]]:
        """Parts `Annotated[X, …]` and its like into the schema of X and what stands beside, innermost first."""
        beside: list[ast.expr | str] = []
        node = annotation
        while node is not None:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                node = self.unquoted(node)
                continue
            if not isinstance(node, ast.Subscript):
                break
            name = canonical(self.scope.qualified(node.value))
            if name == "typing.Annotated" and isinstance(node.slice, ast.Tuple) and node.slice.elts:
                beside[:0] = node.slice.elts[1:]
                node = node.slice.elts[0]
            elif name in {"typing.Required", "typing.NotRequired"}:
                beside.append(name.removeprefix("typing."))
                node = node.slice
            elif name in WRAPPERS:
                node = node.slice
            else:
                break
        return ({} if node is None else self.schema(node)), beside

    def schema(self, node: ast.expr) -> JsonObject:
        """Gives the schema of one annotation; what can't be resolved is `{}` and reported.

        Raises:
            TooLargeError: It unfolds into too much.
        """
        self._left -= 1
        if self._left < 0 or self._depth > _DEEPEST:
            raise TooLargeError
        if isinstance(node, ast.Name):
            known = self._plain.get(node.id)
            if known is not None:
                return known.copy()
        convert = _NODES.get(type(node))
        if convert is None:
            return self.unresolved(node)
        self._depth += 1
        try:
            return convert(self, node)
        finally:
            self._depth -= 1

    def remember(self, name: str, schema: JsonObject) -> None:
        """Keeps the schema of a plain type for the next time that it is met under this name."""
        self._plain[name] = schema

    def unresolved(self, node: ast.AST, why: str = "can't be resolved in this file") -> JsonObject:
        """Reports a part of an annotation and gives the schema that takes everything."""
        self.say(f"`{written(node)}` {why}")
        return {}

    def union(self, variants: Sequence[ast.expr]) -> JsonObject:
        """Gives the schema of `A | B | …`."""
        found: list[JsonValue] = []
        for node in variants:
            schema = self.schema(node)
            if not schema:
                return {}
            inner = schema.get("anyOf")
            # A union with notes of its own stays one variant.
            for variant in inner if isinstance(inner, list) and len(schema) == 1 else [schema]:
                if variant not in found:
                    found.append(variant)
        # "or null" reads best last.
        if {"type": "null"} in found and len(found) > 1:
            found.remove({"type": "null"})
            found.append({"type": "null"})
        if len(found) == 1 and isinstance(found[0], dict):
            return found[0]
        return {"anyOf": found}

    def defined(self, name: str, line: int, build: Callable[[], JsonObject | None]) -> JsonObject | None:
        """Gives the reference to a class, which is built where that hasn't been done; None if it has no form in JSON.

        Args:
            name: The class's name.
            line: Where it stands.
            build: Gives its schema, or None if it has none.
        """
        key = self._definitions.key(self.scope, name)
        if self._definition(key, line, build).schema is None:
            return None
        self._used[key] = None
        return _reference(key)

    def alias(self, name: str, value: ast.expr) -> JsonObject:
        """Unfolds an alias; one that contains itself becomes a definition."""
        known = self._definitions
        key = known.key(self.scope, name)
        definition = self._definition(key, value.lineno, lambda: self.schema(value))
        schema = definition.schema or {}
        if definition.is_open or key in known.reached(definition.uses):
            if schema == _reference(key):
                return self.unresolved(ast.Name(name), "means only itself")
            self._used[key] = None
            return _reference(key)
        self._left -= definition.cost
        self._used.update(definition.uses)
        for text, line in definition.reports:
            self.report(text, line)
        return _copy(schema)

    def _definition(self, key: str, line: int, build: Callable[[], JsonObject | None]) -> Definition:
        """Gives a definition, built where that hasn't been done, with what it uses and what is reported of it."""
        known = self._definitions.found
        if key in known:
            return known[key]
        definition = known[key] = Definition()  # at once, so that what contains itself finds its reference
        outside = self.report, self._used, self._depth, self._left, self._line
        self.report = lambda text, where: definition.reports.append(self._placed(text, where or line))
        self._used, self._depth, self._left, self._line = definition.uses, 0, _MOST_NODES, None
        try:
            definition.schema = build()
            definition.cost = _MOST_NODES - self._left
            definition.is_open = False
        except (TooLargeError, RecursionError):
            del known[key]
            raise
        finally:
            self.report, self._used, self._depth, self._left, self._line = outside
        return definition

    def _placed(self, text: str, line: int | None) -> tuple[str, int | None]:
        """Gives a report with its line; of what stands in a helper, the line is told in words."""
        if self.scope is self._definitions.scope or line is None:
            return text, line
        return f"{text} (line {line} of {PurePath(self.scope.file).name})", None

    @contextmanager
    def inside(self, scope: Scope) -> Iterator[None]:
        """Takes names for what they mean in another file, for a while."""
        outside = self.scope, self._plain
        self.scope, self._plain = scope, self._definitions.plain(scope)
        try:
            yield
        finally:
            self.scope, self._plain = outside

    def unquoted(self, node: ast.Constant) -> ast.expr | None:
        """Parses a quoted annotation; one that is no expression is reported and gives None."""
        text = str(node.value)
        try:
            return ast.parse(text.strip(), PARSED_AS, "eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.unresolved(node, "is no type")
            return None

    def named(self, node: ast.expr) -> JsonObject | None:
        """Gives the schema of a name that the file, or a helper of it, defines; None if neither does."""
        found = self.scope.find(node)
        if found is None:
            return None
        if found.scope is self.scope:
            return self._local(node, found.name, found.definition)
        with self.inside(found.scope):
            return self._local(node, found.name, found.definition)

    def _local(self, node: ast.expr, name: str, definition: ast.AST) -> JsonObject:
        """Gives the schema of a name that the file defines: a class, an alias, a `NewType`."""
        if isinstance(definition, ast.ClassDef):
            if is_enum(definition, self.scope):
                return self._enum(definition)
            reference = self.defined(name, definition.lineno, lambda: classes.schema(self, definition))
            return reference or self.unresolved(node, "is a class without a form in JSON")
        if isinstance(definition, ast.Call):
            called = _CALLED.get(canonical(self.scope.qualified(definition.func)) or "")
            if called:
                return called(self, name, definition)
        if isinstance(definition, ast.Name | ast.Attribute | ast.Subscript | ast.BinOp | ast.Call) or (
            isinstance(definition, ast.Constant) and isinstance(definition.value, str)
        ):
            return self.alias(name, definition)
        return self.unresolved(node, "is no type")

    def _enum(self, node: ast.ClassDef) -> JsonObject:
        choices = self._definitions.choices
        if node not in choices:
            try:
                choices[node] = _choice(list(enum_members(node, self.scope).values()))
            except NotLiteralError:
                choices[node] = None
        choice = choices[node]
        if choice is None:
            return self.unresolved(ast.Name(node.name), "has members that are known only to the running program")
        return choice.copy() if choice else self.unresolved(ast.Name(node.name), "has no members")


def _reference(name: str) -> JsonObject:
    return {"$ref": f"#/$defs/{name}"}


def _merge(facts: constraints.FieldFacts, more: constraints.FieldFacts) -> None:
    facts.has_default = facts.has_default or more.has_default
    facts.alias = more.alias or facts.alias
    facts.discriminator = more.discriminator or facts.discriminator


def _choice(values: list[JsonValue]) -> JsonObject:
    """Gives the schema of a choice between values, with their type where they have one in common."""
    unique = list({(type(value), repr(value)): value for value in values}.values())
    kinds = {_KINDS.get(type(value)) for value in unique}
    kind = kinds.pop() if len(kinds) == 1 else None
    typed: JsonObject = {"type": kind} if kind else {}
    if len(unique) == 1:
        return {"const": unique[0], **typed}
    if not unique:
        return {}
    return {"enum": unique, **typed}


_KINDS: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def _constant(to: Annotations, node: ast.Constant) -> JsonObject:
    if node.value is None:
        return {"type": "null"}
    if isinstance(node.value, str):
        inner = to.unquoted(node)
        return {} if inner is None else to.schema(inner)
    return to.unresolved(node, "is no type")


def _name(to: Annotations, node: ast.Name | ast.Attribute) -> JsonObject:
    name = canonical(to.scope.qualified(node))
    if name:
        known = SIMPLE.get(name)
        if known is not None:
            if isinstance(node, ast.Name) and "anyOf" not in known:
                to.remember(node.id, known)
            return _copy(known)
        bare = BARE.get(name)
        if bare is not None:
            return bare.copy()
    schema = to.named(node)
    if schema is None and isinstance(node, ast.Name) and node.id in to.scope.type_parameters:
        return {}
    return to.unresolved(node) if schema is None else schema


def _copy(schema: JsonObject) -> JsonObject:
    variants = schema.get("anyOf")
    if isinstance(variants, list):
        return {"anyOf": [dict(variant) for variant in variants if isinstance(variant, dict)]}
    return schema.copy()


def _subscript(to: Annotations, node: ast.Subscript) -> JsonObject:
    name = canonical(to.scope.qualified(node.value))
    arguments = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    convert = _GENERIC.get(name) if name else None
    if convert:
        return convert(to, arguments)
    schema = to.named(node.value)
    return to.unresolved(node) if schema is None else schema


def _either(to: Annotations, node: ast.BinOp) -> JsonObject:
    variants: list[ast.expr] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp) and isinstance(left.op, ast.BitOr):
        variants.append(left.right)
        left = left.left
    if not variants:
        return to.unresolved(node, "is no type")
    return to.union([left, *reversed(variants)])


def _call(to: Annotations, node: ast.Call) -> JsonObject:
    """`conint(ge=1)` and its like."""
    name = to.scope.qualified(node.func)
    base = CONSTRAINED.get((name or "").removeprefix("pydantic.types.").removeprefix("pydantic."))
    if base is None:
        return to.unresolved(node)
    schema: JsonObject = {"type": base}
    if base == "array" and node.args:
        items = to.schema(node.args[0])
        if items:
            schema["items"] = items
    for keyword in node.keywords:
        try:
            value = read(keyword.value, to.scope)
        except NotLiteralError:
            to.say(f"the value of `{keyword.arg}` is known only to the running program")
            continue
        key = "pattern" if keyword.arg == "regex" else keyword.arg
        if key and value is not None:
            constraints.constrain(schema, key, value)
    return schema


def _array(to: Annotations, arguments: list[ast.expr]) -> JsonObject:
    items = to.schema(arguments[0])
    return {"type": "array", "items": items} if items else {"type": "array"}


def _set(to: Annotations, arguments: list[ast.expr]) -> JsonObject:
    return {**_array(to, arguments), "uniqueItems": True}


def _tuple(to: Annotations, arguments: list[ast.expr]) -> JsonObject:
    if len(arguments) == 2 and isinstance(arguments[1], ast.Constant) and arguments[1].value is Ellipsis:
        return _array(to, arguments[:1])
    if not arguments:
        return {"type": "array", "maxItems": 0}
    length = len(arguments)
    return {
        "type": "array",
        "prefixItems": [to.schema(item) for item in arguments],
        "minItems": length,
        "maxItems": length,
    }


def _mapping(to: Annotations, arguments: list[ast.expr]) -> JsonObject:
    schema: JsonObject = {"type": "object"}
    if len(arguments) != 2:
        return {**schema, "additionalProperties": True}
    keys = to.schema(arguments[0])
    if keys.keys() & {"enum", "const", "pattern", "minLength", "maxLength", "format"}:
        schema["propertyNames"] = keys
    return {**schema, "additionalProperties": to.schema(arguments[1]) or True}


def _counter(to: Annotations, arguments: list[ast.expr]) -> JsonObject:
    del to, arguments
    return {"type": "object", "additionalProperties": {"type": "integer"}}


def _optional(to: Annotations, arguments: list[ast.expr]) -> JsonObject:
    return to.union([*arguments, ast.Constant(None)])


def _union(to: Annotations, arguments: list[ast.expr]) -> JsonObject:
    return to.union(arguments)


def _literal(to: Annotations, arguments: list[ast.expr]) -> JsonObject:
    values: list[JsonValue] = []
    for node in arguments:
        inner = to.scope.definition(node)
        target = inner if isinstance(inner, ast.Subscript) else node
        if isinstance(target, ast.Subscript) and canonical(to.scope.qualified(target.value)) == "typing.Literal":
            nested = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
            variants = [read_or_none(to, item) for item in nested]
        else:
            variants = [read_or_none(to, target)]
        for variant in variants:
            if variant is None:
                return to.unresolved(node, "is no literal")
            values.append(variant[0])
    return _choice(values)


def read_or_none(to: Annotations, node: ast.expr) -> tuple[JsonValue] | None:
    """Gives the value of a literal, in a tuple, or None if it can't be read."""
    try:
        return (read(node, to.scope),)
    except NotLiteralError:
        return None


def _annotated(to: Annotations, arguments: list[ast.expr]) -> JsonObject:
    schema = to.schema(arguments[0])
    for node in arguments[1:]:
        constraints.apply(schema, node, to.scope, to.say)
    return schema


def _first(to: Annotations, arguments: list[ast.expr]) -> JsonObject:
    return to.schema(arguments[0])


def _last(to: Annotations, arguments: list[ast.expr]) -> JsonObject:
    return to.schema(arguments[-1])


def _new_type(to: Annotations, name: str, call: ast.Call) -> JsonObject:
    if len(call.args) != 2:
        return to.unresolved(call, "is no type")
    return to.alias(name, call.args[1])


def _type_variable(to: Annotations, _name: str, call: ast.Call) -> JsonObject:
    for keyword in call.keywords:
        if keyword.arg == "bound":
            return to.schema(keyword.value)
    return to.union(call.args[1:]) if len(call.args) > 1 else {}


def _typed_dict(to: Annotations, name: str, call: ast.Call) -> JsonObject:
    return to.defined(name, call.lineno, lambda: classes.functional_typed_dict(to, call)) or to.unresolved(
        call, "is no type"
    )


def _named_tuple(to: Annotations, name: str, call: ast.Call) -> JsonObject:
    return to.defined(name, call.lineno, lambda: classes.functional_named_tuple(to, call)) or to.unresolved(
        call, "is no type"
    )


def _functional_enum(to: Annotations, _name: str, call: ast.Call) -> JsonObject:
    values = classes.functional_enum(to.scope, call)
    return _choice(values) if values else to.unresolved(call, "has members that are known only to the running program")


_NODES: dict[type[ast.AST], Callable[..., JsonObject]] = {
    ast.Name: _name,
    ast.Attribute: _name,
    ast.Subscript: _subscript,
    ast.Constant: _constant,
    ast.BinOp: _either,
    ast.Call: _call,
}

_GENERIC: dict[str, Callable[[Annotations, list[ast.expr]], JsonObject]] = {
    **dict.fromkeys(LISTS, _array),
    **dict.fromkeys(SETS, _set),
    **dict.fromkeys(MAPPINGS, _mapping),
    **dict.fromkeys(WRAPPERS, _first),
    "builtins.tuple": _tuple,
    "typing.Tuple": _tuple,
    "collections.Counter": _counter,
    "typing.Counter": _counter,
    "typing.Optional": _optional,
    "typing.Union": _union,
    "typing.Literal": _literal,
    "typing.Annotated": _annotated,
    "typing.Required": _first,
    "typing.NotRequired": _first,
    "typing.Awaitable": _first,
    "typing.Coroutine": _last,
    "os.PathLike": lambda _to, _arguments: {"type": "string", "format": "path"},
    "re.Pattern": lambda _to, _arguments: {"type": "string", "format": "regex"},
    "typing.Pattern": lambda _to, _arguments: {"type": "string", "format": "regex"},
}
"""The types that are written with brackets."""

_CALLED: dict[str, Callable[[Annotations, str, ast.Call], JsonObject]] = {
    "typing.NewType": _new_type,
    "typing.TypeAliasType": _new_type,
    "typing.TypeVar": _type_variable,
    "typing.TypedDict": _typed_dict,
    "typing.NamedTuple": _named_tuple,
    "enum.Enum": _functional_enum,
    "enum.IntEnum": _functional_enum,
    "enum.StrEnum": _functional_enum,
}
"""The types that a file makes by a call: `UserId = NewType("UserId", int)`."""
