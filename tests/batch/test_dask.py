"""Batches on a Dask cluster, with real schedulers and workers."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import pytest
from distributed import Client, LocalCluster

from pegboard.batch import node
from pegboard.batch.engines.dask import DaskEngine
from pegboard.batch.engines.dask_cluster import DaskCluster
from pegboard.batch.engines.embedded import EmbeddedEngine
from pegboard.batch.errors import EngineError
from pegboard.batch.plan import BatchPlan
from pegboard.batch.results import RowResult
from pegboard.batch.run import Batch
from pegboard.runtime import Runtime

# The workers import this module only if the working directory is on the path, as it is with `python -m pytest`.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = [pytest.mark.promise("BAT-2"), pytest.mark.slow]


def list_files() -> list[str]:
    """Return the folders of Pegboard in the temporary folder of a Dask worker."""
    import tempfile
    from pathlib import Path

    return [str(found) for found in Path(tempfile.gettempdir()).glob("pegboard-node-*")]


def start_cluster(workers: int) -> LocalCluster:
    return LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=workers,
        threads_per_worker=2,
        processes=True,
        dashboard_address=":0",
        worker_dashboard_address=None,
        silence_logs=50,
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("workers")))
        with start_cluster(2) as cluster:
            yield cluster


@pytest.fixture
def address(cluster: LocalCluster) -> str:
    return cluster.scheduler_address.replace("tcp://", "dask://")


@pytest.fixture
def runtime(packs: str) -> Runtime:
    runtime = Runtime.from_environment(packs=[Path(packs)])
    runtime.tools.scan()
    return runtime


@pytest.fixture
def plan(runtime: Runtime, tmp_path: Path) -> Callable[..., BatchPlan]:
    """Return a function that writes rows and returns the plan of a batch."""

    def plan(tool: str, *rows: dict[str, Any], **options: Any) -> BatchPlan:
        source = tmp_path / "rows.jsonl"
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        spec = runtime.tools.get(tool)
        assert spec is not None
        return BatchPlan(spec=spec, source=str(source), **options)

    return plan


async def run(runtime: Runtime, plan: BatchPlan, address: str, **options: Any) -> list[RowResult]:
    found: list[RowResult] = []
    async with runtime:
        await asyncio.wait_for(Batch(plan, DaskEngine(runtime, address, **options)).run(found.append), 90)
    return sorted(found, key=lambda result: result.row)


def numbers(file: Path, count: int) -> list[int]:
    """Wait until a file has some lines, and return their numbers."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = file.read_text().split() if file.exists() else []
        if len(found) >= count:
            return [int(number) for number in found]
        time.sleep(0.02)
    raise AssertionError(f"{file} has too few lines")


async def wait_for(file: Path, count: int = 1) -> list[int]:
    return await asyncio.to_thread(numbers, file, count)


Plan = Callable[..., BatchPlan]


async def test_calls_run_on_workers_and_are_recorded_here(
    runtime: Runtime, plan: Plan, address: str, cluster: LocalCluster
) -> None:
    rows = [{"number": number} for number in range(1, 31)]
    found = await run(runtime, plan("rows.helped", *rows), address)
    assert [result.data for result in found] == [3 * number for number in range(1, 31)]
    with Client(cluster) as client:  # type: ignore[no-untyped-call]
        folders = await asyncio.to_thread(client.run, list_files)
    assert [*folders.values()] == [[], []], "the workers keep no files"
    records = Runtime.from_environment().history.records()
    assert {record.id for record in records} == {result.call for result in found}
    assert {record.source for record in records} == {"batch"}


async def test_modules_of_the_project_are_sent_to_the_workers(runtime: Runtime, plan: Plan, address: str) -> None:
    found = await run(runtime, plan("rows.imported", {"number": 2}), address)
    assert [(result.data, result.error) for result in found] == [(8, None)]


async def test_invalid_rows_and_failing_tools_are_results(runtime: Runtime, plan: Plan, address: str) -> None:
    found = await run(runtime, plan("rows.square", {"number": 3}, {"number": "x"}, {"number": 4}), address)
    assert [result.error.detail or result.error.code if result.error else None for result in found] == [
        "odd", "invalid_args", None,
    ]  # fmt: skip


async def test_a_built_in_pack_and_a_large_result(runtime: Runtime, plan: Plan, address: str, packs: str) -> None:
    (result,) = await run(runtime, plan("tools.echo", {"value": [1, None]}), address)
    assert result.data == [1, None]
    other = Runtime.from_environment(packs=[Path(packs)])
    (result,) = await run(other, plan("rows.large", {"number": 1}), address)
    assert isinstance(result.data, str)
    assert len(result.data) == 2_000_000


async def test_a_missing_program_names_the_worker(runtime: Runtime, plan: Plan, address: str) -> None:
    with pytest.raises(EngineError, match=r"worker tcp://\S+ can't run rows.needy: .*no-such-program-at-all"):
        await run(runtime, plan("rows.needy", {"number": 1}), address)


async def test_secrets_need_tls_or_consent(
    runtime: Runtime, plan: Plan, address: str, packs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EngineError, match="BATCH_KEY, which is not set"):
        await run(runtime, plan("rows.secret", {"number": 1}), address)
    monkeypatch.setenv("BATCH_KEY", "hunter2-is-long")
    with pytest.raises(EngineError, match=r"BATCH_KEY.*only over TLS"):
        await run(Runtime.from_environment(packs=[Path(packs)]), plan("rows.secret", {"number": 1}), address)
    other = Runtime.from_environment(packs=[Path(packs)])
    (result,) = await run(other, plan("rows.secret", {"number": 1}), address, insecure=True)
    assert str(result.data).startswith("15 ")
    assert "hunter2" not in str(result.data)


async def test_a_local_cluster_uses_tls_and_may_get_secrets(
    runtime: Runtime, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCH_KEY", "hunter2-is-long")
    rows = [{"number": number} for number in range(4)]
    found = await run(runtime, plan("rows.secret", *rows), "dask://local?workers=1")
    assert [str(result.data)[:3] for result in found] == ["15 "] * 4


@pytest.mark.parametrize("text", ["dask://host", "tcp://host:1", "dask://local?wokers=2", "dask://h:x", "dask://"])
def test_addresses_that_cannot_be_used_are_messages(runtime: Runtime, text: str) -> None:
    with pytest.raises(EngineError, match="can't be used"):
        DaskEngine(runtime, text)


async def test_a_scheduler_that_does_not_answer_is_a_message(runtime: Runtime, plan: Plan) -> None:
    with pytest.raises(EngineError, match=r"No Dask scheduler answers at dask://127\.0\.0\.1:9"):
        await run(runtime, plan("rows.double", {"number": 1}), "dask://127.0.0.1:9")


async def test_cancelling_a_batch_ends_its_calls_on_the_workers_and_leaves_no_files(
    runtime: Runtime, plan: Plan, address: str, tmp_path: Path, cluster: LocalCluster
) -> None:
    pids = tmp_path / "pids"
    running = asyncio.create_task(run(runtime, plan("rows.wait", {"file": str(pids)}), address))
    (pid,) = await wait_for(pids)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(has_ended, pid)
    assert await asyncio.to_thread(node_folders, cluster) == []


async def test_cancelling_a_batch_repeatedly_leaves_no_files_on_the_workers_either(
    runtime: Runtime, plan: Plan, address: str, tmp_path: Path, cluster: LocalCluster
) -> None:
    pids = tmp_path / "pids"
    async with runtime:
        batch = Batch(plan("rows.wait", {"file": str(pids)}), DaskEngine(runtime, address))
        running = asyncio.create_task(batch.run())
        await wait_for(pids)
        for _ in range(3):
            running.cancel()
            for _ in range(10):
                await asyncio.sleep(0)
        await asyncio.wait([running], timeout=90)
    assert running.cancelled()
    assert await asyncio.to_thread(node_folders, cluster) == []


def node_folders(cluster: LocalCluster) -> list[str]:
    """Return the folders that Pegboard has left in the temporary folder of the workers."""
    with Client(cluster) as client:  # type: ignore[no-untyped-call]
        return sorted({folder for folders in client.run(list_files).values() for folder in folders})


def has_ended(pid: int) -> bool:
    """Wait until a process has ended."""
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not Path(f"/proc/{pid}").exists()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize(("tool", "calls"), [("rows.wait", 2), ("rows.wait_once", 1)])
async def test_rows_of_a_lost_worker_run_again_only_if_that_is_safe(
    runtime: Runtime, plan: Plan, address: str, cluster: LocalCluster, tmp_path: Path, tool: str, calls: int
) -> None:
    pids = tmp_path / "pids"
    rows = [{"file": str(pids)}]
    running = asyncio.create_task(run(runtime, plan(tool, *rows, timeout=6.0), address))
    (pid,) = await wait_for(pids)
    dask_worker = parent_of(parent_of(pid))  # beyond Pegboard's keeper
    os.kill(dask_worker, signal.SIGKILL)
    (result,) = await running
    assert result.error is not None
    assert result.error.detail == ("timeout" if calls == 2 else "worker_lost")
    assert result.is_unknown == (calls == 1)
    assert len(await wait_for(pids)) == calls
    with Client(cluster) as client:  # type: ignore[no-untyped-call]  # for the next tests
        await asyncio.to_thread(client.wait_for_workers, 2, 90)


async def test_rows_wait_until_a_worker_that_has_forgotten_the_batch_has_its_pack_again(
    runtime: Runtime, plan: Plan, address: str
) -> None:
    found: list[RowResult] = []
    rows = [{"number": number} for number in range(60)]
    async with runtime:
        engine = DaskEngine(runtime, address)
        batch = Batch(plan("rows.note", *({**row, "file": os.devnull} for row in rows), jobs=1), engine)
        releasing: list[asyncio.Task[Any]] = []

        def release(result: RowResult) -> None:
            found.append(result)
            if len(found) == 5:  # as if the computer had slept for longer than the lease
                releasing.append(asyncio.create_task(engine._client.run(node.release, engine._id)))

        async with asyncio.timeout(90):
            assert await batch.run(release) == "complete"
            await asyncio.gather(*releasing)
    failed = [result.error for result in found if result.error is not None]
    assert len(found) == 60
    assert all(error.detail == "cancelled" for error in failed), failed
    assert len(failed) <= 1, "only the one that ran at that moment"


async def test_the_engine_closes_even_if_the_scheduler_answers_at_that_moment(
    runtime: Runtime, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = runtime.tools.get("rows.double")
    assert spec is not None
    cluster = DaskCluster(address)
    async with runtime:
        engine = DaskEngine(runtime, cluster)
        await cluster.open()
        await engine.start(spec)
        closing: asyncio.Future[asyncio.Task[None]] = asyncio.get_running_loop().create_future()
        refresh = engine._refresh

        async def refresh_and_close() -> None:
            await refresh()
            if not closing.done():
                closing.set_result(asyncio.create_task(engine.close()))

        monkeypatch.setattr(engine, "_refresh", refresh_and_close)
        await asyncio.wait_for(await closing, 30)
    await cluster.close()


async def test_the_files_of_a_killed_worker_are_deleted_by_the_next_batch(
    runtime: Runtime, plan: Plan, address: str, cluster: LocalCluster, tmp_path: Path, packs: str
) -> None:
    pids = tmp_path / "pids"
    running = asyncio.create_task(run(runtime, plan("rows.wait_once", {"file": str(pids)}), address))
    (pid,) = await wait_for(pids)
    os.kill(parent_of(parent_of(pid)), signal.SIGKILL)
    await running
    with Client(cluster) as client:  # type: ignore[no-untyped-call]
        await asyncio.to_thread(client.wait_for_workers, 2, 90)
    assert len(await asyncio.to_thread(node_folders, cluster)) == 1
    other = Runtime.from_environment(packs=[Path(packs)])
    (result,) = await run(other, plan("rows.double", {"number": 4}), address)
    assert result.ok
    assert await asyncio.to_thread(node_folders, cluster) == []


async def test_workers_forget_a_batch_whose_process_has_ended_without_saying_so(
    packs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(node, "LEASE_SECONDS", 0.5)
    runtime = Runtime.from_environment(packs=[Path(packs)])
    runtime.tools.scan()
    spec = runtime.tools.get("rows.double")
    assert spec is not None
    limits = {"memory_limit": 10**9, "log_limit": 10**6, "result_limit": 10**6}
    left = node.Node()
    left.install("batch", "digest", "tools.py", {}, spec.model_dump_json(), limits)
    assert await asyncio.to_thread(is_empty, tmp_path)
    await runtime.close()


def is_empty(folder: Path) -> bool:
    """Wait until a folder has no folder of Pegboard."""
    deadline = time.monotonic() + 30
    while [*folder.glob("pegboard-node-*")] and time.monotonic() < deadline:
        time.sleep(0.02)
    return not [*folder.glob("pegboard-node-*")]


async def test_a_lost_scheduler_leaves_a_batch_that_another_engine_resumes(
    runtime: Runtime, plan: Plan, tmp_path: Path, packs: str
) -> None:
    cluster = await asyncio.to_thread(start_cluster, 1)
    out = tmp_path / "out.jsonl"
    rows = [{"number": number, "file": str(tmp_path / "calls")} for number in range(1, 501)]
    running = asyncio.create_task(
        run(runtime, plan("rows.again", *rows, out=out), cluster.scheduler_address.replace("tcp://", "dask://"))
    )
    await wait_for(tmp_path / "calls", 20)
    await asyncio.to_thread(cluster.close)
    with pytest.raises(EngineError, match="lost"):
        await running
    assert not logging.getLogger("distributed.client").isEnabledFor(logging.ERROR)  # it would break the screen
    before = len(out.read_text().splitlines())
    assert before < len(rows)
    other = Runtime.from_environment(packs=[Path(packs)])
    again = BatchPlan(spec=plan("rows.again", *rows).spec, source=str(tmp_path / "rows.jsonl"), out=out, resume=True)
    async with other:
        assert await Batch(again, EmbeddedEngine(other)).run() == "complete"
    assert sorted(json.loads(line)["row"] for line in out.read_text().splitlines()) == [*range(1, 501)]
