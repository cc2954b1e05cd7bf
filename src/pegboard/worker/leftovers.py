"""What goes on in the process, or is missing in it, after a tool has returned: what can't be put back."""

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
    from typing import Any  # a task gives anything

_LIMITS = tuple(
    getattr(resource, name)
    for name in ("RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_DATA", "RLIMIT_AS")
    if hasattr(resource, name)
)
_MOST_DESCRIPTORS = 256
"""Descriptors that tools may leave open for their next call: a pool of connections, not a leak."""

_LOOKS = 20
_LOOK_SECONDS = 0.001
"""A thread that has done its work needs a moment to end, or to go back to its pool."""


class Leftovers:
    """Notices what a tool left; made before any has run."""

    def __init__(self) -> None:
        self._limits = _limits()
        # who wants to change a limit imports this: only then they are looked at
        sys.modules.pop("resource", None)

    def any(self) -> bool:
        """Whether something is left that may disturb the next call."""
        return (
            bool(_count() and not _threads_come_to_rest())
            or ("resource" in sys.modules and _limits() != self._limits)
            or _has_children()
            or _has_many_descriptors()
        )


def is_unfinished_business(task: Task[Any]) -> bool:
    """Whether a task that isn't done is the tool's own; that of a library's client may rest until next time."""
    code: CodeType | None = getattr(task.get_coro(), "cr_code", None)
    return code is not None and f"-packages{os.sep}" not in code.co_filename


def _limits() -> list[tuple[int, int]]:
    return [resource.getrlimit(limit) for limit in _LIMITS]


def _threads_come_to_rest() -> bool:
    """Whether all other threads end in a moment, or wait in a pool for work."""
    for _ in range(_LOOKS):
        pools = sys.modules.get("concurrent.futures.thread")
        waiting = pools and pools._worker.__code__  # noqa: SLF001 - nothing public tells whether a pool's thread is idle
        frames = sys._current_frames()  # noqa: SLF001 - `threading` itself has no other way either
        del frames[get_ident()]
        if _count() <= len(frames) and all(frame.f_code is waiting for frame in frames.values()):
            return True
        sleep(_LOOK_SECONDS)
    return False


def _has_children() -> bool:
    """Whether there is a child process that is alive, or that nobody has waited for.

    On Linux, a process that detached itself is our child too, as we are a subreaper.
    """
    if not hasattr(os, "waitid"):
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _has_many_descriptors() -> bool:
    try:
        lowest_free = os.dup(0)
    except OSError:  # there are as many as may be
        return True
    os.close(lowest_free)
    return lowest_free > _MOST_DESCRIPTORS
