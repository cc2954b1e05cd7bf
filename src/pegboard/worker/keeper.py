"""Parent process of one worker. It kills all processes that the worker started, however the worker or Pegboard ends.

MCP servers have such a parent too. Pegboard starts this process, which forks the worker. On Linux it is a *subreaper*:
a process that a tool started and that detached itself (`setsid`, a double fork, closed descriptors) becomes a child of
the worker or, after the worker's end, of the keeper. So every process stays in the tree, which the keeper measures on
request and kills at the end. On other systems, `ps` finds the processes that are still below the keeper; those that
detached themselves are lost.

This protects against defective tools. It is not a sandbox: a detached process survives if the tool also kills the
keeper, and so does a process started by a service of the system.

The keeper and Pegboard share a socket. Pegboard sends `MEASURE`, or `TERMINATE` to ask the process to end, or closes
its direction to kill all processes, which also happens if Pegboard crashes. At its end, the keeper writes one line:
`exit STATUS` with a status as in `subprocess`, or the exceeded limit, `memory` or `processes`.
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
    from collections.abc import Iterable, Iterator

MEASURE = b"m"
TERMINATE = b"t"
MOST_PROCESSES = 512
"""Maximum number of concurrent processes of one call."""

_BESIDE_DATA = 32 * 2**20
"""Bytes allowed beyond the limit of a single process, so that a tool hits that limit first, as an exception."""
_REST, _LONGEST_REST = 20, 1.0
"""Pause after a measurement: a multiple of its duration, and a maximum in seconds, which applies without `/proc`."""
_PS_SECONDS = 5.0
_ENOUGH_TASKS = 4096
_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # from <linux/prctl.h>
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_PROC = "/proc"
_SERVE = "from pegboard.worker.serve import main; main()"


def main() -> None:
    """Fork the worker, and return only in its process; on macOS, start it anew instead of returning.

    Command-line arguments: descriptor of the requests, descriptor of the answers, memory limit in bytes, descriptor of
    the socket to Pegboard.
    """
    requests, answers, memory_limit, control = map(int, sys.argv[1:5])
    fork_child(control, memory_limit, requests, answers)
    if sys.platform == "darwin":
        # its frameworks, such as the one that finds proxies, may crash in a process that was forked without `exec`
        os.execv(sys.executable, [sys.executable, "-P", "-c", _SERVE, *sys.argv[1:4]])  # noqa: S606 - our own code


def fork_child(control: int, memory_limit: int, *of_child: int) -> None:
    """Fork, and return only in the child process, whose parent is now a keeper.

    Args:
        control: Descriptor of the socket to Pegboard.
        memory_limit: Limit in bytes for `MEASURE`.
        of_child: Descriptors that only the child uses, in addition to the standard ones.
    """
    os.set_inheritable(control, False)
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _IGNORED}
    _control_process(_SET_CHILD_SUBREAPER, 1)
    keeper = os.getpid()
    # before the fork, so that the end of the worker is not missed
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
    worker = os.fork()
    if worker:
        _leave_descriptors(*of_child)
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
    if os.getppid() != keeper:  # the keeper was killed before the line above
        os._exit(1)


def forget_orphans() -> None:
    """Leave the orphans of this process to the keeper; a program that doesn't expect them would never reap them."""
    _control_process(_SET_CHILD_SUBREAPER, 0)


def _leave_descriptors(*descriptors: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    for descriptor in (nothing, *descriptors):
        os.close(descriptor)
    os.chdir("/")


def _keep(worker: int, control: int, woken: int, memory_limit: int) -> None:
    """Wait until the worker ends, exceeds a limit or is to be killed; then kill all processes that it started."""
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
            message = _read(control)
            if not message:
                report = "exit -9"
            elif TERMINATE in message:
                _signal_group(worker, signal.SIGTERM)
            elif monotonic() - measured_at >= min(cost * _REST, _LONGEST_REST):
                began = process_time()  # elapsed time would include waiting for the processor
                report = _exceeded(memory_limit)
                measured_at, cost = monotonic(), process_time() - began if _has_proc() else _LONGEST_REST
    # without a subreaper, those that left the worker's group can't be found after its end
    left = [] if _has_proc() else _tree(_processes())
    _kill_group(worker)  # the group keeps this id while it has members
    _kill_all(left)
    _end_all()
    with suppress(OSError):  # Pegboard has ended
        os.write(control, report.encode())


def _read(control: int) -> bytes:
    try:
        return os.read(control, 4096)
    except OSError:  # Pegboard has ended with unread data
        return b""


def _end_all() -> None:
    """Kill all descendants of this process and wait for them."""
    while True:
        _kill_all(_tree(_processes()))
        try:
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def _kill_all(tree: list[tuple[int, int]]) -> None:
    """Kill processes, given as their id and group, and the groups that they lead or joined."""
    for group in {group for _, group in tree} - {os.getpgrp()}:
        _kill_group(group)
    for pid, _ in tree:
        _kill(pid)


def _kill_group(group: int) -> None:
    _signal_group(group, signal.SIGKILL)


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(OSError):  # ended, or owned by another user
        os.killpg(group, number)


def _kill(pid: int) -> None:
    with suppress(OSError):  # ended, or owned by another user
        os.kill(pid, signal.SIGKILL)


def _exceeded(memory_limit: int) -> str:
    """Return the limit that the descendants of this process exceed together, or an empty string."""
    has_proc = _has_proc()
    listed = [] if has_proc else _listed()
    tree = [pid for pid, _ in _tree(_processes() if has_proc else (found[:3] for found in listed))]
    if len(tree) > MOST_PROCESSES:
        return "processes"
    limit = memory_limit + _BESIDE_DATA
    if not has_proc:
        return "memory" if sum(size for pid, _, _, size in listed if pid in tree) > limit else ""
    if sum(map(_resident, tree)) <= limit:
        return ""
    # the sum above counts shared pages once per process; this one is exact but slower
    return "memory" if sum(map(_proportional, tree)) > limit else ""


def _tree(processes: Iterable[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Return the process id and group of every descendant of this process among all processes."""
    children: dict[int, list[tuple[int, int]]] = {}
    for pid, parent, group in processes:
        children.setdefault(parent, []).append((pid, group))
    tree = children.get(os.getpid(), [])
    for pid, _ in tree:
        tree += children.get(pid, [])
    return tree


def _processes() -> Iterator[tuple[int, int, int]]:
    """Yield the id, parent and group of every visible process."""
    if not _has_proc():
        yield from (found[:3] for found in _listed())
        return
    for name in os.listdir(_PROC):  # noqa: PTH208 - pathlib is too heavy for a worker
        if name.isdigit():
            _, _, fields = _content(f"{_PROC}/{name}/stat").rpartition(b")")
            if fields:
                _, parent, group, *_ = fields.split(None, 3)
                yield int(name), int(parent), int(group)


def _has_proc() -> bool:
    return os.path.isdir(f"{_PROC}/self")  # noqa: PTH112 - pathlib is too heavy for a worker


def _listed() -> list[tuple[int, int, int, int]]:
    """Return the id, parent, group and resident bytes of every process as `ps` lists them; none if that fails."""
    import subprocess

    command = ["/bin/ps", "-axo", "pid=,ppid=,pgid=,rss="]
    try:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as ps:  # noqa: S603 - our own
            try:
                shown, _ = ps.communicate(timeout=_PS_SECONDS)
            finally:
                ps.kill()
        rows = [[int(number) for number in line.split()] for line in shown.splitlines()]
        return [(pid, parent, group, size * 1024) for pid, parent, group, size in rows if pid != ps.pid]
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return []


def _resident(pid: int) -> int:
    """Return the resident memory of a process in bytes, including shared memory but not mapped files."""
    return _sum(f"{_PROC}/{pid}/status", b"RssAnon", b"RssShmem")


def _proportional(pid: int) -> int:
    """Return the resident memory of a process in bytes, counting only its share of shared memory."""
    return _sum(f"{_PROC}/{pid}/smaps_rollup", b"Pss_Anon", b"Pss_Shmem") or _resident(pid)


def _sum(file: str, *names: bytes) -> int:
    lines = (line.partition(b":") for line in _content(file).splitlines())
    return sum(int(value.split()[0]) * 1024 for name, _, value in lines if name in names)


def _content(file: str) -> bytes:
    try:
        with open(file, "rb") as content:  # noqa: PTH123 - pathlib is too heavy for a worker
            return content.read()
    except OSError:  # the process ended, or is owned by another user
        return b""


def limit_of_tasks() -> int:
    """Return a generous limit for the user's processes and threads; 0 if their number is unknown.

    The limit applies to all tasks of the user. The system reports only the tasks of all users, which are at least as
    many.
    """
    _, _, total = _content(f"{_PROC}/loadavg").rpartition(b"/")
    return int(total.split()[0]) + _ENOUGH_TASKS if total else 0


def _control_process(option: int, value: int) -> None:
    """Call `prctl`, for which Python has no function; do nothing on other systems."""
    if sys.platform != "linux":
        return
    # the implementation of `ctypes`, which imports in a third of the time
    import _ctypes

    program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type] # None is the program itself, as in `ctypes.CDLL`
    _ctypes.call_function(_ctypes.dlsym(program, "prctl"), (option, value, 0, 0, 0))
