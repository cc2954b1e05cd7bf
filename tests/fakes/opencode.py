"""The part of opencode that runs the hooks of a plugin, in a process of Node.js."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest
from watched import SECONDS

_PROGRAM = Path(__file__).with_name("opencode.mjs")


class Done(NamedTuple):
    """A hook that ran."""

    given: Any
    """What it got, as it is afterwards: hooks change it in place."""
    error: str
    """Message of the exception; empty without one."""


class Opencode:
    """A process of opencode with the plugin.

    Args:
        plugin: Its file.
        parents: Parents of sessions.
        servers: Names of MCP servers.
        folder: Its working directory.
    """

    def __init__(
        self,
        plugin: Path,
        parents: Mapping[str, str] | None = None,
        servers: tuple[str, ...] = (),
        folder: Path = Path("/"),
    ) -> None:
        node = shutil.which("node")
        if node is None:
            pytest.skip("Node.js is not installed")
        (plugin.parent / "package.json").write_text('{"type": "module"}')
        configured = json.dumps({name: {} for name in servers})
        self.process = subprocess.Popen(
            [node, _PROGRAM, plugin, json.dumps(parents or {}), configured, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._done: dict[int, Done] = {}
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def start(self, hook: str, *given: Any) -> int:
        """Start a hook; return its number."""
        assert self.process.stdin is not None
        self._number += 1
        self.process.stdin.write(json.dumps({"number": self._number, "hook": hook, "given": given}) + "\n")
        return self._number

    def end(self, number: int) -> Done:
        """Return what a hook did, as soon as it has ended."""
        while number not in self._done:
            line = json.loads(self._lines.get(timeout=SECONDS))
            self._done[line["number"]] = Done(line["given"], line["error"])
        return self._done[number]

    def run(self, hook: str, *given: Any) -> Done:
        """Run a hook."""
        return self.end(self.start(hook, *given))

    def before(self, tool: str, id_: str = "c-1", session: str = "s-1", **args: Any) -> int:
        """Start the hook before a call."""
        return self.start("tool.execute.before", {"tool": tool, "sessionID": session, "callID": id_}, {"args": args})

    def after(self, tool: str, result: Mapping[str, Any], id_: str = "c-1", session: str = "s-1") -> Any:
        """Run the hook after a call that succeeded; return the result for the model."""
        return self.run("tool.execute.after", {"tool": tool, "sessionID": session, "callID": id_}, result).given[1]

    def update(self, status: str, id_: str = "c-1", session: str = "s-1", **state: Any) -> None:
        """Say that the state of a call has changed."""
        state |= {"status": status, "time": {"start": 0, "end": 2**41}}
        part = {"type": "tool", "sessionID": session, "callID": id_, "state": state}
        self.run("event", {"event": {"type": "message.part.updated", "properties": {"part": part}}})

    def idle(self, session: str = "s-1") -> None:
        """Say that a session waits for the user."""
        self.run("event", {"event": {"type": "session.idle", "properties": {"sessionID": session}}})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
            self.process.wait(SECONDS)
