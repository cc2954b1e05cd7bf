"""Cost of MCP servers: CPU until the first frame, a call, and how long a long list of tools blocks the event loop."""

from __future__ import annotations

import asyncio
import importlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from mcp import Client, StdioServerParameters

from pegboard.models import ServerConfig, ToolCall
from pegboard.runtime import Runtime

_SERVERS = 20
_FRAMES = 9
_CALLS = 100
_ROUNDS = 12
_TICK_SECONDS = 0.002
_LISTINGS = 5
_TOOLS = 5_000
_PEER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("peer")

@server.tool()
def echo(value: str) -> str:
    "Returns the value."
    return value

server.run()
"""

Call = Callable[[], Awaitable[object]]


def measure() -> list[tuple[str, float, float, str]]:
    """Return the figures of MCP servers."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as home:
        for name in ("DATA", "STATE", "CACHE"):
            os.environ[f"PEGBOARD_{name}_DIR"] = f"{home}/{name.lower()}"
        config = Path(home) / "config.toml"
        os.environ["PEGBOARD_CONFIG"] = str(config)
        without, within = _frames(config)
        bare, ours = asyncio.run(_calls(Path(home)))
        blocks = _blocks(config)
    return [
        (
            f"start to first frame with {_SERVERS} stdio servers: CPU against none",
            within / without,
            1.05,
            f"{within:.3f} s / {without:.3f} s",
        ),
        ("a call of a stdio server, against a bare mcp.Client", ours / bare, 1.25, f"{ours:.2f} ms / {bare:.2f} ms"),
        (
            "longest block while 5,000 tools are listed and filtered: ms",
            statistics.median(blocks) * 1000,
            50.0,
            f"{len(blocks)} listings, {min(blocks) * 1000:.0f} to {max(blocks) * 1000:.0f}",
        ),
    ]


def _frames(config: Path) -> tuple[float, float]:
    """Return the median CPU seconds until the first frame, without and with servers, measured by turns."""
    first_frame = importlib.import_module("screen").cpu_to_first_frame
    peer = config.with_name("peer.py")
    peer.write_text(_PEER)
    entry = '[mcp.servers.peer{number}]\ncommand = "{python}"\nargs = ["{peer}"]\n'
    servers = "".join(entry.format(number=number, python=sys.executable, peer=peer) for number in range(_SERVERS))
    seconds: dict[str, list[float]] = {"": [], servers: []}
    for _ in range(_FRAMES + 1):
        for text, measured in seconds.items():
            config.write_text(text)
            measured.append(first_frame([sys.executable, "-m", "pegboard"]))
    config.unlink()
    return statistics.median(seconds[""][1:]), statistics.median(seconds[servers][1:])


async def _calls(home: Path) -> tuple[float, float]:
    """Return the median milliseconds of a call by the SDK's client and through Pegboard, measured by turns."""
    peer = home / "peer.py"
    peer.write_text(_PEER)
    async with (
        Client(StdioServerParameters(command=sys.executable, args=[str(peer)])) as client,
        Runtime.from_environment() as runtime,
    ):
        runtime.servers.add(ServerConfig(name="peer", command=sys.executable, args=(str(peer),)))
        await runtime.servers.connect()
        await client.list_tools()

        async def bare() -> object:
            return await client.call_tool("echo", {"value": "x"})

        async def ours() -> object:
            _, result = await runtime.result(ToolCall(name="peer.echo", args={"value": "x"}, source="form"))
            assert result.ok, result
            return result

        times: dict[Call, list[float]] = {bare: [], ours: []}
        for _ in range(_ROUNDS):
            for call, measured in times.items():
                measured.append(statistics.median([await _milliseconds(call) for _ in range(_CALLS)]))
    return statistics.median(times[bare][1:]), statistics.median(times[ours][1:])


async def _milliseconds(call: Call) -> float:
    began = time.perf_counter()
    await call()
    return (time.perf_counter() - began) * 1000


def _blocks(config: Path) -> list[float]:
    """Return the longest block of the app's event loop, in seconds, for each start with a server of 5,000 tools."""
    hostile = Path(__file__).parents[1] / "fakes" / "hostile_server.py"
    config.write_text(f'[mcp.servers.many]\ncommand = "{sys.executable}"\nargs = ["{hostile}", "many"]\n')
    command = [sys.executable, __file__, "block"]  # a second app in one process finds everything imported
    runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(_LISTINGS)]
    return [float(run.stdout) for run in runs]


async def _longest_block() -> float:
    """Open the app, filter when all tools are listed, and return the longest that a task waited after the start."""
    from textual import events

    from pegboard.tui.app import PegboardApp
    from pegboard.tui.tools.screen import ToolsScreen

    late: list[float] = []

    class Ticking(PegboardApp):
        """App that records the delay of each tick."""

        def on_ready(self, _event: events.Ready) -> None:
            self.run_worker(self._tick())

        async def _tick(self) -> None:
            while True:
                due = time.perf_counter() + _TICK_SECONDS
                await asyncio.sleep(_TICK_SECONDS)
                late.append(time.perf_counter() - due)

    app = Ticking(Runtime.from_environment())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = app.screen
        assert isinstance(screen, ToolsScreen)
        while not screen.settled:  # noqa: ASYNC110 - a notification would be work on the loop
            await asyncio.sleep(0.05)
        late.clear()
        while len(app.tool_scan.catalogue.entries) < _TOOLS:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)
        await pilot.press("slash", *"tool49")
        await pilot.pause(1.0)
    return max(late)


if __name__ == "__main__":
    print(asyncio.run(_longest_block()))
