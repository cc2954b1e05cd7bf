"""Runner of tools that are functions of packs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path

from pegboard.built_in import is_built_in
from pegboard.errors import WorkerError
from pegboard.executor.active_call import ActiveCall
from pegboard.executor.deadline import CallClock
from pegboard.executor.environment import worker_environment
from pegboard.executor.pool import Pool, default_limit
from pegboard.models import CallEvent, Finished, PackHandler, Started, ToolCall, ToolResult, ToolSpec
from pegboard.models.call import file_stem
from pegboard.ports import Calls, Granted, Grants
from pegboard.worker.wire import LONGEST_REST, line

_DEEPEST = 16
"""Maximum depth of nested calls; stops endless recursion."""

_CLOSE_SECONDS = 5.0
"""Time limit for another thread's event loop to close its pool; slightly more than a pool needs."""

_NOTHING = Granted({}, {})


class Executor:
    """Runner that executes each call in a worker process; implements `pegboard.ports.ToolRunner`.

    If a tool hangs, crashes or exhausts memory, only its call fails. Create the executor with or without an event
    loop, and use it from several event loops, each in its own thread. The first process starts with the first call, or
    with `prewarm`.

    Args:
        results: Folder for complete results that exceed the limit, and for images.
        workers: Maximum number of processes, and thereby of concurrent calls, per event loop. Further calls wait.
        memory_limit: Memory limit of one process, in bytes. Shared memory, which the system's limit ignores, is
            measured at least once a second, on Linux only.
        log_limit: Maximum output kept per call, in bytes; the rest is only counted.
        result_limit: Maximum size of a result as JSON, in bytes; larger results are truncated.
        save_images: Whether images in results are saved as files, and results contain the lines with their paths.
        environment: Additional environment variables for packs that are not built in.
        grants: Source of the secrets and configuration of packs; None grants them none.
    """

    def __init__(
        self,
        *,
        results: Path,
        workers: int | None = None,
        memory_limit: int = 2 * 2**30,
        log_limit: int = 10_000_000,
        result_limit: int = 1_000_000,
        save_images: bool = True,
        environment: Mapping[str, str] | None = None,
        grants: Grants | None = None,
    ) -> None:
        self._results = str(results.absolute())
        self._workers = workers or default_limit()
        self._memory_limit = memory_limit
        self._log_limit = log_limit
        self._result_limit = result_limit
        self._save_images = save_images
        self._environment = dict(environment or {})
        self._grants = grants
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}
        self._running: dict[str, ActiveCall] = {}
        self._numbers = count(1)
        self._closed = False

    async def run(
        self,
        spec: ToolSpec,
        call: ToolCall,
        *,
        timeout: float,  # noqa: ASYNC109 - it bounds the tool, not the caller's waiting
        calls: Calls | None = None,
        granted: Granted | None = None,
    ) -> AsyncGenerator[CallEvent]:
        """Run a call, and never raise because of the tool. Closing the generator early ends the tool.

        Args:
            spec: Tool with a `PackHandler`.
            call: Call with valid arguments.
            timeout: Time limit in seconds, from the start in a worker, including the import of the pack. Time during
                which nested calls await approval doesn't count.
            calls: Target of nested calls, which end with this one; None rejects them.
            granted: Configuration and secrets for this call; None means those that the user set for the pack.

        Yields:
            `Started`, then `Log` and `Progress` as they occur, and finally `Finished`; in between, the events of nested
            calls, except their `Log` and `Progress`.
        """
        outer = self._running.get(call.parent or "")
        depth = outer.depth + 1 if outer else 0
        if (rejection := self._rejection(spec, call, depth)) is not None:
            yield Finished(call=call, result=rejection)
            return
        assert isinstance(spec.handler, PackHandler), "others are rejected"
        running = self._running[call.id] = ActiveCall(call, depth, self._log_limit)
        try:
            granted = granted or await self._granted(running, spec.handler)
            if (
                granted is not None
                and await self._take_worker(running, spec.handler, granted)
                and await self._is_unchanged(running, spec, calls)
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
        """End a running or waiting call, with the detail `cancelled`; return False if it does not exist."""
        running = self._running.get(call_id)
        if running is None or running.result is not None:
            return False
        self._end(running, "The call was cancelled.", "cancelled")
        return True

    async def prewarm(self) -> None:
        """Start a process in advance, so that the first call need not wait for it."""
        if not self._closed:
            self._bound_pool().start_spare()

    async def close(self) -> None:
        """End all calls and processes, and reject later calls."""
        self._closed = True
        # waiting calls first, so that they don't get the workers of ended calls
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

    def _rejection(self, spec: ToolSpec, call: ToolCall, depth: int) -> ToolResult | None:
        if not isinstance(spec.handler, PackHandler):
            return ToolResult.failed("execution_error", f"{spec.name} is not a function of a pack.")
        if self._closed:
            return ToolResult.failed("execution_error", "Pegboard is closing.", "cancelled")
        if call.id in self._running:
            return ToolResult.failed("execution_error", f"A call with the id {call.id} is already running.")
        if depth > _DEEPEST:
            message = f"{spec.name} was not called because calls can be nested at most {_DEEPEST} levels deep."
            return ToolResult.failed("execution_error", message, "too_deep")
        return None

    async def _granted(self, running: ActiveCall, handler: PackHandler) -> Granted | None:
        """Return the secrets and configuration of the pack, or None if the call ended meanwhile."""
        grants = self._grants
        if grants is None:
            return _NOTHING
        running.refuse = partial(grants.refuse, handler)
        granted = grants.known(handler)
        if granted is not None:
            return granted
        running.awaited = lookup = asyncio.ensure_future(grants.look_up(handler))
        try:
            return await lookup
        except asyncio.CancelledError:
            if running.result is None:  # the caller was cancelled, not the call
                raise
            return None
        finally:
            running.awaited = None

    async def _take_worker(self, running: ActiveCall, handler: PackHandler, granted: Granted) -> bool:
        """Wait for a worker; return False if the call ended meanwhile."""
        running.pool = self._bound_pool()
        # isolates its secrets, and its changes to Python itself, from other packs
        is_alone = bool(granted.config or granted.secrets) or not is_built_in(handler.file)
        running.awaited = worker = running.pool.take(handler.file, running.depth, is_alone=is_alone)
        try:
            running.process = await worker
        except WorkerError as error:
            running.fail(str(error), "crashed")
        except asyncio.CancelledError:
            if worker.done() and not worker.cancelled() and worker.exception() is None:
                running.process = worker.result()
            if running.result is None:  # the caller was cancelled, not the call
                raise
        running.awaited = None
        return running.result is None

    async def _is_unchanged(self, running: ActiveCall, spec: ToolSpec, calls: Calls | None) -> bool:
        """Return whether the tool is still as it was when the call was approved; otherwise end the call."""
        if calls is not None and (gone := await calls.changed(spec)) is not None:
            running.end(gone)
        return running.result is None

    def _start(
        self, running: ActiveCall, handler: PackHandler, granted: Granted, timeout: float, calls: Calls | None
    ) -> bool:
        """Send the call to its worker; return False if the arguments have no JSON form."""
        process = running.process
        assert process is not None, "`_take_worker` sets it"
        number = next(self._numbers)
        request: dict[str, object] = {
            "id": number,
            "pack": handler.pack,
            "file": handler.file,
            "function": handler.function,
            "args": running.call.args,
            "keep": f"{self._results}/{file_stem(running.call.id)}.json",
            "limit": self._result_limit,
            "images": self._save_images,
            "caller": running.call.caller,
        }
        if granted.secrets:
            request["secrets"] = granted.secrets
        if self._environment and not is_built_in(handler.file):
            request["environment"] = self._environment
        try:
            if granted.config:
                request["config"] = _as_json(granted.config)
            message = line(request)
        except (TypeError, ValueError, RecursionError) as error:
            running.end(ToolResult.failed("invalid_args", f"The arguments can't be converted to JSON: {error}"))
            return False
        running.worker = f"pid {process.pid}"
        message_late = f"{running.call.name} was stopped because it timed out after {timeout:g} s."
        if running.call.timeout is None:  # otherwise the caller chose it, and the configuration doesn't apply
            message_late += (
                " If it needs more time, set `timeouts` under `[tools]` in the configuration, "
                "or pass `--timeout` on the command line."
            )
        clock = CallClock(timeout, partial(self._end, running, message_late, "timeout"))
        running.answer_questions(calls, self._grants, clock)
        process.run(number, message, running)
        return True

    def _end(self, running: ActiveCall, message: str, detail: str) -> None:
        """End a call and its worker, scheduled in the event loop of the call."""
        if running.loop is not asyncio.get_running_loop():
            with suppress(RuntimeError):  # the loop is closed, which ended the call
                running.loop.call_soon_threadsafe(self._end, running, message, detail)
            return
        if running.result is not None:
            return
        self._drop_worker(running)
        running.fail(message, detail)

    def _release(self, running: ActiveCall) -> None:
        """Return the worker of a call to the pool, or kill it if it must not be reused."""
        if running.clock is not None:
            running.clock.pause()
        if running.process is None:
            return
        if running.result is None or running.spent:
            self._drop_worker(running)
        elif running.pool is not None:
            running.pool.give_back(running.process)

    def _drop_worker(self, running: ActiveCall) -> None:
        process, running.process = running.process, None
        if process is None:
            return
        process.leave()
        process.kill()
        if running.pool is not None:
            running.pool.discard(process)

    def _bound_pool(self) -> Pool:
        """Return the pool of the running event loop, and abandon the pools of closed ones."""
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
            environment=worker_environment(os.environ),
        )
        return pool


async def _close_elsewhere(pool: Pool) -> None:
    """Close the pool of an event loop in another thread; if the loop is too busy, only kill its processes."""
    closing = pool.close()
    try:
        closed = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(closing, pool.loop))
    except RuntimeError:  # the loop was closed meanwhile
        closing.close()
        pool.abandon()
        return
    await asyncio.wait({closed}, timeout=_CLOSE_SECONDS)
    if not closed.done() or closed.cancelled():
        pool.kill()


def _as_json(value: object) -> object:
    """Return a TOML value as JSON; dates and times become text."""
    match value:
        case Mapping():
            return {str(key): _as_json(item) for key, item in value.items()}
        case list() | tuple():
            return [_as_json(item) for item in value]
        case str() | int() | float():
            return value
        case _:
            return str(value)
