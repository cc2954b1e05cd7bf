"""The forwarding proxy between the suite and `pegboard serve --http`.

It adds the bearer token, because the suite has none. It also translates names of tools: the suite calls `test_x`, and
`pegboard serve` offers `suite_test_x`. Host and Origin are forwarded as the suite sent them; only the proxy's own
address becomes the server's. Everything else passes unchanged.
"""

from __future__ import annotations

import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit

PACK = "suite_"
_OF_ONE_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"})


class Proxy:
    """A proxy on a free port of 127.0.0.1 while the block runs.

    Args:
        url: The address of the server.
        token: Its token.
    """

    def __init__(self, url: str, token: str) -> None:
        target = urlsplit(url).netloc

        class Handler(_Handler):
            authority = target
            bearer = token

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://localhost:{self._server.server_address[1]}/mcp"
        """The address for the suite."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    authority = ""
    bearer = ""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        own = f":{self.connection.getsockname()[1]}"
        upstream = http.client.HTTPConnection(self.authority, timeout=120)
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                low = name.lower()
                if low in _OF_ONE_CONNECTION:
                    continue
                upstream.putheader(name, self._translated(low, value, own))
            upstream.putheader("Authorization", f"Bearer {self.bearer}")
            body = _with_pack(body)
            upstream.putheader("Content-Length", str(len(body)))
            upstream.endheaders(body)
            self._answer(upstream.getresponse())
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            upstream.close()

    do_GET = do_DELETE = do_OPTIONS = do_PUT = do_POST  # noqa: N815 - names of the base class

    def _translated(self, name: str, value: str, own: str) -> str:
        """Return the value of a header for the server."""
        if name in ("host", "origin") and value.endswith(("localhost" + own, "127.0.0.1" + own)):
            return self.authority if name == "host" else f"http://{self.authority}"
        if name == "mcp-name" and self.headers.get("Mcp-Method") == "tools/call" and not value.strip().startswith(PACK):
            return PACK + value.strip()
        return value

    def _answer(self, response: http.client.HTTPResponse) -> None:
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in _OF_ONE_CONNECTION:
                self.send_header(name, value)
        if response.getheader("Content-Type", "").startswith("text/event-stream"):
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            while line := response.readline():
                self.wfile.write(_without_pack(line))
                self.wfile.flush()
            return
        body = _without_pack(response.read())
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as above
        """Print nothing."""


def _with_pack(body: bytes) -> bytes:
    try:
        message = json.loads(body)
    except ValueError:
        return body
    if not isinstance(message, dict) or message.get("method") != "tools/call":
        return body
    params = message.get("params")
    if not isinstance(params, dict):
        return body
    name = params.get("name")
    if not isinstance(name, str) or name.startswith(PACK):
        return body
    return json.dumps({**message, "params": {**params, "name": PACK + name}}).encode()


def _without_pack(text: bytes) -> bytes:
    return text.replace(b'"name":"' + PACK.encode(), b'"name":"')
