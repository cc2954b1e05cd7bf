"""A raw client of `pegboard watch`, which sees every byte."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pegboard.config import Paths
from pegboard.history import History
from pegboard.models import CallRecord, ToolResult

PROGRAM = str(Path(sys.executable).with_name("pegboard"))
PLAIN_SERVER = str(Path(__file__).with_name("plain_server.py"))
SECONDS = 30.0


class Watched:
    """A started proxy.

    Args:
        command: The server's command.
        name: The server's name.
        env: The client's environment; that of the tests by default.
        direct: Whether to start the server without the proxy.
        before: Called in the new process before it runs the proxy.
    """

    def __init__(
        self,
        *command: str,
        name: str = "plain",
        env: Mapping[str, str] | None = None,
        direct: bool = False,
        before: Callable[[], object] | None = None,
    ) -> None:
        proxy: Sequence[str] = () if direct else (PROGRAM, "watch", "--name", name, "--")
        self.process = subprocess.Popen(
            [*proxy, *(command or (sys.executable, "-S", PLAIN_SERVER))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=env,
            preexec_fn=before,  # noqa: PLW1509 - no thread of the tests runs beside it
        )
        self._rest = b""

    def send(self, *messages: dict[str, Any] | list[Any] | bytes) -> None:
        """Write messages, each on a line."""
        assert self.process.stdin is not None
        data = b"".join(
            message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n" for message in messages
        )
        while data:
            data = data[self.process.stdin.write(data) :]

    def call(self, id_: Any, tool: str, **args: Any) -> None:
        """Call a tool."""
        params = {"name": tool, "arguments": args}
        self.send({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params})

    def initialize(self, name: str = "tester") -> Any:
        """Say who the client is."""
        params = {"protocolVersion": "2025-11-25", "clientInfo": {"name": name, "version": "7"}}
        self.send({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params})
        return self.receive()

    def read(self, size: int = 2**16, seconds: float = SECONDS) -> bytes:
        """Return the next bytes of stdout."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        assert ready, "no output in time"
        return os.read(self.process.stdout.fileno(), size)

    def line(self) -> bytes:
        """Return the next line of stdout."""
        pieces = [self._rest]
        while b"\n" not in pieces[-1]:
            pieces.append(self.read())
            assert pieces[-1], "the proxy closed stdout"
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        return line

    def receive(self) -> Any:
        """Return the next message."""
        return json.loads(self.line())

    def is_silent(self, seconds: float) -> bool:
        """Return whether nothing arrives for a time."""
        assert self.process.stdout is not None
        return not self._rest and not select.select([self.process.stdout], [], [], seconds)[0]

    def close(self) -> int:
        """Close stdin; return the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        self.process.wait(SECONDS)


def eventually(check: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Return the first true value of a function."""
    end = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < end, "it didn't happen in time"
        time.sleep(0.02)
    return found


def records() -> tuple[CallRecord, ...]:
    """Return the record, newest first."""
    paths = Paths.from_environment()
    history = History(paths.database, paths.results)
    try:
        return history.records(limit=1000)
    finally:
        history.close()


def recorded(count: int) -> tuple[CallRecord, ...]:
    """Return the record as soon as it has that many calls."""
    eventually(lambda: len(records()) >= count)
    return records()


def result_of(record: CallRecord) -> ToolResult:
    """Return the recorded result of a call."""
    paths = Paths.from_environment()
    history = History(paths.database, paths.results)
    try:
        found = history.result(record.id)
    finally:
        history.close()
    assert found is not None
    return found
