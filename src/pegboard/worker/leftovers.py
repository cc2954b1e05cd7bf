"""Detection of threads, processes and changes that remain after a call and can't be undone."""

from __future__ import annotations

import os
import resource
import sys
from _thread import _count, get_ident
from time import sleep

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from asyncio import Task
    from types import CodeType
    from typing import Any  # tasks return any value

_LIMITS = tuple(
    getattr(resource, name)
    for name in ("RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_DATA", "RLIMIT_AS")
    if hasattr(resource, name)
)
_MOST_DESCRIPTORS = 256
"""Number of descriptors that tools may leave open, such as a pool of connections; more are a leak."""

_CHECKS = 20
_CHECK_INTERVAL = 0.001
"""Seconds. A finished thread needs a moment to end or to return to its pool."""


class Leftovers:
    """Detector of leftovers. Create it before the first call."""

    def __init__(self) -> None:
        self._limits = _limits()
        self._priority = os.getpriority(os.PRIO_PROCESS, 0)
        # tools import `resource` to change limits, so the limits need checking only after an import
        sys.modules.pop("resource", None)

    def any(self) -> bool:
        """Return whether leftovers may disturb the next call."""
        return (
            bool(_count() and not _are_threads_idle())
            or ("resource" in sys.modules and _limits() != self._limits)
            or os.getpriority(os.PRIO_PROCESS, 0) != self._priority
            or _has_children()
            or _has_many_descriptors()
        )


def is_unfinished_business(task: Task[Any]) -> bool:
    """Return whether an unfinished task belongs to the tool; tasks of libraries may continue in the next call."""
    code: CodeType | None = getattr(task.get_coro(), "cr_code", None)
    return code is not None and f"-packages{os.sep}" not in code.co_filename


def _limits() -> list[tuple[int, int]]:
    return [resource.getrlimit(limit) for limit in _LIMITS]


def _are_threads_idle() -> bool:
    """Return whether all other threads end soon or wait in a pool for work."""
    for _ in range(_CHECKS):
        pools = sys.modules.get("concurrent.futures.thread")
        waiting = pools and pools._worker.__code__  # noqa: SLF001 - no public way to detect an idle thread of a pool
        frames = sys._current_frames()  # noqa: SLF001 - `threading` uses it too
        del frames[get_ident()]
        if _count() <= len(frames) and all(frame.f_code is waiting for frame in frames.values()):
            return True
        sleep(_CHECK_INTERVAL)
    return False


def _has_children() -> bool:
    """Return whether a child process is alive, or has ended without a `wait`.

    On Linux, detached processes are children too, because this process is a subreaper.
    """
    try:
        if hasattr(os, "waitid"):
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        else:  # macOS before Python 3.13; this may collect a child, but then this process isn't used again
            os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _has_many_descriptors() -> bool:
    try:
        lowest_free = os.dup(0)
    except OSError:  # the limit is reached
        return True
    os.close(lowest_free)
    return lowest_free > _MOST_DESCRIPTORS
