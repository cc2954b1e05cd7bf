"""The Dask engine: calls on the workers of a Dask cluster.

The gateway, the rules and the record stay in this process; only the last stage of a call, its runner, is remote. What
runs on a worker is in `pegboard.batch.node`: each call runs in one of Pegboard's worker processes there, so that a tool
can neither end the Dask worker nor see its environment.

Dask repeats the tasks of a lost worker by itself, up to three times. That would call a tool twice, so each task is
bound to one process of one worker, which refuses every other attempt. `dask_dispatcher` chooses the workers, and this
engine repeats calls itself: once, and only for tools that are marked read-only or idempotent.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pegboard import __version__, storage
from pegboard.batch import node
from pegboard.batch.bundle import PackBundle
from pegboard.batch.engines.dask_cluster import CONNECT_SECONDS, DaskCluster
from pegboard.batch.engines.dask_dispatcher import DaskDispatcher, DaskWorker, RemoteCall
from pegboard.batch.errors import EngineError
from pegboard.batch.retry import can_repeat
from pegboard.models import CallEvent, Finished, PackHandler, Started, ToolCall, ToolResult, ToolSpec

if TYPE_CHECKING:
    from pegboard.ports import Calls, Granted
    from pegboard.runtime import Runtime
    from pegboard.runtime.pipelines import GroupedRecorder

WORKER_LOST: Final = "worker_lost"
"""Detail of the error of a call whose worker was lost."""

_WATCH_SECONDS: Final = 0.5
_NO_WORKER_SECONDS: Final = 30.0


class DaskEngine:
    """Workers of a Dask cluster. An `Engine`, and the runner of its pipeline.

    Args:
        runtime: The runtime.
        cluster: The cluster, which stays open, or its address as in `DaskAddress`.
        insecure: Whether secrets may be sent without TLS.

    Raises:
        EngineError: The address can't be used.
    """

    def __init__(self, runtime: Runtime, cluster: DaskCluster | str, *, insecure: bool = False) -> None:
        self._owns_cluster = isinstance(cluster, str)
        self._cluster = DaskCluster(cluster) if isinstance(cluster, str) else cluster
        self.name = self._cluster.name
        self._runtime = runtime
        self._insecure = insecure
        self._id = os.urandom(16).hex()
        self._recorder: GroupedRecorder | None = None
        self._dispatcher = DaskDispatcher(self._id, self._cluster)
        self._had_workers = 0.0
        self._rejected: dict[str, str] = {}
        self._running: dict[str, RemoteCall] = {}
        self._gone: EngineError | None = None
        self._watching: asyncio.Task[None] | None = None
        self._bundle: PackBundle | None = None
        self._spec: ToolSpec | None = None

    async def start(self, spec: ToolSpec) -> Calls:
        """Connect to the cluster, send the pack to its workers and check the tool's requirements there.

        Raises:
            EngineError: The cluster can't be reached or can't run the tool.
        """
        if not isinstance(spec.handler, PackHandler):
            raise EngineError(f"{spec.name} is not a function of a pack, so it can't run on a Dask cluster.")
        self._spec = spec
        self._bundle = await asyncio.to_thread(PackBundle.of, spec.handler)
        self._check_secrets(spec, await self._runtime.pipelines.grants.look_up(spec.handler))
        await self._cluster.open()
        self._dispatcher.in_groups = can_repeat(spec)
        await self._refresh()
        self._had_workers = time.monotonic()
        if not self._dispatcher.workers:
            problem = next(iter(self._rejected.values()), None) or f"{self.name} has no workers. Start at least one."
            raise EngineError(problem)
        if self._rejected:  # checked first, so that no row fails because of the machine that it happens to run on
            raise EngineError(next(iter(self._rejected.values())))
        self._watching = asyncio.create_task(self._watch())
        self._recorder = self._runtime.pipelines.grouped_recorder()
        return self._runtime.pipelines.through(self, self._recorder, is_remote=True)

    async def close(self) -> None:
        """Cancel all calls, forget the pack on the workers, and close the cluster unless it was passed open."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await self._dispatcher.close()
        if self._recorder is not None:
            self._recorder.pass_on()
        addresses = [*self._dispatcher.workers, *self._rejected]  # those that can't run the tool have the pack as well
        if addresses and self._gone is None:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    await self._client.run(node.release, self._id, workers=addresses, on_error="ignore")
        if self._owns_cluster:
            await self._cluster.close()

    @property
    def jobs(self) -> int:
        """Concurrent calls that fit the cluster."""
        return self._dispatcher.jobs

    @property
    def ahead(self) -> int:
        """Calls that may wait besides, so that short ones travel in groups."""
        return self._dispatcher.ahead

    @property
    def _client(self) -> Any:  # noqa: ANN401 - Dask has no types
        return self._cluster.client

    # The runner

    async def run(
        self,
        spec: ToolSpec,
        call: ToolCall,
        *,
        timeout: float,  # noqa: ASYNC109 - it bounds the tool
        calls: Calls | None = None,
    ) -> AsyncGenerator[CallEvent]:
        """Run a call on a worker. Calls that the tool makes of other tools fail.

        Raises:
            EngineError: The cluster is gone; the call has no result.
        """
        assert isinstance(spec.handler, PackHandler), "`start` checks it"
        granted = await self._runtime.pipelines.grants.look_up(spec.handler)
        worker: DaskWorker | None = None
        lost = 0
        while lost < (2 if can_repeat(spec) else 1):
            remote = self._running[call.id] = RemoteCall(call, timeout, granted)
            try:
                self._dispatcher.send(remote)
                worker = await remote.worker
                if worker is not None and not lost:
                    yield Started(call=call, worker=worker.address)
                answer = await remote.answer
            finally:
                del self._running[call.id]
                self._dispatcher.cancel(remote)
            if answer is not None:
                # a large result is written to a file
                is_large = answer["whole"] is not None
                result = await asyncio.to_thread(self._read, answer, call) if is_large else self._read(answer, call)
                yield Finished(call=call, result=result)
                return
            if self._gone is not None:
                raise self._gone
            lost += 1
            if remote.is_cancelled:
                break
        where = f"The Dask worker {worker.address}" if worker is not None else f"The worker of {self.name}"
        message = f"{where} was lost during this call of {spec.name}"
        message += " for the second time." if lost == 2 else ", so the outcome is unknown."
        yield Finished(call=call, result=ToolResult.failed("execution_error", message, WORKER_LOST))

    async def cancel(self, call_id: str) -> bool:
        """End a waiting or running call; return False if there is none."""
        remote = self._running.get(call_id)
        if remote is None:
            return False
        self._dispatcher.cancel(remote)
        return True

    def _read(self, answer: dict[str, Any], call: ToolCall) -> ToolResult:
        """Return a result, with the whole of a large one in a file here."""
        result = ToolResult.model_validate_json(answer["result"])
        cut = result.meta.truncated
        if cut is None:
            return result
        folder = self._runtime.paths.results
        file = folder / f"{call.id}.json"
        storage.make_folder(folder)
        storage.write(file, str(answer["whole"]).encode())
        meta = result.meta.model_copy(update={"truncated": cut.model_copy(update={"file": str(file.absolute())})})
        return result.model_copy(update={"meta": meta})

    # The cluster

    async def _watch(self) -> None:
        """Follow which workers the cluster has, and keep them from forgetting the pack."""
        renewing = asyncio.create_task(self._renew())
        try:
            await self._watch_workers()
        finally:
            renewing.cancel()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(node.LEASE_SECONDS / 10)
            with suppress(OSError, RuntimeError):  # the watch detects lost workers
                addresses = [*self._dispatcher.workers]
                async with asyncio.timeout(2 * CONNECT_SECONDS):
                    await self._client.run(node.renew, self._id, workers=addresses, on_error="ignore")

    async def _watch_workers(self) -> None:
        while self._gone is None:
            await asyncio.sleep(_WATCH_SECONDS)
            try:
                async with asyncio.timeout(2 * CONNECT_SECONDS):
                    await self._refresh()
            except (OSError, EngineError, RuntimeError) as error:
                reason = str(error).split("\n", 1)[0] or type(error).__name__
                self._gone = EngineError(f"The connection to the Dask scheduler of {self.name} was lost: {reason}.")
            if self._dispatcher.workers:
                self._had_workers = time.monotonic()
            elif time.monotonic() > self._had_workers + _NO_WORKER_SECONDS:
                self._gone = EngineError(f"{self.name} has had no workers for {_NO_WORKER_SECONDS:g} s.")
        self._dispatcher.stop()

    async def _refresh(self) -> None:
        if self._client.status not in ("running", "newly-created"):
            raise EngineError("it doesn't answer")
        identity = await self._client.scheduler.identity(n_workers=-1)
        known = {address: int(found["nthreads"]) for address, found in identity["workers"].items()}
        for address in self._dispatcher.workers.keys() - known.keys():
            self._dispatcher.remove(address)
        ready = {address for address, worker in self._dispatcher.workers.items() if worker.is_ready}
        new = [address for address in known if address not in ready and address not in self._rejected]
        if new:
            await self._prepare({address: known[address] for address in new})

    async def _prepare(self, threads: dict[str, int]) -> None:
        """Send the pack to new workers, and check them."""
        bundle, spec, addresses = self._bundle, self._spec, [*threads]
        assert bundle is not None, "`start` sets it"
        assert spec is not None, "`start` sets it"
        tools = self._runtime.settings.tools
        limits = {
            "memory_limit": tools.memory_limit, "log_limit": tools.log_limit, "result_limit": tools.result_limit,
        }  # fmt: skip
        options = {"workers": addresses, "on_error": "return"}
        found = await self._client.run(node.describe, is_local=bool(self._cluster.where.local_workers), **options)
        sent = await self._client.run(
            node.install, self._id, bundle.digest, bundle.file, bundle.files, spec.model_dump_json(), limits, **options
        )
        wanted = json.dumps([one.model_dump(mode="json") for one in spec.requirements])
        lacking = await self._client.run(node.missing, wanted, **options)
        for address, count in threads.items():
            about = found.get(address)
            problem = ""
            if not isinstance(about, dict):
                problem = f"can't load Pegboard ({about}). Install pegboard {__version__} on it."
            elif about["version"] != __version__:
                problem = f"has pegboard {about['version']}. Install {__version__} on it."
            elif sent.get(address) is not None:
                problem = f"can't store the pack: {sent[address]}."
            elif lacking.get(address):
                problem = f"can't run {spec.name}: {' '.join(map(str, lacking[address]))}"
            if problem or about is None:
                self._rejected[address] = f"The Dask worker {address} {problem}"
                if address in self._dispatcher.workers:
                    self._dispatcher.remove(address)
            else:
                self._dispatcher.add(DaskWorker(address, about["id"], count))

    def _check_secrets(self, spec: ToolSpec, granted: Granted) -> None:
        required = [one.name for one in spec.requirements if one.kind == "secret" and not one.optional]
        unset = [name for name in required if not granted.secrets.get(name)]
        if unset:
            raise EngineError(f"{spec.name} requires the secret {unset[0]}, which is not set.")
        sent = sorted(name for name, value in granted.secrets.items() if value)
        if sent and not self._cluster.where.is_encrypted and not self._insecure:
            raise EngineError(
                f"{spec.name} is granted {', '.join(sent)}, and secrets are sent only over TLS."
                " Use dask+tls://HOST:PORT, or pass --insecure if you trust the network."
            )
