"""Cost of a script compared with calls without one, and its savings."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import tempfile
import time
from contextlib import aclosing
from pathlib import Path

from pydantic import JsonValue

from pegboard.ask.result_text import text_of
from pegboard.models import Finished, JsonObject, ToolCall
from pegboard.runtime import Runtime

_ROUNDS = 200
_CALLS = 1_000
_LOOPS = 3
_NAPS = 10
_PACK = '''
"""Tools to measure with."""
import time
from pegboard.sdk import hints

@hints(read_only=True)
def nap() -> str:
    """Takes 50 ms."""
    time.sleep(0.05)
    return ""

@hints(read_only=True)
def users() -> list:
    """Gives 200 kB of users."""
    return [{"id": number, "name": f"user {number}", "note": "x" * 60} for number in range(2_000)]

@hints(read_only=True)
def orders() -> list:
    """Gives 200 kB of orders."""
    return [{"user": number * 7 % 2_000, "total": number % 997, "note": "x" * 63} for number in range(2_000)]
'''
_JOIN = """\
bench.users > users.json
bench.orders | jq -r --slurpfile users users.json '
    ($users[0] | map({key: (.id | tostring), value: .name}) | from_entries) as $names
    | sort_by(-.total)[:10][] | "\\($names[.user | tostring])  \\(.total)"'
"""


async def _call(runtime: Runtime, name: str, **arguments: int) -> JsonValue:
    """Call a tool directly."""
    _, result = await runtime.result(ToolCall(name=name, args=dict(arguments), source="cli"))
    assert result.ok, result.error
    return result.data


async def _run(runtime: Runtime, script: str) -> JsonObject:
    """Run a script."""
    async with aclosing(runtime.scripts.run(script)) as events:
        [done] = [event async for event in events if isinstance(event, Finished) and event.call.parent is None]
    assert isinstance(done.result.data, dict), done.result.error
    assert (done.result.data["stderr"], done.result.data["exit_code"]) == ("", 0)
    return done.result.data


async def _overhead(runtime: Runtime) -> tuple[float, float]:
    """Return the median milliseconds of a script with one call, and of the call alone."""
    alone, within = [], []
    for number in range(_ROUNDS):  # in turns, so that what else the machine does weighs on both alike
        began = time.perf_counter()
        await _call(runtime, "tools.echo", value=number)
        alone.append(time.perf_counter() - began)
        began = time.perf_counter()
        await _run(runtime, f"tools.echo {number}")
        within.append(time.perf_counter() - began)
    return statistics.median(within) * 1000, statistics.median(alone) * 1000


async def _loop(runtime: Runtime) -> tuple[float, float]:
    """Return the median seconds of a thousand calls in a script, and of the same calls without one."""
    alone, within = [], []
    for _ in range(_LOOPS):
        began = time.perf_counter()
        for number in range(_CALLS):
            await _call(runtime, "tools.echo", value=number)
        alone.append(time.perf_counter() - began)
        began = time.perf_counter()
        await _run(runtime, f"for i in {{1..{_CALLS}}}; do tools.echo $i; done")
        within.append(time.perf_counter() - began)
    return statistics.median(within), statistics.median(alone)


async def _at_once(runtime: Runtime) -> tuple[float, float]:
    """Return the seconds of ten concurrent naps in a script, and of the same naps one after another without one."""
    at_once = "bench.nap & " * _NAPS + "wait"
    await _run(runtime, at_once)  # Start the workers first.
    began = time.perf_counter()
    for _ in range(_NAPS):
        await _call(runtime, "bench.nap")
    alone = time.perf_counter() - began
    began = time.perf_counter()
    await _run(runtime, at_once)
    return time.perf_counter() - began, alone


async def _join(runtime: Runtime) -> tuple[int, int]:
    """Return the bytes that a model reads and writes for a join: as a script, and as calls whose results it joins."""
    done = await _run(runtime, _JOIN)
    assert str(done["stdout"]).count("\n") == 10
    script = len(json.dumps({"commands": _JOIN})) + len(text_of(done))
    results = [await _call(runtime, name) for name in ("bench.users", "bench.orders")]
    return script, sum(len("{}") + len(text_of(result)) for result in results)


async def _all(packs: Path) -> list[tuple[str, float, float, str]]:
    (packs / "bench.py").write_text(_PACK, encoding="utf-8")
    runtime = Runtime.from_environment(packs=[packs])
    runtime.tools.scan()
    async with runtime:
        await _run(runtime, "tools.echo 1")
        one, alone = await _overhead(runtime)
        loop, calls = await _loop(runtime)
        at_once, after = await _at_once(runtime)
        script, plain = await _join(runtime)
    return [
        ("one tool in a script: ms beyond the call alone, median", one - alone, 10.0, f"the call alone {alone:.3f} ms"),
        (f"{_CALLS:,} tool calls in a loop: s", loop, 3.0, f"without a script {calls:.2f} s"),
        (f"{_NAPS} tools of 50 ms: script with & / one after another", at_once / after, 0.5, f"{at_once:.3f} s"),
        ("bytes for a join of two 200 kB results: script / calls", script / plain, 0.01, f"{script:,} of {plain:,}"),
    ]


def measure() -> list[tuple[str, float, float, str]]:
    """Return the figures of scripts."""
    # without byte code on disk every import compiles, which no user's machine does twice
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as home:
        for name in ("DATA", "STATE", "CACHE"):
            os.environ[f"PEGBOARD_{name}_DIR"] = f"{home}/{name.lower()}"
        os.environ["PEGBOARD_CONFIG"] = f"{home}/config.toml"
        return asyncio.run(_all(Path(home)))
