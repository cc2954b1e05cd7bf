"""Decisions on the calls of a connection: pass, wait for the observer's decision, or reject."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from pegboard.watch.edit_notes import EditNotes
from pegboard.watch.lines import LONGEST_PARSED
from pegboard.watch.link import CLIENT, GONE, HELLO, HOLD, MESSAGE, REJECT, VERDICT, Frame, ObserverLink

_CALL, _CANCELLED = b"tools/call", b"notifications/cancelled"
_DISGUISES = (b"\\u", b"\\/", b"\0")
"""What could hide the name of a method: JSON escapes, and the zero bytes of UTF-16 and UTF-32."""
_START_SECONDS = 10.0
"""Time for the observer to start and to decide on a call. Without a decision, the call is rejected."""

FileMark = tuple[int, ...] | None


class Decision:
    """Decision on one message of the client.

    Args:
        number: Number of the message.
        connection: Number of its connection.
        line: The message.
    """

    def __init__(self, number: int, connection: int, line: bytes) -> None:
        self.number = number
        self.connection = connection
        self.line = line
        self.first = threading.Event()
        self.verdict = b""
        self.is_dropped = False
        """Whether it is no longer held, because its client cancelled it or has left."""
        self.then: Callable[[bytes, bytes], None] | None = None
        """Called with the later decision and its payload, if the first one was to hold the message."""


class Gate:
    """Whether calls pass. All methods are thread-safe.

    Args:
        on_message: Called with texts for stderr.
    """

    def __init__(self, on_message: Callable[[str], None]) -> None:
        self._on_message = on_message
        self._lock = threading.Lock()
        self._waiting: dict[int, Decision] = {}
        self._number = 0
        self._hello = threading.Event()
        self._rules = ""
        self._state = ""
        self._harmless: FileMark = ()
        self.edits = EditNotes()
        """Notes for the responses to edited calls."""
        self.link = ObserverLink(self._receive, self._lose)

    def may_be_call(self, line: bytes) -> bool:
        """Return whether a message may call a tool, however its JSON is written."""
        return _CALL in line or any(disguise in line for disguise in _DISGUISES)

    def is_open(self) -> bool:
        """Return whether no rule and no pause can apply to a call."""
        if not self._hello.is_set():
            self._hello.wait(_START_SECONDS)
        if not self._rules:
            return False
        if mark_of(self._state) is not None:
            return False
        mark = mark_of(self._rules)
        return mark is None or mark == self._harmless

    def decide(self, connection: int, line: bytes, then: Callable[[bytes, bytes], None] | None = None) -> Decision:
        """Return the decision on a message, whose `verdict` is to pass it, to hold it or to reject it.

        Args:
            connection: Number of the connection.
            line: The message.
            then: Called with the later decision and its payload, if the message is held.
        """
        with self._lock:
            self._number += 1
            decision = Decision(self._number, connection, line)
            decision.then = then
            self._waiting[decision.number] = decision
        self.link.send(CLIENT, connection, line, decision.number)
        if self.link.is_lost or not decision.first.wait(_START_SECONDS):
            with self._lock:
                self._waiting.pop(decision.number, None)
            self.link.send(GONE, connection, b"unanswered", decision.number)
            decision.verdict = REJECT + rejection(line)
        return decision

    def drop(self, decision: Decision, reason: bytes) -> None:
        """Stop holding one message."""
        self._drop(decision.connection, lambda held: held is decision.line, reason)

    def cancel(self, connection: int, line: bytes) -> None:
        """Stop holding the message that a cancellation names, if the line is one."""
        if not self._waiting or (_CANCELLED not in line and not any(disguise in line for disguise in _DISGUISES)):
            return
        import json

        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        for item in message if isinstance(message, list) else [message]:
            if isinstance(item, dict) and item.get("method") == "notifications/cancelled":
                params = item.get("params")
                if isinstance(params, dict) and "requestId" in params:
                    wanted = json.dumps(params["requestId"])
                    self._drop(connection, _asks_for(wanted), b"cancelled")

    def drop_all(self, connection: int) -> None:
        """Stop holding the messages of a connection: its client has left."""
        self._drop(connection, lambda _: True, b"disconnected")

    def _drop(self, connection: int, is_meant: Callable[[bytes], bool], reason: bytes) -> None:
        with self._lock:
            dropped = [one for one in self._waiting.values() if one.connection == connection and is_meant(one.line)]
            for one in dropped:
                del self._waiting[one.number]
        for one in dropped:
            one.is_dropped = True
            self.link.send(GONE, connection, reason, one.number)
            one.verdict = one.verdict or REJECT
            one.first.set()

    def _receive(self, frame: Frame) -> None:
        if frame.kind == HELLO:
            rules, state = frame.payload.split(b"\0")
            self._rules, self._state = os.fsdecode(rules), os.fsdecode(state)
            self._hello.set()
        elif frame.kind == MESSAGE:
            self._on_message(frame.payload.decode("utf-8", "replace"))
        elif frame.kind == VERDICT:
            self._judge(frame.number, frame.payload)

    def _judge(self, number: int, payload: bytes) -> None:
        if number == 0:  # The rules with this mark can't hold any call.
            import json

            self._harmless = tuple(json.loads(payload))
            return
        with self._lock:
            decision = self._waiting.get(number)
            if decision is None:
                return
            is_first = not decision.first.is_set()
            if not is_first or payload[:1] != HOLD:
                del self._waiting[number]
            if is_first:
                decision.verdict = payload
                decision.first.set()
            elif decision.then is not None:
                # Under the lock, so that a cancellation is forwarded either before this decision, and revokes it, or
                # after the call.
                edited, has_note, note = payload[1:].partition(b"\0")
                if has_note:
                    self.edits.expect(decision.connection, decision.line, note.decode())
                decision.then(payload[:1], edited)

    def _lose(self) -> None:
        """Reject what waits for a decision, because none will come."""
        if not self._hello.is_set():
            self._hello.set()
        with self._lock:
            waiting = [*self._waiting.values()]
        for decision in waiting:
            self._judge(decision.number, REJECT + rejection(decision.line))
        self._on_message(
            "the process that records calls has ended. Calls pass without a record, unless rules or a"
            " pause may apply to them."
        )


def rejection(line: bytes) -> bytes:
    """Return the response to a call that can't be decided on."""
    text = "Pegboard rejected this call because its rules can't be read: the process that reads them has ended."
    return rejections(line, text)


def rejections(line: bytes, text: str) -> bytes:
    """Return the responses that reject the calls in a message; empty if it expects none.

    Args:
        line: The client's message.
        text: The reason, for the model.
    """
    import json

    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        from pegboard.data.message_id import request_id

        id_ = request_id(line, line)
        message = None if id_ is None else {"id": id_, "method": ""}
    if isinstance(message, list):
        found = [one for one in (_rejected(item, text) for item in message) if one]
        return json.dumps(found).encode() if found else b""
    found_one = _rejected(message, text)
    return json.dumps(found_one).encode() if found_one else b""


def _rejected(message: object, text: str) -> dict[str, object] | None:
    if not isinstance(message, dict) or "id" not in message or "method" not in message:
        return None
    if message["method"] != "tools/call":
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": text}}
    result: dict[str, object] = {"content": [{"type": "text", "text": text}], "isError": True}
    if stated_version(message):
        result["resultType"] = "complete"
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def stated_version(message: object) -> str:
    """Return the protocol version that a request states, as all requests since 2026-07-28 do; empty for others."""
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get("io.modelcontextprotocol/protocolVersion") if isinstance(meta, dict) else None
    return version if isinstance(version, str) else ""


def too_long(size: int) -> bool:
    """Return whether a message of a size in bytes is too long to be checked."""
    return size > LONGEST_PARSED


def print_message(text: str) -> None:
    """Print a message on stderr."""
    with suppress(OSError, ValueError):
        os.write(2, f"pegboard watch: {text}\n".encode(sys.stderr.encoding if sys.stderr else "utf-8", "replace"))


def mark_of(file: str) -> FileMark:
    """Return what changes when a file changes; None if it is missing. A link to a missing file is a file."""
    try:
        status = os.stat(file)  # noqa: PTH116 - on the way of every call
    except FileNotFoundError:
        return (0,) if os.path.islink(file) else None  # noqa: PTH114 - `pathlib` delays the start
    except OSError as error:
        return (error.errno or 1,)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size)


def _asks_for(wanted: str) -> Callable[[bytes], bool]:
    return lambda held: wanted in _ids(held)


def _ids(line: bytes) -> set[str]:
    import json

    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return set()
    items = message if isinstance(message, list) else [message]
    return {json.dumps(item["id"]) for item in items if isinstance(item, dict) and "id" in item}
