"""The last messages to and from a server, as they were sent, and the last lines of its stderr."""

from __future__ import annotations

import json
import re
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import NamedTuple

from pegboard.data.message_id import LOOKED_AT, message_id
from pegboard.models.server_message import MessageKind, ServerMessage

_MOST = 1_000
_MOST_BYTES = 8 * 2**20
_LONGEST = 64 * 2**10
"""Bytes of a message that are kept."""
_TAIL = 500
"""Bytes at the end of a longer message that are kept for its id and method."""
_MEMBER = rb'"(?:jsonrpc|id)"\s*:\s*[^,{}\[\]]{0,210}'
_METHOD = rb'"method"\s*:\s*"([^"\\]{0,200})"\s*'
_METHOD_AT_START = re.compile(rb"\A\s*\{\s*(?:" + _MEMBER + rb",\s*){0,2}" + _METHOD)
_METHOD_AT_END = re.compile(rb",\s*" + _METHOD + rb"(?:,\s*" + _MEMBER + rb"){0,2}\}\s*\Z")


class _Facts(NamedTuple):
    kind: MessageKind
    method: str = ""
    id: str = ""
    about: str = ""


@dataclass(slots=True)
class _Kept:
    number: int
    at: float
    sent: bool
    head: bytes
    tail: bytes
    size: int
    facts: _Facts | None = None


class MessageLog:
    """The last messages to and from one server, of a bounded number and size. Thread-safe.

    Messages are kept as bytes, and read only when they are asked for, so that calls don't become slower.
    """

    def __init__(self) -> None:
        self._kept: deque[_Kept] = deque()
        self._bytes = 0
        self._total = 0
        self._guard = Lock()

    def add_stderr(self, line: str) -> None:
        """Keep a line that the server wrote to stderr."""
        self.add(line.encode("utf-8", "replace"), sent=False, facts=_Facts("stderr"))

    def add(self, message: bytes, *, sent: bool, facts: _Facts | None = None) -> None:
        """Keep a message.

        Args:
            message: Its bytes.
            sent: Whether Pegboard sends it.
            facts: Facts about it; by default they are read from it when needed.
        """
        tail = message[-_TAIL:] if len(message) > _LONGEST else b""
        with self._guard:
            self._total += 1
            self._kept.append(_Kept(self._total, time.time(), sent, message[:_LONGEST], tail, len(message), facts))
            self._bytes += min(len(message), _LONGEST)
            while len(self._kept) > _MOST or self._bytes > _MOST_BYTES:
                self._bytes -= len(self._kept.popleft().head)

    def messages(self, after: int = 0) -> tuple[ServerMessage, ...]:
        """Return the messages whose number is greater than `after`, oldest first."""
        with self._guard:
            kept = [*self._kept]
        requests: dict[tuple[bool, str], tuple[_Facts, float]] = {}
        found: list[ServerMessage] = []
        for one in kept:
            if one.facts is None:
                one.facts = _facts(one)
            kind, method, id_, about = one.facts
            milliseconds = None
            if kind == "request":
                requests[one.sent, id_] = one.facts, one.at
            elif (request := requests.get((not one.sent, id_))) is not None:
                method, about = request[0].method, about or request[0].about
                milliseconds = (one.at - request[1]) * 1000
            if one.number > after:
                message = ServerMessage(
                    number=one.number,
                    at=datetime.fromtimestamp(one.at, UTC),
                    sent=one.sent,
                    kind=kind,
                    method=method,
                    id=id_,
                    about=about,
                    milliseconds=milliseconds,
                    size=one.size,
                    text=one.head.decode("utf-8", "replace").strip(),
                    is_cut=bool(one.tail),
                )
                found.append(message)
        return tuple(found)


def _facts(kept: _Kept) -> _Facts:
    if kept.tail:
        return _facts_of_cut(kept.head, kept.tail)
    try:
        message = json.loads(kept.head.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return _Facts("other")
    if not isinstance(message, dict):
        return _Facts("other")
    method, id_ = message.get("method"), message.get("id")
    number = "" if id_ is None else json.dumps(id_, ensure_ascii=False)
    if isinstance(method, str):
        about = _first_text(message.get("params"), "name", "uri", "message", "data")
        return _Facts("request" if number else "notification", method, number, about)
    if "error" in message:
        return _Facts("error", "", number, _first_text(message["error"], "message"))
    return _Facts("response", "", number) if number else _Facts("other")


def _first_text(of: object, *names: str) -> str:
    """Return the first of these values that is a text; empty if none is."""
    values = [of.get(name) for name in names] if isinstance(of, dict) else []
    return next((value for value in values if isinstance(value, str)), "")


def _facts_of_cut(head: bytes, tail: bytes) -> _Facts:
    """Return the facts of a long message from its first and last members, which most programs write there."""
    id_ = message_id(head, tail)
    number = "" if id_ is None else json.dumps(id_, ensure_ascii=False)
    method = _METHOD_AT_START.search(head[:LOOKED_AT]) or _METHOD_AT_END.search(tail)
    if method is not None:
        return _Facts("request" if number else "notification", method[1].decode("utf-8", "replace"), number)
    return _Facts("response", "", number) if number else _Facts("other")
