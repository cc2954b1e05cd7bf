"""Client of the command server, see `commands`; as a program it loads little.

`command_client.py ADDRESS PROGRAM [ARGUMENT…]`, where the program is `pegboard` or the path of a Python script.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress


def exchange(
    server: socket.socket, arguments: Sequence[str], streams: Sequence[int], cwd: str, env: Mapping[str, str]
) -> Iterator[int]:
    """Start a program with three open streams. Yield its process id, then its exit code, negative for a signal."""
    os.umask(umask := os.umask(0o077))
    request = json.dumps({"arguments": list(arguments), "cwd": cwd, "env": dict(env), "umask": umask})
    socket.send_fds(server, [b"\0"], list(streams))
    server.sendall(request.encode() + b"\n")
    with server.makefile("r", encoding="ascii") as answers:
        yield int(answers.readline())
        yield int(answers.readline())


def _forward(pid: int) -> None:
    """Send the signals that end this process to another one instead."""

    def send(number: int, frame: object) -> None:
        del frame
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, send)


if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        answers = exchange(connection, sys.argv[2:], (0, 1, 2), os.getcwd(), os.environ)  # noqa: PTH109 - loads less
        _forward(next(answers))
        code = next(answers)
    sys.exit(code if code >= 0 else 128 - code)
