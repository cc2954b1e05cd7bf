"""The stdio proxy: bytes of client and server, unchanged, in both directions."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress

from pegboard.watch.edit_notes import NotedLines
from pegboard.watch.gate import Gate, print_message, too_long
from pegboard.watch.lines import LONGEST_PARSED, Clipped, LineCopies
from pegboard.watch.link import CLIENT, CLOSED, HOLD, OPENED, PASS, SERVER
from pegboard.watch.process import Server, StartError, start_server

_CHUNK = 2**17
_FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")
_LEFT_SECONDS = 3.0
"""Time for the server to end after its client was killed, before it is asked and then made to."""
_CONNECTION = 1
_RESPONSES = (b'"result"', b'"error"', b"notifications/tasks")
"""Words in the messages of the server that the observer needs."""
_NOTICED = (b"initialize", b"cancelled", b"tasks/result")
"""Words in the messages of the client, other than calls, that the observer needs."""


class Output:
    """A descriptor to which several threads write lines.

    Args:
        descriptor: The descriptor.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._is_within_line = False
        self._inserted: list[bytes] = []
        self.is_broken = False
        """Whether the other side has closed its end."""

    def forward(self, chunk: bytes) -> None:
        """Write bytes of the other side, which may end within a line."""
        with self._lock:
            if self._inserted:
                end = chunk.find(b"\n") + 1
                if self._is_within_line and not end:
                    self._write(chunk)
                    return
                if self._is_within_line:
                    self._write(chunk[:end])
                    chunk = chunk[end:]
                self._write(b"".join(self._inserted))
                self._inserted.clear()
                self._is_within_line = False
                if not chunk:
                    return
            self._write(chunk)
            self._is_within_line = not chunk.endswith(b"\n")

    def insert(self, line: bytes) -> None:
        """Write a line of our own, after the line that is being forwarded."""
        with self._lock:
            if self._is_within_line:
                self._inserted.append(line + b"\n")
            else:
                self._write(line + b"\n")

    def close(self) -> None:
        """Close the descriptor."""
        with self._lock:
            if self._inserted:
                self._write(b"\n" + b"".join(self._inserted))
            if not self.is_broken:
                self.is_broken = True
                os.close(self._descriptor)

    def _write(self, data: bytes) -> None:
        if self.is_broken:
            return
        try:
            written = os.write(self._descriptor, data)
            if written < len(data):
                rest = memoryview(data)
                while written < len(data):
                    written += os.write(self._descriptor, rest[written:])
        except OSError:
            self.is_broken = True
            with suppress(OSError):
                os.close(self._descriptor)


class Proxy:
    """Proxy of one client and one server.

    Args:
        server: The server.
        about: Description of the connection for the observer.
    """

    def __init__(self, server: Server, about: dict[str, object]) -> None:
        self._server = server
        self._about = about
        self._gate = Gate(print_message)
        self._link = self._gate.link
        self._to_server = Output(server.stdin)
        self._to_client = Output(1)

    def run(self) -> int:
        """Forward until the server has ended; return its exit status, negative for a signal."""
        import json

        for name in _FORWARDED:
            signal.signal(getattr(signal, name), self._forward_signal)
        self._link.start()
        self._link.send(OPENED, _CONNECTION, json.dumps(self._about).encode())
        from_server = threading.Thread(target=self._forward_server, daemon=True)
        from_server.start()
        threading.Thread(target=self._forward_client, daemon=True).start()
        status = self._wait()
        from_server.join()
        self._link.send(CLOSED, _CONNECTION, json.dumps({"exit": status}).encode())
        self._link.close(2.0)
        return status

    def _wait(self) -> int:
        report = b""
        with suppress(OSError):
            while chunk := self._server.control.recv(100):
                report += chunk
        word, _, number = report.partition(b" ")
        return int(number) if word == b"exit" else -signal.SIGKILL

    def _forward_signal(self, number: int, _frame: object) -> None:
        with suppress(OSError):
            os.kill(self._server.pid, number)

    # From the server

    def _forward_server(self) -> None:
        copies, noted = LineCopies(), NotedLines(self._gate.edits, _CONNECTION)
        read, source = os.read, self._server.stdout
        while True:
            chunk = read(source, _CHUNK)
            if not chunk:
                break
            if to_client := noted.feed(chunk):
                self._to_client.forward(to_client)
            if self._to_client.is_broken:
                break
            if not self._link.is_lost:
                for line in copies.feed(chunk):
                    if isinstance(line, Clipped) or any(word in line for word in _RESPONSES):
                        self._link.send(SERVER, _CONNECTION, line)
        if rest := noted.rest():
            self._to_client.forward(rest)
        os.close(source)
        self._to_client.close()

    # From the client

    def _forward_client(self) -> None:
        held = bytearray()  # an unfinished line
        while chunk := _read_input():
            end = chunk.rfind(b"\n") + 1
            if not end:
                held += chunk
            else:
                lines = bytes(held) + chunk[:end] if held else chunk[:end]
                held = bytearray(chunk[end:])
                self._forward_lines(lines)
            if too_long(len(held)):
                rest = self._take_long_line(bytes(held))
                end = rest.rfind(b"\n") + 1
                if end:
                    self._forward_lines(rest[:end])
                held = bytearray(rest[end:])
        if held:
            self._forward_lines(bytes(held))
        self._gate.drop_all(_CONNECTION)
        self._to_server.close()
        self._end_server_without_client()

    def _forward_lines(self, lines: bytes) -> None:
        gate = self._gate
        if not (gate.may_be_call(lines) or any(word in lines for word in _NOTICED)):
            self._to_server.forward(lines)
            return
        for line in _split(lines):
            gate.cancel(_CONNECTION, line)
            if not gate.may_be_call(line) or gate.is_open():
                self._link.send(CLIENT, _CONNECTION, line)  # First, so that the response can't overtake it.
                self._to_server.forward(line)
                continue
            self._decide(line)

    def _decide(self, line: bytes) -> None:
        decision = self._gate.decide(_CONNECTION, line, lambda *later: self._apply(line, *later))
        if decision.verdict[:1] != HOLD:
            self._apply(line, decision.verdict[:1], decision.verdict[1:])

    def _apply(self, line: bytes, verdict: bytes, payload: bytes) -> None:
        if verdict == PASS:
            self._to_server.forward(payload + b"\n" if payload else line)
        elif payload:
            self._to_client.insert(payload)

    def _take_long_line(self, start: bytes) -> bytes:
        """Forward or reject a line that is too long to be checked; return what follows it."""
        is_forwarded = self._gate.is_open()
        if not is_forwarded:
            print_message(
                f"a message of more than {LONGEST_PARSED // 2**20} MiB was rejected because rules or a pause may apply"
                " to it, and it is too long to be checked."
            )
        copies, chunk = LineCopies(), start
        while chunk:
            part, line_break, rest = chunk.partition(b"\n")
            for ends in copies.feed(part + line_break):
                self._end_long_line(ends, is_forwarded=is_forwarded)
            if is_forwarded:
                self._to_server.forward(part + line_break)
            if line_break:
                return rest
            chunk = _read_input()
        for ends in copies.feed(b"\n"):
            self._end_long_line(ends, is_forwarded=is_forwarded)
        return b""

    def _end_long_line(self, ends: bytes, *, is_forwarded: bool) -> None:
        """Send the ends of a long line to the observer before the response can overtake them, or answer the line."""
        import json

        from pegboard.data.message_id import request_id

        if is_forwarded:
            self._link.send(CLIENT, _CONNECTION, ends)
            return
        text = "Pegboard rejected this message: it is too long to be checked against the rules."
        error = {"code": -32000, "message": text}
        response = {"jsonrpc": "2.0", "id": request_id(ends, ends), "error": error}
        self._to_client.insert(json.dumps(response).encode())

    def _end_server_without_client(self) -> None:
        """After the client closed stdin, end the server if the client has ended and left it running."""
        parent = os.getppid()
        while os.getppid() == parent and parent == self._about["client_pid"]:
            time.sleep(0.5)
        time.sleep(_LEFT_SECONDS)
        self._forward_signal(signal.SIGTERM, None)
        time.sleep(_LEFT_SECONDS)
        with suppress(OSError):
            self._server.control.shutdown(1)


def _read_input() -> bytes:
    try:
        return os.read(0, _CHUNK)
    except OSError:
        return b""


def _split(lines: bytes) -> list[bytes]:
    """Return the lines of a text, with their line breaks. `splitlines` would also split at carriage returns."""
    parts = lines.split(b"\n")
    last = [parts[-1]] if parts[-1] else []
    return [*(part + b"\n" for part in parts[:-1]), *last]


def run(command: list[str], name: str) -> None:
    """Start a server, forward its messages, and end as it ends.

    Args:
        command: The program and its arguments.
        name: The server's name in rules and in the record; empty to derive it from the command.
    """
    parent = os.getppid()
    try:
        server = start_server(command)
    except StartError as error:
        print_message(str(error))
        os._exit(error.code)
    about: dict[str, object] = {"name": name, "command": command, "client_pid": parent, "server_pid": server.pid}
    status = Proxy(server, about).run()
    end(status)


def end(status: int) -> None:
    """End this process as the server ended: with its exit code, or by its signal."""
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    if status < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError, ValueError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
        os._exit(128 - status)
    os._exit(status)
