"""Server that runs commands of Pegboard, and scripts, in forked processes, see `commands`."""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

_LIBRARIES = ("anyio._backends._asyncio", "jsonschema")
"""Modules of libraries that most commands run and load late."""
_NOT_LOADED = ("pegboard.__main__", "pegboard.packs.", "pegboard.scripts.", "pegboard.tui", "pegboard.worker.")
"""Modules that other processes run."""
_LIMIT = 10_000_000
"""Limit of a request in bytes."""


class Server:
    """A process that forks for each request, and answers with the process id and then the exit code.

    It kills the forked process if the connection is closed before. A client may end at any moment.

    Args:
        address: Path of its socket.
    """

    def __init__(self, address: str) -> None:
        self._running: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen(20)
        self._woken, self._waker = os.pipe()
        for descriptor in (self._woken, self._waker):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._waker)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> bool:
        """Serve until stdin is closed.

        Returns:
            Whether this is a forked process, which is to run the program in `sys.argv`.
        """
        with self._selector as selector:
            for source in (self._listener, self._woken, 0):
                selector.register(source, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fd == 0:
                        return False
                    if key.fd == self._woken:
                        self._answer()
                    elif key.data is not None:
                        if self._running.get(key.data) is key.fileobj:  # else the command has ended just before
                            selector.unregister(key.fileobj)  # the client has ended
                            os.kill(key.data, signal.SIGKILL)
                    elif self._accept():
                        return True

    def _accept(self) -> bool:
        """Fork for a request; return whether this is the new process."""
        connection, _ = self._listener.accept()
        streams: list[int] = []
        try:
            _, streams, _, _ = socket.recv_fds(connection, 1, 3)
            with connection.makefile("rb") as lines:
                request = json.loads(lines.readline(_LIMIT))
        except (OSError, ValueError):
            connection.close()
            for descriptor in streams:
                os.close(descriptor)
            return False
        pid = os.fork()
        if not pid:
            connection.close()
            self._leave()
            _begin(streams, **request)
            return True
        for descriptor in streams:
            os.close(descriptor)
        self._running[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ, pid)
        with suppress(OSError):  # then it is killed next
            connection.sendall(b"%d\n" % pid)
        return False

    def _answer(self) -> None:
        """Send the exit codes of ended processes."""
        with suppress(BlockingIOError):
            os.read(self._woken, 1000)
        for pid in list(self._running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                with self._running.pop(pid) as connection, suppress(OSError):
                    with suppress(KeyError):  # the client has ended
                        self._selector.unregister(connection)
                    connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))

    def _leave(self) -> None:
        """Release the sockets and signals of the server, in a forked process."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for opened in (self._listener, *self._running.values()):
            opened.close()
        os.close(self._woken)
        os.close(self._waker)


def _begin(streams: list[int], arguments: list[str], cwd: str, env: dict[str, str], umask: int) -> None:
    """Take the streams, arguments, folder, environment and umask of a command."""
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = (
        open(target, old.mode, encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115 - open to the end
        for target, old in enumerate((sys.stdin, sys.stdout, sys.stderr))
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[assignment,misc]
    os.chdir(cwd)
    os.umask(umask)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.path[:0] = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path and path not in sys.path]
    sys.argv = arguments


def load() -> None:
    """Load what commands may need."""
    import pegboard
    from pegboard.cli import program

    program()
    for module in pkgutil.walk_packages(pegboard.__path__, "pegboard."):
        if not module.name.startswith(_NOT_LOADED):
            import_module(module.name)
    for name in _LIBRARIES:
        import_module(name)
    gc.collect()
    gc.freeze()


def _leave_out_others(command: str) -> None:
    """Register only the wanted command, as `pegboard.cli.program` does; building all takes longer than most run."""
    from pegboard.cli import COMMANDS
    from pegboard.cli.root import app

    if command in COMMANDS:
        app.registered_commands = [
            one for one in app.registered_commands if one.callback and command in {one.name, one.callback.__name__}
        ]
        app.registered_groups = [
            one for one in app.registered_groups if one.typer_instance and one.typer_instance.info.name == command
        ]


def run() -> NoReturn:
    """Run the program in `sys.argv` and exit as Python does, without freeing the memory shared with the server."""
    from pegboard.__main__ import main

    code = 1
    try:
        if sys.argv[0] == "pegboard":
            _leave_out_others("".join(sys.argv[1:2]))
            main()
        else:
            sys.path.insert(0, str(Path(sys.argv[0]).parent))
            runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    del sys.path[0]  # The modules beside this one aren't Pegboard's.
    server = Server(sys.argv[1])
    print("ready", flush=True)
    load()
    assert threading.active_count() == 1, "a fork copies only one thread"
    if server.serve():
        run()
