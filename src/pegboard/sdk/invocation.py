"""Synchronous calls of tool functions, including coroutines and generators."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Mapping, Sequence
from types import GeneratorType
from typing import Any  # functions of packs accept and return any value

from pegboard.sdk.arguments import ConversionError, Parameters
from pegboard.sdk.failure import ToolFailed, only_exception
from pegboard.sdk.layers import is_partial, layers, missing_arguments
from pegboard.sdk.values import NotSerializableError, encode


def run(
    tool: str,
    function: Callable[..., Any],
    name: str,
    arguments: Mapping[str, object],
    log: Callable[[str], None],
) -> object:
    """Run the function of a tool in this process and return its result.

    Arguments and result pass as JSON, so that the call behaves as it does between worker processes.

    Args:
        tool: Qualified name, for error messages.
        function: Function of the tool.
        name: Its name in the pack.
        arguments: Arguments by parameter name or alias.
        log: Function that shows a message.

    Raises:
        TypeError: The arguments don't match its parameters, or have no JSON form.
        ToolFailed: The function raised `ToolFailed`.
        RuntimeError: The function raised another exception, which is the cause, or its result has no JSON form.
    """
    bound = _bind(tool, layers(function, name), arguments)
    try:
        passed = _as_json(bound)
    except NotSerializableError as unfit:
        raise TypeError(
            f"{tool} was not called because its arguments can't be converted to JSON: {unfit.fault}."
        ) from None
    try:
        return _as_json(resolve(function(**Parameters(function, name, log).fit(passed, check=True))))
    except ConversionError as unfit:
        raise TypeError(f"{tool} was not called because its arguments are invalid: {unfit}") from None
    except NotSerializableError as unfit:
        raise RuntimeError(f"{tool} failed: {unfit}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the author's code may raise anything
        if isinstance(error, TypeError) and missing_arguments(error, function, name, passed):
            raise TypeError(f"{tool}: {error}.") from None
        failed = only_exception(error)
        if isinstance(failed, ToolFailed):
            _convert_failure(failed)
            raise failed  # noqa: B904 - it keeps its own cause
        raise RuntimeError(f"{tool} failed: {type(failed).__name__}: {failed}") from failed


def _convert_failure(failed: ToolFailed) -> None:
    """Convert the parts of a failure to JSON, as a worker does."""
    failed.code = None if failed.code is None else str(failed.code)
    try:
        failed.data = _as_json(failed.data)
    except NotSerializableError as unfit:
        failed.message, failed.data = f"{failed.message} ({unfit})", None
        failed.args = (failed.message,)


def _as_json(value: object) -> Any:  # noqa: ANN401 - any JSON value
    return json.loads(encode(value))


def resolve(value: Any) -> object:  # noqa: ANN401 - see above
    """Await an awaitable, and collect the items of a generator into a list; return other values unchanged."""
    if isinstance(value, GeneratorType):
        return list(value)
    if hasattr(value, "__await__"):
        return resolve(_run(_await_value(value)))
    if hasattr(value, "__aiter__"):
        return _run(_collect(value))
    return value


def _bind(tool: str, functions: Sequence[Callable[..., Any]], arguments: Mapping[str, object]) -> dict[str, object]:
    import inspect

    parameters: dict[str, str] = {}
    for function in functions:
        aliases = getattr(function, "__pegboard_aliases__", {})
        parameters |= {alias: name for name, others in aliases.items() for alias in others}
    bound: dict[str, object] = {}
    for given, value in arguments.items():
        name = parameters.get(given, given)
        if name in bound:
            raise TypeError(f"{tool} got {name} twice, under two of its names.")
        bound[name] = value
    # `inspect` looks through partial functions and `functools.wraps`, but not through other decorators
    outermost, innermost = functions[0], functions[-1]
    seen = is_partial(outermost) or hasattr(outermost, "__wrapped__")
    try:
        signature = inspect.signature(outermost if seen else innermost)
    except (TypeError, ValueError):  # such as an AsyncMock before Python 3.11.3, or a built-in function
        return bound
    fault = _fault(signature.bind, bound)
    # A decorator may fill in those that are missing; otherwise the call itself says so.
    may_be_filled = outermost is not innermost and not is_partial(outermost)
    if fault and (not may_be_filled or _fault(signature.bind_partial, bound)):
        raise TypeError(f"{tool}: {fault}.")
    return bound


def _fault(bind: Callable[..., object], arguments: Mapping[str, object]) -> str:
    """Return why arguments don't match a signature; empty if they do."""
    try:
        bind(**arguments)
    except TypeError as error:
        return str(error)
    return ""


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
