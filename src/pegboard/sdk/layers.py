"""Functions inside a decorated function."""

from __future__ import annotations

from types import CodeType, FunctionType

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any  # functions accept and return any value

_DEEPEST = 10
"""Most decorators to look through; real tools have a few."""


def layers(function: Callable[..., Any], name: str) -> list[Callable[..., Any]]:
    """Return a decorated function and the functions that it calls, the outermost first.

    The last one has the annotations of the tool. A decorator without `functools.wraps` says nothing about the function
    that it replaces, so that function is looked up where the decorator keeps it: in a closure or an attribute.

    Args:
        function: Function, possibly decorated.
        name: Name of the tool's function in its pack.
    """
    found = [function]
    while len(found) < _DEEPEST and (inner := _wrapped(found[-1])) is not None:
        found.append(inner)
    return found if _is_called(found[-1], name) else _path(function, name, _DEEPEST, set()) or found


def keywords_of_validated_call(
    functions: Iterable[Callable[..., Any]], annotations: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, str]:
    """Return the parameters that pydantic's `validate_call` accepts only by an alias, each with the alias.

    Args:
        functions: Layers of the function.
        annotations: Annotations of the innermost one.
        defaults: Its defaults.
    """
    if not any("raw_function" in getattr(function, "__dict__", ()) for function in functions):
        return {}
    found: dict[str, str] = {}
    for name, annotation in annotations.items():
        for field in (*getattr(annotation, "__metadata__", ()), defaults.get(name)):
            alias = getattr(field, "validation_alias", None)
            alias = next(iter(getattr(alias, "choices", ())), alias)  # `AliasChoices`
            if isinstance(alias, str):
                found[name] = alias
    return found


def missing_arguments(
    error: TypeError, function: Callable[..., Any], name: str, args: Mapping[str, object]
) -> list[str]:
    """Return the required parameters that a call lacks, if that is what an exception says.

    Args:
        error: Exception that the call raised.
        function: Function, possibly decorated.
        name: Name of the tool's function in its pack.
        args: Arguments of the call.
    """
    code = _code(function, name)
    if code is None or not str(error).startswith(f"{code.co_qualname}() missing "):
        return []
    _, _, listed = str(error).partition(": ")
    return [
        parameter
        for parameter in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if f"'{parameter}'" in listed and parameter not in args
    ]


def positional_only(error: TypeError, function: Callable[..., Any], name: str, args: Mapping[str, object]) -> list[str]:
    """Return the arguments that a function accepts by position only, if an exception says that it got them by name.

    Args: those of `missing_arguments`.
    """
    code = _code(function, name)
    if code is None:
        return []
    # With `**kwargs`, Python says that they are missing.
    refused = (f"{code.co_qualname}() got some positional-only ", f"{code.co_qualname}() missing ")
    given = [parameter for parameter in code.co_varnames[: code.co_posonlyargcount] if parameter in args]
    return given if str(error).startswith(refused) else []


def _code(function: Callable[..., Any], name: str) -> CodeType | None:
    """Return the code of the innermost function, or None if it is written in C."""
    code = getattr(layers(function, name)[-1], "__code__", None)
    return code if type(code) is CodeType else None


def by_name(refused: Iterable[str]) -> str:
    """Return the message of a call that failed because the function accepts some arguments by position only."""
    listed = " and ".join(f"`{parameter}`" for parameter in refused)
    return (
        f"TypeError: The function accepts {listed} by position only, but tools are called with keyword arguments. "
        "Remove the `/` from its signature."
    )


def not_supplied(error: TypeError, missing: Iterable[str]) -> str:
    """Return the message of a call that failed because only an agent framework could supply some parameters."""
    listed = " and ".join(f"`{parameter}`" for parameter in missing)
    return (
        f"TypeError: {error}. Pegboard can't supply {listed}. Set the default to None, so that the function can be "
        "called without it."
    )


def is_partial(function: Callable[..., Any]) -> bool:
    """Return whether a function is a `functools.partial`."""
    kind = type(function)
    return (kind.__module__, kind.__name__) == ("functools", "partial")


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the function that a decorated function or a `functools.partial` calls, or None."""
    if is_partial(function):
        wrapped: Callable[..., Any] = function.func  # type: ignore[attr-defined] # known by its type
        return wrapped
    return getattr(function, "__dict__", {}).get("__wrapped__")


def _is_called(function: object, name: str) -> bool:
    """Return whether a function was defined at the top level of a module with this name."""
    return type(function) is FunctionType and function.__code__.co_qualname == name


def _path(function: Any, name: str, depth: int, seen: set[int]) -> list[Callable[..., Any]]:  # noqa: ANN401 - see `_kept`
    """Return the functions from this one to the one with this name; empty if it is not reached."""
    if _is_called(function, name):
        return [function]
    seen.add(id(function))
    for inner in _kept(function) if depth else ():
        if id(inner) not in seen and (path := _path(inner, name, depth - 1, seen)):
            return [function, *path]
    return []


def _kept(function: Any) -> Iterator[Any]:  # noqa: ANN401 - any object can be called
    """Yield what a callable object keeps and can be called."""
    if is_partial(function):
        held = [function.func]
    else:
        held = [*getattr(function, "__dict__", {}).values(), getattr(function, "__func__", None)]
    for cell in getattr(function, "__closure__", None) or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # a variable without a value
            continue
    yield from (one for one in held if callable(one) and not isinstance(one, type))
