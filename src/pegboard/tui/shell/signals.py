"""An app that leaves the terminal as it was, however it ends."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import IO, Any, cast

from rich.console import Console, RenderableType
from textual.app import App
from textual.driver import Driver

from pegboard.errors import PegboardError

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HUNG_UP = 128 + signal.SIGHUP
_PATIENCE_SECONDS = 10.0
"""How long the end may take after a signal, before another one ends the program the hard way."""
_LOOK_SECONDS = 2.0
"""How often to look whether the terminal is still there, for those who ignore the signal."""


class TerminalError(PegboardError):
    """Textual could not go on with the terminal; the message is what it would have shown."""


class EndingApp(App[None]):
    """An app that closes properly at a signal, at the end of its terminal and at an unexpected error.

    Attributes:
        crash: The unexpected error that ended the app, if one did. It is not printed: whoever runs the app reports it.
    """

    crash: Exception | None = None

    def on_load(self) -> None:
        """Handle signals before the terminal is changed."""
        if self.is_headless:
            return
        loop = asyncio.get_running_loop()
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._end, 128 + number)

    def on_mount(self) -> None:
        """Look after the terminal."""
        if not self.is_headless:
            self.set_interval(_LOOK_SECONDS, self._look)

    def _end(self, code: int) -> None:
        """Close the app; signals that follow are ignored for a while, as they often come twice."""
        if self.return_code is None:
            asyncio.get_running_loop().call_later(_PATIENCE_SECONDS, _let_go)
            self.exit(return_code=code)

    def _look(self) -> None:
        if self._has_hung_up():
            self._end(_HUNG_UP)

    def _has_hung_up(self) -> bool:
        """Return whether the terminal was closed."""
        fileno = getattr(self._driver, "fileno", None)
        if not isinstance(fileno, int):
            return False
        import termios

        try:
            termios.tcgetattr(fileno)
        except termios.error:
            return True
        return False

    def _build_driver(self, headless: bool, inline: bool, mouse: bool, size: tuple[int, int] | None) -> Driver:
        """Build the driver; its writer survives a closed terminal, after which Textual would wait for it forever."""
        driver = super()._build_driver(headless, inline, mouse, size)
        file = getattr(driver, "_file", None)
        if file is not None:
            driver._file = cast("Any", _Lossy(file))  # type: ignore[attr-defined]  # noqa: SLF001 - nothing public
        return driver

    # Errors

    def _handle_exception(self, error: Exception) -> None:
        """End the app after an unexpected error, without Textual's traceback, which shows the values of variables."""
        if isinstance(error, TerminalError) and self._has_hung_up():
            self._end(_HUNG_UP)
            return
        self._return_code = 1
        self.crash = self.crash or error
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()

    def _fatal_error(self) -> None:
        """End the app; Textual's own traceback shows the values of variables."""
        self._handle_exception(TerminalError("fatal error"))

    def panic(self, *renderables: RenderableType) -> None:
        """End the app after an error of which only the text is known."""
        console = Console(width=120, color_system=None, highlight=False, markup=False)
        with console.capture() as captured:
            console.print(*renderables)
        self._handle_exception(TerminalError(captured.get()))


class _Lossy:
    """The file of a terminal, which takes everything without a failure once the terminal is closed.

    Args:
        file: The file.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write a text, if the terminal is there."""
        with suppress(OSError, ValueError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, if the terminal is there."""
        with suppress(OSError, ValueError):
            self._file.flush()

    def __getattr__(self, name: str) -> object:
        """Return everything else of the file."""
        return getattr(self._file, name)


def _let_go() -> None:
    loop = asyncio.get_running_loop()
    for number in _ENDING:
        loop.remove_signal_handler(number)
