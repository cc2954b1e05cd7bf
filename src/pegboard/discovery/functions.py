"""Conversion of functions to tools: signature, docstring, annotations and decorators."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal, NamedTuple

from pegboard.discovery import dictionaries
from pegboard.sdk import decorators
from pegboard.sdk.exports import (
    Function,
    decorated_description,
    docstring,
    framework_argument,
    is_marked,
    parameters,
    variants,
)
from pegboard.signatures import docstrings
from pegboard.signatures.annotations import Annotations
from pegboard.signatures.converter import FieldInfo
from pegboard.signatures.decorated import filled_by_decorators
from pegboard.signatures.definitions import Definitions
from pegboard.signatures.expressions import written
from pegboard.signatures.names import canonical
from pegboard.signatures.runtime_names import unconverted
from pegboard.signatures.supplied import is_marker, is_supplied, supplied_names

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.discovery.parsed import PlainProblem, PlainTool
    from pegboard.discovery.requirements import FileRequirements
    from pegboard.models import JsonObject

_LONGEST_DEFAULT = 60
_LABELS = frozenset({"title", "description", "default"})
_STRUCTURE = frozenset(
    {"$ref", "anyOf", "oneOf", "allOf", "properties", "additionalProperties", "items", "prefixItems"}
)


class Parameter(NamedTuple):
    """Parameter of a function, except `*args` and `**kwargs`."""

    name: str
    annotation: ast.expr | None
    default: ast.expr | None


def tool(
    node: Function, definitions: Definitions, pack: str, file: str, needs: FileRequirements | None = None
) -> PlainTool:
    """Return a function as a tool.

    Args:
        node: Function.
        definitions: Classes and aliases of its file.
        pack: Name of its pack.
        file: Absolute path of its file.
        needs: Requirements of the tools in its file, if it declares any.
    """
    return _Description(node, definitions, pack, file).tool(needs)


class _Description:
    """State of converting one function.

    Attributes:
        problems: Problems found so far.
        context: Current part of the signature, for messages.
        line: Line of that part.
        dictionary: Arguments of a function that gets them as one dictionary, or None.
        declared: Parameters of the function, or those arguments.
        filled: Names of those that a decorator fills in.
        supplied: Those that a decorator or an agent framework fills in.
        parameters: All others, which are the parameters of the tool.
    """

    def __init__(self, node: Function, definitions: Definitions, pack: str, file: str) -> None:
        self.node = node
        self.definitions = definitions
        self.scope = definitions.scope
        self.pack = pack
        self.file = file
        self.problems: list[PlainProblem] = []
        self.context = ""
        self.line = node.lineno
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        required: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
        self.declared = [
            *(
                Parameter(argument.arg, argument.annotation, default)
                for argument, default in zip(positional, [*required, *arguments.defaults], strict=True)
            ),
            *(
                Parameter(argument.arg, argument.annotation, default)
                for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            ),
        ]
        # a function that gets all arguments as one dictionary: they are its parameters
        self.dictionary = dictionaries.declared(node, self.scope)
        if self.dictionary is not None:
            self.declared = [Parameter(name, type_, None) for name, type_ in (self.dictionary.types or {}).items()]
        self.filled = filled_by_decorators(node, self.scope) if node.decorator_list else frozenset()
        may_be_supplied = definitions.may_be_supplied  # most files import no framework, which saves time in each scan
        named = supplied_names(node.decorator_list, self.scope) if may_be_supplied else ()
        self.supplied = [
            parameter
            for parameter in self.declared
            if parameter.name in self.filled
            or parameter.name in named
            or (may_be_supplied and is_supplied(parameter.annotation, parameter.default, self.scope))
        ]
        self.parameters = [parameter for parameter in self.declared if parameter not in self.supplied]

    def tool(self, needs: FileRequirements | None) -> PlainTool:
        node = self.node
        text = docstrings.read(docstring(node))
        decorated = docstrings.read(decorated_description(node, self.scope))
        if not (decorated.description or text.description or docstring(node).strip()):
            self.report(
                f"`{node.name}` is in `__all__` but has no docstring.", "Describe it in a docstring.", "warning"
            )
        self._check_kinds()
        for item in needs.unreadable(node.name) if needs else ():
            self.report(item.message, item.fix, line=item.line)
        decorators.check_requirements(node, self.scope, self.report)
        names = [parameter.name for parameter in self.parameters]
        aliases, renamed = decorators.aliases(node, self.scope, names, self.report)
        fields = self._decorated_fields()
        of_fields = {
            name: found for name, field in fields.items() if isinstance(found := field.get("description"), str)
        }
        texts = of_fields | text.parameters | decorated.parameters
        input_schema, output_schema = self._input_schema(texts, fields), self._output_schema(text.returns)
        description = decorated.description or text.description
        if text.returns and output_schema is None:  # otherwise the output schema contains the text
            description = f"{description}\n\nReturns: {text.returns}".strip()
        return {
            "name": f"{self.pack}.{node.name}",
            "pack": self.pack,
            "description": description,
            "input_schema": input_schema,
            "output_schema": output_schema,
            "handler": {
                "kind": "pack",
                "pack": self.pack,
                "function": node.name,
                "file": self.file,
                "line": node.lineno,
                "is_async": isinstance(node, ast.AsyncFunctionDef),
                "helpers": (),
            },
            "signature": self._signature(input_schema),
            "aliases": aliases,
            "parameter_aliases": renamed,
            "hints": self._hints(),
            "requirements": needs.of(node.name) if needs else [],
            "problems": self.problems,
        }

    def _hints(self) -> decorators.StaticHints | None:
        """Return the hints, which apply to all definitions that a condition chooses between."""
        others = variants(self.scope, self.node)
        different = [other for other in others if other is None or _interface(other) != _interface(self.node)]
        if different:
            lines = sorted(str(other.lineno) for other in different if other)
            where = f"in line {', '.join(lines)}" if lines else "elsewhere"
            self.report(
                f"`{self.node.name}` is also defined {where}, and the condition that chooses one can't be evaluated "
                f"without running the file. The description and parameters shown are those in line {self.node.lineno}; "
                "the hints are the most careful ones of all definitions.",
                "Define it once, with the condition inside of it.",
            )
        return decorators.most_careful(
            decorators.hints(each, self.scope, parameters(each), self.report) if each else decorators.assumed_hints()
            for each in (self.node, *different)
        )

    def report(
        self,
        message: str,
        fix: str = "",
        severity: Literal["error", "warning", "hint"] = "warning",
        *,
        line: int | None = None,
    ) -> None:
        """Add a problem of this function."""
        self.problems.append(
            {
                "message": message,
                "fix": fix,
                "severity": severity,
                "file": self.file,
                "line": line or self.node.lineno,
                "pack": self.pack,
                "tool": f"{self.pack}.{self.node.name}",
            }
        )

    def _check_kinds(self) -> None:
        node, arguments = self.node, self.node.args
        if self.dictionary is not None:
            return
        if arguments.posonlyargs:
            listed = ", ".join(f"`{argument.arg}`" for argument in arguments.posonlyargs)
            self.report(
                f"`{node.name}` accepts {listed} by position only, but tools are called with keyword arguments.",
                "Remove the `/` from its signature.",
                "error",
            )
        if arguments.vararg:
            self.report(
                f"`{node.name}` accepts `*{arguments.vararg.arg}`, but tools are called with keyword arguments.",
                f"Use a list: `{arguments.vararg.arg}: list[...]`.",
            )
        supplied = {parameter.name for parameter in self.supplied}
        dispatched = any(self.scope.qualified(one) == "functools.singledispatch" for one in node.decorator_list)
        unusable = self._unusable()  # the advice on those also makes the others keyword-only
        if any(argument.arg not in supplied for argument in arguments.args) and not dispatched and not unusable:
            self.report(
                f"`{node.name}` has positional parameters, but tools are called with keyword arguments.",
                self._keyword_only(),
                "hint" if is_marked(node) else "warning",  # functions of agent frameworks are written in this way
            )
        for parameter in unusable:
            self.report(
                f"`{node.name}` requires `{parameter.name}`, which an agent framework supplies but Pegboard can't.",
                f"Set its default to None, so that the function can be called without it. {self._keyword_only()}",
                "error",
                line=parameter.annotation.lineno if parameter.annotation else None,
            )

    def _unusable(self) -> list[Parameter]:
        """Return the parameters without which the function can't be called, but which only a framework can supply."""
        return [
            parameter
            for parameter in self.supplied
            if parameter.name not in self.filled
            and (parameter.default is None or is_marker(parameter.default, self.scope))
        ]

    def _keyword_only(self) -> str:
        """Return the advice to write the signature with keyword-only parameters.

        A framework passes the first parameter by position if it fills it in, so that stays before the `*`.
        """
        parts = [
            parameter.name + ("=None" if parameter in self._unusable() else _default(parameter, "="))
            for parameter in self.declared
        ]
        if self.node.args.kwarg:
            parts.append(f"**{self.node.args.kwarg.arg}")
        positional = self.node.args.posonlyargs or self.node.args.args
        parts.insert(int(bool(positional) and self.declared[0] in self.supplied), "*")
        if parts[-1] == "*":
            parts.pop()
        return f"Write `def {self.node.name}({', '.join(parts)})`."

    def _input_schema(self, texts: dict[str, str], fields: dict[str, JsonObject]) -> JsonObject:
        if self.dictionary is not None and self.dictionary.schema is not None:
            return self.dictionary.schema
        annotations = Annotations(self.definitions, self._unresolved)
        properties: dict[str, JsonValue] = {}
        required: list[JsonValue] = []
        for parameter in self.parameters:
            schema, required_by_field, *_ = self._field(annotations, parameter)
            _constrain(schema, fields.get(parameter.name, {}))
            missing = unconverted(parameter.annotation, self.scope)
            if missing:
                self.report(
                    f"`{self.node.name}`, {self.context}: the function receives plain JSON, because "
                    f"`{missing}` is imported only for type checkers.",
                    f"Import `{missing}` outside of `if TYPE_CHECKING`.",
                    line=self.line,
                )
            # the default in `Annotated[int, FieldInfo(default=1)]` applies to pydantic only
            needed = required_by_field or parameter.default is None
            text = texts.get(parameter.name)
            if text:
                schema.setdefault("description", text)
            properties[parameter.name] = schema
            if needed:
                required.append(parameter.name)
        result: JsonObject = {"type": "object", "properties": properties}
        if required:
            result["required"] = required
        result["additionalProperties"] = False
        self._add_keywords(result, annotations, texts)
        definitions = annotations.definitions()
        if definitions:
            result["$defs"] = definitions
        return result

    def _field(self, annotations: Annotations, parameter: Parameter) -> FieldInfo:
        self.context = f"parameter `{parameter.name}`"
        self.line = parameter.annotation.lineno if parameter.annotation else self.node.lineno
        return annotations.field(parameter.annotation, parameter.default)

    def _unresolved(self, text: str, line: int | None) -> None:
        effect = "Its result has no schema." if self.context == "return value" else "Any value is accepted."
        types = "a type of the standard library, of this file, or of another module of the project"
        if "JSON form" in text:
            types = "a type that has a JSON form, such as `str`, `list[int]` or a dataclass"
        self.report(
            f"`{self.node.name}`, {self.context}: {text}.",
            f"{effect} Use {types}.",
            line=line or self.line,
        )

    def _add_keywords(self, schema: JsonObject, annotations: Annotations, texts: dict[str, str]) -> None:
        """Add the values that `**kwargs` accepts: any, those of one type, or the keys of an unpacked TypedDict."""
        if self.dictionary is not None:
            self._add_dictionary(schema, annotations, self.dictionary)
            return
        more = self.node.args.kwarg
        if more is None:
            return
        node = more.annotation
        if not isinstance(node, ast.Subscript) or canonical(self.scope.qualified(node.value)) != "typing.Unpack":
            values = self._field(annotations, Parameter(more.arg, node, None)).schema
            if more.arg in texts:
                values.setdefault("description", texts[more.arg])
            schema["additionalProperties"] = values or True
            return
        self._add_fields(schema, annotations, Parameter(more.arg, node.slice, None), texts)

    def _add_dictionary(self, schema: JsonObject, annotations: Annotations, found: dictionaries.Declared) -> None:
        """Add the fields of the class that describes the arguments, if one does."""
        if found.types is not None:
            return
        quiet = Annotations(self.definitions, lambda _text, _line: None)
        if _definition(quiet, quiet.field(found.model).schema):
            self._add_fields(schema, annotations, Parameter("schema", found.model, None), {})
            return
        schema["additionalProperties"] = True
        self.report(
            f"The schema of `{self.node.name}` can't be read without running the file: any arguments are accepted.",
            'Write it in the decorator, such as `{"city": str}`.',
        )

    def _add_fields(
        self, schema: JsonObject, annotations: Annotations, parameter: Parameter, texts: dict[str, str]
    ) -> None:
        """Add the fields of a class to the properties; if it can't be read, allow any."""
        keys = _definition(annotations, self._field(annotations, parameter).schema)
        properties, required = schema["properties"], schema.setdefault("required", [])
        if keys is None or not isinstance(properties, dict) or not isinstance(required, list):
            schema["additionalProperties"] = True
            return
        unpacked, needed = keys.get("properties"), keys.get("required")
        for name, field in (unpacked if isinstance(unpacked, dict) else {}).items():
            described: JsonObject = {"description": texts[name]} if name in texts else {}
            properties[name] = {**described, **field} if isinstance(field, dict) else field
        required.extend(needed if isinstance(needed, list) else [])

    def _decorated_fields(self) -> dict[str, JsonObject]:
        """Return the schemas of parameters in the decorator: `args_schema` of LangChain, `inputSchema` of Strands."""
        node = framework_argument(self.node, "args_schema", "inputSchema")
        if node is None:
            return {}
        annotations = Annotations(self.definitions, lambda _text, _line: None)
        schema = _definition(annotations, annotations.field(node).schema)
        fields = (schema or dictionaries.written_schema(node, self.scope) or {}).get("properties")
        found = fields.items() if isinstance(fields, dict) else ()
        return {name: field for name, field in found if isinstance(field, dict)}

    def _output_schema(self, text: str) -> JsonObject | None:
        if self.node.returns is None or self.dictionary is not None:  # the latter returns MCP's blocks of content
            return None
        annotations = Annotations(self.definitions.outputs, self._unresolved)
        self.context, self.line = "return value", self.node.returns.lineno
        schema = annotations.field(self.node.returns).schema
        if not schema:
            return None
        if text:
            schema.setdefault("description", text)
        definitions = annotations.definitions()
        if definitions:
            schema["$defs"] = definitions
        return schema

    def _signature(self, schema: JsonObject) -> str:
        properties = schema.get("properties") if self.dictionary is not None and not self.parameters else None
        parts = (
            [*properties]
            if isinstance(properties, dict)
            else [
                parameter.name
                + (f": {written(parameter.annotation)}" if parameter.annotation else "")
                + _default(parameter, " = " if parameter.annotation else "=")
                for parameter in self.parameters
            ]
        )
        if parts:
            parts.insert(0, "*")
        more = self.node.args.kwarg
        if more and self.dictionary is None:
            parts.append(f"**{more.arg}" + (f": {written(more.annotation)}" if more.annotation else ""))
        returns = f" -> {written(self.node.returns)}" if self.node.returns else ""
        return f"{self.pack}.{self.node.name}({', '.join(parts)}){returns}"


def _constrain(schema: JsonObject, field: JsonObject) -> None:
    """Add what another schema of a parameter says beyond its annotation, if both describe a scalar of the same type."""
    if not _STRUCTURE.isdisjoint({*schema, *field}) or schema.get("type", field.get("type")) != field.get("type"):
        return
    schema.update({key: value for key, value in field.items() if key not in _LABELS})


def _definition(annotations: Annotations, schema: JsonObject) -> JsonObject | None:
    """Return the definition to which a schema refers, or None."""
    found = annotations.definitions().get(str(schema.get("$ref")).removeprefix("#/$defs/"))
    return found if isinstance(found, dict) else None


def _interface(node: Function) -> list[str]:
    """Return all of a function that a tool shows; it is equal for definitions that differ in their bodies only."""
    parts = [node.args, *node.decorator_list, *([node.returns] if node.returns else [])]
    return [docstring(node), *map(ast.dump, parts)]


def _default(parameter: Parameter, equals: str) -> str:
    return "" if parameter.default is None else f"{equals}{written(parameter.default, _LONGEST_DEFAULT)}"
