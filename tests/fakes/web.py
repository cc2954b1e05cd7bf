"""A web server on this machine that answers as a test requires, over real connections."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

CERTIFICATE = Path(__file__).with_name("self_signed.pem")
"""A certificate that no client trusts, made for these tests only."""


@dataclass(frozen=True)
class Asked:
    """A request of a client.

    Attributes:
        path: The path without the query.
        params: The query.
        headers: Headers by lower-case name.
        peer: The client's end of the connection.
    """

    path: str
    params: dict[str, str]
    headers: dict[str, str]
    peer: tuple[str, int]


@dataclass(frozen=True)
class Answer:
    """A response.

    Attributes:
        body: The bytes to send.
        status: The HTTP status.
        type: The content type.
        headers: More headers.
        length: Value of the length header if it is wrong.
        then: State of the connection after the body: kept, closed, reset, or silent.
    """

    body: bytes = b""
    status: int = 200
    type: str = "application/json;charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None
    then: str = "keep"


class Silent(Answer):
    """No response: the connection is reset, closed or silent, according to `then`."""


Answering = Callable[[Asked], Answer]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors, because tests disconnect clients on purpose."""


class Web:
    """A running server.

    Attributes:
        asked: All requests in order.
    """

    def __init__(self, answering: Answering, *, tls: bool = False) -> None:
        self.asked: list[Asked] = []
        self._answering = answering
        self._over = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._scheme = "http"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            self._scheme = "https"

    @property
    def url(self) -> str:
        """Return the URL without a slash at the end."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    @property
    def connections(self) -> int:
        """Return the number of connections that requests used."""
        return len({asked.peer for asked in self.asked})

    @contextmanager
    def running(self) -> Iterator[Web]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def _handler(web: Web) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                split = urlsplit(self.path)
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(
                    split.path, dict(parse_qsl(split.query, keep_blank_values=True)), headers, self.client_address
                )
                web.asked.append(asked)
                answer = web._answering(asked)
                with suppress(OSError):  # the client may have gone
                    if not isinstance(answer, Silent):
                        self._send(answer)
                    self._end(answer.then)

            def _send(self, answer: Answer) -> None:
                self.send_response(answer.status)
                if answer.type:
                    self.send_header("Content-Type", answer.type)
                self.send_header("Content-Length", str(len(answer.body) if answer.length is None else answer.length))
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

            def _end(self, then: str) -> None:
                match then:
                    case "keep":
                        return
                    case "stall":
                        web._over.wait()
                    case "reset":
                        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        self.connection.close()
                self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
                del format, args

        return Handler
