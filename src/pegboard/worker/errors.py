"""What a tool raised, as an error."""

from __future__ import annotations

import os
import sys

from pegboard.sdk.distributions import install_command

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from traceback import TracebackException

_LONGEST_MESSAGE = 4_000
_LONGEST_TRACEBACK = 20_000
_OWN_FILES = os.path.dirname(__file__) + os.sep  # noqa: PTH120 - pathlib is too heavy for a worker


def failure(code: str, message: str, detail: str | None = None, traceback: str | None = None) -> dict[str, object]:
    """Builds the error of an answer."""
    return {"code": code, "message": _cut(message, _LONGEST_MESSAGE), "detail": detail, "traceback": traceback}


def raised(error: BaseException, file: str, detail: str | None = None) -> dict[str, object]:
    """Builds the error for an exception that came out of a pack.

    Args:
        error: The exception.
        file: The pack's file; the traceback begins there.
        detail: The kind of failure, unless the exception itself tells a better one.
    """
    message = described(error)
    missing = _missing_library(error)
    if missing is not None:
        detail = "dependency_missing"
        message += f". Install it with: {install_command(missing)}"
    elif isinstance(error, MemoryError):
        detail = "out_of_memory"
    elif not isinstance(error, Exception):
        detail = detail or "crashed"
    return failure("execution_error", message, detail, _traceback_of(error, file))


def described(error: BaseException) -> str:
    """Gives the exception's type and text in one string, whatever its own `__str__` does."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 - the author's code raises what it likes, `SystemExit` too
        text = f"(its text can't be had: __str__ raised {type(second).__name__})"
    return f"{name}: {text}" if text else name


def _traceback_of(error: BaseException, file: str) -> str | None:
    """Formats the traceback from the first frame in `file` on; None where there is no such frame."""
    try:
        from traceback import TracebackException

        trace = TracebackException.from_exception(error)
        while trace.stack and trace.stack[0].filename != file:
            del trace.stack[0]
        if not trace.stack and not isinstance(error, SyntaxError):
            return None
        _without_our_frames(trace, set())
        return _cut("".join(trace.format()), _LONGEST_TRACEBACK)
    except Exception:  # noqa: BLE001 - formatting runs the author's code, and no traceback is better than no answer
        return None


def _without_our_frames(trace: TracebackException | None, seen: set[int]) -> None:
    if trace is None or id(trace) in seen:
        return
    seen.add(id(trace))
    trace.stack[:] = [
        frame for frame in trace.stack if not frame.filename.startswith((_OWN_FILES, "<frozen importlib"))
    ]
    for other in (trace.__cause__, trace.__context__, *(trace.exceptions or ())):
        _without_our_frames(other, seen)


def _missing_library(error: BaseException) -> str | None:
    """Gives the import name of the library whose absence the exception tells of."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    top = error.name.partition(".")[0]
    return None if top.startswith("_") or top in sys.modules else top


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]}\n… {len(text) - longest:,} characters left out …\n{text[-longest // 2 :]}"
