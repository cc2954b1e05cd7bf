"""The runner of the tools that are functions of packs."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path

from pegboard.errors import WorkerError
from pegboard.executor.active_call import Running
from pegboard.executor.deadline import Clock
from pegboard.executor.environment import reduced
from pegboard.executor.pool import Pool, default_limit
from pegboard.models import CallEvent, Finished, PackHandler, Started, ToolCall, ToolResult, ToolSpec
from pegboard.ports import Calls, Granted, Grants
from pegboard.worker.wire import LONGEST_REST, line

_DEEPEST = 16
"""Calls that one may be made within: a tool that calls itself without end should learn of it."""

_PATIENCE_SECONDS = 5.0
"""How long another thread's event loop may take to close its pool: a little more than a pool takes."""

_BUILT_IN = f"{Path(__file__).parents[1] / 'packs'}{os.sep}"
_NOTHING = Granted({}, {})
_UNSAFE_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class Executor:
    """Runs tools in worker processes; a `pegboard.ports.ToolRunner`.

    Whatever a tool does costs its own call and nothing else. It may be made before there is an event loop, and used
    from several, each in its own thread; the first process starts with the first call, or with `prewarm`.

    Args:
        results: The folder where results over the limit are kept whole.
        workers: The most processes, and so calls, at a time, of each event loop; further calls wait in turn.
        memory_limit: Bytes of data that one process may have. What the system's own limit doesn't count, shared memory,
            is looked at once a second, on Linux only.
        log_limit: Bytes of output kept of one call; the rest is counted.
        result_limit: Bytes of JSON that a result may have before it is truncated.
        environment: Variables for packs that aren't built in, beside those in `pegboard.executor.environment`.
        grants: Who knows what each pack may know; nobody means that they know nothing.
    """

    def __init__(
        self,
        *,
        results: Path,
        workers: int | None = None,
        memory_limit: int = 2 * 2**30,
        log_limit: int = 10_000_000,
        result_limit: int = 1_000_000,
        environment: Mapping[str, str] | None = None,
        grants: Grants | None = None,
    ) -> None:
        self._results = str(results.absolute())
        self._workers = workers or default_limit()
        self._memory_limit = memory_limit
        self._log_limit = log_limit
        self._result_limit = result_limit
        self._environment = dict(environment or {})
        self._grants = grants
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}
        self._running: dict[str, Running] = {}
        self._numbers = count(1)
        self._closed = False

    async def run(
        self,
        spec: ToolSpec,
        call: ToolCall,
        *,
        timeout: float,  # noqa: ASYNC109 - it bounds the tool, not the caller's waiting
        calls: Calls | None = None,
    ) -> AsyncGenerator[CallEvent]:
        """Runs one call.

        Yields `Started`, then `Log` and `Progress` as they come, then `Finished`; never raises for the tool's sake.
        In between comes what happens to the calls that the tool makes of others, but for their own `Log` and
        `Progress`. Whoever stops iterating before the end ends the tool.

        Args:
            spec: The tool; its handler is a `PackHandler`.
            call: The call; its arguments are valid.
            timeout: Seconds that the tool may take once a worker has it, the loading of its pack included; those in
                which the user is asked about a call that it makes don't count.
            calls: Where the calls go that the tool makes of others; they end with it. Nobody makes them unless given.
        """
        outer = self._running.get(call.parent or "")
        depth = outer.depth + 1 if outer else 0
        if (refused := self._refused(spec, call, depth)) is not None:
            yield Finished(call=call, result=refused)
            return
        assert isinstance(spec.handler, PackHandler), "others are refused"
        running = self._running[call.id] = Running(call, depth, self._log_limit)
        try:
            granted = await self._granted(running, spec.handler)
            if (
                granted is not None
                and await self._take_worker(running, spec.handler, granted)
                and self._start(running, spec.handler, granted, timeout, calls)
            ):
                yield Started(call=call, worker=running.worker)
            is_over = False
            while not is_over:
                event = await running.next_event()
                is_over = isinstance(event, Finished) and event.owner == call.id
                if is_over:
                    await running.end_questions()
                yield event
        finally:
            del self._running[call.id]
            self._release(running)
            await running.end_questions()

    async def cancel(self, call_id: str) -> bool:
        """Ends a running or waiting call, which then finishes with the detail `cancelled`; False if there is none."""
        running = self._running.get(call_id)
        if running is None or running.result is not None:
            return False
        self._end(running, "The call was cancelled.", "cancelled")
        return True

    async def prewarm(self) -> None:
        """Starts a first process, so that the first call finds it ready."""
        if not self._closed:
            self._bound_pool().start_spare()

    async def close(self) -> None:
        """Ends every running call and every process; no call runs after that."""
        self._closed = True
        # those that wait first, so that the end of another gives them no worker
        for running in sorted([*self._running.values()], key=lambda running: running.process is not None):
            self._end(running, "Pegboard was closed during the call.", "cancelled")
        while self._pools:
            loop, pool = self._pools.popitem()
            if loop is asyncio.get_running_loop():
                await pool.close()
            elif loop.is_running():
                await _close_elsewhere(pool)
            else:
                pool.abandon()

    def _refused(self, spec: ToolSpec, call: ToolCall, depth: int) -> ToolResult | None:
        if not isinstance(spec.handler, PackHandler):
            return ToolResult.failed("execution_error", f"{spec.name} is not a function of a pack.")
        if self._closed:
            return ToolResult.failed("execution_error", "Pegboard is closing.", "cancelled")
        if call.id in self._running:
            return ToolResult.failed("execution_error", f"A call with the id {call.id} is running already.")
        if depth > _DEEPEST:
            message = f"{spec.name} was not called: {_DEEPEST} calls, each made within the other, are the most."
            return ToolResult.failed("execution_error", message, "too_deep")
        return None

    async def _granted(self, running: Running, handler: PackHandler) -> Granted | None:
        """Gives what the pack may know; None if the call has ended before that is known."""
        grants = self._grants
        if grants is None:
            return _NOTHING
        running.refuse = partial(grants.refuse, handler)
        granted = grants.known(handler)
        if granted is not None:
            return granted
        running.place = looking = asyncio.ensure_future(grants.look_up(handler))
        try:
            return await looking
        except asyncio.CancelledError:
            if running.result is None:  # it is our caller who was cancelled
                raise
            return None
        finally:
            running.place = None

    async def _take_worker(self, running: Running, handler: PackHandler, granted: Granted) -> bool:
        """Waits until the call has a worker; False if it has ended before."""
        running.pool = self._bound_pool()
        # what it knows, and what it changes in Python itself, reaches no other pack
        is_alone = bool(granted.config or granted.secrets) or not _is_built_in(handler.file)
        running.place = place = running.pool.take(handler.file, running.depth, is_alone=is_alone)
        try:
            running.process = await place
        except WorkerError as error:
            running.fail(str(error), "crashed")
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                running.process = place.result()
            if running.result is None:  # it is our caller who was cancelled, not the place in the queue
                raise
        running.place = None
        return running.result is None

    def _start(
        self, running: Running, handler: PackHandler, granted: Granted, timeout: float, calls: Calls | None
    ) -> bool:
        """Sends the call to its worker; False if it can't be written down."""
        process = running.process
        assert process is not None, "taken before"
        number = next(self._numbers)
        request: dict[str, object] = {
            "id": number,
            "pack": handler.pack,
            "file": handler.file,
            "function": handler.function,
            "args": running.call.args,
            "keep": f"{self._results}/{_file_name(running.call.id)}.json",
            "limit": self._result_limit,
            "caller": running.call.caller,
        }
        if granted.secrets:
            request["secrets"] = granted.secrets
        if self._environment and not _is_built_in(handler.file):
            request["environment"] = self._environment
        try:
            if granted.config:
                request["config"] = _as_json(granted.config)
            message = line(request)
        except (TypeError, ValueError, RecursionError) as error:
            running.end(ToolResult.failed("invalid_args", f"The arguments can't be written as JSON: {error}"))
            return False
        running.worker = f"pid {process.pid}"
        message_late = f"{running.call.name} took longer than {timeout:g} s and was ended."
        clock = Clock(timeout, partial(self._end, running, message_late, "timeout"))
        running.hear_questions(calls, self._grants, clock)
        process.run(number, message, running)
        return True

    def _end(self, running: Running, message: str, detail: str) -> None:
        """Ends a call and, if it has one, its worker; in the event loop of the call, soon if that is another."""
        if running.loop is not asyncio.get_running_loop():
            with suppress(RuntimeError):  # it is closed, and with it the call
                running.loop.call_soon_threadsafe(self._end, running, message, detail)
            return
        if running.result is not None:
            return
        self._drop_worker(running)
        running.fail(message, detail)

    def _release(self, running: Running) -> None:
        """Gives the worker of a call back, or ends it if it can't be used again."""
        if running.clock is not None:
            running.clock.stand()
        if running.process is None:
            return
        if running.result is None or running.spent:
            self._drop_worker(running)
        elif running.pool is not None:
            running.pool.give_back(running.process)

    def _drop_worker(self, running: Running) -> None:
        process, running.process = running.process, None
        if process is None:
            return
        process.leave()
        process.kill()
        if running.pool is not None:
            running.pool.discard(process)

    def _bound_pool(self) -> Pool:
        """Gives the pool of the running event loop; that of a closed loop can't be used any more."""
        present = asyncio.get_running_loop()
        pool = self._pools.get(present)
        if pool is not None:
            return pool
        for loop in [loop for loop in [*self._pools] if loop.is_closed()]:
            self._pools.pop(loop).abandon()
        pool = self._pools[present] = Pool(
            limit=self._workers,
            memory_limit=self._memory_limit,
            longest_answer=self._result_limit + LONGEST_REST,
            environment=reduced(os.environ),
        )
        return pool


def _is_built_in(file: str) -> bool:
    return file.startswith(_BUILT_IN)


async def _close_elsewhere(pool: Pool) -> None:
    """Closes the pool of an event loop that runs in another thread; if that is too busy, its processes are killed."""
    closing = pool.close()
    try:
        closed = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(closing, pool.loop))
    except RuntimeError:  # the loop was closed just now
        closing.close()
        pool.abandon()
        return
    await asyncio.wait({closed}, timeout=_PATIENCE_SECONDS)
    if not closed.done() or closed.cancelled():
        pool.kill()


def _as_json(value: object) -> object:
    """Gives a TOML value as JSON has it: dates and times become text."""
    match value:
        case Mapping():
            return {str(key): _as_json(item) for key, item in value.items()}
        case list() | tuple():
            return [_as_json(item) for item in value]
        case str() | int() | float():
            return value
        case _:
            return str(value)


def _file_name(call_id: str) -> str:
    """Gives a file name for any id; ours are left as they are."""
    if 0 < len(call_id) <= 100 and not _UNSAFE_IN_NAMES.search(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
