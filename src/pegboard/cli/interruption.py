"""Signals that end a command: ctrl+c, `kill`, and a closed terminal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE_SECONDS = 10.0
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
    handled = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]

    def let_go() -> None:
        for number in handled:
            loop.remove_signal_handler(number)

    def handle(number: int) -> None:
        if number == signal.SIGINT:
            loop.remove_signal_handler(number)
        if found.signal is None:
            found.signal = number
            loop.call_later(_PATIENCE_SECONDS, let_go)
            interrupt()

    for number in handled:
        loop.add_signal_handler(number, handle, number)
    try:
        yield found
    finally:
        let_go()


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
