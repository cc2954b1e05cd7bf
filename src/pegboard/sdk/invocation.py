"""Synchronous calls of tool functions, including coroutines and generators."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Mapping
from types import GeneratorType
from typing import Any  # functions of packs accept and return any value

from pegboard.sdk.failure import ToolFailed


def run(tool: str, function: Callable[..., Any], arguments: Mapping[str, object]) -> object:
    """Run the function of a tool in this process and return its result.

    Args:
        tool: Qualified name, for error messages.
        function: Function of the tool.
        arguments: Arguments by parameter name or alias.

    Raises:
        TypeError: The arguments don't match its parameters.
        ToolFailed: The function raised `ToolFailed`.
        RuntimeError: The function raised another exception, which is the cause.
    """
    bound = _bind(tool, function, arguments)
    try:
        return resolve(function(**bound))
    except ToolFailed:
        raise
    except Exception as error:
        raise RuntimeError(f"{tool} failed: {type(error).__name__}: {error}") from error


def resolve(value: Any) -> object:  # noqa: ANN401 - see above
    """Await an awaitable, and collect the items of a generator into a list; return other values unchanged."""
    if isinstance(value, GeneratorType):
        return list(value)
    if hasattr(value, "__await__"):
        return resolve(_run(_await_value(value)))
    if hasattr(value, "__aiter__"):
        return _run(_collect(value))
    return value


def _bind(tool: str, function: Callable[..., Any], arguments: Mapping[str, object]) -> dict[str, object]:
    import inspect

    _, aliases = getattr(function, "__pegboard_aliases__", ((), {}))
    parameters = {alias: name for name, others in aliases.items() for alias in others}
    bound: dict[str, object] = {}
    for given, value in arguments.items():
        name = parameters.get(given, given)
        if name in bound:
            raise TypeError(f"{tool} got {name} twice, under two of its names.")
        bound[name] = value
    try:
        inspect.signature(function).bind(**bound)
    except TypeError as error:
        raise TypeError(f"{tool}: {error}.") from None
    return bound


def _run(coroutine: Coroutine[Any, Any, object]) -> object:
    """Run a coroutine to completion; in a separate thread if this one already runs an event loop."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    with ThreadPoolExecutor(1, "pegboard-call") as executor:
        return executor.submit(copy_context().run, asyncio.run, coroutine).result()


async def _await_value(value: Awaitable[object]) -> object:
    return await value


async def _collect(value: AsyncIterable[object]) -> list[object]:
    return [item async for item in value]
