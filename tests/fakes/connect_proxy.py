"""An HTTP proxy on loopback that only opens tunnels."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import StreamRequestHandler, ThreadingTCPServer

from socks_proxy import copy


@contextmanager
def connect_proxy(target: int) -> Iterator[tuple[int, list[str]]]:
    """Run a proxy; return its port, and a list of the addresses of the tunnels.

    Args:
        target: Port on this machine at which every tunnel ends.
    """
    wanted: list[str] = []

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            wanted.append(self.rfile.readline().split()[1].decode())
            while self.rfile.readline().strip():
                pass
            with socket.create_connection(("127.0.0.1", target), 20) as server:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=copy, args=(server, self.connection))
                back.start()
                copy(self.connection, server)
                back.join(20)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], wanted
        finally:
            server.shutdown()
            thread.join(20)
