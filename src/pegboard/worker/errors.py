"""Conversion of exceptions to errors of an answer."""

from __future__ import annotations

import os
import sys

from pegboard.sdk.distributions import SHARED, advice_on_module, install_command
from pegboard.sdk.failure import only_exception
from pegboard.worker.loader import public_name, without_private_names

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from traceback import TracebackException

_LONGEST_MESSAGE = 4_000
_LONGEST_TRACEBACK = 20_000
_OWN_FILES = os.path.dirname(__file__) + os.sep  # noqa: PTH120 - pathlib is too heavy for a worker


def failure(code: str, message: str, detail: str | None = None, traceback: str | None = None) -> dict[str, object]:
    """Return the error of an answer."""
    return {"code": code, "message": _cut(message, _LONGEST_MESSAGE), "detail": detail, "traceback": traceback}


def raised(error: BaseException, file: str, detail: str | None = None) -> dict[str, object]:
    """Return the error for an exception raised by a pack.

    Args:
        error: Exception. A group of a single exception, as of a task group, is reported as that exception.
        file: File of the pack; the traceback starts there.
        detail: Kind of failure, unless the exception implies a more specific one.
    """
    group, error = error, only_exception(error)
    message = described(error)
    missing = _missing_module(error)
    if isinstance(error, ModuleNotFoundError) and error.name and error.name != public_name(error.name):
        message = (
            f"{type(error).__name__}: No module named {public_name(error.name)!r} in the folder, the package or the "
            "project of the pack"
        )
    elif missing is not None and not missing.startswith("_") and missing not in sys.modules:
        detail = "dependency_missing"
        message += (
            f". Many libraries are parts of `{missing}`. Install the one that the import needs"
            if missing in SHARED
            else f". {advice_on_module(missing) or f'Install it with: {install_command(missing)}'}"
        )
    elif (variable := _missing_variable(error)) is not None:
        message += (
            f". Tools get only common variables of your environment. Add {variable!r} to `environment` under `[tools]`"
            " in the configuration, or, if it is a secret, read it with `get_secret`"
        )
    elif message == "ImportError: attempted relative import beyond top-level package":
        message += ". Only folders with an `__init__.py` belong to a package"
    elif message == "EOFError: EOF when reading a line":  # of `input()`
        message += ". Tools have no standard input. Declare a parameter instead"
    elif isinstance(error, MemoryError):
        detail = "out_of_memory"
    elif not isinstance(error, Exception):
        detail = detail or "crashed"
    return failure("execution_error", message, detail, _traceback_of(error, file) or _traceback_of(group, file))


def described(error: BaseException) -> str:
    """Return the type and text of an exception, even if its `__str__` raises."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 - the author's code may raise anything, including `SystemExit`
        text = f"(no message: __str__ raised {type(second).__name__})"
    text = without_private_names(text)
    return f"{name}: {text}" if text else name


def _traceback_of(error: BaseException, file: str) -> str | None:
    """Return the formatted traceback from the first frame in `file`, or None if it contains none."""
    try:
        from traceback import TracebackException

        trace = TracebackException.from_exception(error)
        while trace.stack and trace.stack[0].filename != file:
            del trace.stack[0]
        if not trace.stack and not isinstance(error, SyntaxError):
            return None
        _remove_own_frames(trace, set())
        return _cut("".join(trace.format()), _LONGEST_TRACEBACK)
    except Exception:  # noqa: BLE001 - formatting runs the author's code; an answer without traceback is still useful
        return None


def _remove_own_frames(trace: TracebackException | None, seen: set[int]) -> None:
    if trace is None or id(trace) in seen:
        return
    seen.add(id(trace))
    trace.stack[:] = [
        frame for frame in trace.stack if not frame.filename.startswith((_OWN_FILES, "<frozen importlib"))
    ]
    for other in (trace.__cause__, trace.__context__, *(trace.exceptions or ())):
        _remove_own_frames(other, seen)


def _missing_module(error: BaseException) -> str | None:
    """Return the top-level name of the missing module that caused the exception, or None."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    return public_name(error.name).partition(".")[0]


def _missing_variable(error: BaseException) -> str | None:
    """Return the name of the missing environment variable that caused the exception, or None."""
    if not isinstance(error, KeyError) or len(error.args) != 1 or not isinstance(error.args[0], str):
        return None
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    is_environment = trace is not None and trace.tb_frame.f_code is type(os.environ).__getitem__.__code__
    return error.args[0] if is_environment else None


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]}\n… {len(text) - longest:,} characters omitted …\n{text[-longest // 2 :]}"
