"""JSON Schemas of classes: pydantic models, dataclasses, TypedDicts, NamedTuples, functional enumerations.

The classes are defined in the pack or in another module of its project.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from pegboard.sdk.literals import MIXED_IN, NotLiteralError, member_values, read, text
from pegboard.sdk.scope import Lineage, Scope, statements
from pegboard.signatures import constraints, docstrings, serializers
from pegboard.signatures.expressions import unquoted
from pegboard.signatures.model_config import ModelConfig
from pegboard.signatures.names import canonical
from pegboard.signatures.serializers import Written

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.models import JsonObject
    from pegboard.signatures.converter import Converter, FieldInfo

_MODELS = frozenset({"pydantic.BaseModel", "pydantic.main.BaseModel", "pydantic_settings.BaseSettings"})
_ROOT_MODELS = frozenset({"pydantic.RootModel", "pydantic.root_model.RootModel"})
_TYPED_DICTS = frozenset({"typing.TypedDict", "typing_extensions.TypedDict"})
_NAMED_TUPLES = frozenset({"typing.NamedTuple", "typing_extensions.NamedTuple"})
_GENERIC = frozenset({"typing.Generic", "typing.Protocol"})
_DATACLASSES = frozenset({"dataclasses.dataclass", "pydantic.dataclasses.dataclass"})
_NAMING = frozenset({"module", "qualname"})
"""Arguments of `Enum("Name", …)` that don't influence its values."""
_NO_FIELDS = frozenset({"typing.ClassVar", "typing_extensions.ClassVar", "dataclasses.KW_ONLY"})


class _Member(NamedTuple):
    """A field in the body of a class."""

    name: str
    annotation: ast.expr
    default: ast.expr | None
    note: str
    optional: bool
    scope: Scope
    accepted: ast.expr | None
    """Type that a validator accepts in place of the annotated one, if it declares any."""
    written: Written | None = None
    """Type that a serializer writes in place of the annotated one, if the field has a serializer."""


def schema(to: Converter, node: ast.ClassDef) -> JsonObject | None:
    """Return the schema of a class, or None if it has no JSON form.

    Args:
        to: Converter for the annotations of its fields.
        node: Class, but not an enumeration.
    """
    lineage = to.scope.lineage(node)
    is_model = not lineage.foreign.isdisjoint(_MODELS | _ROOT_MODELS)
    if to.is_output and is_model and (written := serializers.of_model(lineage)):
        with to.inside(written.scope):
            return to.field(written.annotation).schema
    if not lineage.foreign.isdisjoint(_ROOT_MODELS):
        return _root_model(to, node)
    if not lineage.foreign.isdisjoint(_NAMED_TUPLES):
        return _tuple_of([_field(to, member, member.default) for member in _members(to.scope, node)])
    if not lineage.foreign.isdisjoint(_MODELS):
        return _object(to, node, private=False)
    if _is_record(lineage):
        return _object(to, node, private=True)
    return None


def _is_record(lineage: Lineage) -> bool:
    return not lineage.foreign.isdisjoint(_TYPED_DICTS) or any(
        _is_dataclass(scope, ancestor) for scope, ancestor in lineage.ours
    )


def type_parameters(scope: Scope, node: ast.ClassDef) -> list[str]:
    """Return the names of the type parameters of a generic class, in order."""
    declared = [parameter.name for parameter in getattr(node, "type_params", ())]  # since Python 3.12
    bases = [base for base in node.bases if isinstance(base, ast.Subscript)]
    generic = [base for base in bases if canonical(scope.qualified(base.value)) in _GENERIC]
    names = [name.id for base in generic or bases for name in ast.walk(base.slice) if isinstance(name, ast.Name)]
    return declared or [name for name in dict.fromkeys(names) if _is_type_variable(scope, ast.Name(name))]


def _is_type_variable(scope: Scope, node: ast.Name) -> bool:
    found = scope.find(node)
    definition = found.definition if found else None
    return (
        found is not None
        and isinstance(definition, ast.Call)
        and canonical(found.scope.qualified(definition.func)) == "typing.TypeVar"
    )


def functional_typed_dict(to: Converter, call: ast.Call) -> JsonObject | None:
    """Return the schema of `TypedDict("Name", {"key": type})`, or None for other arguments."""
    if len(call.args) != 2 or not isinstance(call.args[1], ast.Dict):
        return None
    total = not any(keyword.arg == "total" and _is_false(keyword.value) for keyword in call.keywords)
    properties: dict[str, JsonValue] = {}
    required: list[JsonValue] = []
    for key, value in zip(call.args[1].keys, call.args[1].values, strict=True):
        name = text(key, to.scope)
        if name is None:
            return None
        field = to.field(value, None if total else ast.Constant(Ellipsis))
        properties[name] = field.schema
        if field.required:
            required.append(name)
    others = {} if to.is_output else _other_keys(ModelConfig(()))
    return _with_required({"type": "object", "properties": properties, **others}, required)


def functional_named_tuple(to: Converter, call: ast.Call) -> JsonObject | None:
    """Return the schema of `NamedTuple("Name", [("field", type)])`, or None for other arguments."""
    if len(call.args) != 2 or not isinstance(call.args[1], ast.List | ast.Tuple):
        return None
    pairs = call.args[1].elts
    types = [pair.elts[1] for pair in pairs if isinstance(pair, ast.Tuple) and len(pair.elts) == 2]
    return _tuple_of([to.field(item) for item in types]) if len(types) == len(pairs) else None


def functional_enum(scope: Scope, call: ast.Call) -> list[JsonValue]:
    """Return the values of `Enum("Name", …)`; empty if they are dynamic."""
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    mixed_in, start = options.pop("type", None), options.pop("start", ast.Constant(1))
    bases = [scope.qualified(base) or "" for base in (call.func, mixed_in) if base is not None]
    is_known = mixed_in is None or bases[-1] in MIXED_IN
    if len(call.args) != 2 or not is_known or not _NAMING.issuperset(options):
        return []
    try:
        return member_values(_functional_values(read(call.args[1], scope), read(start, scope), bases), bases)
    except NotLiteralError:
        return []


def _functional_values(members: JsonValue, start: JsonValue, bases: Collection[str]) -> list[JsonValue]:
    if isinstance(members, dict):
        return list(members.values())
    names = members.replace(",", " ").split() if isinstance(members, str) else members
    if not isinstance(names, list) or not isinstance(start, int):
        return []
    pairs = [item for item in names if isinstance(item, list) and len(item) == 2]
    if names and len(pairs) == len(names):
        return [pair[1] for pair in pairs]
    if "enum.StrEnum" in bases:
        return [name.lower() for name in names if isinstance(name, str)]
    return list(range(start, start + len(names)))


def _root_model(to: Converter, node: ast.ClassDef) -> JsonObject | None:
    for member in _members(to.scope, node):
        if member.name == "root":
            return _field(to, member, member.default).schema
    for base in node.bases:
        if isinstance(base, ast.Subscript):
            return to.schema(base.slice)
    return None


def _tuple_of(items: list[FieldInfo]) -> JsonObject:
    required = [position for position, item in enumerate(items, 1) if item.required]
    return {
        "type": "array",
        "prefixItems": [item.schema for item in items],
        "minItems": max(required, default=0),
        "maxItems": len(items),
    }


def _object(to: Converter, node: ast.ClassDef, *, private: bool) -> JsonObject:
    """Return the schema of a class with fields; `private` includes fields whose names start with an underscore."""
    documented = docstrings.read(_docstring(node))
    config = ModelConfig(to.scope.lineage(node).ours)
    properties: dict[str, JsonValue] = {}
    required: list[JsonValue] = []
    for member in _members(to.scope, node):
        hidden = to.is_output and _is_init_only(member) if private else member.name.startswith("_")
        if hidden:
            continue
        default = _of_dataclass_field(member.scope, member.default) if member.default else None
        if default is _NOT_AN_ARGUMENT:
            if not to.is_output:
                continue
            default = None  # results contain it
        if default is None and member.optional:
            default = _UNKNOWN
        field = _field(to, member, default)
        written = member.name if private else config.written_name(member.name, field.written_alias)
        if to.is_output and (written is None or (field.excluded and not private)):
            continue
        note = documented.parameters.get(member.name) or member.note
        if note:
            field.schema.setdefault("description", note)
        name = written if to.is_output else config.name(member.name, field.alias)
        if name is None:
            to.say(f"the name of `{node.name}.{member.name}` in JSON can't be read without running the file")
            return {}
        properties[name] = field.schema
        if field.required and not (to.is_output and (field.alias or field.excluded is None)):
            required.append(name)
    result: JsonObject = {"type": "object"}
    if documented.description:
        result["description"] = documented.description
    result["properties"] = properties
    if not to.is_output:  # results have computed fields, too
        result |= _other_keys(config)
    return _with_required(result, required)


def _other_keys(config: ModelConfig) -> JsonObject:
    """Return the keyword for keys that aren't fields of a class.

    Unless its configuration says otherwise, they are rejected, because the class would discard them.
    """
    if config.has("extra_items"):
        return {}
    extra = {None: False, "forbid": False, "allow": True}.get(config.extra)
    return {} if extra is None else {"additionalProperties": extra}


def _field(to: Converter, member: _Member, default: ast.expr | None) -> FieldInfo:
    line = member.annotation.lineno
    annotation: ast.expr | None = member.annotation
    if to.is_output and member.written is not None:
        # what another module declares can't be read beside the default of this one
        annotation = member.written.annotation if member.written.scope is member.scope else None
    elif not to.is_output:
        annotation = member.accepted or member.annotation
    if member.scope is to.scope:
        return to.field(annotation, default, line)
    with to.inside(member.scope):
        return to.field(annotation, default, line)


def _with_required(result: JsonObject, required: list[JsonValue]) -> JsonObject:
    if required:
        result["required"] = required
    return result


def _docstring(node: ast.ClassDef) -> str:
    first = node.body[0] if node.body else None
    return _string(first) or ""


def _string(statement: ast.stmt | None) -> str | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return statement.value.value if isinstance(statement.value.value, str) else None
    return None


def _members(scope: Scope, node: ast.ClassDef) -> list[_Member]:
    """Return the fields of a class, inherited ones first; a field replaces an inherited one with the same name."""
    found: dict[str, _Member] = {}
    lineage = scope.lineage(node)
    dataclasses = [ancestor for home, ancestor in lineage.ours if _is_dataclass(home, ancestor)]
    for home, ancestor in lineage.ours:
        if dataclasses and ancestor not in dataclasses:  # annotations in other classes make no fields
            continue
        optional = any(keyword.arg == "total" and _is_false(keyword.value) for keyword in ancestor.keywords)
        for member in _own_members(home, ancestor, optional=optional):
            found[member.name] = member
        for name, written in serializers.of_fields(home, ancestor, list(found)):
            # only a model around a dataclass applies its serializers
            found[name] = found[name]._replace(written=Written(None, home) if dataclasses else written)
    return list(found.values())


def _own_members(scope: Scope, node: ast.ClassDef, *, optional: bool) -> Iterator[_Member]:
    body = [statement.node for statement in statements(node.body)]
    methods = (statement for statement in body if isinstance(statement, ast.FunctionDef))
    validators = [one for method in methods for one in method.decorator_list if isinstance(one, ast.Call)]
    for statement, following in zip(body, [*body[1:], None], strict=True):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        annotation = statement.annotation
        if _wrapper(scope, annotation) in _NO_FIELDS:
            continue
        note = docstrings.cleaned(_string(following) or "")
        name = statement.target.id
        accepted = constraints.input_type(_of_field(validators, name), scope) if validators else None
        yield _Member(name, annotation, statement.value, note, optional, scope, accepted)


def _of_field(decorators: Iterable[ast.Call], field: str) -> Iterator[ast.expr]:
    """Yield the decorators that name a field, or all fields."""
    for decorator in decorators:
        if any(isinstance(name, ast.Constant) and name.value in (field, "*") for name in decorator.args):
            yield decorator


def _is_init_only(member: _Member) -> bool:
    return _wrapper(member.scope, member.annotation) == "dataclasses.InitVar"


def _wrapper(scope: Scope, annotation: ast.expr) -> str | None:
    """Return the qualified name of `X` in the annotation `X` or `X[…]`, which may be quoted."""
    node = unquoted(annotation)
    return scope.qualified(node.value if isinstance(node, ast.Subscript) else node)


def _is_dataclass(scope: Scope, node: ast.ClassDef) -> bool:
    decorators = (item.func if isinstance(item, ast.Call) else item for item in node.decorator_list)
    return any(scope.qualified(decorator) in _DATACLASSES for decorator in decorators)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


_NOT_AN_ARGUMENT = ast.Constant(Ellipsis)
"""Marker for `field(init=False)`."""

_UNKNOWN = ast.Constant(Ellipsis)
"""Marker for a default with an unknown value."""


def _of_dataclass_field(scope: Scope, default: ast.expr) -> ast.expr | None:
    """Return the default in `dataclasses.field(...)`; other expressions are the default themselves."""
    if not isinstance(default, ast.Call) or scope.qualified(default.func) != "dataclasses.field":
        return default
    options = {keyword.arg: keyword.value for keyword in default.keywords}
    if "init" in options and _is_false(options["init"]):
        return _NOT_AN_ARGUMENT
    if "default" in options:
        return options["default"]
    if "default_factory" in options:
        return ast.Call(func=options["default_factory"], args=[], keywords=[])
    return None
