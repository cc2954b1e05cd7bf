"""Conversion of annotations to JSON Schema from the syntax tree, without evaluating or importing them.

`Annotations` converts a node to a schema. The table at the end lists the converter of each kind of node.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import or_
from pathlib import PurePath
from typing import TYPE_CHECKING
from zlib import crc32

from pegboard.sdk.literals import NotLiteralError, enum_members, is_enum, is_flag, read
from pegboard.sdk.scope import NameDefinition, Scope
from pegboard.signatures import classes, constraints, serializers
from pegboard.signatures.converter import FieldInfo
from pegboard.signatures.definitions import Definition, Definitions, Report
from pegboard.signatures.expressions import PARSED_AS, written
from pegboard.signatures.generics import CALLED, GENERIC, choice
from pegboard.signatures.names import BARE, CONSTRAINED, SIMPLE, WRAPPERS, WRITTEN, canonical, is_standard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from pegboard.models import JsonObject

_DEEPEST = 50
_MOST_NODES = 3_000
"""Limit for nested aliases, which could exhaust memory; real annotations are far smaller."""


class AnnotationTooLargeError(Exception):
    """The annotation is nested too deeply or too large."""


class Annotations:
    """Converter for the annotations of one signature, whose schemas share one `$defs`.

    Args:
        definitions: Definitions of the file.
        report: Callback for parts that can't be resolved.

    Attributes:
        scope: Scope of the file, or of the module whose definition is being converted.
        is_output: Whether the schemas describe results as the worker writes them, not arguments.
    """

    def __init__(self, definitions: Definitions, report: Report) -> None:
        self.scope = definitions.scope
        self.is_output = definitions.is_output
        self.report = report
        self._definitions = definitions
        self._plain = definitions.plain(self.scope)
        self._used: dict[str, None] = {}
        self._bound: dict[str, JsonObject] = {}  # by type parameter of the class being converted
        self._outer: NameDefinition | None = None  # the class being converted
        self._depth = 0
        self._left = _MOST_NODES
        self._line: int | None = None

    def definitions(self) -> dict[str, JsonValue]:
        """Return the `$defs` of the root schema, and report their parts that can't be resolved."""
        if not self._used:
            return {}
        found: dict[str, JsonValue] = {}
        for name in self._definitions.reached(self._used):
            definition = self._definitions.found[name]
            found[name] = definition.schema
            for text, line in definition.reports:
                self.report(text, line)
        return found

    def field(self, annotation: ast.expr | None, default: ast.expr | None = None, line: int | None = None) -> FieldInfo:
        """Return the schema of a parameter or field with its constraints and default.

        Args:
            annotation: Annotation, or None.
            default: Default, or None.
            line: Line of the field, if it is not the line of the signature.
        """
        self._line = line
        try:
            schema, beside = self._unwrapped(annotation)
        except (AnnotationTooLargeError, RecursionError):
            self.say("its annotation is too large")
            schema, beside = {}, []
        if not beside and (default is None or type(default) is ast.Constant):
            if default is not None:
                constraints.set_default(schema, default, self.scope)
            return FieldInfo(schema, default is None, None)
        return self._described(schema, beside, default)

    def _described(self, schema: JsonObject, beside: list[ast.expr | str], default: ast.expr | None) -> FieldInfo:
        facts = constraints.FieldFacts()
        optional: bool | None = None
        for node in beside:
            if isinstance(node, str):
                optional = node == "NotRequired" if optional is None else optional
            else:
                _merge(facts, constraints.apply(schema, node, self.scope, self.say))
        if default is not None and constraints.is_field(default, self.scope):
            _merge(facts, constraints.apply(schema, default, self.scope, self.say, is_default=True))
        elif default is not None:
            constraints.set_default(schema, default, self.scope)
            facts.has_default = True
        if facts.discriminator:
            self.tag(schema, facts.discriminator)
        required = not (facts.has_default if optional is None else optional)
        return FieldInfo(schema, required, facts.alias, facts.written_alias, facts.excluded)

    def tag(self, schema: JsonObject, tag: str) -> None:
        """Distinguish the variants of a union by a property. It is changed in place; other schemas are not.

        Args:
            schema: Schema of the type.
            tag: Name of the property. Variants that have it require it, even if the class has a default for it.
        """
        if "anyOf" in schema:
            schema["oneOf"] = self._tagged(schema.pop("anyOf"), tag)
            schema["discriminator"] = {"propertyName": tag}

    def _tagged(self, variants: JsonValue, tag: str) -> JsonValue:
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
        """Report a problem in the current annotation."""
        self.report(text, self._line)

    def _unwrapped(self, annotation: ast.expr | None) -> tuple[JsonObject, list[ast.expr | str]]:
        """Split `Annotated[X, …]` and wrappers into the schema of X and the other arguments, innermost first."""
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
        return ({} if node is None else self.annotated(node, beside)), beside

    def annotated(self, node: ast.expr, beside: Iterable[ast.expr | str]) -> JsonObject:
        """Return the schema of `Annotated[X, …]` without constraints, as validators or serializers declare it.

        Args:
            node: The type.
            beside: Other arguments of `Annotated`.
        """
        if not self.is_output:
            return self.schema(constraints.input_type(beside, self.scope) or node)
        declared = serializers.beside(beside, self.scope)
        if declared is None:
            return self.schema(node)
        # only models apply it
        return self.union([node, declared.annotation]) if declared.annotation is not None else {}

    def schema(self, node: ast.expr) -> JsonObject:
        """Return the schema of an annotation. Parts that can't be resolved are reported and become `{}`.

        Raises:
            AnnotationTooLargeError: The annotation is nested too deeply or too large.
        """
        self._left -= 1
        if self._left < 0 or self._depth > _DEEPEST:
            raise AnnotationTooLargeError
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
        """Cache the schema of a simple type under this name."""
        self._plain[name] = schema

    def unresolved(self, node: ast.AST, why: str = "") -> JsonObject:
        """Report a part of an annotation that can't be resolved, and return the schema that accepts any value."""
        if not why:
            named = node.value if isinstance(node, ast.Subscript) else node
            is_known = is_standard(self.scope.qualified(named))
            why = "has no JSON form" if is_known else "can't be resolved in this file"
        self.say(f"`{written(node)}` {why}")
        return {}

    def union(self, variants: Sequence[ast.expr]) -> JsonObject:
        """Return the schema of `A | B | …`."""
        found: list[JsonValue] = []
        for node in variants:
            schema = self.schema(node)
            if not schema:
                return {}
            inner = schema.get("anyOf")
            # a union with its own description remains one variant
            for variant in inner if isinstance(inner, list) and len(schema) == 1 else [schema]:
                if variant not in found:
                    found.append(variant)
        # null last, as users expect it
        if {"type": "null"} in found and len(found) > 1:
            found.remove({"type": "null"})
            found.append({"type": "null"})
        if len(found) == 1 and isinstance(found[0], dict):
            return found[0]
        return {"anyOf": found}

    def defined(self, name: str, line: int, build: Callable[[], JsonObject | None]) -> JsonObject | None:
        """Return the reference to a class, which is converted on first use; None if it has no JSON form.

        Args:
            name: Name of the class.
            line: Line of its definition.
            build: Function that returns its schema, or None if it has no JSON form.
        """
        key = self._definitions.key(self.scope, name)
        if self._definition(key, line, build).schema is None:
            return None
        self._used[key] = None
        return _reference(key)

    def alias(self, name: str, value: ast.expr) -> JsonObject:
        """Return the schema of an alias; a recursive alias becomes a definition."""
        known = self._definitions
        key = known.key(self.scope, name)
        definition = self._definition(key, value.lineno, lambda: self.schema(value))
        schema = definition.schema or {}
        if definition.is_open or key in known.reached(definition.uses):
            if schema == _reference(key):
                return self.unresolved(ast.Name(name), "refers only to itself")
            self._used[key] = None
            return _reference(key)
        self._left -= definition.cost
        self._used.update(definition.uses)
        for text, line in definition.reports:
            self.report(text, line)
        return _copy(schema)

    def _definition(self, key: str, line: int, build: Callable[[], JsonObject | None]) -> Definition:
        """Return a definition, built on first use."""
        known = self._definitions.found
        if key in known:
            return known[key]
        definition = known[key] = Definition()  # before `build`, for recursive types
        outside = self.report, self._used, self._bound, self._outer, self._depth, self._left, self._line
        self.report = lambda text, where: definition.reports.append(self._with_file(text, where or line))
        self._used, self._bound, self._outer = definition.uses, {}, None
        self._depth, self._left, self._line = 0, _MOST_NODES, None
        try:
            definition.schema = build()
            definition.cost = _MOST_NODES - self._left
            definition.is_open = False
        except (AnnotationTooLargeError, RecursionError):
            del known[key]
            raise
        finally:
            self.report, self._used, self._bound, self._outer, self._depth, self._left, self._line = outside
        return definition

    def _with_file(self, text: str, line: int | None) -> tuple[str, int | None]:
        """Return a report and its line; for another module, the text contains file and line instead."""
        if self.scope is self._definitions.scope or line is None:
            return text, line
        return f"{text} (line {line} of {PurePath(self.scope.file).name})", None

    @contextmanager
    def inside(self, scope: Scope) -> Iterator[None]:
        """Resolve names in the scope of another file, inside the `with` block."""
        outside = self.scope, self._plain
        self.scope, self._plain = scope, self._definitions.plain(scope)
        try:
            yield
        finally:
            self.scope, self._plain = outside

    def unquoted(self, node: ast.Constant) -> ast.expr | None:
        """Parse a quoted annotation; report an invalid one and return None."""
        text = str(node.value)
        try:
            return ast.parse(text.strip(), PARSED_AS, "eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.unresolved(node, "is not a type")
            return None

    def named(self, node: ast.expr, arguments: Sequence[ast.expr] = ()) -> JsonObject | None:
        """Return the schema of a name defined in the file or its project, or None.

        Args:
            node: The name.
            arguments: Arguments in its brackets, if it is a generic class.
        """
        inner = self._outer.inner(node.id) if self._outer and isinstance(node, ast.Name) else None
        found = inner or self.scope.find(node)
        if found is None:
            return None
        bound: dict[str, JsonObject] = {}
        if arguments and isinstance(found.definition, ast.ClassDef):
            parameters = classes.type_parameters(found.scope, found.definition)
            bound = dict(zip(parameters, map(self.schema, arguments), strict=False))
            bound = bound if any(bound.values()) else {}
        if found.scope is self.scope:
            return self._local(node, found.name, found.definition, bound)
        with self.inside(found.scope):
            return self._local(node, found.name, found.definition, bound)

    def bound(self, name: str) -> JsonObject | None:
        """Return the schema of a type parameter of the class being converted, or None."""
        found = self._bound.get(name)
        return None if found is None else _copy(found)

    def _local(self, node: ast.expr, name: str, definition: ast.AST, bound: dict[str, JsonObject]) -> JsonObject:
        """Return the schema of a definition in the file: a class, an alias, a `NewType`."""
        if isinstance(definition, ast.ClassDef):
            if is_enum(definition, self.scope):
                return self._enum(definition)
            used = dict(self._used) if bound else {}

            def build() -> JsonObject | None:
                self._bound, self._outer = bound, NameDefinition(self.scope, name, definition)
                self._used.update(used)
                return classes.schema(self, definition)

            key = "_".join([name, *map(_label, bound.values()), ""]) if bound else name
            reference = self.defined(key, definition.lineno, build)
            return reference or self.unresolved(node, "is a class without a JSON form")
        if isinstance(definition, ast.Call):
            called = CALLED.get(canonical(self.scope.qualified(definition.func)) or "")
            if called:
                return called(self, name, definition)
        if isinstance(definition, ast.Name | ast.Attribute | ast.Subscript | ast.BinOp | ast.Call) or (
            isinstance(definition, ast.Constant) and isinstance(definition.value, str)
        ):
            return self.alias(name, definition)
        return self.unresolved(node, "is not a type")

    def _enum(self, node: ast.ClassDef) -> JsonObject:
        choices = self._definitions.choices
        if node not in choices:
            try:
                choices[node] = _choices(list(enum_members(node, self.scope).values()), flags=is_flag(node, self.scope))
            except NotLiteralError:
                choices[node] = None
        schema = choices[node]
        if schema is None:
            return self.unresolved(ast.Name(node.name), "has members that can't be read without running the file")
        return schema.copy() if schema else self.unresolved(ast.Name(node.name), "has no members")


def _choices(values: list[JsonValue], *, flags: bool) -> JsonObject:
    """Return the schema of an enumeration with these values; flags can be combined."""
    numbers = [value for value in values if isinstance(value, int)]
    if flags and numbers and min(numbers) >= 0:
        return {"type": "integer", "minimum": 0, "maximum": reduce(or_, numbers)}
    return choice(values)


def _label(argument: JsonObject) -> str:
    """Return a name for the argument of a generic class, as part of the name of a definition."""
    if not argument:
        return "any"
    only = next(iter(argument.values())) if len(argument) == 1 else None
    name = only.rpartition("/")[2] if isinstance(only, str) else ""
    return name or f"{crc32(json.dumps(argument).encode()):x}"


def _reference(name: str) -> JsonObject:
    return {"$ref": f"#/$defs/{name}"}


def _merge(facts: constraints.FieldFacts, more: constraints.FieldFacts) -> None:
    facts.has_default = facts.has_default or more.has_default
    facts.alias = facts.alias if more.alias is None else more.alias
    facts.written_alias = facts.written_alias if more.written_alias is None else more.written_alias
    facts.discriminator = more.discriminator or facts.discriminator
    facts.excluded = facts.excluded if more.excluded is False else more.excluded


def _constant(to: Annotations, node: ast.Constant) -> JsonObject:
    if node.value is None:
        return {"type": "null"}
    if isinstance(node.value, str):
        inner = to.unquoted(node)
        return {} if inner is None else to.schema(inner)
    return to.unresolved(node, "is not a type")


def _name(to: Annotations, node: ast.Name | ast.Attribute) -> JsonObject:
    bound = to.bound(node.id) if isinstance(node, ast.Name) else None
    if bound is not None:
        return bound
    name = canonical(to.scope.qualified(node))
    if name:
        known = WRITTEN.get(name) if to.is_output else None
        known = SIMPLE.get(name) if known is None else known
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
    convert = GENERIC.get(name) if name else None
    if convert:
        return convert(to, arguments)
    schema = to.named(node.value, arguments)
    return to.unresolved(node) if schema is None else schema


def _either(to: Annotations, node: ast.BinOp) -> JsonObject:
    variants: list[ast.expr] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp) and isinstance(left.op, ast.BitOr):
        variants.append(left.right)
        left = left.left
    if not variants:
        return to.unresolved(node, "is not a type")
    return to.union([left, *reversed(variants)])


def _call(to: Annotations, node: ast.Call) -> JsonObject:
    """Convert `conint(ge=1)` and similar calls."""
    name = canonical(to.scope.qualified(node.func))
    base = CONSTRAINED.get((name or "").removeprefix("pydantic."))
    if base is None:
        return to.unresolved(node)
    schema = _copy(base)
    if schema.get("type") == "array" and node.args:
        items = to.schema(node.args[0])
        if items:
            schema["items"] = items
    for keyword in node.keywords:
        try:
            value = read(keyword.value, to.scope)
        except NotLiteralError:
            to.say(f"the value of `{keyword.arg}` can't be read without running the file")
            continue
        key = "pattern" if keyword.arg == "regex" else keyword.arg
        if key and value is not None:
            constraints.constrain(schema, key, value)
    return schema


_NODES: dict[type[ast.AST], Callable[..., JsonObject]] = {
    ast.Name: _name,
    ast.Attribute: _name,
    ast.Subscript: _subscript,
    ast.Constant: _constant,
    ast.BinOp: _either,
    ast.Call: _call,
}
