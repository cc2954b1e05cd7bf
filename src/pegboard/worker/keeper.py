"""The parent of one worker: it ends everything that the worker started, however the worker or the app ends.

The app starts this process; it forks the worker and stays small. On Linux it is a *subreaper*: a process that a tool
started and that detached itself (`setsid`, a double fork, closed descriptors) becomes a child of the worker or, once
the worker has ended, of the keeper. So nothing leaves the tree, which the keeper measures when asked and kills at the
end. Elsewhere only the worker's process group is found.

This is for tools that go wrong, and no sandbox: what a tool detached survives if the tool also kills the keeper, and so
does what it asks a service of the system to start.

The keeper and the app share a socket. The app sends `MEASURE`, and closes its direction to have everything killed; that
also happens when the app itself dies. The keeper writes one line at its end: `exit STATUS`, as `subprocess` counts, or
`memory` or `processes`, the limit that was exceeded.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import suppress
from time import monotonic, process_time

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Iterator

MEASURE = b"m"
MOST_PROCESSES = 512
"""Processes that one call may have at a time."""

_BESIDE_DATA = 32 * 2**20
"""Bytes that a process uses beside those that its own limit counts: a tool should see that limit as an exception."""
_REST, _LONGEST_REST = 20, 1.0
"""How many times as long as it measured the keeper rests, but how many seconds at most."""
_ENOUGH_TASKS = 4096
_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # from <linux/prctl.h>
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_PROC = "/proc"


def main() -> None:
    """Start the worker, and return in its process.

    The command line has descriptors and a number: where the worker reads requests and writes answers, its memory limit
    in bytes, and the socket to the app.
    """
    requests, answers, memory_limit, control = map(int, sys.argv[1:5])
    os.set_inheritable(control, False)
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _IGNORED}
    _control_process(_SET_CHILD_SUBREAPER, 1)
    keeper = os.getpid()
    # before the fork, so that the end of the worker can't be missed
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
    worker = os.fork()
    if worker:
        _leave_descriptors(requests, answers)
        _keep(worker, control, woken, memory_limit)
        os._exit(0)
    signal.set_wakeup_fd(-1)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    for descriptor in (control, woken, wake):
        os.close(descriptor)
    os.setsid()
    _control_process(_SET_CHILD_SUBREAPER, 1)
    _control_process(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != keeper:  # it was killed before the line above
        os._exit(1)


def _leave_descriptors(*descriptors: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    for descriptor in (nothing, *descriptors):
        os.close(descriptor)
    os.chdir("/")


def _keep(worker: int, control: int, woken: int, memory_limit: int) -> None:
    """Wait until the worker ends, exceeds a limit or is no longer wanted; then end all that it started."""
    poll = select.poll()
    for descriptor in (control, woken):
        poll.register(descriptor, select.POLLIN)
    measured_at = cost = 0.0
    report, pid = "", 0
    while not report:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if woken in ready:
            os.read(woken, 4096)
        pid, status = os.waitpid(worker, os.WNOHANG)
        if pid:
            report = f"exit {os.waitstatus_to_exitcode(status)}"
        elif control in ready:
            if not _read(control):
                report = "exit -9"
            elif monotonic() - measured_at >= min(cost * _REST, _LONGEST_REST):
                began = process_time()  # it may have to wait long for the processor
                report = _exceeded(memory_limit)
                measured_at, cost = monotonic(), process_time() - began
    # at once, and where there is no `/proc`; the group has this id for as long as anything is in it
    _kill_group(worker)
    _end_all()
    with suppress(OSError):  # the app has ended
        os.write(control, report.encode())


def _read(control: int) -> bytes:
    try:
        return os.read(control, 4096)
    except OSError:  # the app has ended with something unread
        return b""


def _end_all() -> None:
    """Kill every process below this one, and wait until there are none."""
    own_group = os.getpgrp()
    while True:
        tree = _tree()
        for group in {group for _, group in tree} - {own_group}:
            _kill_group(group)
        for pid, _ in tree:
            _kill(pid)
        try:
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def _kill_group(group: int) -> None:
    with suppress(OSError):  # it has ended, or belongs to another user
        os.killpg(group, signal.SIGKILL)


def _kill(pid: int) -> None:
    with suppress(OSError):  # it has ended, or belongs to another user
        os.kill(pid, signal.SIGKILL)


def _exceeded(memory_limit: int) -> str:
    """Return which limit the processes below this one exceed together, or an empty text."""
    tree = [pid for pid, _ in _tree()]
    if len(tree) > MOST_PROCESSES:
        return "processes"
    limit = memory_limit + _BESIDE_DATA
    if sum(map(_resident, tree)) <= limit:
        return ""
    # forked processes share pages, which the sum above counts for each; this takes longer
    return "memory" if sum(map(_proportional, tree)) > limit else ""


def _tree() -> list[tuple[int, int]]:
    """Return the process id and group of every process below this one."""
    children: dict[int, list[tuple[int, int]]] = {}
    for pid, parent, group in _processes():
        children.setdefault(parent, []).append((pid, group))
    tree = children.get(os.getpid(), [])
    for pid, _ in tree:
        tree += children.get(pid, [])
    return tree


def _processes() -> Iterator[tuple[int, int, int]]:
    """Yield the id, parent and group of every process that can be seen; none where there is no `/proc`."""
    try:
        names = os.listdir(_PROC)  # noqa: PTH208 - pathlib is too heavy for a worker
    except OSError:
        return
    for name in names:
        if name.isdigit():
            _, _, fields = _content(f"{_PROC}/{name}/stat").rpartition(b")")
            if fields:
                _, parent, group, *_ = fields.split(None, 3)
                yield int(name), int(parent), int(group)


def _resident(pid: int) -> int:
    """Return the bytes of memory that a process fills, shared ones included; files that it only reads don't count."""
    return _sum(f"{_PROC}/{pid}/status", b"RssAnon", b"RssShmem")


def _proportional(pid: int) -> int:
    """Return the same, with its part only of what it shares with others."""
    return _sum(f"{_PROC}/{pid}/smaps_rollup", b"Pss_Anon", b"Pss_Shmem") or _resident(pid)


def _sum(file: str, *names: bytes) -> int:
    lines = (line.partition(b":") for line in _content(file).splitlines())
    return sum(int(value.split()[0]) * 1024 for name, _, value in lines if name in names)


def _content(file: str) -> bytes:
    try:
        with open(file, "rb") as content:  # noqa: PTH123 - pathlib is too heavy for a worker
            return content.read()
    except OSError:  # the process has ended, or belongs to another user
        return b""


def limit_of_tasks() -> int:
    """Return how many processes and threads the user may have: enough, and no endless number; 0 if unknown.

    The system counts them per user. It tells only how many there are in all, which is never fewer.
    """
    _, _, total = _content(f"{_PROC}/loadavg").rpartition(b"/")
    return int(total.split()[0]) + _ENOUGH_TASKS if total else 0


def _control_process(option: int, value: int) -> None:
    """Call `prctl`, which Python has no function for; do nothing where there is none."""
    if sys.platform != "linux":
        return
    # what is beneath `ctypes`, at a third of its cost
    import _ctypes

    program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type] # None means the program itself, as for `ctypes.CDLL`
    _ctypes.call_function(_ctypes.dlsym(program, "prctl"), (option, value, 0, 0, 0))
