"""Signals that end a command: ctrl+c, `kill`, and a terminal that is closed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE_SECONDS = 10.0
"""How long the end may take after a signal, before another one ends the program the hard way."""


class Interruption:
    """The signal that interrupted a command, if one did."""

    signal: int | None = None

    def __bool__(self) -> bool:
        """Return whether there was one."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """The exit code that says so: 130 for ctrl+c, 143 for `kill`, 129 for a closed terminal."""
        return 128 + (self.signal or 0)


@contextmanager
def interruptible(interrupt: Callable[[], None]) -> Iterator[Interruption]:
    """Call a function at the first signal that is to end the command, in the running event loop.

    A second ctrl+c ends the program. `kill` and a closed terminal often send their signals twice, so these do so only
    after a while.

    Args:
        interrupt: Ends what runs, so that it is recorded.
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
