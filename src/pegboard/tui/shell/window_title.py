"""The title of the terminal's window, which says from afar whether the user is waited for."""

from __future__ import annotations

from typing import TypeVar

from textual.app import App

Answer = TypeVar("Answer")
"""What an app gives back at its end."""

# xterm, Operating System Commands and window manipulation: OSC 2 sets the title; 22 and 23 keep it and bring it back.
_SET, _KEEP, _BRING_BACK = "\x1b]2;{}\x1b\\", "\x1b[22;2t", "\x1b[23;2t"


def keep_title(app: App[Answer]) -> None:
    """Lets the terminal remember the title that it has."""
    _write(app, _KEEP)


def set_title(app: App[Answer], title: str) -> None:
    """Gives the window a title.

    Args:
        app: The running app.
        title: Our own words: what is untrusted has no place in it.
    """
    _write(app, _SET.format(title))


def bring_back_title(app: App[Answer]) -> None:
    """Gives the window the title that it had."""
    _write(app, _BRING_BACK)


def _write(app: App[Answer], text: str) -> None:
    driver = app._driver  # noqa: SLF001 - Textual's own bell goes this way; it offers no other
    if driver is not None and not app.is_headless:
        driver.write(text)
        driver.flush()
