"""Pipelines of calls with other runners than the usual one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from datetime import datetime

    from pegboard.executor import Executor
    from pegboard.gateway import Gateway
    from pegboard.models import ToolCall, ToolResult
    from pegboard.ports import Grants, Recorder, ToolRunner
    from pegboard.runtime.parts import Parts

_MOST_HELD: Final = 500
_HELD_SECONDS: Final = 0.25


class Pipelines:
    """The pipeline of calls, with a choice of the runner of packs' tools.

    Args:
        parts: The parts of the runtime.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @property
    def grants(self) -> Grants:
        """Lookup of the configuration and secrets of packs."""
        return self._parts.grants

    def shared(self) -> Gateway:
        """Return the pipeline that every other call passes."""
        return self._parts.gateway

    def through(self, runner: ToolRunner, recorder: GroupedRecorder, *, is_remote: bool = False) -> Gateway:
        """Return a pipeline that runs the tools of packs with another runner.

        Args:
            runner: The runner.
            recorder: From `grouped_recorder`; its user ends with `pass_on`.
            is_remote: Whether it runs tools on other machines, so that requirements of this one don't count.
        """
        return self._parts.gateway_through(runner, is_remote=is_remote, recorder=recorder)

    @property
    def recorder(self) -> Recorder:
        """The history."""
        return self._parts.history

    def grouped_recorder(self) -> GroupedRecorder:
        """Return the history as a recorder for many short calls."""
        return GroupedRecorder(self._parts.history)

    def executor(self, workers: int) -> Executor:
        """Return a new worker pool with a number of processes; its user closes it."""
        return self._parts.new_executor(workers)


class GroupedRecorder:
    """Recorder that passes records on in groups, because each write of the history interrupts the event loop.

    A killed process loses the records of at most a quarter of a second. A `pegboard.ports.Recorder`, used in one event
    loop.

    Args:
        recorder: Stores the records.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._held: list[tuple[ToolCall, ToolResult, datetime]] = []
        self._started: dict[str, tuple[ToolCall, datetime, bool]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self, call: ToolCall, at: datetime, *, waits: bool = False) -> None:
        """Hold the start of a call; it is passed on only if the call hasn't finished when the group is."""
        self._started[call.id] = (call, at, waits)
        self._schedule()

    def record(self, call: ToolCall, result: ToolResult, at: datetime) -> None:
        """Hold a record for a moment."""
        self._started.pop(call.id, None)
        self._held.append((call, result, at))
        if len(self._held) >= _MOST_HELD:
            self.pass_on()
        else:
            self._schedule()

    def pass_on(self) -> None:
        """Pass on the held records, and the starts of calls that still run."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        held, self._held = self._held, []
        for call, result, at in held:
            self._recorder.record(call, result, at)
        started, self._started = self._started, {}
        for call, at, waits in started.values():
            self._recorder.start(call, at, waits=waits)

    def _schedule(self) -> None:
        if self._timer is None:
            import asyncio

            self._timer = asyncio.get_running_loop().call_later(_HELD_SECONDS, self.pass_on)

    def flush(self) -> None:
        """Write the records that were passed on."""
        self._recorder.flush()

    def keep_for_reuse(self, key: str, call_id: str) -> None:
        """Store under a key that a result can be reused."""
        self._recorder.keep_for_reuse(key, call_id)

    def kept_for_reuse(self, key: str) -> tuple[float, ToolResult | None]:
        """Return the time and the result of the last `keep_for_reuse`."""
        return self._recorder.kept_for_reuse(key)
