"""Servers with an address that tests watch, and the HTTP proxy in front of them."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from commands import forked


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def http_proxy(url: str, name: str = "remote", *, says: str = "") -> Iterator[str]:
    """Run `pegboard watch --http` and yield its address; check what it has printed on stderr at the end."""
    line = forked("pegboard", "watch", "--name", name, "--url", url, "--http", "0")
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
        process.terminate()
        _, errors = process.communicate(timeout=20)
        assert (process.returncode, errors) == (128 + signal.SIGTERM, says)
    finally:
        process.kill()
        process.communicate()


def call_of(id_: int, **arguments: Any) -> dict[str, Any]:
    """Return a client's call."""
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": {"name": "x", "arguments": arguments}}


class Echo(BaseHTTPRequestHandler):
    """A server that returns what it received: the body, and the headers as JSON in one header."""

    protocol_version = "HTTP/1.1"

    def read_body(self) -> bytes:
        """Return the body, which may come in chunks."""
        if "content-length" in self.headers:
            return self.rfile.read(int(self.headers["content-length"]))
        chunks: list[bytes] = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def do_POST(self) -> None:
        body = self.read_body()
        if self.headers.get("x-kind") == "stream":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in (b"id: 1\ndata: " + body + b"\n", b"\n", b": end\n\n"):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            return
        self.send_response(int(self.headers.get("x-status", "200")))
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Seen", json.dumps(self.headers.items()))
        self.send_header("X-Target", self.path)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Be silent."""


class JsonServer(BaseHTTPRequestHandler):
    """A server whose subclasses answer JSON messages."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

    def answer(self, body: Any) -> None:
        """Respond to a message."""
        raise NotImplementedError

    def log_message(self, *_: object) -> None:
        """Be silent."""


def respond_with(handler: BaseHTTPRequestHandler, content: bytes, kind: str = "text/event-stream") -> None:
    """Respond with a whole content of a media type."""
    _begin(handler, **{"Content-Type": kind, "Content-Length": str(len(content))})
    handler.wfile.write(content)


def stream_by_bytes(handler: BaseHTTPRequestHandler, events: str) -> None:
    """Respond with a stream of events whose bytes arrive one by one; the caller ends it."""
    _begin(handler, **{"Content-Type": "text/event-stream", "Connection": "close"})
    for byte in events.encode():
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()


def _begin(handler: BaseHTTPRequestHandler, **headers: str) -> None:
    handler.send_response(200)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()


def respond(handler: BaseHTTPRequestHandler, message: Any, status: int = 200, **headers: str) -> None:
    """Respond with a JSON message."""
    data = json.dumps(message, indent=1).encode()
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)


@contextmanager
def echo_server(handler: type[BaseHTTPRequestHandler] = Echo) -> Iterator[str]:
    """Run such a server and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        server.shutdown()
        server.server_close()
