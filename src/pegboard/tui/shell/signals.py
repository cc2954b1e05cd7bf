"""An app that restores the terminal, however it ends."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import IO, Any, cast

from rich.console import Console, RenderableType
from textual.app import App, ScreenError
from textual.css.query import QueryError
from textual.dom import DOMError
from textual.driver import Driver
from textual.widget import MountError
from textual.worker import WorkerFailed

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HUNG_UP = 128 + signal.SIGHUP
_CLOSE_SECONDS = 10.0
"""Time that closing may take after a signal; after it, another signal ends the process immediately."""
_CHECK_SECONDS = 2.0
"""Interval at which the terminal is checked, because a process may ignore SIGHUP."""
_WITHOUT_WIDGET = (DOMError, MountError, QueryError, ScreenError)
"""What code may raise that shows something while the app closes, since its widgets are being removed."""


class TerminalError(Exception):
    """A fatal error of Textual's; the message is the text that Textual would have printed."""


class EndingApp(App[None]):
    """An app that closes properly at a signal, at the end of its terminal and at an unexpected error.

    Attributes:
        crash: The unexpected error that ended the app, if one did. It is not printed; the caller reports it.
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
        """Check the terminal regularly."""
        if not self.is_headless:
            self.set_interval(_CHECK_SECONDS, self._check_terminal)

    def _end(self, code: int) -> None:
        """Close the app; signals that follow are ignored for a while, as they often come twice."""
        if self.return_code is None:
            asyncio.get_running_loop().call_later(_CLOSE_SECONDS, _restore_handlers)
            self.exit(return_code=code)

    def _check_terminal(self) -> None:
        if self._has_hung_up():
            self._end(_HUNG_UP)

    def _has_hung_up(self) -> bool:
        """Return whether the terminal was closed; False in a browser, which has none."""
        fileno = getattr(self._driver, "fileno", None)
        if not isinstance(fileno, int) or self.is_web:
            return False
        import termios

        try:
            termios.tcgetattr(fileno)
        except termios.error:
            return True
        return False

    def _build_driver(self, headless: bool, inline: bool, mouse: bool, size: tuple[int, int] | None) -> Driver:
        """Build a driver that ignores write errors: Textual would wait forever for the writer of a closed terminal."""
        driver = super()._build_driver(headless, inline, mouse, size)
        file = getattr(driver, "_file", None)
        if file is not None:
            driver._file = cast("Any", _LossyFile(file))  # type: ignore[attr-defined]  # noqa: SLF001 - nothing public
        if hasattr(
            driver, "_sigcont_application"
        ):  # Textual's handler isn't on the event loop, so it may run within itself
            asyncio.get_running_loop().add_signal_handler(signal.SIGCONT, self._continue, driver)
        return driver

    def _continue(self, driver: Driver) -> None:
        """Take the terminal again, unless an editor has it or it was closed.

        SIGCONT also comes to an app that wasn't stopped, such as at the end of its shell. Textual would then start a
        second thread that reads the terminal, and forget the terminal's modes.
        """
        if self._exit or self._has_hung_up() or not driver._auto_restart:  # noqa: SLF001 - nothing public
            return
        if not getattr(driver, "_must_signal_resume", False):
            driver.suspend_application_mode()
        driver.resume_application_mode()
        self.refresh(layout=True)  # the alternate screen is empty

    # Errors

    def _handle_exception(self, error: Exception) -> None:
        """End the app after an unexpected error, without Textual's traceback, which shows the values of variables."""
        if isinstance(error, TerminalError) and self._has_hung_up():
            self._end(_HUNG_UP)
            return
        cause = error.error if isinstance(error, WorkerFailed) and isinstance(error.error, Exception) else error
        if (self._exit or not self.is_running) and isinstance(cause, _WITHOUT_WIDGET):
            return
        if self._loop is None and isinstance(cause, RuntimeError):
            return  # a worker that outlived the app used it
        self._return_code = 1
        self.crash = self.crash or cause  # `WorkerFailed` has no traceback of it
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


class _LossyFile:
    """A terminal's file that ignores errors after the terminal is closed."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write a text, or ignore it if the terminal is closed."""
        with suppress(OSError, ValueError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, unless the terminal is closed."""
        with suppress(OSError, ValueError):
            self._file.flush()

    def __getattr__(self, name: str) -> object:
        """Return any other attribute of the file."""
        return getattr(self._file, name)


def _restore_handlers() -> None:
    loop = asyncio.get_running_loop()
    for number in _ENDING:
        loop.remove_signal_handler(number)
