"""The base class of every dialog."""

from __future__ import annotations

from typing import TypeVar

from textual.app import ScreenStackError
from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen

ResultT = TypeVar("ResultT")


class Dialog(ModalScreen[ResultT]):
    """A modal screen that closes once.

    Textual's `dismiss` closes the topmost screen, whichever that is: of two quick clicks, the second would close the
    screen below, and end the app with an error where that is a page.
    """

    def dismiss(self, result: ResultT | None = None) -> AwaitComplete:
        """Close the dialog if it is the topmost screen."""
        return super().dismiss(result) if is_topmost(self) else AwaitComplete()


def is_topmost(screen: Screen[ResultT]) -> bool:
    """Return whether a screen is the one that keys and clicks go to."""
    try:
        return screen.app.screen is screen
    except ScreenStackError:
        return False
