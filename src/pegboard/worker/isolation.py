"""State of the worker process that tools may change, and its restoration after each call."""

from __future__ import annotations

import builtins
import json
import os
import resource
import signal
import sys
import time
from _operator import attrgetter, itemgetter

# the functions of `signal` create enumeration members and take 20 times as long
from _signal import getsignal, pthread_sigmask  # type: ignore[import-not-found]
from contextlib import suppress

from pegboard.worker.keeper import limit_of_tasks

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TextIO  # signal handlers and watched objects have any type

_UNCHANGEABLE = {signal.SIGKILL, signal.SIGSTOP}
_SIGNALS = tuple(int(number) for number in signal.valid_signals() if number not in _UNCHANGEABLE)
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)

_RELIED_ON = (
    (
        builtins,
        (
            "__import__", "all", "any", "bool", "bytes", "dict", "enumerate", "float", "getattr", "hasattr", "int",
            "isinstance", "iter", "len", "list", "map", "max", "min", "next", "open", "print", "range", "repr", "set",
            "setattr", "sorted", "str", "sum", "tuple", "type", "zip",
        ),
    ),
    (
        os,
        (
            "_exit", "chdir", "close", "environ", "fork", "fsdecode", "fsencode", "fspath", "fstat", "getcwd", "getenv",
            "getpid", "listdir", "makedirs", "mkdir", "open", "path", "read", "replace", "stat", "umask", "unlink",
            "write",
        ),
    ),
    (json, ("dump", "dumps", "load", "loads", "JSONDecoder", "JSONEncoder")),
    (time, ("monotonic", "perf_counter", "sleep", "time")),
)  # fmt: skip
"""Attributes of the standard library that are checked for patches: those that this process and most tools use."""

_MODULES = ("builtins", "json", "os", "sys", "time", "pegboard.sdk", "pegboard.sdk.host")


def confine(memory_limit: int) -> None:
    """Limit this process and its child processes: no core files, and at most `memory_limit` bytes of data each."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    with suppress(OSError, ValueError):  # a lower limit is set, or the system has none
        resource.setrlimit(kind, (memory_limit, memory_limit))
    tasks, (_, most) = limit_of_tasks(), resource.getrlimit(resource.RLIMIT_NPROC)
    if tasks and (most == resource.RLIM_INFINITY or tasks < most):
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NPROC, (tasks, tasks))
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123 - pathlib is too heavy
        score.write("500")  # if the system runs out of memory, it should kill a tool before Pegboard


def configure(stream: TextIO) -> None:
    """Set up a stream for output: buffered by line, to show it while the tool runs, and without encoding errors."""
    stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[attr-defined]


class ImportScope:
    """Environment variables and import path, which a pack may change for itself while it is loaded."""

    def __init__(self) -> None:
        self._environ = _environ().copy()
        self._path = sys.path.copy()

    def enter(self) -> None:
        """Restore the environment, the time zone and the import path from the creation of this scope."""
        if _environ() != self._environ:
            is_other_zone = _environ().get(b"TZ") != self._environ.get(b"TZ")
            os.environ.clear()
            os.environ.update({os.fsdecode(name): os.fsdecode(value) for name, value in self._environ.items()})
            if is_other_zone:
                time.tzset()
        if sys.path != self._path:
            sys.path[:] = self._path


class Originals:
    """Functions and modules of the standard library before any tool could replace them."""

    def __init__(self) -> None:
        self._watched: list[tuple[Callable[[Any], Any], object, dict[str, Any], tuple[str, ...]]]
        self._watched = [(attrgetter(*names), module, vars(module), names) for module, names in _RELIED_ON]
        self._watched.append((itemgetter(*_MODULES), sys.modules, sys.modules, _MODULES))
        self._before = [read(place) for read, place, _, _ in self._watched]

    def restore(self) -> bool:
        """Restore all of them; return False if some were replaced, as other code may still use the replacements."""
        try:
            if [read(place) for read, place, _, _ in self._watched] == self._before:
                return True
        except (AttributeError, KeyError):  # some were deleted
            pass
        for (_, _, place, names), values in zip(self._watched, self._before, strict=True):
            place.update(zip(names, values, strict=True))
        return False


class ProcessState:
    """State of the process before a call: environment, streams, working directory, signal handlers and so on."""

    def __init__(self) -> None:
        self.scope = ImportScope()
        self._originals = Originals()
        self._environment = _environ()
        self._folder, self._path = _folder(), _path_of_folder()
        self._streams = sys.stdin, sys.stdout, sys.stderr
        self._files = _files()
        self._umask = os.umask(0)
        os.umask(self._umask)
        self._handlers: list[Any] = [getsignal(number) for number in _SIGNALS]
        self._blocked = pthread_sigmask(signal.SIG_BLOCK, ())
        self._recursion_limit = sys.getrecursionlimit()
        self._trace, self._profile = sys.gettrace(), sys.getprofile()

    def extend(self, variables: Mapping[str, str]) -> None:
        """Add environment variables permanently."""
        if any(os.environ.get(name) != value for name, value in variables.items()):
            os.environ.update(variables)
            self.scope = ImportScope()

    def restore(self) -> bool:
        """Restore the state; return False if that failed and the process must not be reused."""
        if sys.gettrace() is not self._trace:
            sys.settrace(self._trace)
        if sys.getprofile() is not self._profile:
            sys.setprofile(self._profile)
        try:
            return self._restore()
        except Exception:  # noqa: BLE001 - objects that a tool installed may raise anything
            return False

    def _restore(self) -> bool:
        intact = self._originals.restore()
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        pthread_sigmask(signal.SIG_SETMASK, self._blocked)
        os.umask(self._umask)
        if _environ() is not self._environment:
            os.environ._data = self._environment  # type: ignore[attr-defined] # noqa: SLF001 - see `_environ`
            intact = False
        self.scope.enter()
        if sys.getrecursionlimit() != self._recursion_limit:
            sys.setrecursionlimit(self._recursion_limit)
        if [getsignal(number) for number in _SIGNALS] != self._handlers:
            self._restore_handlers()
        return self._restore_streams() and self._restore_folder() and intact

    def _restore_handlers(self) -> None:
        for number, handler in zip(_SIGNALS, self._handlers, strict=True):
            if getsignal(number) is not handler:
                signal.signal(number, handler)

    def _restore_streams(self) -> bool:
        sys.stdin, sys.stdout, sys.stderr = self._streams
        try:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
                if (stream.encoding, stream.errors, stream.line_buffering) != ("utf-8", "backslashreplace", True):
                    configure(stream)
            return _files() == self._files
        except (OSError, ValueError):  # closed, as an object or underneath
            return False

    def _restore_folder(self) -> bool:
        try:
            if _folder() != self._folder:
                os.chdir(self._path)
            return _folder() == self._folder  # another folder may have the path now
        except OSError:  # it was deleted, and the tool left it
            return False


def _folder() -> tuple[int, int]:
    """Return the device and inode of the working directory, which identify it even after it was deleted.

    They are 0 for a folder that the user may not enter, such as that of another user in which `sudo -u` was called.
    """
    try:
        status = os.stat(".")  # noqa: PTH116 - pathlib is too heavy for a worker
    except PermissionError:
        return 0, 0
    return status.st_dev, status.st_ino


def _path_of_folder() -> str:
    """Return the path of the working directory; empty if it was deleted.

    The worker stays in a deleted folder, where no relative path exists. In any other folder, relative paths and roots
    would lead to files that the tools must not read.
    """
    try:
        return os.getcwd()  # noqa: PTH109 - as above
    except FileNotFoundError:
        return ""


def _environ() -> dict[bytes, bytes]:
    # the underlying mapping; comparing os.environ itself would decode every name and value
    return os.environ._data  # type: ignore[attr-defined,no-any-return] # noqa: SLF001


def _files() -> tuple[tuple[int, int], ...]:
    """Return the device and inode of the three standard descriptors."""
    return tuple((status.st_dev, status.st_ino) for status in map(os.fstat, (0, 1, 2)))
