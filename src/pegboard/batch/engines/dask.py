"""The Dask engine: calls on the workers of a Dask cluster.

The gateway, the rules and the record stay in this process; only the last stage of a call, its runner, is remote. What
runs on a worker is in `pegboard.batch.node`: each call runs in one of Pegboard's worker processes there, so that a tool
can neither end the Dask worker nor see its environment.

Dask repeats the tasks of a lost worker by itself, up to three times. That would call a tool twice, so each call is
bound to one process of one worker, which refuses every other attempt. This engine chooses the workers and repeats calls
itself: once, and only for tools that are marked read-only or idempotent.
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
from pegboard.batch.errors import EngineError
from pegboard.batch.retry import can_repeat
from pegboard.models import CallEvent, Finished, PackHandler, Started, ToolCall, ToolResult, ToolSpec

if TYPE_CHECKING:
    from pegboard.ports import Calls, Granted
    from pegboard.runtime import Runtime
    from pegboard.runtime.pipelines import GroupedRecords

WORKER_LOST: Final = "worker_lost"
"""Detail of the error of a call whose worker was lost."""

_WATCH_SECONDS: Final = 0.5
_NO_WORKER_SECONDS: Final = 30.0
_CALLS_PER_THREAD: Final = 2
"""Calls per thread of a worker: one runs, and one waits so that the thread never idles."""


class _Worker:
    """A worker of the cluster that is ready for calls.

    Args:
        address: Its address.
        node: Id of its process.
        threads: Number of calls that it runs at the same time.
    """

    def __init__(self, address: str, node: str, threads: int) -> None:
        self.address = address
        self.node = node
        self.threads = threads
        self.calls = 0
        self.lost = asyncio.Event()


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
        self.jobs = 1
        self.ahead = 0  # `jobs` has them
        self._runtime = runtime
        self._insecure = insecure
        self._records: GroupedRecords | None = None
        self._workers: dict[str, _Worker] = {}
        self._rejected: dict[str, str] = {}
        self._running: dict[str, _Worker] = {}
        self._changed = asyncio.Event()
        self._gone: EngineError | None = None
        self._watching: asyncio.Task[None] | None = None
        self._bundle: PackBundle | None = None
        self._spec: ToolSpec | None = None
        self._cancelled: set[str] = set()
        self._id = os.urandom(16).hex()

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
        await self._refresh()
        if not self._workers:
            problem = next(iter(self._rejected.values()), None) or f"{self.name} has no workers. Start some."
            raise EngineError(problem)
        if self._rejected:  # checked first, so that no row fails because of the machine that it happens to run on
            raise EngineError(next(iter(self._rejected.values())))
        self.jobs = _CALLS_PER_THREAD * sum(worker.threads for worker in self._workers.values())
        self._watching = asyncio.create_task(self._watch())
        self._records = self._runtime.pipelines.records()
        return self._runtime.pipelines.through(self, self._records, is_remote=True)

    async def close(self) -> None:
        """Cancel all calls, forget the pack on the workers, and close the cluster unless it was passed open."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        for call_id in [*self._running]:
            await self.cancel(call_id)
        if self._records is not None:
            self._records.close()
        addresses = [*self._workers, *self._rejected]  # those that can't run the tool have the pack as well
        if addresses and self._gone is None:
            with suppress(OSError, TimeoutError):
                request = self._client.run(node.release, self._id, workers=addresses, on_error="ignore")
                await asyncio.wait_for(request, CONNECT_SECONDS)
        if self._owns_cluster:
            await self._cluster.close()

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
        try:
            worker = await self._take()
            yield Started(call=call, worker=worker.address)
            result = await self._run_on(worker, call, granted, timeout)
            if result is None and can_repeat(spec) and call.id not in self._cancelled:
                worker = await self._take()
                result = await self._run_on(worker, call, granted, timeout)
            if result is not None:
                yield Finished(call=call, result=result)
                return
            message = f"The Dask worker {worker.address} was lost during this call of {spec.name}"
            message += " for the second time." if can_repeat(spec) else ", so the outcome is unknown."
            yield Finished(call=call, result=ToolResult.failed("execution_error", message, WORKER_LOST))
        finally:
            self._cancelled.discard(call.id)

    async def cancel(self, call_id: str) -> bool:
        """End a running call on its worker; return False if there is none."""
        worker = self._running.get(call_id)
        if worker is None:
            return False
        self._cancelled.add(call_id)
        with suppress(OSError, TimeoutError):
            request = self._client.run(node.cancel_call, call_id, workers=[worker.address], on_error="ignore")
            await asyncio.wait_for(request, CONNECT_SECONDS)
        return True

    async def _run_on(
        self,
        worker: _Worker,
        call: ToolCall,
        granted: Granted,
        timeout: float,  # noqa: ASYNC109 - as above
    ) -> ToolResult | None:
        """Return the result of a call on a worker, or None if the worker was lost."""
        attempt = f"{call.id}-{os.urandom(4).hex()}"
        message = json.dumps({
            "node": worker.node,
            "attempt": attempt,
            "batch": self._id,
            "call": call.model_dump(mode="json", include={"id", "name", "args", "source"}),
            "timeout": timeout,
            "config": dict(granted.config),
            "secrets": dict(granted.secrets),
        }, default=str)  # fmt: skip
        future = self._client.submit(
            node.run_call, message, key=f"pegboard-{attempt}", workers=[worker.address], pure=False, retries=0
        )
        answering = asyncio.ensure_future(_result(future))
        lost = asyncio.ensure_future(worker.lost.wait())
        self._running[call.id] = worker
        is_over = False
        try:
            await asyncio.wait({answering, lost}, return_when=asyncio.FIRST_COMPLETED)
            is_over = True
            answer = answering.result() if answering.done() else None
        finally:
            if not is_over:  # the caller was cancelled
                await self.cancel(call.id)
            del self._running[call.id]
            worker.calls -= 1
            self._changed.set()
            answering.cancel()
            lost.cancel()
            future.release()
        if self._gone is not None and answer is None:
            raise self._gone
        if answer is None or node.REFUSED in answer:
            return None
        return await asyncio.to_thread(self._read, answer, call)

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

    async def _take(self) -> _Worker:
        """Return the worker with the fewest calls per thread; wait for one if all were lost."""
        deadline = time.monotonic() + _NO_WORKER_SECONDS
        while True:
            if self._gone is not None:
                raise self._gone
            free = [worker for worker in self._workers.values() if not worker.lost.is_set()]
            if free:
                chosen = min(free, key=lambda worker: worker.calls / worker.threads)
                chosen.calls += 1
                return chosen
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), max(0.01, deadline - time.monotonic()))
            except TimeoutError:
                raise EngineError(f"{self.name} has had no workers for {_NO_WORKER_SECONDS:g} s.") from None

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
                addresses = [*self._workers]
                request = self._client.run(node.renew, self._id, workers=addresses, on_error="ignore")
                await asyncio.wait_for(request, 2 * CONNECT_SECONDS)

    async def _watch_workers(self) -> None:
        while self._gone is None:
            await asyncio.sleep(_WATCH_SECONDS)
            try:
                await asyncio.wait_for(self._refresh(), 2 * CONNECT_SECONDS)
            except (OSError, EngineError, RuntimeError) as error:
                reason = str(error).split("\n", 1)[0] or type(error).__name__
                self._gone = EngineError(f"The connection to the Dask scheduler of {self.name} was lost: {reason}.")
                for worker in self._workers.values():
                    worker.lost.set()
                self._changed.set()

    async def _refresh(self) -> None:
        if self._client.status not in ("running", "newly-created"):
            raise EngineError("it doesn't answer")
        identity = await self._client.scheduler.identity(n_workers=-1)
        known = {address: int(found["nthreads"]) for address, found in identity["workers"].items()}
        for address in [address for address in self._workers if address not in known]:
            self._workers.pop(address).lost.set()
        new = [address for address in known if address not in self._workers and address not in self._rejected]
        if new:
            await self._prepare({address: known[address] for address in new})
        self._changed.set()

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
            else:
                self._workers[address] = _Worker(address, about["id"], count)

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


async def _result(future: Any) -> dict[str, Any] | None:  # noqa: ANN401 - Dask has no types
    """Return the answer of a task, or None if the cluster lost it."""
    from distributed.scheduler import KilledWorker

    try:
        answer: dict[str, Any] = json.loads(await future)
    except (KilledWorker, OSError, EOFError):
        return None
    except Exception as error:
        if type(error).__name__ in ("FutureCancelledError", "CancelledError"):
            return None
        raise
    return answer
