"""MCP servers for tests, calls of their tools, and the user's side of their questions."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from commands import forked

from pegboard.models import (
    CallEvent,
    Elicitation,
    ElicitationAnswer,
    SamplingRequest,
    ToolCall,
    ToolResult,
)
from pegboard.runtime import Runtime

SDK_SERVER = Path(__file__).with_name("sdk_server.py")
CHANGING_SERVER = SDK_SERVER.with_name("changing_server.py")
COMPLETING_SERVER = SDK_SERVER.with_name("completing_server.py")
HOSTILE_SERVER = SDK_SERVER.with_name("hostile_server.py")

Open = Callable[..., Awaitable[Runtime]]
"""`open(script, *arguments, name=…, **config)` returns a runtime that is connected to the server."""


def start_of(script: Path, *arguments: str) -> list[str]:
    """Return a command that starts a server; those that are written with the SDK don't load it again."""
    if script in {SDK_SERVER, CHANGING_SERVER, COMPLETING_SERVER}:
        return forked(script, *arguments)
    return [sys.executable, str(script), *arguments]


def call(name: str, seconds: float | None = None, /, **arguments: object) -> ToolCall:
    """Return a call of the user."""
    return ToolCall.model_validate({"name": name, "args": arguments, "source": "cli", "timeout": seconds})


async def run(runtime: Runtime, name: str, **arguments: object) -> ToolResult:
    """Run a call and return its result."""
    _, result = await runtime.result(call(name, None, **arguments))
    return result


async def events_of(runtime: Runtime, name: str, **arguments: object) -> list[CallEvent]:
    """Run a call and return its events."""
    return [event async for event in runtime.call(call(name, None, **arguments))]


class Answering:
    """The user's side of a server's questions: the same answer every time."""

    def __init__(self, action: str = "accept", *, samples: bool = True, **content: object) -> None:
        self.answer = ElicitationAnswer.model_validate({"action": action, "content": content or None})
        self.samples = samples
        self.asked: list[Elicitation] = []
        self.prompts: list[SamplingRequest] = []

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Return the answer."""
        self.asked.append(elicitation)
        return self.answer

    async def log_in(self, server: str, url: str) -> bool:
        """Decline to log in."""
        del server, url
        return False

    async def approve_sampling(self, request: SamplingRequest) -> bool:
        """Approve or reject a prompt."""
        self.prompts.append(request)
        return self.samples


def json_list(data: object) -> list[object]:
    """Return data that is a list."""
    assert isinstance(data, list)
    return data


def processes_of(script: Path, *arguments: str) -> list[int]:
    """Return the processes that run a script, without their keepers."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if command[1 : 2 + len(arguments)] == [os.fsencode(script), *map(str.encode, arguments)]:
            found.append(int(folder.name))
    return found
