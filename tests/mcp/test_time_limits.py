"""Time limits of calls, which pause while the user answers a server."""

from __future__ import annotations

import asyncio
import math

import anyio

from pegboard.mcp.running_call import RunningCall
from pegboard.mcp.time_limits import TimeLimits
from pegboard.models import ToolCall


def _call() -> RunningCall:
    return RunningCall(ToolCall(name="peer.ok", args={}, source="form"), 1000)


async def test_overlapping_questions_pause_a_time_limit_until_the_last_one_is_answered() -> None:
    limits = TimeLimits()
    with limits.limit(5.0, _call()) as scope:
        with limits.paused(), limits.limit(3.0, _call()) as later:
            with limits.paused():
                assert (scope.deadline, later.deadline) == (math.inf, math.inf)
            assert (scope.deadline, later.deadline) == (math.inf, math.inf)
        assert 4.0 < scope.deadline - anyio.current_time() <= 5.0


async def test_a_question_that_outlasts_its_call_leaves_the_limits_of_others() -> None:
    limits = TimeLimits()
    asked, answered = asyncio.Event(), asyncio.Event()

    async def question() -> None:
        with limits.paused():
            asked.set()
            await answered.wait()

    with limits.limit(5.0, _call()):
        task = asyncio.create_task(question())
        await asked.wait()
    with limits.limit(3.0, _call()) as scope:
        answered.set()
        await task
        assert 2.0 < scope.deadline - anyio.current_time() <= 3.0
    assert not limits.calls
