"""Start of the watched server: its process gets the client's environment and stderr, and ends with the proxy."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
from contextlib import suppress
from typing import NamedTuple, NoReturn

from pegboard.worker.keeper import forget_orphans, fork_child

_PIPE_BYTES = 2**18
"""Size of pipe buffers; the system's default is 64 KiB."""


class Server(NamedTuple):
    """A server that was started."""

    pid: int
    stdin: int
    """Descriptor to write to."""
    stdout: int
    """Descriptor to read from."""
    control: socket.socket
    """Socket to the keeper. It reports the end; closing it kills the server and everything that it started."""


class StartError(Exception):
    """The server was not started; the message says why."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
        """The exit code that a shell would report."""


def client_environment() -> dict[bytes, bytes]:
    """Return the environment as the client set it: Python adds `LC_CTYPE` to its own in the C locale."""
    try:
        with open("/proc/self/environ", "rb") as given:  # noqa: PTH123 - pathlib is too heavy for the start
            pairs = [pair.partition(b"=") for pair in given.read().split(b"\0") if pair]
    except OSError:
        return dict(os.environb)
    found = {name: value for name, _, value in pairs}
    return found if found.keys() <= os.environb.keys() else dict(os.environb)


def enlarge(pipe: int) -> None:
    """Enlarge the buffer of a pipe, so that a large message needs fewer steps; ignore other files."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def start_server(command: list[str]) -> Server:
    """Start a server under a keeper, which kills its processes however it or the proxy ends.

    Call it before any thread starts, because it forks.

    Raises:
        StartError: The program can't be run.
    """
    environment = client_environment()
    control, of_keeper = socket.socketpair()
    server_in, our_in = os.pipe()
    our_out, server_out = os.pipe()
    for descriptor in (our_in, our_out, 1):
        enlarge(descriptor)
    started, report = os.pipe()
    keeper = os.fork()
    if not keeper:
        try:
            for descriptor in (control.fileno(), our_in, our_out, started):
                os.close(descriptor)
            os.dup2(server_in, 0)
            os.dup2(server_out, 1)
            os.close(server_in)
            os.close(server_out)
            # The keeper must not hold the pipes of the client and the server: their ends would go unnoticed.
            fork_child(of_keeper.detach(), 0, report)
            forget_orphans()
            _execute(command, environment, report)
        finally:
            os._exit(127)
    for descriptor in (server_in, server_out, report):
        os.close(descriptor)
    of_keeper.close()
    with os.fdopen(started, "rb") as reader:
        pid, _, failure = reader.read().partition(b"\n")
    if failure or not pid:
        number = int(failure or b"0")
        code = 127 if number == 2 else 126
        reason = os.strerror(number) if number else "its process ended before it started"
        raise StartError(f"{command[0]} was not started: {reason}. Check the command after `--`.", code)
    return Server(int(pid), our_in, our_out, control)


def _execute(command: list[str], environment: dict[bytes, bytes], report: int) -> NoReturn:
    os.write(report, b"%d\n" % os.getpid())
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and the server would inherit that.
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - the command that the client configured
    except OSError as error:
        os.write(report, b"%d" % (error.errno or 1))
    os._exit(127)
