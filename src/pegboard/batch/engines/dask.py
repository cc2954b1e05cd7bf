"""The Dask engine: calls on the workers of a Dask cluster.

The gateway, the rules and the record stay in this process; only the last stage of a call, its runner, is remote. What
runs on a worker is in `pegboard.batch.node`: each call runs in one of Pegboard's worker processes there, so that a tool
can neither end the Dask worker nor see its environment.

Dask repeats the tasks of a lost worker by itself, up to three times. That would call a tool twice, so each call is
bound to one process of one worker, which refuses every other attempt. This engine chooses the workers and repeats calls
itself: once, and only for tools that are marked read-only or idempotent.

This is the only module that imports Dask.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from pegboard import __version__, storage
from pegboard.batch import node
from pegboard.batch.bundle import PackBundle
from pegboard.batch.errors import EngineError
from pegboard.batch.retry import can_repeat
from pegboard.models import CallEvent, Finished, PackHandler, Started, ToolCall, ToolResult, ToolSpec

if TYPE_CHECKING:
    from pegboard.ports import Calls, Granted
    from pegboard.runtime import Runtime
    from pegboard.runtime.pipelines import GroupedRecords

WORKER_LOST: Final = "worker_lost"
"""Detail of the error of a call whose worker was lost."""

_INSTALL: Final = "Install it with: pip install 'pegboard[dask]'"
_CONNECT_SECONDS: Final = 10.0
_WATCH_SECONDS: Final = 0.5
_NO_WORKER_SECONDS: Final = 30.0
_MOST_LOCAL: Final = 64
_CALLS_PER_THREAD: Final = 2
"""Calls per thread of a worker: one runs, and one waits so that the thread never idles."""


class DaskAddress:
    """Address of a cluster: `dask://HOST:PORT`, `dask+tls://HOST:PORT` or `dask://local?workers=2`.

    Raises:
        EngineError: The text is no such address.
    """

    def __init__(self, text: str) -> None:
        parts = urlsplit(text)
        self.local_workers = 0
        self.address = ""
        try:
            is_local = parts.scheme == "dask" and parts.hostname == "local" and parts.port is None
            port = parts.port
        except ValueError as error:
            raise _bad_address(text) from error
        if is_local:
            options = parse_qs(parts.query, keep_blank_values=True)
            number = options.pop("workers", [str(os.cpu_count() or 1)])[-1]
            if options or not number.isdecimal() or not 0 < int(number) <= _MOST_LOCAL:
                raise EngineError(f"{text!r} can't be used: write it as dask://local?workers=N, at most {_MOST_LOCAL}.")
            self.local_workers = int(number)
        elif parts.scheme in ("dask", "dask+tls") and parts.hostname and port and not parts.query:
            protocol = "tls" if parts.scheme == "dask+tls" else "tcp"
            self.address = f"{protocol}://{parts.netloc}"
        else:
            raise _bad_address(text)

    @property
    def is_encrypted(self) -> bool:
        """Whether connections to the cluster use TLS; a local cluster does, with keys of its own."""
        return bool(self.local_workers) or self.address.startswith("tls://")


def _bad_address(text: str) -> EngineError:
    return EngineError(
        f"{text!r} can't be used as an engine. Examples: dask://scheduler:8786, dask+tls://scheduler:8786,"
        " dask://local?workers=2."
    )


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
        address: As in `DaskAddress`.
        insecure: Whether secrets may be sent without TLS.

    Raises:
        EngineError: The address can't be used.
    """

    def __init__(self, runtime: Runtime, address: str, *, insecure: bool = False) -> None:
        self.name = address
        self.jobs = 1
        self.ahead = 0  # `jobs` has them
        self._runtime = runtime
        self._where = DaskAddress(address)
        self._insecure = insecure
        self._cluster: Any = None
        self._client: Any = None
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
        await self._connect()
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
        """Cancel all calls, and end a local cluster."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        for call_id in [*self._running]:
            await self.cancel(call_id)
        if self._records is not None:
            self._records.close()
        if self._client is not None and self._workers and self._gone is None:
            with suppress(OSError, TimeoutError):
                addresses = [*self._workers]
                request = self._client.run(node.release, self._id, workers=addresses, on_error="ignore")
                await asyncio.wait_for(request, _CONNECT_SECONDS)
        for one in (self._client, self._cluster):
            if one is not None:
                with suppress(OSError, TimeoutError):
                    await asyncio.wait_for(one.close(), _CONNECT_SECONDS)

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
            await asyncio.wait_for(request, _CONNECT_SECONDS)
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

    async def _connect(self) -> None:
        try:
            distributed = await asyncio.to_thread(__import__, "distributed")
        except ImportError as error:
            raise EngineError(f"The engine {self.name} needs the library `distributed`. {_INSTALL}") from error
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # its messages would break the screen
        try:
            if self._where.local_workers:
                self._cluster = await distributed.LocalCluster(
                    n_workers=self._where.local_workers,
                    threads_per_worker=1,
                    processes=True,
                    asynchronous=True,
                    security=True,
                    dashboard_address=":0",
                    worker_dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
            where = self._cluster if self._cluster is not None else self._where.address
            self._client = await distributed.Client(
                where, asynchronous=True, set_as_default=False, timeout=_CONNECT_SECONDS
            )
        except ImportError as error:
            raise EngineError(f"The engine {self.name} needs another library: {error}. {_INSTALL}") from error
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            reason = str(error).split("\n", 1)[0] or type(error).__name__
            raise EngineError(f"No Dask scheduler answers at {self.name}: {reason}.") from error

    async def _watch(self) -> None:
        """Follow which workers the cluster has."""
        while self._gone is None:
            await asyncio.sleep(_WATCH_SECONDS)
            try:
                await asyncio.wait_for(self._refresh(), 2 * _CONNECT_SECONDS)
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
        found = await self._client.run(node.describe, is_local=bool(self._where.local_workers), **options)
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
        if sent and not self._where.is_encrypted and not self._insecure:
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
