"""One worker process, seen from here."""

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
from contextlib import suppress
from typing import Any, Literal, Protocol  # Any: a message, before it is read
from weakref import WeakSet

from pegboard.worker.keeper import MEASURE

_CODE = "from pegboard.worker.keeper import main; main(); from pegboard.worker.serve import main; main()"
_CHUNK = 65_536
_DRAIN_CHUNKS = 32
"""What a pipe can hold was written before the answer; a child of the tool may go on writing for ever."""

_LAST_WORDS = 2_000
"""Bytes kept of what a process says that never becomes ready."""

_KEEPER_SECONDS = 3.0
"""How long the keeper may take to end a worker, before it is killed itself."""

Stream = Literal["stdout", "stderr"]


class Listener(Protocol):
    """Who hears what a worker says, while it runs a call."""

    def heard(self, message: dict[str, Any]) -> None:
        """Takes a message other than the answer."""

    def printed(self, stream: Stream, data: bytes) -> None:
        """Takes output."""

    def answered(self, answer: dict[str, Any]) -> None:
        """Takes the answer; all output before it has been told."""

    def broke(self, reason: str) -> None:
        """Learns that there will be no answer, and why; all output has been told."""

    def outgrew(self, limit: str) -> None:
        """Fail the call: it exceeded a limit, `memory` or `processes`; all output has been passed on."""


class WorkerProcess:
    """A worker process with the pipes to it; made inside a running event loop.

    Our child is its keeper, which ends with it and with all that it started; see `pegboard.worker.keeper`.

    Args:
        memory_limit: Bytes of data that it may have.
        environment: Its environment variables.
        longest_answer: Bytes; a longer one breaks it.
        on_ready: Called once it can take requests.
        on_exit: Called once it has ended, whatever ended it.

    Raises:
        OSError: It can't be started.
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
        """The file of the only pack that it may run, if it runs one that must be alone."""
        self.is_ready = False
        self.is_alive = True
        self.idle_since = 0.0
        self.exit = ""
        """How it ended, in words."""
        self.pid = 0
        """The worker's own id, once it is ready."""
        self._longest_answer = longest_answer
        self._on_ready = on_ready
        self._on_exit = on_exit
        self._listener: Listener | None = None
        self.number = 0
        """The id of the last request."""
        self._is_killed = False
        self._loop = asyncio.get_running_loop()
        self._unsent = b""
        self._unread = b""
        self._last_words = b""
        theirs_in, self._requests = os.pipe()
        self._answers, theirs_out = os.pipe()
        self._control, theirs_control = socket.socketpair()
        passed = (theirs_in, theirs_out, theirs_control.fileno())
        try:
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
        except OSError:
            os.close(self._requests)
            os.close(self._answers)
            self._control.close()
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
            theirs_control.close()
        self._control.setblocking(False)
        assert self._process.stdout is not None, "asked for above"
        assert self._process.stderr is not None, "asked for above"
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

    def run(self, number: int, request: bytes, listener: Listener) -> None:
        """Sends a request; what comes of it is told to `listener`, until `answered`, `broke` or `leave`.

        Args:
            number: The request's id, which no other request to this process has.
            request: The request, as `pegboard.worker.wire` writes it.
            listener: Who hears.
        """
        self._drain()  # what was printed after the last call is nobody's
        self._listener = listener
        self.number = number
        self._unsent = request
        self._send()

    def reply(self, message: bytes) -> None:
        """Sends a reply to something that the tool asked; nowhere, if the process has ended."""
        if self._requests >= 0:
            self._unsent += message
            self._send()

    def leave(self) -> None:
        """Tells the present listener no more, after all that has been printed so far."""
        if self.is_alive:
            self._drain()
        self._listener = None

    def kill(self) -> None:
        """Have the process and all that it started killed, from any thread."""
        if self._is_killed or not self.is_alive:
            return
        self._is_killed = True
        with suppress(OSError):  # the keeper has ended
            self._control.shutdown(socket.SHUT_WR)
        with suppress(RuntimeError):  # the event loop is closed; see `abandon`
            self._loop.call_soon_threadsafe(self._loop.call_later, _KEEPER_SECONDS, self._kill_keeper)

    def measure(self) -> None:
        """Have the process and all that it started measured, and killed if they exceed a limit."""
        with suppress(OSError):  # the keeper has ended, or is behind
            self._control.send(MEASURE)

    def finish(self) -> None:
        """Asks the process to end by itself, as an idle one does at once."""
        if self._requests >= 0:
            self._loop.remove_writer(self._requests)
            os.close(self._requests)
            self._requests = -1

    def abandon(self) -> None:
        """Kills the process without its event loop, which runs no more."""
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

    def let_go(self) -> None:
        """Closes its pipes in a forked child, where it is nobody's worker; the event loop is still our parent's."""
        if not self.is_alive:
            return
        self.is_alive = False
        self._listener = None
        self._process.returncode = 0  # it is not ours to wait for
        self._close_all()

    def _read_with(self, descriptor: int, callback: Callable[..., object], *args: object) -> None:
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, callback, *args)

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._requests, self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # it has ended, as its exit will tell
            self._unsent = b""
        if self._unsent:
            self._loop.add_writer(self._requests, self._send)
        else:
            self._loop.remove_writer(self._requests)

    def _read_output(self, descriptor: int) -> bool:
        """Reads what there is, but not much at once; False if there is nothing."""
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(descriptor)
            return False
        if self._listener is not None:
            self._listener.printed(self._outputs[descriptor], data)
        elif not self.is_ready:
            self._last_words = (self._last_words + data)[-_LAST_WORDS:]
        return True

    def _drain(self) -> None:
        for descriptor, _ in self._output_poll.poll(0):
            for _ in range(_DRAIN_CHUNKS):
                if not self._read_output(descriptor):
                    break

    def _read_answers(self) -> bool:
        """Reads messages, but not many at once; False if there are none."""
        try:
            data = os.read(self._answers, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._answers)
            return False
        *lines, self._unread = (self._unread + data).split(b"\n")
        listener = self._listener
        try:
            for line in lines:
                self._take(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self._break(listener, "it wrote something else than answers into the pipe for answers")
        if len(self._unread) > self._longest_answer:
            self._break(listener, "its answer has no end")
        return True

    def _take(self, message: dict[str, Any]) -> None:
        if not self.is_ready:
            self.is_ready = "ready" in message
            if self.is_ready:
                self.pid = message["ready"]
                self._on_ready(self)
            return
        listener = self._listener
        if listener is None or message.get("id") != self.number:  # the tool may have written it, now or earlier
            return
        if "data" in message:
            self.leave()
            listener.answered(message)
        else:
            listener.heard(message)

    def _break(self, listener: Listener | None, reason: str) -> None:
        """Kills the process, and tells who heard it when it began to write nonsense, even if it seemed to answer."""
        self._listener, self._unread = None, b""
        self.kill()
        if listener is not None:
            listener.broke(reason)

    def _watch_exit(self) -> int:
        """Has `_exited` called when the process ends; gives the descriptor that this takes, or -1."""
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
        self.exit = _exit_in_words(int(number) if reason == "exit" else status)
        *_, last_line = ["", *self._last_words.decode("utf-8", "replace").splitlines()]
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
            listener.outgrew(reason)
        elif listener is not None:
            listener.broke(self.exit)
        self._on_exit(self)

    def _last_report(self) -> str:
        """Return why the keeper ended; empty if it was killed itself."""
        try:
            return self._control.recv(100).decode()
        except OSError:
            return ""

    def _kill_keeper(self) -> None:
        """Kill a keeper that doesn't end; the system kills the worker with it."""
        if self.is_alive:
            self._process.kill()
            self._kill_orphan()

    def _kill_orphan(self) -> None:
        """Kill the worker whose keeper was killed, where the system doesn't."""
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


def _let_all_go() -> None:
    for process in [*_PROCESSES]:
        process.let_go()


os.register_at_fork(after_in_child=_let_all_go)


def _exit_in_words(status: int) -> str:
    if status >= 0:
        return f"exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"{name}, {signal.strsignal(-status)}"
