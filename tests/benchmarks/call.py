"""Cost of a call, compared with the same call over stdio with the official MCP SDK."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

from mcp import ClientSession, StdioServerParameters, stdio_client

from pegboard.executor import Executor
from pegboard.models import Finished, PackHandler, ToolCall, ToolSpec
from pegboard.runtime import Runtime

_CALLS = 100
_ROUNDS = 10
_COLD_RUNS = 9
_PACK = Path(__file__).parents[2] / "src" / "pegboard" / "packs" / "tools.py"
_SPEC = ToolSpec(
    name="tools.echo",
    pack="tools",
    input_schema={"type": "object"},
    handler=PackHandler(pack="tools", function="echo", file=str(_PACK), line=1),
)
_PEER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("peer")

@server.tool()
def echo(value: object) -> object:
    "Returns the value."
    return value

server.run()
"""

Call = Callable[[int], Awaitable[None]]


async def _milliseconds(call: Call, calls: int) -> list[float]:
    """Time single calls, one after another."""
    times = []
    for number in range(calls):
        began = time.perf_counter()
        await call(number)
        times.append((time.perf_counter() - began) * 1000)
    return times


async def _cold(folder: Path) -> list[float]:
    """Time first calls, each with its own executor."""
    times = []
    for _ in range(_COLD_RUNS):
        executor = Executor(results=folder)
        times += await _milliseconds(_through(executor), 1)
        await executor.close()
    return times


def _through(executor: Executor) -> Call:
    async def call(number: int) -> None:
        request = ToolCall(name=_SPEC.name, args={"value": number}, source="cli")
        async with aclosing(executor.run(_SPEC, request, timeout=8)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    assert event.result.data == number

    return call


async def _compare(folder: Path) -> dict[str, float]:
    """Return the median milliseconds of a warm call: the executor alone, through the gateway and recorded, the SDK."""
    executor = Executor(results=folder)
    runtime = Runtime.from_environment()
    runtime.tools.scan()
    peer = StdioServerParameters(command=sys.executable, args=["-c", _PEER])

    async def through_gateway(number: int) -> None:
        call = ToolCall(name="tools.echo", args={"value": number}, source="cli")
        async with aclosing(runtime.call(call)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    assert event.result.data == number

    async with stdio_client(peer) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        await session.initialize()

        async def through_sdk(number: int) -> None:
            answer = await session.call_tool("echo", {"value": number})
            assert not answer.is_error

        calls: dict[str, Call] = {
            "executor": _through(executor),
            "gateway": through_gateway,
            "sdk": through_sdk,
        }
        times: dict[str, list[float]] = {name: [] for name in calls}
        for call in calls.values():
            await _milliseconds(call, 50)
        for _ in range(_ROUNDS):  # in turns, so that what else the machine does weighs on all alike
            for name, call in calls.items():
                times[name] += await _milliseconds(call, _CALLS)
    await runtime.close()
    await executor.close()
    return {name: statistics.median(taken) for name, taken in times.items()}


def measure() -> list[tuple[str, float, float, str]]:
    """Return the figures of a warm and of a cold call."""
    # without byte code on disk every import compiles, which no user's machine does twice
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as home:
        for name in ("DATA", "STATE", "CACHE"):
            os.environ[f"PEGBOARD_{name}_DIR"] = f"{home}/{name.lower()}"
        os.environ["PEGBOARD_CONFIG"] = f"{home}/config.toml"
        medians = asyncio.run(_compare(Path(home)))
        cold = statistics.median(asyncio.run(_cold(Path(home))))
    ours, sdk = medians["gateway"], medians["sdk"]
    return [
        (
            "warm call of tools.echo, whole gateway, recorded: ms",
            ours,
            1.0,
            f"of it the executor {medians['executor']:.3f}",
        ),
        ("the same beside the MCP SDK over stdio: ours / theirs", ours / sdk, 1 / 3, f"theirs {sdk:.3f} ms"),
        ("first call of all, worker started for it: ms", cold, 100.0, ""),
    ]
