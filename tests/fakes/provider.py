"""An OpenAI-compatible server on this machine that plays a script, including failures, over real connections."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

End = Literal["done", "close", "drop", "hang"]
"""How a response ends: with `[DONE]`, without it, by a connection closed in the middle, or never."""


@dataclass(frozen=True)
class Answer:
    """The response to one request.

    Attributes:
        chunks: The chunks to stream: JSON, or raw bytes.
        end: How it ends.
        status: The HTTP status.
        body: The body, instead of a stream.
        type: The content type.
        headers: More headers.
        at_once: Whether to send everything in one piece.
    """

    chunks: Iterable[Mapping[str, Any] | bytes] = ()
    end: End = "done"
    status: int = 200
    body: bytes | None = None
    type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)
    at_once: bool = False


def delta(finish: str | None = None, **content: Any) -> dict[str, Any]:
    """Return a chunk with a piece of a response."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "fake",
        "choices": [{"index": 0, "delta": content, "finish_reason": finish}],
    }


def call(index: int = 0, *, id: str | None = None, name: str | None = None, arguments: str = "") -> dict[str, Any]:  # noqa: A002 - its name in the format
    """Return a chunk with a piece of a tool call."""
    function = {"arguments": arguments} | ({"name": name} if name else {})
    piece = {"index": index, "function": function} | ({"id": id, "type": "function"} if id else {})
    return delta(tool_calls=[piece])


def usage(sent: int, answered: int) -> dict[str, Any]:
    """Return the last chunk, with the token usage."""
    tokens = {"prompt_tokens": sent, "completion_tokens": answered, "total_tokens": sent + answered}
    return delta() | {"choices": [], "usage": tokens}


def says(*pieces: str) -> Answer:
    """Return a whole response of text."""
    return Answer([delta(role="assistant"), *(delta(content=piece) for piece in pieces), delta("stop"), usage(10, 5)])


def proposes(name: str, arguments: Mapping[str, Any], id: str = "call_1") -> Answer:  # noqa: A002 - as above
    """Return a whole response that is one tool call, its arguments in two pieces."""
    text = json.dumps(arguments)
    half = len(text) // 2
    first = call(id=id, name=name, arguments=text[:half])
    return Answer([first, call(arguments=text[half:]), delta("tool_calls"), usage(10, 5)])


def fails(status: int, message: str, *, headers: Mapping[str, str] | None = None, **more: Any) -> Answer:
    """Return a failure in the format of OpenAI's interface."""
    body = json.dumps({"error": {"message": message, **more}}).encode()
    # Without this header the library waits before it retries.
    return Answer(status=status, body=body, type="application/json", headers=headers or {"retry-after-ms": "1"})


@dataclass(frozen=True)
class Asked:
    """A received request.

    Attributes:
        path: The path without the query.
        body: Its JSON; empty if it has none.
        headers: Headers by lower-case name.
    """

    path: str
    body: dict[str, Any]
    headers: dict[str, str]


class FakeProvider:
    """A running server that plays its responses, one per request, and repeats the last one.

    Attributes:
        asked: All requests in order.
        left: Set when a client disconnects during a response.
        over: Set when the server stops.
        models: The models that it lists.
    """

    def __init__(self, *answers: Answer, models: Sequence[str] = ()) -> None:
        self.asked: list[Asked] = []
        self.left = threading.Event()
        self._answers = list(answers)
        self.models = models
        self.over = threading.Event()
        self._server = _Server(self)

    @property
    def port(self) -> int:
        """Port that the server listens on."""
        return self._server.server_port

    @property
    def url(self) -> str:
        """Base URL of the server."""
        return f"http://127.0.0.1:{self.port}/v1"

    @contextmanager
    def running(self) -> Iterator[FakeProvider]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.over.set()
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def play(self, *answers: Answer) -> None:
        """Replace the responses to play."""
        self._answers = list(answers)

    def next(self) -> Answer:
        """Return the next response."""
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, fake: FakeProvider) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.fake = fake

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors, because tests disconnect clients on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        self._note({})
        listing = {"object": "list", "data": [{"id": name, "object": "model"} for name in self.server.fake.models]}
        self._whole(Answer(body=json.dumps(listing).encode(), type="application/json"))

    def do_POST(self) -> None:
        self._note(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        answer = self.server.fake.next()
        with suppress(OSError):  # the client may have gone
            if answer.body is not None:
                self._whole(answer)
            else:
                self._stream(answer)

    def _note(self, body: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.fake.asked.append(Asked(self.path, body, headers))

    def _head(self, answer: Answer, name: str, value: str) -> None:
        self.send_response(answer.status)
        for header in (("Content-Type", answer.type), (name, value), *answer.headers.items()):
            self.send_header(*header)
        self.end_headers()

    def _whole(self, answer: Answer) -> None:
        self._head(answer, "Content-Length", str(len(answer.body or b"")))
        self.wfile.write(answer.body or b"")

    def _stream(self, answer: Answer) -> None:
        if answer.chunks or answer.end != "drop":
            self._head(answer, "Transfer-Encoding", "chunked")
        lines = (chunk if isinstance(chunk, bytes) else _event(chunk) for chunk in answer.chunks)
        for line in [b"".join(lines)] if answer.at_once else lines:
            self._chunk(line)
        match answer.end:
            case "done":
                self._chunk(b"data: [DONE]\n\n")
                self.wfile.write(b"0\r\n\r\n")
            case "close":
                self.wfile.write(b"0\r\n\r\n")
            case "drop":
                self.close_connection = True
            case "hang":
                self._hang()

    def _hang(self) -> None:
        self.close_connection = True
        self.connection.settimeout(0.02)
        while not self.server.fake.over.is_set():
            try:
                gone = not self.connection.recv(1)
            except TimeoutError:
                continue
            except OSError:
                gone = True
            if gone:
                self.server.fake.left.set()
                return

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        del format, args


def _event(chunk: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()
