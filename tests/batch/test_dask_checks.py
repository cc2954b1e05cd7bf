"""Checks on a Dask cluster, and clusters with certificates."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import commands
import dask
import pytest
from distributed import LocalCluster
from distributed.security import Security

from pegboard.batch.engines.dask import DaskEngine
from pegboard.batch.errors import EngineError
from pegboard.batch.plan import BatchPlan
from pegboard.batch.results import RowResult
from pegboard.batch.run import Batch
from pegboard.runtime import Runtime

pytestmark = [pytest.mark.slow]

Check = Callable[..., commands.Done]
_ROLES = ("client", "scheduler", "worker")
_CHECKS = {
    "double": 'tool = "rows.double"\narguments = {number = 4}\n[expect]\nsubset = {double = 8}\n',
    "lost": 'tool = "rows.nowhere"\n[expect]\noutcome = "ok"\n',
    "needy": 'tool = "rows.needy"\narguments = {number = 1}\n[expect]\noutcome = "ok"\n',
    "square": 'tool = "rows.square"\narguments = {number = 3}\n[expect]\noutcome = "ok"\n',
    "whisper": 'tool = "rows.secret"\narguments = {number = 1}\n[expect]\njq = [\'startswith("15 ")\']\n',
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("workers")))
        with _cluster() as cluster:
            yield cluster.scheduler_address.replace("tcp://", "dask://")


def _cluster(**options: Any) -> LocalCluster:
    return LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=1,
        threads_per_worker=2,
        processes=True,
        dashboard_address=":0",
        worker_dashboard_address=None,
        silence_logs=50,
        **options,
    )


@pytest.fixture
def check(tmp_path: Path, packs: str, trust: Callable[[Path], None]) -> Check:
    """Return a function that runs checks of a trusted folder and returns the finished process."""
    (tmp_path / "checks").mkdir()
    for name, text in _CHECKS.items():
        (tmp_path / "checks" / f"{name}.toml").write_text(text)
    trust(tmp_path)

    def run(*arguments: str) -> commands.Done:
        return commands.pegboard("--packs", packs, "check", "run", *arguments, cwd=tmp_path)

    return run


@pytest.mark.promise("BAT-2", "BAT-3")
def test_checks_run_on_a_cluster_by_the_same_rules_as_batches(
    check: Check, address: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = check("--engine", address, "--json")
    assert done.returncode == 1
    reports = {report["check"]: report for report in json.loads(done.stdout)["checks"]}
    problems = {name: (report["problem"] or {}).get("message", "") for name, report in reports.items()}
    assert {name: report["status"] for name, report in reports.items()} == {
        "double": "passed", "lost": "failed", "needy": "error", "square": "failed", "whisper": "error",
    }  # fmt: skip
    assert "worker tcp://" in problems["needy"]
    assert "no-such-program-at-all" in problems["needy"]
    assert "BATCH_KEY, which is not set" in problems["whisper"]
    assert "3 is odd" in reports["square"]["differences"][0]["message"]

    monkeypatch.setenv("BATCH_KEY", "hunter2-is-long")
    done = check("whisper", "--engine", address)
    assert (done.returncode, "only over TLS" in done.stdout) == (1, True)
    done = check("whisper", "--engine", address, "--insecure")
    assert (done.returncode, "passed" in done.stdout) == (0, True)
    record = Runtime.from_environment().history.records(limit=1)[0]
    assert (record.tool, record.source) == ("rows.secret", "check")


@pytest.mark.promise("BAT-2", "BAT-3")
def test_checks_run_on_a_local_cluster(check: Check) -> None:
    done = check("[dw]*", "--engine", "dask://local?workers=1", "--json")
    assert json.loads(done.stdout)["checks"][0]["status"] == "passed", done.stderr


@pytest.mark.promise("BAT-2", "BAT-3")
@pytest.mark.parametrize(
    ("engine", "message"),
    [("tcp://here:1", "can't be used as an engine"), ("dask://127.0.0.1:9", "No Dask scheduler answers")],
)
def test_a_cluster_that_cannot_be_used_is_a_message(check: Check, engine: str, message: str) -> None:
    done = check("double", "--engine", engine)
    assert (done.returncode, message in done.stderr) == (2, True)


@pytest.mark.promise("BAT-3")
def test_a_folder_never_sets_the_engine_of_checks(check: Check, tmp_path: Path, trust: Callable[[Path], None]) -> None:
    (tmp_path / "pegboard.toml").write_text('[batch]\nengine = "dask://127.0.0.1:9"\n')
    trust(tmp_path)
    assert check("double").returncode == 0


def _certificates(folder: Path) -> dict[str, str]:
    """Write new certificates, and return Dask's settings that name them."""
    folder.mkdir()
    made = Security.temporary()  # type: ignore[no-untyped-call]
    found = {}
    for name, key in [
        ("ca-file", "tls_ca_file"),
        *((f"{role}.{kind}", f"tls_{role}_{kind}") for role in _ROLES for kind in ("key", "cert")),
    ]:
        file = folder / f"{name}.pem"
        file.write_text(getattr(made, key))
        found[f"distributed.comm.tls.{name}"] = str(file)
    return found


async def _run(packs: str, folder: Path, address: str) -> list[RowResult]:
    source = folder / "rows.jsonl"
    source.write_text('{"number": 1}\n')
    runtime = Runtime.from_environment(packs=[Path(packs)])
    runtime.tools.scan()
    spec = runtime.tools.get("rows.secret")
    assert spec is not None
    found: list[RowResult] = []
    async with runtime:
        running = Batch(BatchPlan(spec=spec, source=str(source)), DaskEngine(runtime, address)).run(found.append)
        await asyncio.wait_for(running, 60)
    return found


@pytest.mark.promise("BAT-2")
async def test_a_cluster_with_certificates_gets_secrets_and_others_are_refused(
    packs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCH_KEY", "hunter2-is-long")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    settings = _certificates(tmp_path / "ours")
    with dask.config.set(settings):
        cluster = await asyncio.to_thread(_cluster, protocol="tls", security=Security(require_encryption=True))  # type: ignore[no-untyped-call]
    try:
        address = cluster.scheduler_address.replace("tls://", "dask+tls://")
        assert address.startswith("dask+tls://")
        with dask.config.set(settings):
            (result,) = await _run(packs, tmp_path, address)
        assert str(result.data).startswith("15 ")
        with pytest.raises(EngineError, match="No Dask scheduler answers"):
            await _run(packs, tmp_path, address)  # without certificates
        with dask.config.set(_certificates(tmp_path / "theirs")), pytest.raises(EngineError, match="No Dask scheduler"):
            await _run(packs, tmp_path, address)
        with pytest.raises(EngineError, match="only over TLS"):
            await _run(packs, tmp_path, address.replace("dask+tls://", "dask://"))
    finally:
        await asyncio.to_thread(cluster.close)
