"""A SOCKS5 proxy without a login (RFC 1928) on loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer


@contextmanager
def socks_proxy() -> Iterator[tuple[int, list[tuple[str, int]]]]:
    """Run a proxy; return its port, and a list of the hosts and ports to which it has connected."""
    reached: list[tuple[str, int]] = []

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            methods = self.rfile.read(2)[1]
            self.rfile.read(methods)
            self.wfile.write(b"\x05\x00")
            kind = self.rfile.read(4)[3]
            if kind == 1:
                host = socket.inet_ntoa(self.rfile.read(4))
            else:
                host = self.rfile.read(self.rfile.read(1)[0]).decode()
            port = int.from_bytes(self.rfile.read(2), "big")
            reached.append((host, port))
            with socket.create_connection((host, port), 20) as target:
                self.wfile.write(b"\x05\x00\x00\x01" + bytes(6))
                back = threading.Thread(target=copy, args=(target, self.connection))
                back.start()
                copy(self.connection, target)
                back.join(20)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], reached
        finally:
            server.shutdown()
            thread.join(20)


def copy(source: socket.socket, target: socket.socket) -> None:
    """Pass on everything until one side closes."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
