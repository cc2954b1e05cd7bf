"""The process that observes a session of an agent through its hooks: it records calls and decides on them."""

from __future__ import annotations

import json
import selectors
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pegboard.brake.question import start_of_process
from pegboard.models import Agent, ToolSpec
from pegboard.storage import locked
from pegboard.watch.connection import ClientConnection
from pegboard.watch.hooks.events import HookEvent, event_of, output_of
from pegboard.watch.hooks.hook import SESSION_KEYS
from pegboard.watch.link import PASS, REJECT
from pegboard.watch.messages import key_of
from pegboard.watch.observer import POLL_SECONDS, recording, settle

if TYPE_CHECKING:
    from pegboard.watch.hooks.servers import WatchedServers

_LOOK_SECONDS: Final = 1.0
"""Interval in which the agent's process is looked for."""
_IDLE_SECONDS: Final = 3600.0
"""Time without events after which a session has ended if its agent's process is unknown."""
_LONGEST_NAME: Final = 64
_NO_RESULT: Final = "The agent went on without a result of this call: it was rejected there, or interrupted."
_ENDED: Final = "The agent ended before the call did."


@dataclass(eq=False)
class _Hook:
    """A hook that is connected."""

    socket: socket.socket
    received: bytearray = field(default_factory=bytearray)
    number: int = 0
    """Number of its call, if that waits for a decision."""


@dataclass
class _Decision:
    """A call on which a decision is awaited."""

    hook: _Hook
    event: HookEvent
    is_approved: bool = False


class HookObserver:
    """Observer of a session.

    Args:
        listener: The socket to which hooks connect.
        file: The file of that socket.
    """

    def __init__(self, listener: socket.socket, file: Path) -> None:
        self._listener = listener
        self._file = file
        self._selector = selectors.DefaultSelector()
        self._messages: list[str] = []
        _, self._judge, self._recorder = recording(self._messages.append, self._decided)
        self._judge.approved = self._approve
        self._decisions: dict[int, _Decision] = {}
        self._number = 0
        self._connections: dict[tuple[str, str], ClientConnection] = {}
        """By server and subagent."""
        self._tools: dict[str, dict[str, ToolSpec]] = {}
        self._watched_servers: dict[str, WatchedServers] = {}
        self._processes: dict[int, str] = {}
        """The agent's processes, with their starts."""
        self._last = time.monotonic()
        self._has_ended = False

    def run(self) -> None:
        """Handle events until the session ends; then record its calls in flight."""
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        while not self._is_over():
            self._step(POLL_SECONDS if self._judge.is_waiting else _LOOK_SECONDS)
        with suppress(OSError), locked(self._file):
            self._file.unlink(missing_ok=True)  # The next hook starts another observer.
        while self._step(0.0):
            pass  # Hooks that connected meanwhile.
        self._judge.close()
        for connection in self._connections.values():
            connection.close(time.time(), _ENDED)
        self._recorder.close()

    def _is_over(self) -> bool:
        if self._judge.is_waiting or len(self._selector.get_map()) > 1:
            return False
        if self._has_ended:
            return True
        idle = time.monotonic() - self._last
        if idle < _LOOK_SECONDS:
            return False
        if self._processes:
            return not any(start_of_process(process) == start for process, start in self._processes.items())
        return idle > _IDLE_SECONDS

    def _step(self, seconds: float) -> bool:
        """Handle what arrives within some seconds; return whether anything did."""
        ready = self._selector.select(seconds)
        for key, _ in ready:
            if key.fileobj is self._listener:
                with suppress(OSError):
                    link, _ = self._listener.accept()
                    link.setblocking(False)
                    self._selector.register(link, selectors.EVENT_READ, _Hook(link))
            else:
                self._receive(key.data)
        self._judge.poll()
        return bool(ready)

    def _receive(self, hook: _Hook) -> None:
        try:
            chunk = hook.socket.recv(2**18)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._close(hook)
            if self._decisions.pop(hook.number, None) is not None:  # The agent no longer waits.
                self._judge.gone(hook.number, "disconnected", time.time())
            return
        hook.received += chunk
        header, separator, body = hook.received.partition(b"\n")
        try:
            about = json.loads(header) if separator else None
            if about is not None and len(body) >= int(about["size"]):
                self._last = time.monotonic()
                self._handle(hook, about, json.loads(body))
        except Exception as error:  # noqa: BLE001 - one event must not end the record of all others
            self._answer(hook, failure=f"an event was not recorded: {type(error).__name__}: {error}")

    def _handle(self, hook: _Hook, about: dict[str, Any], event: dict[str, Any]) -> None:
        name, process = str(about["name"]), int(about["process"])
        if process > 1:
            self._processes.setdefault(process, start_of_process(process))
        seen = event_of(name, event)
        self._has_ended = seen.kind == "session end"
        if seen.mcp_server and self._watched(name).has(seen.mcp_server, Path(str(event.get("cwd") or "/"))):
            pass  # its proxy records and decides
        elif seen.message is not None:
            connection = self._connection(seen, name, process, event)
            if seen.kind == "call":
                self._decide(hook, seen, connection)
                return
            self._finish(seen, connection)
        elif seen.kind in ("turn end", "session end"):
            for (_, part), connection in self._connections.items():
                if part == seen.part or seen.kind == "session end":
                    connection.close(time.time(), _NO_RESULT)
        self._answer(hook)

    def _watched(self, agent: str) -> WatchedServers:
        from pegboard.watch.hooks.servers import WatchedServers

        return self._watched_servers.setdefault(agent, WatchedServers(agent))

    def _connection(self, seen: HookEvent, name: str, process: int, event: dict[str, Any]) -> ClientConnection:
        place = seen.server, seen.part
        if place not in self._connections:
            session = next((str(event[key]) for key in SESSION_KEYS if event.get(key)), "")
            agent = Agent.connected(process if process > 1 else None, name=name)
            agent = agent.model_copy(update={"key": session[:_LONGEST_NAME]})
            tools = self._tools.setdefault(seen.server, {})
            self._connections[place] = ClientConnection(self._recorder, seen.server, agent, tools, worker=name)
        return self._connections[place]

    def _finish(self, seen: HookEvent, connection: ClientConnection) -> None:
        """Record a call with its result, also if the call itself wasn't seen."""
        now = time.time()
        assert seen.message is not None, "it has a result"
        if key_of(seen.message["id"]) not in connection.flights:
            for key, call, note in connection.calls(seen.request):
                connection.begin(key, call, now - seen.milliseconds / 1000, note)
        connection.receive(seen.line, now)

    # Decisions

    def _decide(self, hook: _Hook, seen: HookEvent, connection: ClientConnection) -> None:
        self._number += 1
        hook.number = self._number
        self._decisions[hook.number] = _Decision(hook, seen)
        self._judge.decide(hook.number, connection, seen.line, time.time())

    def _approve(self, number: int) -> None:
        if decision := self._decisions.get(number):
            decision.is_approved = True

    def _decided(self, number: int, verdict: bytes) -> None:
        kind, payload = verdict[:1], verdict[1:]
        if kind not in (PASS, REJECT) or (decision := self._decisions.pop(number, None)) is None:
            return
        if kind == REJECT:
            reason = json.loads(payload)["result"]["content"][0]["text"]
            self._answer(decision.hook, output_of(decision.event, "reject", reason=reason))
            return
        edited, _, note = payload.partition(b"\0")
        args = json.loads(edited)["params"]["arguments"] if edited else None
        made: Literal["approve", "pass"] = "approve" if decision.is_approved else "pass"
        self._answer(decision.hook, output_of(decision.event, made, args=args, note=note.decode()))

    def _answer(self, hook: _Hook, output: str = "", *, failure: str = "") -> None:
        """Answer a hook, which then ends.

        Args:
            hook: The hook.
            output: What it prints.
            failure: Why the event could not be handled; a call is then blocked.
        """
        messages, self._messages[:] = [*self._messages], []
        answer = {"output": output, "failure": failure, "messages": messages}
        with suppress(OSError):
            hook.socket.setblocking(True)
            hook.socket.settimeout(_LOOK_SECONDS)
            hook.socket.sendall(json.dumps(answer).encode())
        self._close(hook)

    def _close(self, hook: _Hook) -> None:
        with suppress(KeyError):
            self._selector.unregister(hook.socket)
        hook.socket.close()


def main(descriptor: str, file: str) -> None:
    """Observe a session.

    Args:
        descriptor: Descriptor of the socket to which hooks connect.
        file: The file of the socket.
    """
    settle()
    HookObserver(socket.socket(fileno=int(descriptor)), Path(file)).run()
