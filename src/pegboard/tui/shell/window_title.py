"""The title of the terminal window, which shows whether Pegboard is busy or awaits approval."""

from __future__ import annotations

from typing import TypeVar

from textual.app import App

AppResultT = TypeVar("AppResultT")

# xterm, Operating System Commands and window manipulation: OSC 2 sets the title; 22 and 23 save and restore it.
_SET, _SAVE, _RESTORE = "\x1b]2;{}\x1b\\", "\x1b[22;2t", "\x1b[23;2t"


class WindowTitle:
    """The title of the terminal window while an app runs.

    Args:
        app: The running app.
    """

    def __init__(self, app: App[AppResultT]) -> None:
        self._app = app
        self._is_saved = False

    def set(self, title: str) -> None:
        """Set the title; before the first change, save the current one.

        Args:
            title: Text of Pegboard's own, never untrusted text.
        """
        if not self._is_saved:
            self._is_saved = True
            self._write(_SAVE)
        self._write(_SET.format(title))

    def restore(self) -> None:
        """Restore the title that the window had before the app."""
        if self._is_saved:
            self._write(_RESTORE)

    def _write(self, text: str) -> None:
        driver = self._app._driver  # noqa: SLF001 - Textual's own bell does this; nothing public writes to the terminal
        if driver is not None and not self._app.is_headless:
            driver.write(text)
            driver.flush()
