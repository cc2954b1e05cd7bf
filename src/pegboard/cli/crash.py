"""Reports of unexpected errors: private files without secrets and without values of variables.

Tracebacks of Pegboard's own code appear only there. `install` catches errors that Python would print, and
`follow_tasks` those that asyncio would log; code that catches an unexpected error calls `report`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pegboard
from pegboard import storage
from pegboard.results.clean import clean, clean_line

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from pegboard.runtime import Runtime

_KEPT: Final = 20
"""Number of reports to keep; the oldest are deleted."""
_IN_BACKGROUND: Final = 5
"""Limit of reports of background errors per process."""
_LONGEST: Final = 200_000
"""Limit of a report in characters."""


class _Reporter:
    """Writer of this process's reports, without secrets."""

    def __init__(self) -> None:
        self.runtime: Runtime | None = None
        self.waiting: list[str] | None = None
        """Messages held back while the app owns the terminal."""
        self._left = _IN_BACKGROUND

    def report(self, error: BaseException, where: str) -> str:
        """Write a report and return a sentence that names it."""
        kind = type(error).__name__
        try:
            runtime = self._runtime()
            file = _write(runtime.paths.state / "crashes", clean(runtime.redacted(_text(error, where))))
        except Exception as other:  # noqa: BLE001 - any failure of the report must leave the message
            return f"pegboard: unexpected error ({kind}). A report could not be written ({type(other).__name__})."
        return clean_line(f"pegboard: unexpected error ({kind}). The report is in {file}")

    def in_background(self, error: BaseException, where: str) -> None:
        """Report an error that doesn't end the program."""
        if self._left <= 0:
            return
        self._left -= 1
        sentence = self.report(error, where)
        if self.waiting is not None:
            self.waiting.append(sentence)
        else:
            with suppress(OSError, ValueError):
                print(sentence, file=sys.stderr, flush=True)

    def _runtime(self) -> Runtime:
        if self.runtime is None:
            from pegboard.runtime import Runtime

            self.runtime = Runtime.from_environment()
        return self.runtime


_reporter = _Reporter()


def follow(runtime: Runtime) -> None:
    """Write reports to the state folder of a runtime, without the secrets that it knows."""
    _reporter.runtime = runtime


def report(error: BaseException, where: str = "") -> str:
    """Write a report of an unexpected error.

    Args:
        error: The error, with its traceback.
        where: The part of the program that failed.

    Returns:
        A sentence for the user, with the path of the report.
    """
    return _reporter.report(error, where)


class Held:
    """Context that holds back messages about background errors until its end, while an app owns the terminal."""

    def __enter__(self) -> None:
        """Hold messages back."""
        _reporter.waiting = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Print the messages that were held back."""
        waiting, _reporter.waiting = _reporter.waiting or [], None
        for sentence in waiting:
            with suppress(OSError, ValueError):
                print(sentence, file=sys.stderr, flush=True)


def install() -> None:
    """Report errors of threads and finalizers, which Python would print with a traceback."""
    before: Callable[..., Any] = sys.excepthook

    def main(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, Exception):
            print(_reporter.report(error, ""), file=sys.stderr, flush=True)
        else:
            before(kind, error, trace)

    def thread(args: threading.ExceptHookArgs) -> None:
        if isinstance(args.exc_value, Exception):
            _reporter.in_background(args.exc_value, f"thread {args.thread.name if args.thread else '?'}")

    def unraisable(args: sys.UnraisableHookArgs) -> None:
        if isinstance(args.exc_value, Exception):
            _reporter.in_background(args.exc_value, args.err_msg or "a finalizer")

    sys.excepthook, threading.excepthook, sys.unraisablehook = main, thread, unraisable


def follow_tasks() -> None:
    """Report errors of forgotten tasks, which asyncio would log; commands that list or help start no tasks."""
    import logging

    tasks = logging.getLogger("asyncio")
    if not tasks.propagate:
        return  # done before

    class Tasks(logging.Handler):
        """Handler of errors that asyncio logs because no one awaited their task."""

        def emit(self, record: logging.LogRecord) -> None:
            """Report the error of a record, if it has one."""
            error = record.exc_info[1] if record.exc_info else None
            if isinstance(error, Exception):
                _reporter.in_background(error, "a task")

    tasks.addHandler(Tasks())
    tasks.propagate = False


def _text(error: BaseException, where: str) -> str:
    import platform
    from datetime import UTC, datetime
    from importlib.metadata import version
    from traceback import TracebackException

    trace = "".join(TracebackException.from_exception(error, capture_locals=False).format())
    if len(trace) > _LONGEST:
        trace = f"{trace[: _LONGEST // 2]}\n…\n{trace[-_LONGEST // 2 :]}"
    facts = (
        f"Pegboard {pegboard.__version__}",
        f"Python {platform.python_version()}, Textual {version('textual')}, {platform.platform()}",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
        *([f"in {where}"] if where else ()),
    )
    return "\n".join((*facts, "", trace))


def _write(folder: Path, text: str) -> Path:
    from datetime import UTC, datetime

    storage.make_folder(folder)
    for old in sorted(folder.glob("crash-*.txt"))[: -_KEPT + 1]:
        with suppress(OSError):
            old.unlink()
    file = folder / f"crash-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{os.getpid()}.txt"
    storage.write(file, text.encode(errors="backslashreplace"))
    return file
