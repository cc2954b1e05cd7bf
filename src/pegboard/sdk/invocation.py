"""Running a function, asynchronous or not, to its end."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Mapping
from types import GeneratorType
from typing import Any  # what functions of packs take and return may be anything

from pegboard.sdk.failure import ToolFailed


def run(tool: str, function: Callable[..., Any], arguments: Mapping[str, object]) -> object:
    """Runs the function of a tool in this process.

    Args:
        tool: Its qualified name, for messages.
        function: The function.
        arguments: By the names of its parameters, or their other names.

    Raises:
        TypeError: The arguments don't fit its parameters.
        ToolFailed: It failed in its author's words.
        RuntimeError: It raised anything else, which is the cause.
    """
    fitting = _fitting(tool, function, arguments)
    try:
        return resolved(function(**fitting))
    except ToolFailed:
        raise
    except Exception as error:
        raise RuntimeError(f"{tool} failed: {type(error).__name__}: {error}") from error


def resolved(value: Any) -> object:  # noqa: ANN401 - see above
    """Awaits what must be awaited, and collects what comes bit by bit."""
    if isinstance(value, GeneratorType):
        return list(value)
    if hasattr(value, "__await__"):
        return resolved(_run(_awaited(value)))
    if hasattr(value, "__aiter__"):
        return _run(_collected(value))
    return value


def _fitting(tool: str, function: Callable[..., Any], arguments: Mapping[str, object]) -> dict[str, object]:
    import inspect

    _, renamed = getattr(function, "__pegboard_aliases__", ((), {}))
    proper = {other: name for name, others in renamed.items() for other in others}
    fitting: dict[str, object] = {}
    for given, value in arguments.items():
        name = proper.get(given, given)
        if name in fitting:
            raise TypeError(f"{tool} got {name} twice, under two of its names.")
        fitting[name] = value
    try:
        inspect.signature(function).bind(**fitting)
    except TypeError as error:
        raise TypeError(f"{tool}: {error}.") from None
    return fitting


def _run(coroutine: Coroutine[Any, Any, object]) -> object:
    """Runs a coroutine to its end: here, or in a thread of its own where an event loop runs here already."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    with ThreadPoolExecutor(1, "pegboard-call") as executor:
        return executor.submit(copy_context().run, asyncio.run, coroutine).result()


async def _awaited(value: Awaitable[object]) -> object:
    return await value


async def _collected(value: AsyncIterable[object]) -> list[object]:
    return [item async for item in value]
