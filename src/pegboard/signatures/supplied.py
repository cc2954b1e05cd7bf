"""Parameters that an agent framework fills in itself, such as `ctx: RunContextWrapper[...]`, which no model sees."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from pegboard.signatures.expressions import unquoted
from pegboard.signatures.names import canonical

if TYPE_CHECKING:
    from pegboard.sdk.scope import Scope

_TYPES = {
    "agents": ("RunContextWrapper", "ToolContext"),
    "pydantic_ai": ("RunContext",),
    "mcp": ("Context",),
    "fastmcp": ("Context",),
    "langchain_core": (
        "RunnableConfig",
        "CallbackManagerForToolRun",
        "AsyncCallbackManagerForToolRun",
        "Callbacks",
    ),
    "langchain": ("RunnableConfig", "ToolRuntime", "CallbackManagerForToolRun", "AsyncCallbackManagerForToolRun"),
    "langgraph": ("ToolRuntime", "Runtime"),
    "google.adk": ("ToolContext", "Context"),
    "strands": ("ToolContext", "Agent"),
    "livekit.agents": ("RunContext",),
    "llama_index.core": ("Context",),
    "agno": ("RunContext", "Agent", "Team"),
    "mirascope": ("Context",),
    "semantic_kernel": ("Kernel", "KernelArguments"),
    "pipecat": ("FunctionCallParams",),
    "autogen_core": ("CancellationToken",),
    "agent_framework": ("FunctionInvocationContext",),
}
"""Package of a framework → its types of parameters that it fills in."""

_MARKERS = {
    "langchain_core": ("InjectedToolArg", "InjectedToolCallId"),
    "langchain": ("InjectedToolArg", "InjectedToolCallId", "InjectedState", "InjectedStore"),
    "langgraph": ("InjectedState", "InjectedStore"),
    "mcp": ("Resolve",),
    "fastmcp": ("Depends",),
    "fast_depends": ("Depends",),
}
"""Package of a framework → arguments of `Annotated` that mark such a parameter."""

_DEFAULTS = {
    "fastmcp": ("Depends", "CurrentContext", "CurrentFastMCP", "CurrentRequest", "CurrentHeaders"),
    "fast_depends": ("Depends",),
}
"""Package of a framework → calls that mark such a parameter as its default."""

_NAMES = {"strands": ("agent",), "agno": ("agent", "team", "run_context", "images", "videos", "audios", "files")}
"""Package of a framework → names of parameters that its decorator `@tool` fills in, whatever their types are."""

_WITHOUT_FRAMEWORK = sys.stdlib_module_names | {
    "annotated_types", "httpx", "numpy", "pandas", "pegboard", "pydantic", "requests", "typing_extensions",
}  # fmt: skip
"""Common packages that neither are such a framework nor belong to a pack's project."""

_DEEPEST = 20


def imports_framework(scope: Scope) -> bool:
    """Return whether a file may import a framework, directly or through a module of its project.

    Without that, nothing fills in a parameter.
    """
    imported = (*scope.stars, *(binding for binding in scope.names.values() if isinstance(binding, str)))
    return any(module.partition(".")[0] not in _WITHOUT_FRAMEWORK for module in imported)


def is_supplied(annotation: ast.expr | None, default: ast.expr | None, scope: Scope) -> bool:
    """Return whether a framework fills in a parameter.

    Args:
        annotation: Annotation of the parameter, or None.
        default: Its default, or None.
        scope: Scope of its file.
    """
    if default is not None and is_marker(default, scope):
        return True
    return annotation is not None and _is_supplied_type(annotation, scope, _DEEPEST)


def supplied_names(decorators: list[ast.expr], scope: Scope) -> tuple[str, ...]:
    """Return the names of parameters that the decorators of a function fill in."""
    called = [node.func if isinstance(node, ast.Call) else node for node in decorators]
    found = [name for node in called if (name := scope.qualified(node)) and name.endswith(".tool")]
    return tuple(name for one in found for name in _NAMES.get(one.partition(".")[0], ()))


def is_marker(default: ast.expr, scope: Scope) -> bool:
    """Return whether a default asks a framework for a value: `Depends(...)`."""
    return isinstance(default, ast.Call) and _is_one_of(_DEFAULTS, scope.qualified(default.func))


def _is_supplied_type(annotation: ast.expr, scope: Scope, depth: int) -> bool:
    if depth == 0:
        return False
    node = unquoted(annotation)
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _are_supplied([left, right], scope, depth - 1)
        case ast.Subscript(value=value, slice=arguments):
            parts = arguments.elts if isinstance(arguments, ast.Tuple) else [arguments]
            name = canonical(scope.qualified(value))
            if name in {"typing.Optional", "typing.Union"}:
                return _are_supplied(parts, scope, depth - 1)
            if name == "typing.Annotated":
                marked = any(_is_named(part, _MARKERS, scope) for part in parts[1:])
                return marked or _is_supplied_type(parts[0], scope, depth - 1)
            return _is_supplied_type(value, scope, depth - 1)
        case ast.Name() | ast.Attribute():
            return _is_named(node, _TYPES, scope) or _is_alias(node, scope, depth - 1)
        case _:
            return False


def _are_supplied(variants: list[ast.expr], scope: Scope, depth: int) -> bool:
    """Return whether all variants of a union, except None, are types that a framework fills in."""
    types = [node for node in variants if not (isinstance(node, ast.Constant) and node.value is None)]
    return bool(types) and all(_is_supplied_type(node, scope, depth) for node in types)


def _is_alias(node: ast.expr, scope: Scope, depth: int) -> bool:
    found = scope.find(node)
    if found is None or not isinstance(found.definition, ast.expr):
        return False
    return _is_supplied_type(found.definition, found.scope, depth)


def _is_named(node: ast.expr, names: dict[str, tuple[str, ...]], scope: Scope) -> bool:
    """Return whether an expression is, calls, or is a subclass of one of these classes."""
    target = node.func if isinstance(node, ast.Call) else node
    if _is_one_of(names, scope.qualified(target)):
        return True
    found = scope.find(target)
    if found is None or not isinstance(found.definition, ast.ClassDef):
        return False
    return any(_is_one_of(names, base) for base in found.scope.lineage(found.definition).foreign)


def _is_one_of(names: dict[str, tuple[str, ...]], qualified: str | None) -> bool:
    package, _, name = (qualified or "").rpartition(".")
    return any(name in known and f"{package}.".startswith(f"{prefix}.") for prefix, known in names.items())
