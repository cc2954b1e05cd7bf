"""One call of a tool, and what comes of it."""

from __future__ import annotations

import sys
from contextlib import suppress
from time import perf_counter
from types import GeneratorType

from pegboard.sdk.failure import ToolFailed
from pegboard.worker.arguments import Unfit
from pegboard.worker.errors import failure, raised
from pegboard.worker.leftovers import is_unfinished_business
from pegboard.worker.loader import NoSuchTool, Shelf, Tool
from pegboard.worker.values import NotSerialisable, encode

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from asyncio import Runner
    from collections.abc import AsyncIterable, Awaitable, Coroutine, Mapping
    from typing import Any  # what a tool takes and returns may be anything

_BALLAST = 4 * 2**20
"""Bytes that are let go when memory is out, so that there is enough to say so."""


class Outcome:
    """What came of a call.

    Args:
        data: The result, as JSON.
        error: Why it failed, if it did.
        spent: Whether the process should not be used again.
    """

    def __init__(self, data: bytes = b"null", error: dict[str, object] | None = None, *, spent: bool = False) -> None:
        self.data = data
        self.error = error
        self.spent = spent


class Caller:
    """Calls tools: synchronous ones as they are, asynchronous ones on one event loop of its own."""

    def __init__(self) -> None:
        self.ms = 0.0
        """How many milliseconds the last tool took, the loading of its pack left out."""
        self._shelf = Shelf()
        self._runner: Runner | None = None
        self._left_tasks = False
        self._ballast = bytes(_BALLAST)

    def call(self, file: str, function: str, args: dict[str, Any]) -> Outcome:
        """Calls a function of a pack; whatever it does short of ending the process becomes an outcome.

        Args:
            file: The pack's file.
            function: The function's name.
            args: Its arguments as JSON has them; changed in place.
        """
        self.ms = 0.0
        self._left_tasks = False
        outcome = self._outcome(file, function, args)
        outcome.spent |= self._left_tasks
        return outcome

    def file_of(self, namespace: Mapping[str, object]) -> str | None:
        """Gives the file of the pack, or of its helper, whose code has these globals."""
        return self._shelf.file_of(namespace)

    def close(self) -> None:
        """Ends what asynchronous tools left open."""
        if self._runner is not None:
            self._runner.close()

    def _outcome(self, file: str, function: str, args: dict[str, Any]) -> Outcome:
        try:
            return self._attempted(file, function, args)
        except MemoryError as error:
            self._ballast = b""
            _clear_frames(error)
            return Outcome(error=raised(error, file), spent=True)
        except BaseException as error:  # noqa: BLE001 - a tool raises what it likes, `SystemExit` too
            return Outcome(error=raised(error, file), spent=not isinstance(error, Exception))

    def _attempted(self, file: str, function: str, args: dict[str, Any]) -> Outcome:
        try:
            tool = self._shelf.pack(file).tool(function)
        except NoSuchTool:
            return Outcome(error=failure("tool_not_found", f"{file} has no function {function} any more."))
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 - a pack's top level raises what it likes
            return Outcome(error=raised(error, file, "import_failed"), spent=not isinstance(error, Exception))
        try:
            return Outcome(encode(self._returned(tool, args)))
        except Unfit as unfit:
            return Outcome(error={**failure("invalid_args", f"Invalid arguments: {unfit}"), "faults": unfit.faults})
        except ToolFailed as failed:
            return _as_said(failed)
        except NotSerialisable as unfit:
            return Outcome(error=failure("execution_error", str(unfit), "not_serialisable"))

    def _returned(self, tool: Tool, args: dict[str, Any]) -> object:
        tool.scope.enter()
        args = tool.parameters.fit(args)
        began = perf_counter()
        try:
            return self._resolved(tool.function(**args))
        finally:
            self.ms = (perf_counter() - began) * 1000

    def _resolved(self, value: Any) -> object:  # noqa: ANN401 - a tool returns what it likes
        """Awaits what must be awaited, and collects what comes bit by bit."""
        if isinstance(value, GeneratorType):
            return list(value)
        if hasattr(value, "__await__"):
            return self._resolved(self._run(_awaited(value)))
        if hasattr(value, "__aiter__"):
            return self._run(_collected(value))
        return value

    def _run(self, coroutine: Coroutine[Any, Any, object]) -> object:
        # one loop for the life of the process, so that clients with open connections work in the next call too
        if self._runner is None:
            from asyncio import Runner

            self._runner = Runner()
        from asyncio import all_tasks
        from contextvars import copy_context

        try:
            return self._runner.run(coroutine, context=copy_context())
        finally:
            self._left_tasks = any(map(is_unfinished_business, all_tasks(self._runner.get_loop())))


async def _awaited(value: Awaitable[object]) -> object:
    return await value


async def _collected(value: AsyncIterable[object]) -> list[object]:
    return [item async for item in value]


def _as_said(failed: ToolFailed) -> Outcome:
    message = str(failed.message)
    try:
        data = encode(failed.data)
    except NotSerialisable as unfit:
        data, message = b"null", f"{message} ({unfit})"
    code = None if failed.code is None else str(failed.code)
    return Outcome(data, {**failure("execution_error", message, code), "said": True})


def _clear_frames(error: BaseException) -> None:
    """Frees what the functions held that an exception came through; their lines stay known."""
    trace = error.__traceback__
    while trace is not None:
        with suppress(RuntimeError):  # it is still running
            trace.tb_frame.clear()
        trace = trace.tb_next


def flush_native() -> None:
    """Flushes what native code printed; such code comes mostly with `ctypes`, which is not imported for this alone."""
    ctypes = sys.modules.get("ctypes")
    if ctypes is not None:
        ctypes.CDLL(None).fflush(None)
