"""The `pegboard` program, without the time that Python needs to load it.

A server loads the command line once and forks for every command. A command is still a process of its own, with its
own environment, folder, umask, streams and exit code. `tests/cli/test_processes.py` runs every command as users do.
"""

from __future__ import annotations

import atexit
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path

from command_client import exchange

Done = subprocess.CompletedProcess[str]

_SHARED = "COMMAND_SERVER_OF_TESTS"
"""Environment variable with the address of the shared server."""


def pegboard(
    *arguments: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | bytes = b"",
    timeout: float = 60,
) -> Done:
    """Run a command to its end, like `subprocess.run([sys.executable, "-m", "pegboard", …])`.

    Args:
        arguments: The arguments of the program.
        cwd: Working directory; by default that of the tests.
        env: Environment variables; by default those of the tests.
        stdin: The whole of stdin.
        timeout: Limit in seconds.

    Raises:
        subprocess.TimeoutExpired: The command took longer, and was killed.
    """
    given = stdin.encode() if isinstance(stdin, str) else stdin
    (their_in, our_in), (our_out, their_out), (our_error, their_error) = (os.pipe() for _ in range(3))
    streams = (their_in, their_out, their_error)
    with socket.socket(socket.AF_UNIX) as server, ThreadPoolExecutor(3) as threads:
        threads.submit(_write, our_in, given)
        outputs = [threads.submit(_read, descriptor) for descriptor in (our_out, our_error)]
        try:
            server.connect(address())
            server.settimeout(timeout)
            answers = exchange(
                server, ["pegboard", *arguments], streams, str(cwd or Path.cwd()), os.environ if env is None else env
            )
            pid = next(answers)
        finally:
            for descriptor in streams:
                os.close(descriptor)
        try:
            code = next(answers)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(["pegboard", *arguments], timeout) from None
        return Done(arguments, code, *(output.result(timeout) for output in outputs))


def shell_function(name: str = "pegboard") -> str:
    """Return the definition of a shell function that runs commands of Pegboard on the server."""
    return f'{name}() {{ {shlex.join(forked("pegboard"))} "$@"; }}\n'


def forked(program: str | Path, *arguments: str) -> list[str]:
    """Return the command of a process that runs a program on the server, with its own streams and environment.

    Args:
        program: `pegboard`, or a Python script, for which the MCP SDK is loaded already.
        arguments: Arguments of the program.
    """
    client = Path(__file__).with_name("command_client.py")
    return [sys.executable, "-I", "-S", str(client), address(), str(program), *arguments]


def _write(descriptor: int, content: bytes) -> None:
    with suppress(BrokenPipeError), open(descriptor, "wb") as stream:
        stream.write(content)


def _read(descriptor: int) -> str:
    with open(descriptor, encoding="utf-8", newline="") as stream:
        return stream.read()


@cache
def address() -> str:
    """Return the address of the server; start one if the tests don't share one."""
    return os.environ.get(_SHARED) or _start()


def share_server() -> None:
    """Start one server for this process and those that it starts, which else start one each."""
    os.environ[_SHARED] = _start()


def _start() -> str:
    """Start a server and return its address, which takes connections immediately; it ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="pegboard-")
    address = f"{folder.name}/socket"
    # Loading must not depend on the user's folders or settings: each command brings its own.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PEGBOARD_")}
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("command_server.py"), address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**env, "HOME": folder.name},
        cwd=folder.name,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"

    def end() -> None:
        process.communicate(timeout=20)
        folder.cleanup()

    atexit.register(end)
    return address
