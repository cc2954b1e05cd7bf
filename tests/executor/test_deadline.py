"""Time limits that can be paused."""

from __future__ import annotations

from pegboard.executor.deadline import CallClock, PendingApprovals
from pegboard.models import ApprovalRequested, Finished, Started, ToolCall, ToolResult


async def test_a_paused_time_limit_keeps_the_remaining_time() -> None:
    clock = CallClock(60, lambda: None)
    clock.pause()
    left = clock.left
    assert 0 < left < 60
    assert clock.left == left
    clock.resume()
    assert 0 < clock.left <= left
    clock.pause()


def test_calls_await_approval_until_each_was_answered() -> None:
    one, two, nested = (ToolCall(name="a.x", args={}, source="ask") for _ in range(3))
    pending = PendingApprovals()
    states = []
    for event, within in (
        (ApprovalRequested(call=one), one),
        (ApprovalRequested(call=two), two),
        (Started(call=one), one),
        (Finished(call=one, result=ToolResult(ok=True)), one),
        (Finished(call=two, result=ToolResult.failed("execution_error", "No.", "denied")), two),
        (ApprovalRequested(call=nested), one),
        (ApprovalRequested(call=nested), two),
        (Finished(call=one, result=ToolResult(ok=True)), one),
        (Started(call=nested), two),
    ):
        pending.update(event, within.id)
        states.append(bool(pending))
    assert states == [True, True, True, True, False, True, True, True, False]
