"""Execution of one call in the worker process."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from contextvars import copy_context
from time import perf_counter
from types import GeneratorType

from pegboard.sdk.arguments import ConversionError
from pegboard.sdk.failure import ToolFailed, only_exception
from pegboard.sdk.layers import by_name, missing_arguments, not_supplied, positional_only
from pegboard.sdk.values import NotSerializableError, encode
from pegboard.worker.errors import described, failure, raised
from pegboard.worker.leftovers import is_unfinished_business
from pegboard.worker.loader import LoadedPacks, LoadedTool, ToolMissingError

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from asyncio import Runner
    from collections.abc import AsyncIterable, Awaitable, Coroutine, Mapping
    from importlib.machinery import ModuleSpec
    from typing import Any  # tools accept and return any value

_BALLAST = 4 * 2**20
"""Bytes released when memory is exhausted, so that the error can be reported."""


class CallOutcome:
    """Result of a call.

    Args:
        data: Result as JSON.
        error: Error, or None.
        spent: Whether the process must not be reused.
    """

    def __init__(self, data: bytes = b"null", error: dict[str, object] | None = None, *, spent: bool = False) -> None:
        self.data = data
        self.error = error
        self.spent = spent


class Caller:
    """Caller of synchronous and asynchronous tools. The latter share one event loop."""

    def __init__(self) -> None:
        self.ms = 0.0
        """Duration of the last call in milliseconds, without loading the pack."""
        self._packs = LoadedPacks()
        self._runner: Runner | None = None
        self._left_tasks = False
        self._ballast = bytes(_BALLAST)

    def call(self, file: str, function: str, args: dict[str, Any]) -> CallOutcome:
        """Call a function of a pack. Every exception becomes an outcome.

        Args:
            file: File of the pack.
            function: Name of the function.
            args: Arguments as JSON; changed in place.
        """
        self.ms = 0.0
        self._left_tasks = False
        outcome = self._outcome(file, function, args)
        outcome.spent |= self._left_tasks
        return outcome

    @property
    def main(self) -> ModuleSpec:
        """Main module for processes that tools start."""
        return self._packs.main

    def file_of(self, namespace: Mapping[str, object]) -> str | None:
        """Return the file of the pack or helper with these globals, or None."""
        return self._packs.file_of(namespace)

    def close(self) -> None:
        """Close the event loop of asynchronous tools."""
        if self._runner is not None:
            self._runner.close()

    def _outcome(self, file: str, function: str, args: dict[str, Any]) -> CallOutcome:
        try:
            return self._attempt(file, function, args)
        except MemoryError as error:
            self._ballast = b""
            _clear_frames(error)
            return CallOutcome(error=raised(error, file), spent=True)
        except BaseException as error:  # noqa: BLE001 - tools may raise anything, including `SystemExit`
            return CallOutcome(error=raised(error, file), spent=not isinstance(error, Exception))

    def _attempt(self, file: str, function: str, args: dict[str, Any]) -> CallOutcome:
        try:
            tool = self._packs.pack(file).tool(function)
        except ToolMissingError as missing:
            left = missing.replaced_by
            now = f": a decorator or assignment left a value of type {left}" if left else ""
            message = f"{file} no longer defines the function {function}{now}."
            return CallOutcome(error=failure("tool_not_found", message))
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 - the top level of a pack may raise anything
            return CallOutcome(error=_unloaded(error, file), spent=not isinstance(error, Exception))
        try:
            return CallOutcome(encode(self._run_tool(tool, args)))
        except ConversionError as unfit:
            return _unfit_outcome(unfit)
        except (ToolFailed, ExceptionGroup) as error:
            failed = only_exception(error)
            if not isinstance(failed, ToolFailed):
                raise
            return _failed_outcome(failed)
        except NotSerializableError as unfit:
            return CallOutcome(error=failure("execution_error", str(unfit), "not_serialisable"))
        except TypeError as error:
            if refused := positional_only(error, tool.function, function, args):
                return CallOutcome(error=failure("execution_error", by_name(refused)))
            lacking = missing_arguments(error, tool.function, function, args)
            if not lacking:
                raise
            return CallOutcome(error=failure("execution_error", not_supplied(error, lacking)))

    def _run_tool(self, tool: LoadedTool, args: dict[str, Any]) -> object:
        tool.scope.enter()
        args = tool.parameters.fit(args)
        began = perf_counter()
        try:
            return copy_context().run(self._call, tool, args)
        finally:
            self.ms = (perf_counter() - began) * 1000

    def _call(self, tool: LoadedTool, args: dict[str, Any]) -> object:
        decimal = sys.modules.get("decimal")
        if decimal is not None:  # a copy of the context variables shares this object
            decimal.setcontext(decimal.getcontext().copy())
        return self._resolve(tool.function(**args))

    def _resolve(self, value: Any) -> object:  # noqa: ANN401 - tools return any value
        """Await an awaitable, and collect the items of a generator into a list; return other values unchanged."""
        if isinstance(value, GeneratorType):
            return list(value)
        if hasattr(value, "__await__"):
            return self._resolve(self._run(_await_value(value)))
        if hasattr(value, "__aiter__"):
            return self._run(_collect(value))
        return value

    def _run(self, coroutine: Coroutine[Any, Any, object]) -> object:
        # one event loop per process, so that open connections of clients also work in the next call
        if self._runner is None:
            from asyncio import Runner

            self._runner = Runner()
        from asyncio import all_tasks

        try:
            return self._runner.run(coroutine, context=copy_context())
        finally:
            self._left_tasks = any(map(is_unfinished_business, all_tasks(self._runner.get_loop())))


async def _await_value(value: Awaitable[object]) -> object:
    return await value


async def _collect(value: AsyncIterable[object]) -> list[object]:
    return [item async for item in value]


def _unfit_outcome(unfit: ConversionError) -> CallOutcome:
    from pegboard.data.pointer import pointer

    faults = [{"path": pointer(*path), "message": message} for path, message in unfit.faults]
    return CallOutcome(error={**failure("invalid_args", f"Invalid arguments: {unfit}"), "faults": faults})


def _failed_outcome(failed: ToolFailed) -> CallOutcome:
    message = str(failed.message)
    try:
        data = encode(failed.data)
    except NotSerializableError as unfit:
        data, message = b"null", f"{message} ({unfit})"
    code = None if failed.code is None else str(failed.code)
    return CallOutcome(data, {**failure("execution_error", message, code), "said": True})


def _clear_frames(error: BaseException) -> None:
    """Release the local variables in the traceback of an exception; its lines stay known."""
    trace = error.__traceback__
    while trace is not None:
        with suppress(RuntimeError):  # the frame is still running
            trace.tb_frame.clear()
        trace = trace.tb_next


def flush_native() -> None:
    """Flush the output of native code, if `ctypes` is loaded."""
    ctypes = sys.modules.get("ctypes")
    if ctypes is not None:
        ctypes.CDLL(None).fflush(None)


def _unloaded(error: BaseException, file: str) -> dict[str, object]:
    """Return the error for an exception that a pack raised while it was loaded, before its tool was called."""
    found = raised(error, file, "import_failed")
    message = str(found["message"])
    if found["detail"] == "import_failed" and not isinstance(error, ImportError | SyntaxError):
        lines, trace = [], error.__traceback__
        while trace:
            if trace.tb_frame.f_code.co_filename == file:
                lines.append(f" in line {trace.tb_lineno}")
            trace = trace.tb_next
        name = os.path.basename(file)  # noqa: PTH119 - pathlib is too heavy for a worker
        where = f"{name} raised this{lines[0] if lines else ''} while it was loaded, so the tool was not called"
        fix = (
            '. Move what the tools don\'t need below `if __name__ == "__main__":`'
            if message == described(error)
            else ""
        )
        found["message"] = f"{message.rstrip('.')}. {where}{fix}"
    return found
