"""Fixtures of the SDK's tests: plain scripts, temporary programs, and a web server."""

from __future__ import annotations

import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pegboard.sdk.host import Host, install, installed

LARGE = 50 * 2**20
PACKS = Path(__file__).parents[1] / "packs"


@pytest.fixture
def script(
    tmp_path: Path, write_pack: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., None]]:
    """Return a function that makes this process a plain script with these packs on its path, as `name="source"`."""
    before = installed()
    loaded = set(sys.modules)

    def begin(**packs: str) -> None:
        for name, source in packs.items():
            write_pack(f"{name}.py", source)
        monkeypatch.setenv("PEGBOARD_PACKS", str(tmp_path / "packs"))
        install(Host())

    yield begin
    install(before)
    for name in set(sys.modules) - loaded:
        if name.startswith("_pegboard_packs_"):
            del sys.modules[name]


@pytest.fixture
def program(
    program: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], Path]:
    """Return a function that writes a shell script to a folder that is first on the PATH, and returns its file."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return program


@pytest.fixture
def url() -> Iterator[str]:
    """Return the URL of a web server with many kinds of responses."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    _Answers.waiting.set()
    server.shutdown()
    thread.join()
    server.server_close()
    _Answers.waiting.clear()


class _Answers(BaseHTTPRequestHandler):
    waiting = threading.Event()

    def do_GET(self) -> None:
        answer = getattr(self, f"_{self.path.strip('/').split('/')[0].replace('-', '_')}")
        answer()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self._send(201, body, self.headers["content-type"])

    def log_message(self, *args: object) -> None:
        """Suppress the log."""

    def _send(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _json(self) -> None:
        self._send(200, b'{"answer": 42}', "application/json")

    def _problem_json(self) -> None:
        self._send(200, b'["a"]', "Application/Problem+JSON; charset=utf-8")

    def _no_json(self) -> None:
        self._send(200, b"<html>Sign in", "application/json")

    def _deep(self) -> None:
        self._send(200, b"[" * 200_000, "application/json")

    def _number(self) -> None:
        self._send(200, b"42")

    def _text(self) -> None:
        self._send(200, "schön".encode())

    def _latin(self) -> None:
        self._send(200, "schön".encode("latin-1"), "text/plain; charset=latin-1")

    def _bytes(self) -> None:
        self._send(200, b"sch\xf6n \xff\xfe", "text/plain; charset=utf-8")

    def _empty(self) -> None:
        self.send_response(204)
        self.end_headers()

    def _moved(self) -> None:
        self._send(301, b"<html>moved", Location="/json")

    def _missing(self) -> None:
        self._send(404, b"x" * 10_000)

    def _broken(self) -> None:
        self._send(500, b'{"error": "ours"}', "application/json")

    def _busy(self) -> None:
        self._send(429, b"slow down", **{"Retry-After": "1"})

    def _large(self) -> None:
        self._send(200, b"a" * LARGE)

    def _cut(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"only this")
        self.close_connection = True

    def _slow(self) -> None:
        self.waiting.wait(30)

    def _headers(self) -> None:
        self._send(200, (self.headers.get("Authorization") or "none").encode())

    def _forecast(self) -> None:
        city = self.path.rpartition("/")[2]
        if self.headers.get("Authorization") != "Bearer sunny":
            self._send(401, b"no such key")
        elif city == "atlantis":
            self._send(404, b"no such city")
        else:
            self._send(200, f'{{"city": "{city}", "text": "Rain in {city}."}}'.encode(), "application/json")


@pytest.fixture
def refused() -> Iterator[str]:
    """Return the URL of a port without a listener."""
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler, bind_and_activate=False) as server:
        server.server_bind()  # bound, but without a listener
        yield f"http://127.0.0.1:{server.server_address[1]}"
