"""HTTP servers that only this machine reaches: the socket, the check of requests, and the run until a signal."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from pegboard.watch.remote_client import RemoteError

HOST: Final = "127.0.0.1"
_BACKLOG: Final = 128


def listen(port: int) -> socket.socket:
    """Return a socket that accepts connections of this machine.

    Args:
        port: The port; 0 for a free one.

    Raises:
        RemoteError: The port can't be used.
    """
    # asyncio turns Nagle's algorithm off only if the protocol is stated; with it, each response takes 40 ms longer.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(_BACKLOG)  # Clients may connect as soon as they know the address.
    except OSError as error:
        listener.close()
        raise RemoteError(f"Port {port} on {HOST} can't be used: {error.strerror}. Choose another one.") from error
    return listener


def is_local(headers: Iterable[tuple[bytes, bytes]], port: int) -> bool:
    """Return whether a request is for a server on this machine, and not from a web page of another one."""
    known = {f"{host}:{port}".encode() for host in (HOST, "localhost")}
    allowed = {b"http://" + host for host in known}
    headers = [*headers]
    hosts = [value.lower() for name, value in headers if name == b"host"]
    origins = [value.lower() for name, value in headers if name == b"origin"]
    return len(hosts) == 1 and hosts[0] in known and all(origin in allowed for origin in origins)


async def serve(app: Any, listener: socket.socket, started: Callable[[], object], **options: Any) -> int:  # noqa: ANN401 - of uvicorn
    """Serve an ASGI application until a signal ends the program.

    Args:
        app: The application.
        listener: The socket.
        started: Called when signals are handled.
        options: Further options of uvicorn.

    Returns:
        The exit code for the signal: 130 for ctrl+c, 143 for `kill`, 129 for a closed terminal.
    """
    import uvicorn

    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
        ws="none",
        **options,
    )
    server = uvicorn.Server(config)
    caught = signal.SIGTERM

    def end(number: signal.Signals) -> None:
        nonlocal caught
        caught, server.should_exit = number, True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, number)
    started()
    server.capture_signals = suppress  # type: ignore[assignment]  # they end it in the same way
    await server.serve(sockets=[listener])
    return 128 + caught
