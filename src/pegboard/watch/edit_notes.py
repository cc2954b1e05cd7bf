"""Edits of calls, described in notes that are added to the responses of the server."""

from __future__ import annotations

import re
import threading

from pegboard.watch.lines import LONGEST_PARSED

_MOST = 1_000
_LINE_END = re.compile(rb"\r\n|\n|\r")
_EVENT_END = re.compile(rb"(?:\r\n){2}|\n\n|\r\r")


class EditNotes:
    """Store of notes on edited calls, until their responses arrive. All methods are thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._notes: dict[tuple[int, str], str] = {}

    def __bool__(self) -> bool:
        """Return whether a response is awaited."""
        return bool(self._notes)

    def expect(self, connection: int, line: bytes, note: str) -> None:
        """Expect the response to a call.

        Args:
            connection: Number of the client's connection.
            line: The call.
            note: The text for the agent.
        """
        key = _id_of(line)
        if key is None:
            return
        with self._lock:
            self._notes[connection, key] = note
            if len(self._notes) > _MOST:  # Servers needn't respond to a cancelled call.
                del self._notes[next(iter(self._notes))]

    def added(self, connection: int, line: bytes) -> bytes:
        """Return a message of the server, with the note if it is the response to an edited call."""
        if not self._notes or not (b'"result"' in line or b'"error"' in line):
            return line
        key = _id_of(line, is_response=True)
        with self._lock:
            note = None if key is None else self._notes.pop((connection, key), None)
        if note is None:
            return line
        try:
            return _with_note(line, note)
        except (ValueError, IndexError, RecursionError):  # such as another encoding than UTF-8
            return line


class NotedLines:
    """Chunks of a server's output in which the responses to edited calls get their note.

    While no response is awaited, chunks pass as they are.

    Args:
        notes: The notes.
        connection: Number of the connection.
    """

    def __init__(self, notes: EditNotes, connection: int) -> None:
        self._notes = notes
        self._connection = connection
        self._held = bytearray()
        self._is_within_line = False
        """Whether the start of an unfinished line has been returned."""

    def feed(self, chunk: bytes) -> bytes:
        """Add bytes; return those to forward. The start of a line that may be such a response is kept."""
        if not self._held and not self._notes:
            self._is_within_line = not chunk.endswith(b"\n")
            return chunk
        done = b""
        if self._is_within_line:
            end = chunk.find(b"\n") + 1
            if not end:
                return chunk
            done, chunk, self._is_within_line = chunk[:end], chunk[end:], False
        end = chunk.rfind(b"\n") + 1
        if end:
            end += len(self._held)
        self._held += chunk
        if end:
            lines = bytes(self._held[:end]).split(b"\n")[:-1]
            del self._held[:end]
            done += b"".join(self._notes.added(self._connection, line) + b"\n" for line in lines)
        if self._held and (len(self._held) > LONGEST_PARSED or not self._notes):
            self._is_within_line = True
            done += self.rest()
        return done

    def rest(self) -> bytes:
        """Return the bytes that are kept."""
        rest = bytes(self._held)
        self._held.clear()
        return rest


class NotedBody:
    """A response over HTTP to an edited call, to which the note is added.

    Args:
        notes: The notes.
        connection: Number of the connection.
        is_stream: Whether the response is a stream of events.
    """

    def __init__(self, notes: EditNotes, connection: int, *, is_stream: bool) -> None:
        self._notes = notes
        self._connection = connection
        self._is_stream = is_stream
        self._held = bytearray()
        self._searched = 0
        """Bytes of the held ones in which no end of an event starts."""
        self._is_too_long = False

    def feed(self, chunk: bytes) -> bytes:
        """Add bytes; return those to forward."""
        if self._is_too_long:
            return chunk
        self._held += chunk
        done = b""
        while self._is_stream and (end := _EVENT_END.search(self._held, self._searched)) is not None:
            done += self._noted_event(bytes(self._held[: end.end()]))
            del self._held[: end.end()]
            self._searched = 0
        self._searched = max(len(self._held) - 3, 0)  # The end may have begun: it is up to four bytes long.
        if len(self._held) > LONGEST_PARSED:
            self._is_too_long = True
            done += bytes(self._held)
            self._held.clear()
        return done

    def rest(self) -> bytes:
        """Return the bytes that are left at the end."""
        rest = bytes(self._held)
        self._held.clear()
        return rest if self._is_stream else self._notes.added(self._connection, rest)

    def _noted_event(self, event: bytes) -> bytes:
        lines = _LINE_END.split(event)
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
        noted = self._notes.added(self._connection, data)
        if noted is data:
            return event
        others = [line for line in lines if line and not line.startswith(b"data:")]
        return b"\n".join((*others, b"data: " + _LINE_END.sub(b" ", noted), b"", b""))


def _id_of(line: bytes, *, is_response: bool = False) -> str | None:
    import json

    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or "id" not in message or (is_response and "method" in message):
        return None
    return json.dumps(message["id"])


def _with_note(line: bytes, note: str) -> bytes:
    """Return a response with a note as the last block of its content, or at the end of its error."""
    import json

    text = line.decode()
    start = _after_space(text, 0)
    result, error = _member(text, start, "result"), _member(text, start, "error")
    if error is not None and text[error[0]] == "{" and (said := _member(text, error[0], "message")) is not None:
        message = json.loads(text[slice(*said)])
        return f"{text[: said[0]]}{json.dumps(f'{message} {note}')}{text[said[1] :]}".encode()
    content = _member(text, result[0], "content") if result is not None and text[result[0]] == "{" else None
    if content is None or text[content[0]] != "[":
        return line  # such as a task, or a request for input
    end = content[1] - 1
    comma = ", " if text[_after_space(text, content[0] + 1)] != "]" else ""
    return f"{text[:end]}{comma}{json.dumps({'type': 'text', 'text': note})}{text[end:]}".encode()


def _member(text: str, start: int, name: str) -> tuple[int, int] | None:
    """Return where the value of a member of an object starts and ends; None if the object has no such member.

    Args:
        text: Valid JSON.
        start: Position of the object.
        name: Name of the member; of several, programs use the last.
    """
    import json

    decode = json.JSONDecoder().raw_decode
    found = None
    at = _after_space(text, start + 1)
    while text[at] != "}":
        key, at = decode(text, at)
        at = _after_space(text, _after_space(text, at) + 1)
        _, end = decode(text, at)
        if key == name:
            found = at, end
        at = _after_space(text, end)
        if text[at] == ",":
            at = _after_space(text, at + 1)
    return found


def _after_space(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at
