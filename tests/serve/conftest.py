"""`pegboard serve` as a process, and clients of the official SDK."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import commands
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from serving import MODES, PACK, Connect, HttpServer


@pytest.fixture
def packs(write_pack: Callable[[str, str], Path]) -> Path:
    """Write the pack `kit`, and return its folder."""
    return write_pack("kit.py", PACK)


@pytest.fixture(params=MODES)
def version(request: pytest.FixtureRequest) -> str:
    """Each protocol version."""
    return str(request.param)


@pytest.fixture
def command(packs: Path) -> list[str]:
    """Return the command line of a server with the pack `kit`."""
    return [sys.executable, "-m", "pegboard", "--packs", str(packs), "serve"]


@pytest.fixture
def connect(command: list[str], packs: Path, version: str, tmp_path: Path) -> Connect:
    """Return a function that connects a client over stdio in the protocol version."""

    @asynccontextmanager
    async def connect(
        *options: str, is_child: bool = False, cwd: Path = tmp_path, **callbacks: Any
    ) -> AsyncIterator[Client]:
        program, *args = command if is_child else commands.forked("pegboard", "--packs", str(packs), "serve")
        parameters = StdioServerParameters(command=program, args=[*args, *options], env=dict(os.environ), cwd=cwd)
        client = Client(stdio_client(parameters), mode=MODES[version], read_timeout_seconds=60, **callbacks)
        async with client:
            assert client.protocol_version == version
            yield client

    return connect


@pytest.fixture
def http_server(packs: Path, tmp_path: Path, home: Path) -> Iterator[HttpServer]:
    """Start a server over HTTP; end it after the test."""
    log = tmp_path / "serve.log"
    command = commands.forked("pegboard", "--packs", str(packs), "serve", "--http", "0")
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=out, cwd=tmp_path)
    try:
        found = None
        for _ in range(600):
            found = re.search(r"(http://\S+/mcp).*\nToken: (\S+)", log.read_text())
            if found or process.poll() is not None:
                break
            time.sleep(0.1)
        assert found, log.read_text()
        yield HttpServer(process, found[1], found[2], log)
    finally:
        process.terminate()
        process.wait(20)
