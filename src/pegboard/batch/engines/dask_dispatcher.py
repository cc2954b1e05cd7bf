"""Calls on their way to the workers of a Dask cluster.

A task costs several milliseconds of processor time in Dask's client, scheduler and worker, whatever it computes. So
short calls of tools that may be repeated travel in groups, each of which is one task and runs for about a quarter of a
second. How large the groups are follows from how long the calls take.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from pegboard.batch import node
from pegboard.batch.engines.dask_cluster import CONNECT_SECONDS, DaskCluster
from pegboard.models import ToolCall
from pegboard.ports import Granted

_TASKS_PER_THREAD: Final = 2
"""Tasks per thread of a worker: one runs, and one waits so that the thread never idles."""
_GROUP_SECONDS: Final = 0.25
_LARGEST_GROUP: Final = 32
_LARGEST_MESSAGE: Final = 1_000_000
"""Bytes of the arguments or results of a group, unless one call alone has more."""

WorkerAnswer = dict[str, Any]
"""JSON object from `pegboard.batch.node`."""


class DaskWorker:
    """A worker of the cluster that is ready for calls.

    Args:
        address: Its address.
        node: Id of its process.
        threads: Number of tasks that it runs at the same time.

    Attributes:
        is_ready: Whether it has the pack.
    """

    def __init__(self, address: str, node: str, threads: int) -> None:
        self.address = address
        self.node = node
        self.threads = threads
        self.is_ready = True
        self.tasks = 0
        self.lost = asyncio.Event()


class RemoteCall:
    """A call that waits for a worker or runs on one.

    Args:
        call: The call.
        timeout: Its time limit in seconds.
        granted: Configuration and secrets of its pack.

    Attributes:
        message: What `pegboard.batch.node` reads, as JSON.
        worker: Done when a worker has it; None if it ended before.
        answer: What `pegboard.batch.node` answers; None if the worker or the cluster was lost.
        is_cancelled: Whether it must no longer start.
    """

    def __init__(self, call: ToolCall, timeout: float, granted: Granted) -> None:
        loop = asyncio.get_running_loop()
        self.call = call
        self.granted = granted
        described = call.model_dump(mode="json", include={"id", "name", "args", "source"})
        self.message = json.dumps({**described, "timeout": timeout}, default=str)
        self.worker: asyncio.Future[DaskWorker | None] = loop.create_future()
        self.answer: asyncio.Future[WorkerAnswer | None] = loop.create_future()
        self.is_cancelled = False

    def end(self, answer: WorkerAnswer | None) -> None:
        """Set the answer, unless it has one or its caller has left."""
        if not self.worker.done():
            self.worker.set_result(None)
        if not self.answer.done():
            self.answer.set_result(answer)


class DaskDispatcher:
    """Assignment of calls to the workers of a cluster, in the order in which they come.

    Args:
        batch: Id of the batch on the workers.
        cluster: The cluster.

    Attributes:
        in_groups: Whether several calls may be one task.
        workers: The workers, by address.
    """

    def __init__(self, batch: str, cluster: DaskCluster) -> None:
        self.in_groups = False
        self.workers: dict[str, DaskWorker] = {}
        self._batch = batch
        self._cluster = cluster
        self._size = 1
        self._waiting: deque[RemoteCall] = deque()
        self._sent: dict[str, tuple[RemoteCall, DaskWorker]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._answering: set[asyncio.Task[WorkerAnswer | None]] = set()
        self._to_cancel: dict[str, list[str]] = {}
        self._is_scheduled = False
        self._is_stopped = False

    @property
    def jobs(self) -> int:
        """Calls that keep all workers busy if each is a task."""
        return _TASKS_PER_THREAD * sum(worker.threads for worker in self.workers.values())

    @property
    def ahead(self) -> int:
        """Calls that should wait besides, so that groups of the present size can be formed."""
        return (2 * self._size - 1) * self.jobs if self._size > 1 else 0

    def add(self, worker: DaskWorker) -> None:
        """Send calls to a worker from now on, which may be known already and have the pack again."""
        known = self.workers.get(worker.address)
        if known is not None and known.node == worker.node:
            known.is_ready = True
        else:
            if known is not None:
                known.lost.set()
            self.workers[worker.address] = worker
        self._schedule()

    def remove(self, address: str) -> None:
        """Answer the calls of a lost worker with None."""
        self.workers.pop(address).lost.set()

    def send(self, call: RemoteCall) -> None:
        """Let a call wait for a worker."""
        if self._is_stopped:
            call.end(None)
            return
        self._waiting.append(call)
        self._schedule()

    def cancel(self, call: RemoteCall) -> None:
        """End a call that is not over. If a worker has it, the answer comes from there."""
        if call.answer.done() and not call.answer.cancelled():
            return
        call.is_cancelled = True
        if call.call.id in self._sent:
            _, worker = self._sent[call.call.id]
            if not self._to_cancel:  # those of this moment travel together
                self._start(self._send_cancelled())
            self._to_cancel.setdefault(worker.address, []).append(call.call.id)
        else:
            with suppress(ValueError):
                self._waiting.remove(call)
            call.end(node.answer_of(node.CANCELLED))

    def stop(self) -> None:
        """Answer all calls with None, also those that come later."""
        self._is_stopped = True
        for call in [*self._waiting, *(call for call, _ in self._sent.values())]:
            call.end(None)
        self._waiting.clear()

    async def close(self) -> None:
        """Stop, and end the tasks."""
        self.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Tasks

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _schedule(self) -> None:
        """Send what waits in a moment, with the calls that come until then."""
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._send_groups)

    def _send_groups(self) -> None:
        self._is_scheduled = False
        while self._waiting and (ready := [worker for worker in self.workers.values() if worker.is_ready]):
            worker = min(ready, key=lambda worker: worker.tasks / worker.threads)
            # Smaller towards the end, so that all workers finish at about the same time.
            share = math.ceil((len(self._waiting) + len(self._sent)) / self.jobs)
            count = min(self._size, share)
            is_idle = worker.tasks < worker.threads
            if worker.tasks >= _TASKS_PER_THREAD * worker.threads or not (is_idle or len(self._waiting) >= count):
                return
            group = self._next_group(count)
            for call in group:
                self._sent[call.call.id] = call, worker
                if not call.worker.done():
                    call.worker.set_result(worker)
            worker.tasks += 1
            self._start(self._run(worker, group))

    def _next_group(self, count: int) -> list[RemoteCall]:
        """Return the next calls, at most `count`."""
        group = [self._waiting.popleft()]
        size = len(group[0].message)
        while self._waiting and len(group) < count:
            size += len(self._waiting[0].message)
            if size > _LARGEST_MESSAGE:
                self._size = len(group)
                break
            group.append(self._waiting.popleft())
        return group

    async def _run(self, worker: DaskWorker, group: list[RemoteCall]) -> None:
        """Run a group on a worker, and answer its calls; those that it had no time for wait again."""
        try:
            answers = await self._answers(worker, group)
        except Exception as error:  # noqa: BLE001 - the callers raise it
            for call in group:
                if not call.answer.done():
                    call.answer.set_exception(error)
            return
        finally:
            worker.tasks -= 1
            for call in group:
                del self._sent[call.call.id]
        again = []
        for call, answer in zip(group, answers, strict=True):
            if answer is None or node.WAITS not in answer:
                call.end(answer)
            elif call.is_cancelled:
                call.end(node.answer_of(node.CANCELLED))
            else:
                again.append(call)
        self._waiting.extendleft(reversed(again))
        self._schedule()

    async def _answers(self, worker: DaskWorker, group: list[RemoteCall]) -> list[WorkerAnswer | None]:
        """Return the answer to each call, or None for all if the worker was lost or may have run them before."""
        attempt = os.urandom(8).hex()
        granted = group[0].granted
        message = json.dumps({
            "node": worker.node,
            "attempt": attempt,
            "batch": self._batch,
            "calls": [call.message for call in group],
            "seconds": 2 * _GROUP_SECONDS,
            "bytes": _LARGEST_MESSAGE,
            "config": dict(granted.config),
            "secrets": dict(granted.secrets),
        }, default=str)  # fmt: skip
        future = self._cluster.client.submit(
            node.run_calls, message, key=f"pegboard-{attempt}", workers=[worker.address], pure=False, retries=0
        )
        answering = asyncio.create_task(_result(future))
        self._answering.add(answering)
        answering.add_done_callback(self._answering.discard)
        lost = asyncio.ensure_future(worker.lost.wait())
        try:
            await asyncio.wait({answering, lost}, return_when=asyncio.FIRST_COMPLETED)
            answer = answering.result() if answering.done() and not answering.cancelled() else None
        finally:
            lost.cancel()
            # This ends `answering`. To cancel it would cancel those that share its request to the scheduler.
            future.release()
        if answer is None:
            return [None] * len(group)
        if (reason := answer.get(node.REFUSED)) is not None:
            worker.is_ready = reason == node.REPEATED  # the engine sends the pack again to those that aren't
            return [{node.WAITS: True} if reason == node.FORGOTTEN else None] * len(group)
        answers: list[WorkerAnswer | None] = answer["answers"]
        started = sum(one is not None and node.WAITS not in one for one in answers)
        fitting = int(_GROUP_SECONDS * started / max(answer["seconds"], 1e-6))
        larger = 2 * self._size if started == len(group) else started
        self._size = max(1, min(larger, fitting, _LARGEST_GROUP)) if self.in_groups else 1
        return answers

    async def _send_cancelled(self) -> None:
        await asyncio.sleep(0)
        cancelled, self._to_cancel = self._to_cancel, {}
        for address, ids in cancelled.items():
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    await self._cluster.client.run(node.cancel_calls, ids, workers=[address], on_error="ignore")


async def _result(future: Any) -> WorkerAnswer | None:  # noqa: ANN401 - Dask has no types
    """Return the answer of a task, or None if the cluster lost it."""
    from distributed.scheduler import KilledWorker

    try:
        answer: WorkerAnswer = json.loads(await future)
    except (KilledWorker, OSError, EOFError):
        return None
    except Exception as error:
        if type(error).__name__ in ("FutureCancelledError", "CancelledError"):
            return None
        raise
    return answer
