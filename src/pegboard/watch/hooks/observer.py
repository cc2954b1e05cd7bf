"""The process that observes a session of an agent through its hooks: it records calls and decides on them."""

from __future__ import annotations

import json
import selectors
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pegboard.brake.question import start_of_process
from pegboard.models import Agent
from pegboard.storage import locked
from pegboard.watch.connection import ClientConnection
from pegboard.watch.gate import mark_of
from pegboard.watch.hooks.calls import SessionCalls, as_line
from pegboard.watch.hooks.decisions import approval_of, edit_problem, rejection_of
from pegboard.watch.hooks.events import NEXT_PROMPT, HookEvent, events_of
from pegboard.watch.hooks.hook import SESSION_KEYS
from pegboard.watch.hooks.transcript import SessionTranscript
from pegboard.watch.link import PASS, REJECT
from pegboard.watch.observer import POLL_SECONDS, ignore_signals, recording

_LOOK_SECONDS: Final = 1.0
"""Interval in which the agent's process is looked for."""
_IDLE_SECONDS: Final = 3600.0
"""Time without events after which a session has ended if its agent's process is unknown, or if no call is running."""
_LONGEST_NAME: Final = 64


@dataclass(eq=False)
class _Hook:
    """A hook that is connected."""

    socket: socket.socket
    about: dict[str, Any] | None = None
    """What it says before its event: the agent, its process and the size of the event."""
    received: bytearray = field(default_factory=bytearray)
    number: int = 0
    """Number of its call, if that waits for a decision."""


@dataclass
class _Decision:
    """A call on which a decision is awaited."""

    hook: _Hook
    event: HookEvent
    connection: ClientConnection
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
        self._paths, self._judge, self._recorder = recording(self._messages.append, self._decided)
        self._judge.approved = self._approve
        self._decisions: dict[int, _Decision] = {}
        self._number = 0
        self._calls = SessionCalls(self._recorder, self._paths.state)
        self._transcript = SessionTranscript()
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
        self._calls.close()
        self._recorder.close()

    def _is_over(self) -> bool:
        if self._decisions and self._processes and not self._is_running():
            self._abandon()
        if self._judge.is_waiting or len(self._selector.get_map()) > 1:
            return False
        if self._has_ended:
            return True
        idle = time.monotonic() - self._last
        if idle < _LOOK_SECONDS:
            return False
        if self._processes and not self._is_running():
            return True
        return idle > _IDLE_SECONDS and not (self._processes and self._calls.are_running)

    def _is_running(self) -> bool:
        """Return whether a known process of the agent runs."""
        return any(start_of_process(process) == start != "ended" for process, start in self._processes.items())

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
        self._look()
        self._judge.poll()
        return bool(ready)

    def _look(self) -> None:
        """Record the calls that the user interrupted or rejected in the agent."""
        for id_ in self._transcript.interrupted():
            self._calls.interrupt(id_)

    def _receive(self, hook: _Hook) -> None:
        try:
            chunk = hook.socket.recv(2**18)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._close(hook)
            self._leave(hook)
            return
        hook.received += chunk
        try:
            if hook.about is None and (end := hook.received.find(b"\n")) >= 0:
                hook.about = json.loads(hook.received[:end])
                del hook.received[: end + 1]
            if hook.about is not None and len(hook.received) >= int(hook.about["size"]):
                self._last = time.monotonic()
                self._handle(hook, hook.about, json.loads(hook.received))
        except Exception as error:  # noqa: BLE001 - one event must not end the record of all others
            self._leave(hook)
            self._answer(hook, failure=f"an event was not recorded: {type(error).__name__}: {error}")

    def _handle(self, hook: _Hook, about: dict[str, Any], event: dict[str, Any]) -> None:
        name, process = str(about["name"]), int(about["process"])
        if process > 1:
            self._processes.setdefault(process, start_of_process(process))
        folder = Path(str(event.get("cwd") or "/"))
        self._transcript.follow(name, event)
        for seen in events_of(name, event):
            self._has_ended = seen.kind == "session end"
            # Claude Code runs this hook also for a prompt that it queues while calls run.
            is_queued = seen.name == "UserPromptSubmit" and name == "claude-code" and self._transcript.is_followed
            if seen.kind in ("turn end", "session end") and not is_queued:
                self._calls.end_turn(seen)
            if seen.kind == "session end" or seen.name == NEXT_PROMPT:
                self._abandon()
            if seen.kind in ("other", "turn end", "session end") or self._calls.is_watched(seen, name, folder):
                continue
            connection = self._calls.connection(seen, _agent(name, process, event))
            if seen.kind == "call":
                self._decide(hook, seen, connection)
                return
            self._calls.finish(seen, connection)
        self._answer(hook)

    # Decisions

    def _decide(self, hook: _Hook, seen: HookEvent, connection: ClientConnection) -> None:
        if mark_of(str(self._paths.approvals)) is None and mark_of(str(self._paths.brake)) is None:
            for key, call, note in connection.calls(seen.request):
                connection.begin(key, call, time.time(), note)
            self._answer(hook)
            return
        self._number += 1
        hook.number = self._number
        self._decisions[hook.number] = _Decision(hook, seen, connection)
        self._judge.decide(hook.number, connection, as_line(seen.request), time.time())

    def _leave(self, hook: _Hook) -> None:
        """Stop deciding on the call of a hook, which no longer waits."""
        if self._decisions.pop(hook.number, None) is not None:
            self._judge.gone(hook.number, "disconnected", time.time())

    def _abandon(self) -> None:
        """Reject the calls that wait: the agent has left them, even if it has not ended their hooks."""
        for number, decision in [*self._decisions.items()]:
            del self._decisions[number]
            self._judge.gone(number, "disconnected", time.time())
            self._answer(decision.hook, rejection_of(decision.event, "The agent no longer waits for this call."))

    def _approve(self, number: int) -> None:
        if decision := self._decisions.get(number):
            decision.is_approved = True

    def _decided(self, number: int, verdict: bytes) -> None:
        kind, payload = verdict[:1], verdict[1:]
        if kind not in (PASS, REJECT) or (decision := self._decisions.pop(number, None)) is None:
            return
        hook, seen = decision.hook, decision.event
        if kind == REJECT:
            response = json.loads(payload)
            # A call that can't be parsed is rejected with an error.
            reason = response["result"]["content"][0]["text"] if "result" in response else response["error"]["message"]
            self._calls.reject(seen, decision.connection)
            self._answer(hook, rejection_of(seen, reason))
            return
        edited, _, note = payload.partition(b"\0")
        args = json.loads(edited)["params"]["arguments"] if edited else None
        problem = "" if args is None else edit_problem(seen, args)
        if problem:
            self._calls.reject(seen, decision.connection, problem)
            self._answer(hook, rejection_of(seen, problem))
        elif decision.is_approved:
            if args is not None:
                self._calls.edit(seen, args)
            self._answer(hook, approval_of(seen, args, note.decode()))
        else:
            self._answer(hook)

    def _answer(self, hook: _Hook, output: str = "", *, failure: str = "") -> None:
        """Answer a hook, which then ends.

        Args:
            hook: The hook.
            output: What it prints.
            failure: Why the event could not be handled; a call is then blocked if rules or a pause may apply to it.
        """
        messages, self._messages[:] = [*self._messages], []
        answer = {"output": output, "failure": failure, "messages": messages}
        with suppress(OSError):
            hook.socket.setblocking(True)
            hook.socket.settimeout(_LOOK_SECONDS)
            hook.socket.sendall(json.dumps(answer).encode())
        self._close(hook)

    def _close(self, hook: _Hook) -> None:
        """Close the socket of a hook, unless another event of the same moment closed it."""
        if hook.socket.fileno() >= 0:
            self._selector.unregister(hook.socket)
            hook.socket.close()


def _agent(name: str, process: int, event: dict[str, Any]) -> Agent:
    """Return the agent of a session."""
    session = next((str(event[key]) for key in SESSION_KEYS if event.get(key)), "")
    agent = Agent.connected(process if process > 1 else None, name=name)
    return agent.model_copy(update={"key": session[:_LONGEST_NAME]})


def main(descriptor: str, file: str) -> None:
    """Observe a session.

    Args:
        descriptor: Descriptor of the socket to which hooks connect.
        file: The file of the socket.
    """
    ignore_signals()
    HookObserver(socket.socket(fileno=int(descriptor)), Path(file)).run()
