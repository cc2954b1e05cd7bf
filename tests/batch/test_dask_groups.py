"""Short calls that travel to the workers of a Dask cluster in groups."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from processes import until

from pegboard.batch.engines.dask import DaskEngine
from pegboard.batch.engines.dask_cluster import DaskCluster
from pegboard.batch.plan import BatchPlan
from pegboard.batch.results import RowResult
from pegboard.batch.run import Batch
from pegboard.models import Finished, Started, ToolCall, ToolResult
from pegboard.ports import Calls
from pegboard.runtime import Runtime

pytestmark = [pytest.mark.promise("BAT-2"), pytest.mark.slow]

_SHORT = 150


@pytest.fixture
async def runtime(packs: str) -> AsyncIterator[Runtime]:
    async with Runtime.from_environment(packs=[Path(packs)]) as runtime:
        runtime.tools.scan()
        yield runtime


@pytest.fixture
async def cluster() -> AsyncIterator[DaskCluster]:
    """Return an open cluster of one worker that runs one task at a time."""
    cluster = DaskCluster("dask://local?workers=1")
    await cluster.open()
    yield cluster
    await cluster.close()


async def tasks(cluster: DaskCluster) -> int:
    """Return how many tasks of calls the cluster has run."""

    def counted(dask_scheduler: Any) -> int:
        prefix = dask_scheduler.task_prefixes.get("pegboard")
        return int(prefix.state_counts["memory"]) if prefix is not None else 0

    found: int = await cluster.client.run_on_scheduler(counted)
    return found


def written(folder: Path, *rows: dict[str, Any]) -> str:
    """Write the rows of a batch and return their file."""
    source = folder / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(source)


def lines(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0


async def ended(calls: Calls, call: ToolCall) -> ToolResult:
    async with aclosing(calls.call(call)) as events:
        async for event in events:
            if isinstance(event, Finished):
                return event.result
    raise AssertionError("a call always ends with Finished")


async def test_short_calls_share_tasks_only_if_they_may_be_repeated(
    runtime: Runtime, cluster: DaskCluster, tmp_path: Path
) -> None:
    rows = [{"number": number, "file": str(tmp_path / "calls")} for number in range(_SHORT)]
    before = 0
    for name in ("rows.again", "rows.note"):
        spec = runtime.tools.get(name)
        assert spec is not None
        found: list[RowResult] = []
        plan = BatchPlan(spec=spec, source=written(tmp_path, *rows), jobs=60)
        await asyncio.wait_for(Batch(plan, DaskEngine(runtime, cluster)).run(found.append), 90)
        assert sorted(result.row for result in found if result.ok) == [*range(1, _SHORT + 1)]
        assert all(result.data == result.row - 1 for result in found)
        ran = await tasks(cluster) - before
        before += ran
        assert ran < _SHORT / 3 if name == "rows.again" else ran == _SHORT


async def test_the_results_of_a_group_do_not_wait_for_many_long_calls(
    runtime: Runtime, cluster: DaskCluster, tmp_path: Path
) -> None:
    file = tmp_path / "calls"
    naps = [{"file": str(file), "seconds": 0.05}] * 100
    spec = runtime.tools.get("rows.nap")
    assert spec is not None
    unanswered: list[int] = []

    def note(result: RowResult) -> None:
        if result.data:
            unanswered.append(lines(file) - batch.progress.done)

    plan = BatchPlan(spec=spec, source=written(tmp_path, *[{"file": str(file)}] * _SHORT, *naps))
    batch = Batch(plan, DaskEngine(runtime, cluster))
    await asyncio.wait_for(batch.run(note), 90)
    assert batch.progress.succeeded == _SHORT + len(naps)
    assert lines(file) == _SHORT + len(naps), "every call ran once"
    assert max(unanswered) < 25


@pytest.mark.parametrize(("name", "row"), [("tools.echo", {"value": "x" * 600_000}), ("rows.large", {"number": 1})])
async def test_calls_with_large_arguments_or_results_travel_alone(
    runtime: Runtime, cluster: DaskCluster, tmp_path: Path, name: str, row: dict[str, Any]
) -> None:
    spec = runtime.tools.get(name)
    assert spec is not None
    batch = Batch(BatchPlan(spec=spec, source=written(tmp_path, *[row] * 12), jobs=60), DaskEngine(runtime, cluster))
    await asyncio.wait_for(batch.run(), 90)
    assert batch.progress.succeeded == 12
    assert await tasks(cluster) >= 12


async def test_calls_that_wait_can_be_cancelled_and_never_start(
    runtime: Runtime, cluster: DaskCluster, tmp_path: Path
) -> None:
    file = tmp_path / "calls"
    spec = runtime.tools.get("rows.nap")
    assert spec is not None
    engine = DaskEngine(runtime, cluster)
    calls = await engine.start(spec)
    short = [ToolCall(name=spec.name, args={"file": str(file)}, source="batch") for _ in range(_SHORT)]
    assert all(result.ok for result in await asyncio.gather(*(ended(calls, call) for call in short)))

    long = [
        ToolCall(name=spec.name, args={"file": str(file), "seconds": 25.0}, source="batch", timeout=30)
        for _ in range(9)
    ]
    running = [asyncio.create_task(ended(calls, call)) for call in long]
    await until(lambda: lines(file) > _SHORT)
    assert not await engine.cancel("nothing")
    left = {call.id for call in long}
    async with asyncio.timeout(60):
        while left := {call_id for call_id in left if not await engine.cancel(call_id)}:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # until they have passed the gateway
        results = await asyncio.gather(*running)
    assert {result.error.detail for result in results if result.error} == {"cancelled"}
    assert lines(file) == _SHORT + 1, "only the first call of the group had started"
    assert (await ended(calls, short[0].model_copy(update={"id": "again"}))).ok
    await engine.close()


async def test_the_worker_of_a_call_is_known_when_it_leaves(runtime: Runtime, cluster: DaskCluster) -> None:
    spec = runtime.tools.get("rows.double")
    assert spec is not None
    engine = DaskEngine(runtime, cluster)
    calls = await engine.start(spec)
    async with aclosing(calls.call(ToolCall(name=spec.name, args={"number": 1}, source="batch"))) as events:
        workers = [event.worker async for event in events if isinstance(event, Started)]
    assert [worker.partition("://")[0] for worker in workers if worker] == ["tls"]
    await engine.close()
