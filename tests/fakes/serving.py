"""Helpers of the tests of `pegboard serve`: a pack, clients of the official SDK, processes and records."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from pegboard.models import CallRecord
from pegboard.runtime import Runtime

Connect = Callable[..., AbstractAsyncContextManager[Client]]

MODES = {"2025-11-25": "legacy", "2026-07-28": "auto"}
PACK = '''
import sys
import time
from pathlib import Path

from pegboard.sdk import ToolFailed, hints, log, progress

@hints(read_only=True)
def add(*, a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

@hints(read_only=True)
def describe(*, name: str) -> dict[str, str]:
    """Describe a thing."""
    return {"name": name}

def write(*, file: str) -> str:
    """Write a file."""
    Path(file).write_text("written")
    return "written"

@hints(read_only=True)
def talk() -> str:
    """Print, log and report progress."""
    print("printed", flush=True)
    print("complained", file=sys.stderr, flush=True)
    log("logged")
    progress(1, 2, "half")
    return "done"

@hints(read_only=True)
def fail() -> None:
    """Fail."""
    raise ToolFailed("No such shelf.", data={"shelf": 4})

@hints(read_only=True)
def lie() -> int:
    """Return something else than declared."""
    return "seven"

@hints(read_only=True)
def wait(*, file: str) -> str:
    """Write a file, then never end."""
    Path(file).write_text("waiting")
    while True:
        time.sleep(0.01)
'''


class HttpServer:
    """`pegboard serve --http` on a free port.

    Args:
        process: The process.
        url: Its address.
        token: Its token.
        log: File with its stderr.
    """

    def __init__(self, process: subprocess.Popen[bytes], url: str, token: str, log: Path) -> None:
        self.process, self.url, self.token, self.log = process, url, token, log

    @asynccontextmanager
    async def client(self, version: str, **callbacks: Any) -> AsyncIterator[Client]:
        """Connect a client in a protocol version."""
        headers = {"Authorization": f"Bearer {self.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=MODES[version], **callbacks) as client,
        ):
            assert client.protocol_version == version
            yield client


def records(tool: str | None = None) -> list[CallRecord]:
    """Return the record, as another process sees it."""
    history = Runtime.from_environment().history
    try:
        return [*history.records(tool=tool)]
    finally:
        history.close()


def allow(home: Path, tool: str) -> None:
    """Write a rule that allows a tool for MCP clients."""
    (home / "approvals.toml").write_text(f'[[rule]]\nallow = {json.dumps(tool)}\nscope = "mcp"\n')
