"""The process beside the proxy: it records calls, and decides on those that rules or a pause may apply to."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from pegboard.watch.link import (
    CLIENT,
    CLIPPED_CLIENT,
    CLIPPED_SERVER,
    CLOSED,
    GONE,
    HELLO,
    MESSAGE,
    OPENED,
    SERVER,
    VERDICT,
    Frame,
    clipped,
    frames,
    pack,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pegboard.config import Paths
    from pegboard.models import ToolSpec
    from pegboard.watch.connection import ClientConnection
    from pegboard.watch.judge import Judge
    from pegboard.watch.record import CallRecorder

POLL_SECONDS = 0.03
"""Interval in which answers are looked for while calls wait."""


class Observer:
    """Observer of the connections of one proxy.

    Args:
        control: The socket to the proxy.
    """

    def __init__(self, control: socket.socket) -> None:
        from pegboard.watch.tasks import Tasks

        self._socket = control
        paths, self._judge, self._recorder = recording(self._tell, self._decided)
        self._connections: dict[int, ClientConnection] = {}
        self._tools: dict[str, ToolSpec] = {}
        self._sessionless = Tasks()
        """Calls of requests without a session that run as tasks."""
        self._send(HELLO, 0, b"\0".join((os.fsencode(paths.approvals), os.fsencode(paths.brake))))

    def run(self) -> None:
        """Handle frames until the proxy has ended; then record the calls in flight."""
        from pegboard.watch.connection import ClientConnection

        for frame in frames(self._receive):
            try:
                self._handle(frame)
            except Exception as error:  # noqa: BLE001 - one message must not end the record of all others
                self._tell(f"a message was not recorded: {type(error).__name__}: {error}")
                if frame.kind == CLIENT and frame.number:
                    self._judge.refuse(frame.number, frame.payload)
        self._judge.close()
        for connection in self._connections.values():
            connection.close(time.time(), "The connection ended before the call finished.")
        ClientConnection.of_tasks(self._recorder, self._sessionless).close(time.time(), "")
        self._recorder.close()

    def _receive(self, size: int) -> bytes:
        while not select.select([self._socket], [], [], POLL_SECONDS if self._judge.is_waiting else None)[0]:
            self._judge.poll()
        with suppress(OSError):
            return self._socket.recv(size)
        return b""

    def _handle(self, frame: Frame) -> None:
        from pegboard.watch.connection import ClientConnection
        from pegboard.watch.messages import read

        if frame.kind == OPENED:
            about = read(frame.payload) or {}
            if known := self._connections.get(frame.connection):
                known.begin_session()
            else:
                opened = ClientConnection.opened(about, self._recorder, self._tools, self._sessionless)
                self._connections[frame.connection] = opened
            return
        connection = self._connections.get(frame.connection)
        if connection is None:
            return
        if self._judge.is_waiting:
            self._judge.poll()
        if frame.kind == CLIENT:
            self._handle_client(connection, frame)
        elif frame.kind == SERVER:
            connection.receive(frame.payload, frame.at)
        elif frame.kind == CLIPPED_SERVER:
            connection.receive_clipped(*clipped(frame.payload), frame.at)
        elif frame.kind == CLIPPED_CLIENT:
            total, part = clipped(frame.payload)
            if frame.number:
                self._judge.refuse(frame.number, part)
            else:
                connection.begin_clipped(total, part, frame.at)
        elif frame.kind == GONE:
            self._judge.gone(frame.number, frame.payload.decode(), frame.at)
        elif frame.kind == CLOSED:
            connection.close(frame.at, "The connection ended before the call finished.")
            del self._connections[frame.connection]

    def _handle_client(self, connection: ClientConnection, frame: Frame) -> None:
        from pegboard.watch.messages import items, key_of, read

        message = read(frame.payload)
        connection.notice(message)
        if frame.number:
            self._judge.decide(frame.number, connection, frame.payload, frame.at)
        else:
            for key, call, note in connection.calls(message):
                connection.begin(key, call, frame.at, note)
        for item in items(message):
            params = item.get("params")
            if item.get("method") == "notifications/cancelled" and isinstance(params, dict):
                connection.cancel(key_of(params.get("requestId")), frame.at)

    def _send(self, kind: bytes, number: int, payload: bytes) -> None:
        with suppress(OSError):
            self._socket.sendall(pack(kind, 0, number, payload))

    def _decided(self, number: int, verdict: bytes) -> None:
        self._send(VERDICT, number, verdict)

    def _tell(self, text: str) -> None:
        self._send(MESSAGE, 0, text.encode("utf-8", "replace"))


def main(descriptor: str) -> None:
    """Observe the proxy at the other end of a socket."""
    os.nice(10)  # The agent matters more than its record.
    ignore_signals()
    Observer(socket.socket(fileno=int(descriptor))).run()


def recording(
    on_message: Callable[[str], None], send: Callable[[int, bytes], None]
) -> tuple[Paths, Judge, CallRecorder]:
    """Return Pegboard's paths, what decides on calls, and what records them.

    Args:
        on_message: Called, on any thread, with texts about calls that can't be recorded.
        send: Called with the number of a message and the decision.
    """
    from pegboard.brake import Questions
    from pegboard.config import Paths, Secrets, load
    from pegboard.gateway.rules import Rules
    from pegboard.history import History
    from pegboard.runtime.redaction import SecretRedaction
    from pegboard.watch.judge import Judge
    from pegboard.watch.record import CallRecorder

    paths = Paths.from_environment()
    settings, _ = load()
    redaction = SecretRedaction(Secrets(paths), settings)
    questions = Questions(paths.state, redaction.value_now)
    rules = Rules(paths.approvals)
    judge = Judge(rules, str(paths.approvals), questions, redaction.value_now, settings.brake.wait, send)
    return paths, judge, CallRecorder(History(paths.database, paths.results), redaction, on_message)


def ignore_signals() -> None:
    """Let this process end only with what it observes, after the last call is recorded."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
