"""Signals that end a command: ctrl+c, `kill`, and a closed terminal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from pegboard.models import CallEvent, Finished
    from pegboard.runtime import Runtime

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TIMEOUT_SECONDS = 10.0
"""Seconds that a command has to finish after a signal, before another signal ends the program."""


class Interruption:
    """The signal that interrupted a command, if any."""

    signal: int | None = None

    def __bool__(self) -> bool:
        """Return whether a signal arrived."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """Exit code of the signal: 130 for ctrl+c, 143 for `kill`, 129 for a closed terminal."""
        return 128 + (self.signal or 0)


@contextmanager
def interruptible(interrupt: Callable[[], None]) -> Iterator[Interruption]:
    """Call a function in the running event loop at the first signal that ends the command.

    A second ctrl+c ends the program. `kill` and a closed terminal often send their signals twice, so these end it only
    after a while.

    Args:
        interrupt: Cancels the running work, so that it is recorded.
    """
    loop = asyncio.get_running_loop()
    found = Interruption()
    handled = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]

    def let_go() -> None:
        for number in handled:
            loop.remove_signal_handler(number)

    def handle(number: int) -> None:
        if number == signal.SIGINT:
            loop.remove_signal_handler(number)
        if found.signal is None:
            found.signal = number
            loop.call_later(_TIMEOUT_SECONDS, let_go)
            interrupt()

    for number in handled:
        loop.add_signal_handler(number, handle, number)
    try:
        yield found
    finally:
        let_go()


@contextmanager
def ended_by_exceptions() -> Iterator[None]:
    """End the program by `SystemExit` if `kill` or a closed terminal ends it within the block, which then cleans up."""

    def end(number: int, _frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    handled = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


async def run_to_end(
    runtime: Runtime, call_id: str, events: AsyncGenerator[CallEvent], on_event: Callable[[CallEvent], object]
) -> tuple[Finished | None, int]:
    """Run a call; the first ctrl+c cancels it, a second one ends the program.

    Args:
        runtime: The runtime, which is closed then.
        call_id: Id of the call.
        events: Its events, which haven't begun.
        on_event: Called with each event.

    Returns:
        Its last event, or None if it was interrupted before a runner had it; and the exit code if it was interrupted,
        else 0.
    """
    from pegboard.models import Finished

    loop = asyncio.get_running_loop()
    stopping: list[asyncio.Task[None]] = []

    async def consume() -> Finished:
        event: CallEvent | None = None
        async with aclosing(events):
            async for event in events:
                on_event(event)
        assert isinstance(event, Finished), "a call always ends with Finished"
        return event

    async def stop() -> None:
        if not await runtime.cancel(call_id):
            consuming.cancel()

    with interruptible(lambda: stopping.append(loop.create_task(stop()))) as interruption:
        async with runtime:
            consuming = loop.create_task(consume())
            await asyncio.wait((consuming,))
    return None if consuming.cancelled() else consuming.result(), interruption.exit_code if interruption else 0
