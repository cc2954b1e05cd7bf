"""Real servers: as subprocesses over stdio, and over HTTP on the loopback interface."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from pegboard.models import ServerConfig
from pegboard.runtime import Runtime

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

from servers import Open, start_of


@pytest.fixture
async def open_server() -> AsyncIterator[Open]:
    """Return a function that opens a runtime with one server, connected or failed; close it after the test."""
    opened: list[Runtime] = []

    async def open_server(script: Path | str, *arguments: str, **config: object) -> Runtime:
        runtime = Runtime.from_environment()
        opened.append(runtime)
        fields: dict[str, object] = {"name": "peer", "timeout": 30.0}
        if isinstance(script, str):
            fields["url"] = script
        else:
            command, *args = start_of(script, *arguments)
            fields |= {"command": command, "args": tuple(args)}
        runtime.servers.add(ServerConfig.model_validate({**fields, **config}))
        await runtime.servers.connect()
        return runtime

    yield open_server
    for runtime in opened:
        await runtime.close()


@pytest.fixture
def serve_http() -> Iterator[Callable[..., str]]:
    """Return a function that starts a server on a free port and returns its URL."""
    started: list[subprocess.Popen[bytes]] = []

    def serve(script: Path, *arguments: str) -> str:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        process = subprocess.Popen(
            start_of(script, *arguments, "http", str(port)), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        started.append(process)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return f"http://127.0.0.1:{port}/mcp"
            assert process.stdout is not None
            select.select([process.stdout], [], [], 0.1)
            assert process.poll() is None, "the server ended"
        raise AssertionError("the server doesn't listen")

    yield serve
    for process in started:
        process.kill()
        process.communicate()
