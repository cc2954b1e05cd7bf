"""The parent's side of the processes in which scripts run."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from json import dumps, loads
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, Final, Protocol  # Any: a message before validation

from pegboard.executor.environment import worker_environment
from pegboard.scripts.analysis import Parsed, ParsedCommand, ScriptSyntaxError

_SHELL: Final = str(Path(__file__).with_name("shell.py"))
_CHUNK: Final = 2**18
_MOST_IDLE: Final = 2
_LAST_WORDS: Final = 2_000
"""Bytes of stderr that are kept of a process that ends unexpectedly."""
_READING_SECONDS: Final = 5.0
_DYING_SECONDS: Final = 0.5
"""Timeout for the exit code of a process that has closed its output."""
_BROKE: Final = "it is nested too deeply, or takes too long to parse"


class ScriptListener(Protocol):
    """Handler of a running script's messages."""

    def heard(self, message: Mapping[str, Any]) -> None:
        """Handle a message in the format of `pegboard.scripts.shell`."""

    def broke(self, last_words: str, code: int | None) -> None:
        """Handle the process's unexpected end: its stderr and its exit code."""


class Sandbox:
    """A process for scripts, one at a time; between two of them it belongs to no event loop.

    Args:
        memory: Limit of its data in bytes.

    Raises:
        OSError: It can't be started.
    """

    def __init__(self, memory: int) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [sys.executable, "-P", _SHELL, str(memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            env=worker_environment(os.environ),
            cwd="/",
        )
        assert self._process.stdin is not None, "requested above"
        assert self._process.stdout is not None, "requested above"
        assert self._process.stderr is not None, "requested above"
        self._requests, self._answers = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._errors = self._process.stderr
        os.set_blocking(self._requests, False)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: ScriptListener | None = None
        self._unsent = bytearray()
        self._unread = bytearray()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can run a script."""
        return self._process.poll() is None

    def run(self, request: Mapping[str, object], listener: ScriptListener) -> None:
        """Start a script; its messages go to `listener` until `leave`."""
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._loop.add_reader(self._answers, self._read)
        self.send(request)

    def send(self, message: Mapping[str, object]) -> None:
        """Send a message; ignored if the process has ended or was left."""
        if self._loop is not None:
            self._unsent += dumps(message).encode() + b"\n"
            self._write()

    def parse(self, script: str) -> Parsed:
        """Parse a script without running it; block meanwhile. No script may be running.

        The process parses it, and ends if its parser crashes, as it does for thousands of nested `time`.

        Raises:
            ScriptSyntaxError: It can't be parsed.
        """
        if not self.is_alive:
            raise ScriptSyntaxError(_BROKE)
        os.set_blocking(self._requests, True)
        try:
            left = memoryview(dumps({"parse": script}).encode() + b"\n")
            while left:
                left = left[os.write(self._requests, left) :]
            answer = loads(self._line())
        except (OSError, ValueError):
            self.end()
            raise ScriptSyntaxError(_BROKE) from None
        os.set_blocking(self._requests, False)
        if (error := answer.get("error")) is not None:
            raise ScriptSyntaxError(error)
        commands = [ParsedCommand(*one) for one in answer["commands"]]
        return Parsed(commands, answer["functions"], answer["cut"], answer["missing"], answer["refusal"])

    def _line(self) -> bytes:
        """Wait for a line; return an empty one at the end of the output."""
        due = monotonic() + _READING_SECONDS
        ready = select.poll()
        ready.register(self._answers, select.POLLIN)
        line = bytearray()
        while not line.endswith(b"\n"):
            data = os.read(self._answers, _CHUNK) if ready.poll(max(due - monotonic(), 0.0) * 1000) else b""
            if not data:
                return b""
            line += data
        return bytes(line)

    def leave(self) -> None:
        """Detach the current listener."""
        if self._loop is not None:
            self._loop.remove_reader(self._answers)
            self._loop.remove_writer(self._requests)
        self._loop = self._listener = None
        self._unsent.clear()
        self._unread.clear()

    def end(self) -> None:
        """Kill the process and wait for its end; block for a moment. It must have been left."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _write(self) -> None:
        assert self._loop is not None, "asked before"
        try:
            while self._unsent:
                del self._unsent[: os.write(self._requests, self._unsent[:_CHUNK])]
            self._loop.remove_writer(self._requests)
        except BlockingIOError:
            self._loop.add_writer(self._requests, self._write)
        except OSError:  # it has ended; the reader reports that
            self._unsent.clear()
            self._loop.remove_writer(self._requests)

    def _read(self) -> None:
        data = os.read(self._answers, _CHUNK)
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = bytes(self._unread) + lines[0]
            self._unread.clear()
        for message in _merged(map(loads, lines)):
            if self._listener is not None:
                self._listener.heard(message)
        self._unread += rest
        if not data and (listener := self._listener) is not None:
            self.leave()
            os.set_blocking(self._errors.fileno(), False)
            last_words = (self._errors.read(_LAST_WORDS) or b"").decode(errors="replace").strip()
            code = None
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(_DYING_SECONDS)
            listener.broke(last_words, code)


def _merged(messages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Join consecutive messages with output into one."""
    for stream, group in groupby(
        messages, lambda message: "out" if "out" in message else "err" if "err" in message else ""
    ):
        if stream:
            yield {stream: "".join(message[stream] for message in group)}
        else:
            yield from group


class Sandboxes:
    """Pool of processes for scripts: one for each running script, and up to two idle ones.

    Thread-safe and usable from any event loop.

    Args:
        memory: Limit of each process's data in bytes.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._idle: list[Sandbox] = []
        self._lock = Lock()
        self._finalizer = weakref.finalize(self, _end_all, self._idle)

    def take(self) -> Sandbox:
        """Return a process for exclusive use; block while one starts.

        Raises:
            OSError: It can't be started.
        """
        while True:
            with self._lock:
                sandbox = self._idle.pop() if self._idle else None
            if sandbox is None:
                return Sandbox(self._memory)
            if sandbox.is_alive:
                return sandbox
            sandbox.end()

    def give_back(self, sandbox: Sandbox) -> None:
        """Return a process whose script has ended by itself, and that was left; block for a moment."""
        with self._lock:
            if len(self._idle) < _MOST_IDLE and self._finalizer.alive:
                self._idle.append(sandbox)
                return
        sandbox.end()

    def close(self) -> None:
        """End the idle processes; block for a moment."""
        with self._lock:
            self._finalizer()


def _end_all(sandboxes: list[Sandbox]) -> None:
    while sandboxes:
        sandboxes.pop().end()
