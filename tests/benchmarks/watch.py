"""Cost of `pegboard watch`: added time of a call, throughput of large results, and the start."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

_SERVER = str(Path(__file__).parents[1] / "fakes" / "plain_server.py")
_PROGRAM = str(Path(sys.executable).with_name("pegboard"))
_CALLS = 3000
_LARGE_CALLS = 40
_ROUNDS = 5
_STARTS = 9


def measure() -> list[tuple[str, float, float, str]]:
    """Return the figures of `watch`."""
    with tempfile.TemporaryDirectory() as home:
        for name in ("DATA", "STATE", "CACHE"):
            os.environ[f"PEGBOARD_{name}_DIR"] = f"{home}/{name.lower()}"
        os.environ["PEGBOARD_CONFIG"] = f"{home}/config.toml"
        return watch()


def watch() -> list[tuple[str, float, float, str]]:
    """Return the figures of the stdio proxy."""
    with _Client() as direct, _Client(_PROGRAM, "watch", "--") as watched:
        for client in (direct, watched):
            for _ in range(200):
                client.call("say")
        time.sleep(1)  # The observer has started.
        times: dict[_Client, list[float]] = {direct: [], watched: []}
        for number in range(_CALLS):
            for client in (direct, watched) if number % 2 else (watched, direct):
                times[client].append(client.call("say", text="x" * 200))
        medians = [statistics.median(times[one]) * 1000 for one in (direct, watched)]
        tails = [statistics.quantiles(times[one], n=100)[98] * 1000 for one in (direct, watched)]
        ratios = []
        for _ in range(_ROUNDS):
            taken = [sum(one.call("large") for _ in range(_LARGE_CALLS)) for one in (direct, watched)]
            ratios.append(taken[1] / taken[0])
        rates = statistics.median(ratios)
    starts = []
    for _ in range(_STARTS):
        pair = []
        for command in ((), (_PROGRAM, "watch", "--")):
            began = time.perf_counter()
            with _Client(*command) as client:
                client.call("say")
                pair.append(time.perf_counter() - began)
        starts.append(pair[1] - pair[0])
    return [
        ("watch: added to the median of a call, ms", medians[1] - medians[0], 0.5, f"direct {medians[0]:.3f}"),
        ("watch: added to the 99th percentile of a call, ms", tails[1] - tails[0], 2.0, f"direct {tails[0]:.3f}"),
        ("watch: time of results of 1 MB, of the direct time", asyncio.run(_large_results()), 1 / 0.9, "mcp.Client"),
        ("watch: the same with a client that only reads lines", rates, 1.5, "more of it is copying"),
        (
            "watch: added to the start until the first result, s",
            statistics.median(starts),
            1.0,
            "includes the observer",
        ),
    ]


async def _large_results() -> float:
    """Return the time of calls with large results of the official client, as a multiple of the direct time."""
    from mcp import Client, StdioServerParameters, stdio_client

    def server(*proxy: str) -> StdioServerParameters:
        command, *args = *proxy, sys.executable, "-S", _SERVER
        return StdioServerParameters(command=command, args=args, env=dict(os.environ))

    async def call(client: Client) -> float:
        began = time.perf_counter()
        await client.call_tool("large", {})
        return time.perf_counter() - began

    async with (
        Client(stdio_client(server())) as direct,
        Client(stdio_client(server(_PROGRAM, "watch", "--"))) as watched,
    ):
        for client in (direct, watched) * 5:
            await call(client)
        await asyncio.sleep(1)
        pairs = [(await call(direct), await call(watched)) for _ in range(_LARGE_CALLS * 2)]
    return sum(pair[1] for pair in pairs) / sum(pair[0] for pair in pairs)


class _Client:
    """A client that reads and parses responses."""

    def __init__(self, *proxy: str) -> None:
        self._process = subprocess.Popen(
            [*proxy, sys.executable, "-S", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._id = 0

    def call(self, tool: str, **args: Any) -> float:
        """Call a tool; return the seconds until its result is parsed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._id += 1
        params = {"name": tool, "arguments": args}
        line = json.dumps({"jsonrpc": "2.0", "id": self._id, "method": "tools/call", "params": params}).encode()
        began = time.perf_counter()
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()
        response = json.loads(self._process.stdout.readline())
        taken = time.perf_counter() - began
        assert response["id"] == self._id
        return taken

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)
