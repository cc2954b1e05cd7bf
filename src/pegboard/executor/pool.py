"""Which worker runs which call, and when."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pegboard.errors import WorkerError
from pegboard.executor.process import WorkerProcess

_START_SECONDS = 30.0
_SPARE_AFTER_SECONDS = 0.1
"""So that a program that makes one call and ends doesn't start two processes."""
_IDLE_SECONDS = 60.0
_MEASURE_SECONDS = 0.25
_FAREWELL_SECONDS = 1.0


@dataclass
class _Waiting:
    file: str
    is_alone: bool
    place: asyncio.Future[WorkerProcess]

    def may_have(self, worker: WorkerProcess) -> bool:
        """Whether no pack that must be alone shares the worker with another."""
        return worker.files <= {self.file} if self.is_alone else worker.owner in {None, self.file}


class Pool:
    """At most `limit` worker processes, started as they are needed, one of them idle if possible.

    Only calls that are made within others may have more: one of each depth always gets a worker, as what it was made
    within waits for it. So the deepest can always go on, and there are never more than `limit` and one of each depth.

    Made inside a running event loop, and for that loop only.

    Args:
        limit: The most processes at a time.
        memory_limit: Bytes of data that each may have.
        longest_answer: Bytes of the longest message that a worker may send.
        environment: Their environment variables.
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
        self._busy: dict[WorkerProcess, int] = {}  # and the depth of the call that each runs
        self._waiting: defaultdict[int, deque[_Waiting]] = defaultdict(deque)  # by depth
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}
        self._closed = False
        self._has_lone_packs = False
        self._were_running: set[tuple[WorkerProcess, int]] = set()  # and their requests, when last looked at
        self._all_ended = asyncio.Event()

    def take(self, file: str, depth: int, *, is_alone: bool = False) -> asyncio.Future[WorkerProcess]:
        """Asks for a worker; calls of one depth get theirs in the order they asked.

        Args:
            file: The pack's file; a worker that has loaded it is preferred.
            depth: How many calls this one was made within.
            is_alone: Whether its worker has run no other pack and never will.

        Returns:
            A future that may be cancelled; it fails with `WorkerError` if no worker can be started.
        """
        place: asyncio.Future[WorkerProcess] = self.loop.create_future()
        self._waiting[depth].append(_Waiting(file, is_alone, place))
        self._has_lone_packs |= is_alone
        self._serve_waiting()
        self._later(_SPARE_AFTER_SECONDS, self._keep_spare)
        if sys.platform == "linux":
            self._later(_MEASURE_SECONDS, self._measure)
        return place

    def give_back(self, worker: WorkerProcess) -> None:
        """Takes a worker back after its call, to be used again."""
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
        """Kills a worker that must not be used again."""
        worker.kill()
        self._remove(worker)
        self._serve_waiting()

    def start_spare(self) -> None:
        """Starts a worker unless one is idle or on its way."""
        self._keep_spare()

    async def close(self) -> None:
        """Ends every process: those that are idle may do it themselves, within a second."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        for queue in self._waiting.values():
            for waiting in queue:
                waiting.place.cancel()
        for worker in [*self._workers]:
            if worker in self._idle:
                self._dismiss(worker)
            else:
                self.discard(worker)
        if self._ending:
            self._all_ended.clear()
            await self._all_ended.wait()

    def abandon(self) -> None:
        """Ends every process without the event loop, which runs no more."""
        self._closed = True
        for worker in self._workers | self._ending:
            worker.abandon()

    def kill(self) -> None:
        """Kills every process, from any thread; all else is left to the event loop."""
        for worker in self._workers | self._ending:
            worker.kill()

    def _serve_waiting(self) -> None:
        if self._closed or not self._waiting:
            return
        for depth, queue in [*self._waiting.items()]:
            while queue and (queue[0].place.done() or self._serve(queue[0], depth)):
                queue.popleft()
            if not queue:
                del self._waiting[depth]
        for _ in range(self._wanted() - self._starting()):
            if self._idle and len(self._workers) >= self._limit:  # it can't run what waits
                self._dismiss(self._idle[0])
            if not self._start():
                return

    def _serve(self, waiting: _Waiting, depth: int) -> bool:
        """Gives a waiting call an idle worker, if it may have one and there is one."""
        fitting = [worker for worker in self._idle if waiting.may_have(worker)]
        if not fitting or not self._turns(depth):
            return False
        file = waiting.file
        chosen = next((worker for worker in fitting if file in worker.files), fitting[-1])
        self._idle.remove(chosen)
        self._busy[chosen] = depth
        chosen.files.add(file)
        if waiting.is_alone:
            chosen.owner = file
        waiting.place.set_result(chosen)
        return True

    def _turns(self, depth: int, taken: int = 0) -> int:
        """Gives how many calls of that depth may have a worker now, if `taken` more than now had theirs."""
        return max(self._limit - len(self._busy) - taken, int(depth not in self._busy.values()), 0)

    def _wanted(self) -> int:
        """Gives how many workers are wanted at once, beside the busy ones."""
        wanted = 0
        for depth, queue in self._waiting.items():
            wanted += min(len(queue), self._turns(depth, wanted))
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
                if not self._starting() and depth not in self._busy.values():  # else they get one of those
                    self._fail(depth, f"A worker process can't be started: {error}")
            return False
        self._workers.add(worker)
        self.loop.call_later(_START_SECONDS, self._give_up_start, worker)
        return True

    def _give_up_start(self, worker: WorkerProcess) -> None:
        if not worker.is_ready:
            worker.kill()

    def _fail(self, depth: int, reason: str) -> None:
        """Fails all calls of a depth that wait."""
        for waiting in self._waiting.pop(depth):
            if not waiting.place.done():
                waiting.place.set_exception(WorkerError(reason))

    def _fail_first(self, reason: str) -> None:
        """Fails the call that waits for a worker with the greatest right."""
        for queue in self._waiting.values():
            while queue:
                waiting = queue.popleft()
                if not waiting.place.done():
                    waiting.place.set_exception(WorkerError(reason))
                    return

    def _exited(self, worker: WorkerProcess) -> None:
        self._ending.discard(worker)
        if not self._ending:
            self._all_ended.set()
        if worker not in self._workers:
            return
        self._remove(worker)
        if not worker.is_ready:
            self._fail_first(f"A worker process ended before it could run anything ({worker.exit}).")
        self._serve_waiting()

    def _dismiss(self, worker: WorkerProcess) -> None:
        """Lets an idle worker end by itself, but not for long."""
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

    def _keep_spare(self) -> None:
        is_taken = (worker.files if self._has_lone_packs else worker.owner for worker in self._idle)
        if self._starting():  # it may be meant for a call
            self._later(_SPARE_AFTER_SECONDS, self._keep_spare)
        elif all(is_taken) and len(self._workers) < self._limit:
            self._start()

    def _measure(self) -> None:
        """End calls that exceed a limit which the system has only for each process: memory, and how many there are."""
        running = {(worker, worker.number) for worker in self._busy}
        for worker, _ in running & self._were_running:  # a short call isn't worth it
            worker.measure()
        self._were_running = running
        if self._busy or self._waiting:
            self._later(_MEASURE_SECONDS, self._measure)

    def _retire(self) -> None:
        """Ends workers that have been idle for long; one stays."""
        if len(self._idle) < 2:
            return
        for worker in [*self._idle[:-1]]:
            if self.loop.time() - worker.idle_since >= _IDLE_SECONDS:
                self._dismiss(worker)
        self._later(_IDLE_SECONDS, self._retire)

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        """Has an action done once, after a while, however often it is asked for meanwhile."""
        if action in self._timers or self._closed:
            return

        def act() -> None:
            del self._timers[action]
            action()

        self._timers[action] = self.loop.call_later(seconds, act)


def default_limit() -> int:
    """How many workers there may be where nobody says."""
    return max(4, 2 * (os.cpu_count() or 1))
