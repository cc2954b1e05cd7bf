"""Pool of worker processes."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pegboard.errors import WorkerError
from pegboard.executor.process import WorkerProcess

_START_SECONDS = 30.0
_SPARE_AFTER_SECONDS = 0.1
"""Delay that keeps programs with a single short call from starting two processes."""
_IDLE_SECONDS = 60.0
_MEASURE_SECONDS = 0.25
_FAREWELL_SECONDS = 1.0


@dataclass
class _Waiting:
    file: str
    is_alone: bool
    future: asyncio.Future[WorkerProcess]

    def may_use(self, worker: WorkerProcess) -> bool:
        """Return whether the call may use the worker: packs that must be alone don't share it."""
        return worker.files <= {self.file} if self.is_alone else worker.owner in {None, self.file}


class Pool:
    """Pool of at most `limit` worker processes, started on demand, with a spare idle one if possible.

    Nested calls may exceed the limit: one call of each depth always gets a worker, because the outer call waits for it.
    This prevents deadlocks, and the number of processes never exceeds `limit` plus one per depth.

    Create the pool inside a running event loop; it belongs to that loop.

    Args:
        limit: Maximum number of processes.
        memory_limit: Memory limit of each process, in bytes.
        longest_answer: Maximum size of a worker's message, in bytes.
        environment: Environment variables of the processes.
    """

    def __init__(self, *, limit: int, memory_limit: int, longest_answer: int, environment: Mapping[str, str]) -> None:
        self.loop = asyncio.get_running_loop()
        self._limit = limit
        self._memory_limit = memory_limit
        self._longest_answer = longest_answer
        self._environment = environment
        self._workers: set[WorkerProcess] = set()
        self._ending: set[WorkerProcess] = set()
        self._idle: list[WorkerProcess] = []
        self._busy: dict[WorkerProcess, int] = {}  # worker → depth of its call
        self._waiting: defaultdict[int, deque[_Waiting]] = defaultdict(deque)  # by depth
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}
        self._closed = False
        self._has_lone_packs = False
        self._were_running: set[tuple[WorkerProcess, int]] = set()  # workers and request ids at the last measurement
        self._all_ended = asyncio.Event()

    def take(self, file: str, depth: int, *, is_alone: bool = False) -> asyncio.Future[WorkerProcess]:
        """Request a worker. Calls of the same depth receive theirs in order.

        Args:
            file: File of the pack; a worker that has loaded it is preferred.
            depth: Nesting depth of the call.
            is_alone: Whether the worker must never run another pack.

        Returns:
            A cancellable future. It fails with `WorkerError` if no worker can be started.
        """
        future: asyncio.Future[WorkerProcess] = self.loop.create_future()
        self._waiting[depth].append(_Waiting(file, is_alone, future))
        self._has_lone_packs |= is_alone
        self._serve_waiting()
        self._later(_SPARE_AFTER_SECONDS, self.start_spare)
        self._later(_MEASURE_SECONDS, self._measure)
        return future

    def give_back(self, worker: WorkerProcess) -> None:
        """Return a worker to the pool after its call."""
        if worker not in self._workers:
            return
        self._busy.pop(worker, None)
        worker.idle_since = self.loop.time()
        self._idle.append(worker)
        self._serve_waiting()
        while self._idle and len(self._workers) > self._limit:
            self._dismiss(self._idle[0])
        self._later(_IDLE_SECONDS, self._retire)

    def discard(self, worker: WorkerProcess) -> None:
        """Kill a worker that must not be reused."""
        worker.kill()
        self._remove(worker)
        self._serve_waiting()

    def start_spare(self) -> None:
        """Start a worker unless an idle one can run any call; look again later if one is starting."""
        is_taken = (worker.files if self._has_lone_packs else worker.owner for worker in self._idle)
        if self._starting():  # a call may be waiting for it
            self._later(_SPARE_AFTER_SECONDS, self.start_spare)
        elif all(is_taken) and len(self._workers) < self._limit:
            self._start()

    async def close(self) -> None:
        """End all processes. Idle ones have a second to end by themselves."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        for queue in self._waiting.values():
            for waiting in queue:
                waiting.future.cancel()
        for worker in [*self._workers]:
            if worker in self._idle:
                self._dismiss(worker)
            else:
                self.discard(worker)
        if self._ending:
            self._all_ended.clear()
            await self._all_ended.wait()

    def abandon(self) -> None:
        """Kill all processes after the end of the event loop."""
        self._closed = True
        for worker in self._workers | self._ending:
            worker.abandon()

    def kill(self) -> None:
        """Kill all processes. Thread-safe; the event loop does the rest."""
        for worker in self._workers | self._ending:
            worker.kill()

    def _serve_waiting(self) -> None:
        if self._closed or not self._waiting:
            return
        for depth, queue in [*self._waiting.items()]:
            while queue and (queue[0].future.done() or self._serve(queue[0], depth)):
                queue.popleft()
            if not queue:
                del self._waiting[depth]
        for _ in range(self._wanted() - self._starting()):
            if self._idle and len(self._workers) >= self._limit:  # no waiting call may use it
                self._dismiss(self._idle[0])
            if not self._start():
                return

    def _serve(self, waiting: _Waiting, depth: int) -> bool:
        """Assign an idle worker to a waiting call; return False if none is suitable."""
        suitable = [worker for worker in self._idle if waiting.may_use(worker)]
        if not suitable or not self._free_slots(depth):
            return False
        file = waiting.file
        chosen = next((worker for worker in suitable if file in worker.files), suitable[-1])
        self._idle.remove(chosen)
        self._busy[chosen] = depth
        chosen.files.add(file)
        if waiting.is_alone:
            chosen.owner = file
        waiting.future.set_result(chosen)
        return True

    def _free_slots(self, depth: int, taken: int = 0) -> int:
        """Return how many calls of a depth may start now, if `taken` additional workers were busy."""
        return max(self._limit - len(self._busy) - taken, int(depth not in self._busy.values()), 0)

    def _wanted(self) -> int:
        """Return how many additional workers the waiting calls could use now."""
        wanted = 0
        for depth, queue in self._waiting.items():
            wanted += min(len(queue), self._free_slots(depth, wanted))
        return wanted

    def _starting(self) -> int:
        return sum(not worker.is_ready for worker in self._workers)

    def _start(self) -> bool:
        try:
            worker = WorkerProcess(
                memory_limit=self._memory_limit,
                environment=self._environment,
                longest_answer=self._longest_answer,
                on_ready=self.give_back,
                on_exit=self._exited,
            )
        except OSError as error:
            for depth in [*self._waiting]:
                if not self._starting() and depth not in self._busy.values():  # otherwise they can wait for those
                    self._fail(depth, f"No worker process could be started: {error}")
            return False
        self._workers.add(worker)
        self.loop.call_later(_START_SECONDS, self._give_up_start, worker)
        return True

    def _give_up_start(self, worker: WorkerProcess) -> None:
        if not worker.is_ready:
            worker.kill()

    def _fail(self, depth: int, reason: str) -> None:
        """Fail all waiting calls of a depth."""
        for waiting in self._waiting.pop(depth):
            if not waiting.future.done():
                waiting.future.set_exception(WorkerError(reason))

    def _fail_first(self, reason: str) -> None:
        """Fail the waiting call that is next in line."""
        for queue in self._waiting.values():
            while queue:
                waiting = queue.popleft()
                if not waiting.future.done():
                    waiting.future.set_exception(WorkerError(reason))
                    return

    def _exited(self, worker: WorkerProcess) -> None:
        self._ending.discard(worker)
        if not self._ending:
            self._all_ended.set()
        if worker not in self._workers:
            return
        self._remove(worker)
        if not worker.is_ready:
            self._fail_first(f"The worker process ended before the call started ({worker.exit}).")
        self._serve_waiting()

    def _dismiss(self, worker: WorkerProcess) -> None:
        """End an idle worker; kill it if it doesn't end in time."""
        worker.finish()
        self.loop.call_later(_FAREWELL_SECONDS, worker.kill)
        self._remove(worker)

    def _remove(self, worker: WorkerProcess) -> None:
        if worker not in self._workers:
            return
        self._workers.discard(worker)
        self._busy.pop(worker, None)
        if worker in self._idle:
            self._idle.remove(worker)
        if worker.is_alive:
            self._ending.add(worker)

    def _measure(self) -> None:
        """Measure the process trees of calls and end those that exceed a limit, which the system can't enforce."""
        running = {(worker, worker.number) for worker in self._busy}
        for worker, _ in running & self._were_running:  # skips short calls
            worker.measure()
        self._were_running = running
        if self._busy or self._waiting:
            self._later(_MEASURE_SECONDS, self._measure)

    def _retire(self) -> None:
        """End workers that have been idle for long, except one."""
        if len(self._idle) < 2:
            return
        for worker in [*self._idle[:-1]]:
            if self.loop.time() - worker.idle_since >= _IDLE_SECONDS:
                self._dismiss(worker)
        self._later(_IDLE_SECONDS, self._retire)

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        """Schedule an action, unless it is already scheduled."""
        if action in self._timers or self._closed:
            return

        def act() -> None:
            del self._timers[action]
            action()

        self._timers[action] = self.loop.call_later(seconds, act)


def default_limit() -> int:
    """Return the default limit of workers."""
    return max(4, 2 * (os.cpu_count() or 1))
