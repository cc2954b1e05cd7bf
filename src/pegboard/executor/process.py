"""Worker process and its pipes."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Any, Literal, Protocol  # Any: a message, before it is read
from weakref import WeakSet

from pegboard.worker.keeper import MEASURE

_CODE = "from pegboard.worker.keeper import main; main(); from pegboard.worker.serve import main; main()"
_CHUNK = 65_536
_DRAIN_CHUNKS = 32
"""Chunks to read after an answer: the capacity of a pipe. A child of the tool may keep writing forever."""

_STARTUP_OUTPUT = 2_000
"""Bytes kept of the output of a process that isn't ready yet."""

_KEEPER_SECONDS = 3.0
"""Time limit for the keeper to end a worker, in seconds; then it is killed itself."""

Stream = Literal["stdout", "stderr"]


class CallListener(Protocol):
    """Receiver of a worker's messages and output during a call.

    One of `on_answer`, `on_crash` and `on_limit` comes last, after all output.
    """

    def on_message(self, message: dict[str, Any]) -> None:
        """Handle a message other than the answer."""

    def on_output(self, stream: Stream, data: bytes) -> None:
        """Handle output."""

    def on_answer(self, answer: dict[str, Any]) -> None:
        """Handle the answer."""

    def on_crash(self, reason: str) -> None:
        """Handle the end of the worker without an answer."""

    def on_limit(self, limit: str) -> None:
        """Handle the end of the worker after it exceeded a limit, `memory` or `processes`."""


class WorkerProcess:
    """Worker process with its pipes. Create it inside a running event loop.

    The direct child process is the keeper of the worker, see `pegboard.worker.keeper`.

    Args:
        memory_limit: Limit of its data, in bytes.
        environment: Environment variables.
        longest_answer: Maximum size of an answer in bytes; the process is killed after a larger one.
        on_ready: Callback for when it can receive requests.
        on_exit: Callback for when it has ended, for any reason.

    Raises:
        OSError: The process can't be started.
    """

    def __init__(
        self,
        *,
        memory_limit: int,
        environment: Mapping[str, str],
        longest_answer: int,
        on_ready: Callable[[WorkerProcess], None],
        on_exit: Callable[[WorkerProcess], None],
    ) -> None:
        _PROCESSES.add(self)
        self.files: set[str] = set()
        """Files of the packs that it has run."""
        self.owner: str | None = None
        """File of the only pack that it may run; None if it may run any."""
        self.is_ready = False
        self.is_alive = True
        self.idle_since = 0.0
        self.exit = ""
        """Description of its end, such as an exit code."""
        self.pid = 0
        """Process id of the worker, once it is ready."""
        self._longest_answer = longest_answer
        self._on_ready = on_ready
        self._on_exit = on_exit
        self._listener: CallListener | None = None
        self.number = 0
        """Id of the last request."""
        self._is_killed = False
        self._loop = asyncio.get_running_loop()
        self._unsent = memoryview(b"")
        self._unread = bytearray()
        self._startup_output = b""
        with ExitStack() as ours, ExitStack() as theirs:
            theirs_in, self._requests = os.pipe()
            theirs.callback(os.close, theirs_in)
            ours.callback(os.close, self._requests)
            self._answers, theirs_out = os.pipe()
            theirs.callback(os.close, theirs_out)
            ours.callback(os.close, self._answers)
            self._control, theirs_control = socket.socketpair()
            theirs.enter_context(theirs_control)
            ours.enter_context(self._control)
            passed = (theirs_in, theirs_out, theirs_control.fileno())
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
                [sys.executable, "-P", "-c", _CODE, *map(str, (theirs_in, theirs_out, memory_limit, passed[2]))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=passed,
                start_new_session=True,
                env=dict(environment),
            )
            ours.pop_all()  # they stay open unless the start failed
        self._control.setblocking(False)
        assert self._process.stdout is not None, "it is a pipe"
        assert self._process.stderr is not None, "it is a pipe"
        self._outputs: dict[int, Stream] = {
            self._process.stdout.fileno(): "stdout",
            self._process.stderr.fileno(): "stderr",
        }
        os.set_blocking(self._requests, False)
        self._read_with(self._answers, self._read_answers)
        self._output_poll = select.poll()
        for descriptor in self._outputs:
            self._read_with(descriptor, self._read_output, descriptor)
            self._output_poll.register(descriptor, select.POLLIN)
        self._exit_watch = self._watch_exit()

    def run(self, number: int, request: bytes, listener: CallListener) -> None:
        """Send a request, and pass messages and output to `listener` until its answer, its failure or `leave`.

        Args:
            number: Id of the request, unique for this process.
            request: Line of the request, see `pegboard.worker.wire`.
            listener: Receiver of messages and output.
        """
        self._drain()  # output after the last call belongs to no call
        self._listener = listener
        self.number = number
        self._unsent = memoryview(request)
        self._send()

    def reply(self, message: bytes) -> None:
        """Send a reply to a question of the tool; do nothing if the process has ended."""
        if self._requests >= 0:
            self._unsent = memoryview(bytes(self._unsent) + message)
            self._send()

    def leave(self) -> None:
        """Pass the remaining output to the listener and detach it."""
        if self.is_alive:
            self._drain()
        self._listener = None

    def kill(self) -> None:
        """Kill the process and all that it started. Thread-safe."""
        if self._is_killed or not self.is_alive:
            return
        self._is_killed = True
        with suppress(OSError):  # the keeper has ended
            self._control.shutdown(socket.SHUT_WR)
        with suppress(RuntimeError):  # the event loop is closed; see `abandon`
            self._loop.call_soon_threadsafe(self._loop.call_later, _KEEPER_SECONDS, self._kill_keeper)

    def measure(self) -> None:
        """Measure the process and all that it started, and kill them if they exceed a limit."""
        with suppress(OSError):  # the keeper has ended or is still measuring
            self._control.send(MEASURE)

    def finish(self) -> None:
        """Close the pipe of requests; an idle process then ends immediately."""
        if self._requests >= 0:
            self._loop.remove_writer(self._requests)
            os.close(self._requests)
            self._requests = -1

    def abandon(self) -> None:
        """Kill the process after the end of its event loop."""
        self.kill()
        if not self._loop.is_closed():
            for descriptor in (self._answers, self._exit_watch, *self._outputs):
                self._loop.remove_reader(descriptor)
        try:
            self._process.wait(_KEEPER_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill_keeper()
            self._process.wait()
        self.is_alive = False
        self._close_all()

    def detach(self) -> None:
        """Close the pipes in a forked child process, which must not use the parent's worker or event loop."""
        if not self.is_alive:
            return
        self.is_alive = False
        self._listener = None
        self._process.returncode = 0  # only the parent may wait for it
        self._close_all()

    def _read_with(self, descriptor: int, callback: Callable[..., object], *args: object) -> None:
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, callback, *args)

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._requests, self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # the process has ended; `_exited` handles that
            self._unsent = memoryview(b"")
        if self._unsent:
            self._loop.add_writer(self._requests, self._send)
        else:
            self._loop.remove_writer(self._requests)

    def _read_output(self, descriptor: int) -> bool:
        """Read one chunk of output; return False if none is available."""
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(descriptor)
            return False
        if self._listener is not None:
            self._listener.on_output(self._outputs[descriptor], data)
        elif not self.is_ready:
            self._startup_output = (self._startup_output + data)[-_STARTUP_OUTPUT:]
        return True

    def _drain(self) -> None:
        for descriptor, _ in self._output_poll.poll(0):
            for _ in range(_DRAIN_CHUNKS):
                if not self._read_output(descriptor):
                    break

    def _read_answers(self) -> bool:
        """Read one chunk of messages; return False if none is available."""
        try:
            data = os.read(self._answers, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._answers)
            return False
        ended, line_break, rest = data.rpartition(b"\n")
        lines = []
        if line_break:
            lines = (self._unread + ended).split(b"\n")
            self._unread.clear()
        self._unread += rest
        listener = self._listener
        try:
            for line in lines:
                self._handle(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self._crash(listener, "it wrote invalid data to the pipe of answers")
        if len(self._unread) > self._longest_answer:
            self._crash(listener, "its answer is too long")
        return True

    def _handle(self, message: dict[str, Any]) -> None:
        if not self.is_ready:
            self.is_ready = "ready" in message
            if self.is_ready:
                self.pid = message["ready"]
                self._on_ready(self)
            return
        listener = self._listener
        if listener is None or message.get("id") != self.number:  # an earlier call or the tool itself wrote it
            return
        if "data" in message:
            self.leave()
            listener.on_answer(message)
        else:
            listener.on_message(message)

    def _crash(self, listener: CallListener | None, reason: str) -> None:
        """Kill the process because of invalid data, and fail the call during which it came."""
        self._listener, self._unread = None, bytearray()
        self.kill()
        if listener is not None:
            listener.on_crash(reason)

    def _watch_exit(self) -> int:
        """Call `_exited` when the process ends; return the watched descriptor, or -1 if a thread watches."""
        if sys.platform == "linux":
            with suppress(OSError):  # an old kernel, or a container that forbids it
                watch = os.pidfd_open(self._process.pid)
                self._loop.add_reader(watch, self._exited)
                return watch
        threading.Thread(target=self._wait_for_exit, name=f"wait for {self._process.pid}", daemon=True).start()
        return -1

    def _wait_for_exit(self) -> None:
        self._process.wait()
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._exited)

    def _exited(self) -> None:
        if not self.is_alive:
            return
        while self._read_answers():
            pass
        self._drain()
        self.is_alive = False
        status = self._process.wait()
        reason, _, number = self._last_report().partition(" ")
        if not reason:
            self._kill_orphan()
        self.exit = _describe_exit(int(number) if reason == "exit" else status)
        *_, last_line = ["", *self._startup_output.decode("utf-8", "replace").splitlines()]
        if last_line:
            self.exit += f": {last_line}"
        self.finish()
        self._loop.remove_reader(self._answers)
        os.close(self._answers)
        if self._exit_watch >= 0:
            self._loop.remove_reader(self._exit_watch)
            os.close(self._exit_watch)
        for descriptor in self._outputs:
            self._loop.remove_reader(descriptor)
        self._close_outputs()
        self._control.close()
        listener, self._listener = self._listener, None
        if listener is not None and reason in {"memory", "processes"}:
            listener.on_limit(reason)
        elif listener is not None:
            listener.on_crash(self.exit)
        self._on_exit(self)

    def _last_report(self) -> str:
        """Return the keeper's report; empty if the keeper was killed."""
        try:
            return self._control.recv(100).decode()
        except OSError:
            return ""

    def _kill_keeper(self) -> None:
        """Kill a hanging keeper; the system then kills the worker."""
        if self.is_alive:
            self._process.kill()
            self._kill_orphan()

    def _kill_orphan(self) -> None:
        """Kill a worker whose keeper was killed, on systems that don't do so themselves."""
        if self.pid:
            with suppress(OSError):  # it has ended
                os.killpg(self.pid, signal.SIGKILL)

    def _close_all(self) -> None:
        for descriptor in (self._requests, self._answers, self._exit_watch):
            if descriptor >= 0:
                os.close(descriptor)
        self._requests = -1
        self._control.close()
        self._close_outputs()

    def _close_outputs(self) -> None:
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


_PROCESSES: WeakSet[WorkerProcess] = WeakSet()


def _detach_all() -> None:
    for process in [*_PROCESSES]:
        process.detach()


os.register_at_fork(after_in_child=_detach_all)


def _describe_exit(status: int) -> str:
    if status >= 0:
        return f"exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"{name}, {signal.strsignal(-status)}"
