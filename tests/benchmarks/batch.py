"""Batches: throughput, memory, resuming after SIGKILL, and the Dask engine.

PEGBOARD_BATCH_ROWS sets the rows of the large run of the memory figure (1,000,000 by default), for a loaded machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import aclosing
from pathlib import Path

from pegboard.batch.engine import Engine
from pegboard.batch.engines.dask import DaskEngine
from pegboard.batch.engines.embedded import EmbeddedEngine
from pegboard.batch.plan import BatchPlan
from pegboard.batch.run import Batch
from pegboard.executor import Executor
from pegboard.models import ToolCall
from pegboard.runtime import Runtime

Row = tuple[str, float, float, str]

_CALLS = 10_000
_ROUNDS = 3
_KILLS = 20
_KILLED_ROWS = 2_000
_MEMORY_ROWS = int(os.environ.get("PEGBOARD_BATCH_ROWS", "1000000"))
_DASK_CALLS = 800
_PACK = r'''
import time

from pegboard.sdk import hints

@hints(read_only=True)
def burn(*, number: int) -> int:
    """Computes for 20 ms."""
    end = time.process_time() + 0.02
    while time.process_time() < end:
        pass
    return number

def note(*, number: int, file: str) -> int:
    """Appends a number to a file; not idempotent."""
    with open(file, "a") as out:
        out.write(f"{number}\n")
    time.sleep(0.002)
    return number
'''


def _rows(folder: Path, count: int, **more: object) -> Path:
    file = folder / f"rows-{count}-{len(more)}.jsonl"
    with file.open("w") as out:
        out.writelines(json.dumps({"value": number, "number": number, **more}) + "\n" for number in range(1, count + 1))
    return file


def _echo_rows(folder: Path, count: int) -> Path:
    file = folder / f"echo-{count}.jsonl"
    with file.open("w") as out:
        out.writelines(f'{{"value": {number}}}\n' for number in range(1, count + 1))
    return file


async def _pool(runtime: Runtime, folder: Path) -> float:
    """Return the calls per second of the worker pool alone, with two callers."""
    executor = Executor(results=folder, workers=2)
    spec = runtime.tools.get("tools.echo")
    assert spec is not None
    numbers = iter(range(_CALLS))

    async def work() -> None:
        for number in numbers:
            call = ToolCall(name=spec.name, args={"value": number}, source="cli")
            async with aclosing(executor.run(spec, call, timeout=8)) as events:
                async for _ in events:
                    pass

    began = time.perf_counter()
    await asyncio.gather(work(), work())
    seconds = time.perf_counter() - began
    await executor.close()
    return _CALLS / seconds


async def _batch(runtime: Runtime, source: Path, folder: Path, tool: str, engine: Engine, jobs: int | None) -> float:
    """Return the rows per second of a batch, without the start of its engine."""
    spec = runtime.tools.get(tool)
    assert spec is not None
    plan = BatchPlan(spec=spec, source=str(source), jobs=jobs, out=folder / "out.jsonl", replace=True)
    batch = Batch(plan, engine)
    first: list[float] = []
    await batch.run(lambda _: first.append(time.perf_counter()) if not first else None)
    assert batch.progress.succeeded == batch.progress.done, "every row succeeds"
    return (batch.progress.done - 1) / (time.perf_counter() - first[0])


async def _throughput(folder: Path) -> Row:
    runtime = Runtime.from_environment()
    runtime.tools.scan()
    source = _echo_rows(folder, _CALLS)
    pools, batches = [], []
    for _ in range(_ROUNDS):  # in turns, because the machine is noisy
        pools.append(await _pool(runtime, folder))
        batches.append(await _batch(runtime, source, folder, "tools.echo", EmbeddedEngine(runtime, 2), 2))
    await runtime.close()
    pool, batch = statistics.median(pools), statistics.median(batches)
    return (
        "10,000 tools.echo with --jobs 2: pool / batch",
        pool / batch,
        1 / 0.6,
        f"{batch:,.0f} of {pool:,.0f} per s",
    )


def _peak(folder: Path, count: int) -> float:
    """Return the peak memory in MB of a batch with a number of rows."""
    source, out = _echo_rows(folder, count), folder / f"memory-{count}.jsonl"
    code = (
        "import resource, sys; from pegboard.cli import program\n"
        "try: program(sys.argv[1:])(args=sys.argv[1:], prog_name='pegboard')\n"
        "except SystemExit: pass\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    line = ["batch", "tools.echo", "--from", str(source), "--out", str(out), "--jobs", "2", "--force"]
    done = subprocess.run([sys.executable, "-c", code, *line], capture_output=True, text=True, check=True)
    assert f"{count:,} succeeded" in done.stderr, done.stderr
    return int(done.stdout.split()[-1]) / 1024


def _memory(folder: Path) -> Row:
    small, large = _peak(folder, 1_000), _peak(folder, _MEMORY_ROWS)
    return (f"peak memory of {_MEMORY_ROWS:,} rows / 1,000 rows", large / small, 1.3, f"{large:.0f} MB, {small:.0f} MB")


def _kills(folder: Path, packs: Path) -> list[Row]:
    """Kill a batch of a tool that isn't idempotent at random moments, and resume it."""
    calls, out = folder / "calls", folder / "killed.jsonl"
    source = _rows(folder, _KILLED_ROWS, file=str(calls))
    program = [sys.executable, "-m", "pegboard", "--packs", str(packs), "batch", "bench.note"]
    line = [
        *program,
        "--from",
        str(source),
        "--out",
        str(out),
        "--jobs",
        "4",
        "--map",
        "number=number",
        "--map",
        "file=file",
    ]
    chance = random.Random(18)
    killed = started = 0
    while started < 10 * _KILLS and killed < _KILLS:
        resume = ["--resume"] if out.with_name(f"{out.name}.journal").exists() else []
        started += 1
        with subprocess.Popen([*line, *resume], stderr=subprocess.DEVNULL) as process:
            size = out.stat().st_size if out.exists() else 0
            while process.poll() is None and not (out.exists() and out.stat().st_size > size):
                time.sleep(0.001)
            try:
                process.wait(chance.uniform(0, 0.15))
            except subprocess.TimeoutExpired:
                process.kill()
                killed += 1
            else:
                break
    done = subprocess.run([*line, "--resume"], capture_output=True, text=True, check=False)
    results = [json.loads(text) for text in out.read_text().splitlines()]
    rows = sorted(result["row"] for result in results)
    called = [int(number) for number in re.findall(r"\d+", calls.read_text())]
    unknown = {result["row"] for result in results if not result["ok"]}
    wrong = abs(len(rows) - _KILLED_ROWS) + (rows != [*range(1, _KILLED_ROWS + 1)])
    twice = len(called) - len(set(called))
    lost = len({*range(1, _KILLED_ROWS + 1)} - {*called} - unknown)
    comment = f"{killed} kills, {len(unknown)} unknown; exit code {done.returncode}"
    return [
        (f"{_KILLED_ROWS:,} rows, SIGKILL at {_KILLS} moments: rows without exactly one result", wrong, 0, comment),
        ("the same: calls made twice or reported without a call", twice + lost, 0, ""),
    ]


async def _dask(folder: Path, packs: Path) -> list[Row]:
    found: dict[str, list[float]] = {}
    burning = folder / "burn.jsonl"
    burning.write_text("".join(f'{{"number": {number}}}\n' for number in range(_DASK_CALLS)))
    for _ in range(_ROUNDS):  # in turns, because the machine is noisy
        for engine in ("dask://local?workers=1", "dask://local?workers=2", "embedded"):
            for tool, source in (("bench.burn", burning), ("tools.echo", _echo_rows(folder, _DASK_CALLS))):
                runtime = Runtime.from_environment(packs=[packs])
                runtime.tools.scan()
                used = EmbeddedEngine(runtime, 2) if engine == "embedded" else DaskEngine(runtime, engine)
                rate = await _batch(runtime, source, folder, tool, used, None)
                found.setdefault(f"{tool} {engine[-1]}", []).append(rate)
                await runtime.close()
    rates = {name: statistics.median(each) for name, each in found.items()}
    one, two = rates["bench.burn 1"], rates["bench.burn 2"]
    overhead = 1000 / rates["tools.echo 2"] - 1000 / rates["tools.echo d"]
    comment = (
        f"{one:.1f} and {two:.1f} per s: {two / one:.2f} times as fast; embedded: {rates['bench.burn d']:.1f} per s"
    )
    return [
        ("Dask, 20 ms of CPU per call: 1.7 x rate of 1 worker / rate of 2", 1.7 * one / two, 1, comment),
        ("Dask with two local workers, tools.echo: ms per call more than embedded", overhead, 3, ""),
    ]


def measure() -> list[Row]:
    """Return the figures of batches."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as home:
        for name in ("DATA", "STATE", "CACHE"):
            os.environ[f"PEGBOARD_{name}_DIR"] = f"{home}/{name.lower()}"
        os.environ["PEGBOARD_CONFIG"] = f"{home}/config.toml"
        folder, packs = Path(home), Path(home) / "packs"
        packs.mkdir()
        (packs / "bench.py").write_text(_PACK)
        return [
            asyncio.run(_throughput(folder)),
            _memory(folder),
            *_kills(folder, packs),
            *asyncio.run(_dask(folder, packs)),
        ]
