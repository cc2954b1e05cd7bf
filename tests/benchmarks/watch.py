"""Cost of `pegboard watch`: added time of a call, throughput of large results, and the start; calls shown live."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_SERVER = str(Path(__file__).parents[1] / "fakes" / "plain_server.py")
_PROGRAM = str(Path(sys.executable).with_name("pegboard"))
_CALLS = 3000
_LARGE_CALLS = 40
_ROUNDS = 5
_STARTS = 9
_LIVE_CALLS = 40
_LIVE_SECONDS = 0.6
_PACK = '''
import time

from pegboard.sdk import hints

@hints(read_only=True)
def wait(*, number: int, seconds: float) -> int:
    """Wait."""
    time.sleep(seconds)
    return number
'''


def measure() -> list[tuple[str, float, float, str]]:
    """Return the figures of `watch`."""
    with tempfile.TemporaryDirectory() as home:
        for name in ("DATA", "STATE", "CACHE"):
            os.environ[f"PEGBOARD_{name}_DIR"] = f"{home}/{name.lower()}"
        os.environ["PEGBOARD_CONFIG"] = f"{home}/config.toml"
        return [*watch(), hook(), *asyncio.run(live(Path(home)))]


def hook() -> tuple[str, float, float, str]:
    """Return the time for which an agent waits for a hook, compared with the start of Python."""

    def seconds(*command: str, **event: str) -> float:
        given = json.dumps({"session_id": "s", "tool_name": "Bash", "tool_use_id": "t", "tool_input": {}, **event})
        began = time.perf_counter()
        subprocess.run(command, input=given.encode(), stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began

    watching = (_PROGRAM, "watch", "--hook", "agent")
    ours, python = [], []
    for at in range(-1, _STARTS):
        before = seconds(*watching, hook_event_name="PreToolUse")
        after = seconds(*watching, hook_event_name="PostToolUse", tool_response="fine")
        plain = seconds(sys.executable, "-c", "pass")
        if at >= 0:  # The first hook starts the observer.
            ours += [before, after]
            python.append(plain)
    seconds(*watching, hook_event_name="SessionEnd")
    median = statistics.median(ours)
    return "a hook: time ÷ that of starting Python", median / statistics.median(python), 8.0, f"{median * 1000:.0f} ms"


async def live(home: Path) -> list[tuple[str, float, float, str]]:
    """Return the delays with which another process sees calls begin and end, and the calls of many processes."""
    from pegboard.runtime import Runtime

    (home / "packs").mkdir()
    (home / "packs" / "slow.py").write_text(_PACK)
    commands = {
        "watch": ((_PROGRAM, "watch", "--name", "plain", "--", sys.executable, "-S", _SERVER), "say", "plain.say"),
        "serve": ((_PROGRAM, "serve", "--packs", str(home / "packs")), "slow.wait", "slow.wait"),
    }
    rows = []
    async with Runtime.from_environment() as runtime:
        for name, (command, tool, recorded) in commands.items():
            begun, ended = await _delays(runtime, command, tool, recorded)
            for figure, values in (("running", begun), ("done", ended)):
                late = statistics.quantiles(values, n=20)[18] * 1000
                comment = f"median {statistics.median(values) * 1000:.0f}, {len(values)} calls"
                rows.append(
                    (f"{name}: 95th percentile until another process shows a call {figure}, ms", late, 300.0, comment)
                )
        rows.append(await _concurrent(runtime))
    return rows


async def _delays(
    runtime: Runtime, command: tuple[str, ...], tool: str, recorded: str
) -> tuple[list[float], list[float]]:
    """Return the seconds from the request until a call is shown as running, and from the response until it is done."""
    shown: dict[tuple[str, int], float] = {}
    came = asyncio.Event()

    async def follow() -> None:
        async with aclosing(runtime.activity.changes()) as changes:
            ready.set()
            async for change in changes:
                found = await asyncio.to_thread(runtime.activity.find, [*change.ids]) if change.ids else ()
                now = time.perf_counter()
                for call in found:
                    number = call.args.get("number") if call.tool == recorded else None
                    if isinstance(number, int):
                        shown.setdefault(("running" if call.state == "running" else "done", number), now)
                came.set()

    ready = asyncio.Event()
    following = asyncio.create_task(follow())
    await ready.wait()
    begun, ended = [], []
    with _Client(command=command) as client:
        await asyncio.to_thread(client.initialize)
        for number in range(-3, _LIVE_CALLS):  # The first ones start the processes.
            calling = asyncio.create_task(asyncio.to_thread(client.call, tool, number=number, seconds=_LIVE_SECONDS))
            sent = time.perf_counter()
            await calling
            got = time.perf_counter()
            async with asyncio.timeout(30):
                while ("done", number) not in shown:
                    came.clear()
                    await came.wait()
            if number >= 0:
                # If its start was missed, a call is only seen as done.
                begun.append(shown.get(("running", number), shown["done", number]) - sent)
                ended.append(max(0.0, shown["done", number] - got))
    following.cancel()
    await asyncio.wait({following})
    return begun, ended


async def _concurrent(runtime: Runtime) -> tuple[str, float, float, str]:
    """Return how many of 200 concurrent calls of ten processes are missing from the record, or are twice in it."""

    def agent(first: int) -> None:
        with _Client(_PROGRAM, "watch", "--name", "many", "--") as client:
            client.call_all("say", [{"number": first + number} for number in range(20)])

    await asyncio.gather(*(asyncio.to_thread(agent, 20 * number) for number in range(10)))
    wanted = [*range(200)]
    found: list[object] = []
    for _ in range(300):
        records = await asyncio.to_thread(runtime.history.records, tool="many.say", limit=1000)
        found = [record.args["number"] for record in records]
        if len(found) >= len(wanted):
            break
        await asyncio.sleep(0.1)
    wrong = len(set(wanted) ^ set(found)) + len(found) - len(set(found))
    return (
        "watch: calls lost or doubled of 200 concurrent ones of 10 processes",
        float(wrong),
        0.0,
        f"{len(found)} records",
    )


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

    def __init__(self, *proxy: str, command: tuple[str, ...] = ()) -> None:
        self._process = subprocess.Popen(
            command or [*proxy, sys.executable, "-S", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._id = 0

    def initialize(self) -> None:
        """Connect as a client of the protocol 2025-11-25."""
        info = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "benchmark", "version": "1"},
        }
        self._send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info})
        self._receive()
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call_all(self, tool: str, calls: list[dict[str, Any]]) -> None:
        """Send many calls without waiting in between; return when all have a response."""
        for number, args in enumerate(calls):
            params = {"name": tool, "arguments": args}
            self._send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        for _ in calls:
            self._receive()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        """Return the next response; skip notifications."""
        assert self._process.stdout is not None
        while "id" not in (message := json.loads(self._process.stdout.readline())):
            pass
        found: dict[str, Any] = message
        return found

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
        response = self._receive()
        taken = time.perf_counter() - began
        assert response["id"] == self._id
        return taken

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)
