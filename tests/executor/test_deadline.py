"""Time limits that can be paused."""

from __future__ import annotations

from pegboard.executor.deadline import CallClock


async def test_a_paused_time_limit_keeps_the_remaining_time() -> None:
    clock = CallClock(60, lambda: None)
    clock.pause()
    left = clock.left
    assert 0 < left < 60
    assert clock.left == left
    clock.resume()
    assert 0 < clock.left <= left
    clock.pause()
