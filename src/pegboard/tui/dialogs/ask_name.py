"""A dialog that asks for a name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar, TypeVar
from unicodedata import normalize

from textual import on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, Static

from pegboard.config.paths import expanded
from pegboard.errors import PegboardError, explained
from pegboard.results.clean import clean
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.control_pictures import ControlPictures
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.text_input import TextInput

_T = TypeVar("_T")


class _UnwrittenError(PegboardError):
    """A file can't be written; the message is a sentence with the reason."""


class AskName(Dialog[str | None]):
    """A dialog that returns a name without surrounding white space and in Unicode's form NFC, or None.

    Args:
        title: Title of the dialog; plain text.
        name: Initial value.
        note: Warning below the input.
        about: Explanation below the input.
    """

    PAGE = "Name"
    AUTO_FOCUS = "Input"
    HAS_FOOTER = False

    DEFAULT_CSS = """
    AskName {
        & > #box { width: 60; height: auto; padding: 1 2; }
        Input, Input:focus { border: none; border-left: outer $border; height: 1; padding: 0 1; background: $panel; }
        #note { height: auto; margin-top: 1; color: $text-warning; }
        #about { height: auto; margin-top: 1; color: $text-muted; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("name.close", "escape", "close", "Close", "Close without a name."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, title: str, name: str = "", note: str = "", about: str = "") -> None:
        super().__init__(title, "enter accepts · {name.close} closes")
        self._initial = name
        self._note = note
        self._about = about

    def compose_body(self) -> ComposeResult:
        """Compose the input and the note."""
        yield TextInput(self._initial, highlighter=ControlPictures(), select_on_focus=False)
        if self._note:
            yield Static(Content(clean(self._note)), id="note")
        if self._about:
            yield Static(Content(clean(self._about)), id="about")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        # Stored names have this form, with which callers compare it.
        if name := normalize("NFC", event.value.strip()):
            self.dismiss(name)


async def ask_name(
    app: App[_T], title: str, name: str, use: Callable[[str], Awaitable[bool]], note: str = "", about: str = ""
) -> str | None:
    """Ask for a name until one can be used; the dialog shows why the last one can't.

    Args:
        app: The app.
        title: Title of the dialog; plain text.
        name: Initial value.
        use: Uses a name, or returns False if the user decided otherwise.
        note: Warning below the input.
        about: Explanation below the input.

    Returns:
        The name that was used, or None.
    """
    notes = [note]
    while True:
        answer = await app.push_screen_wait(AskName(title, name, "\n".join(filter(None, notes)), about))
        if answer is None:
            return None
        try:
            return answer if await use(answer) else None
        except PegboardError as error:
            name, notes = answer, [explained(error, "Nothing was changed"), note]


def in_thread(change: Callable[[str], object]) -> Callable[[str], Awaitable[bool]]:
    """Return a function that uses a name in a thread."""

    async def use(name: str) -> bool:
        await asyncio.to_thread(change, name)
        return True

    return use


async def ask_file(app: App[_T], title: str, name: str, write: Callable[[Path], object]) -> Path | None:
    """Ask for the name of a new file until it can be written; the dialog shows why the last one can't.

    Args:
        app: The app.
        title: Title of the dialog; plain text.
        name: Initial value.
        write: Writes the file; called in a thread.

    Returns:
        The file that was written, or None.
    """

    def use(answer: str) -> None:
        try:
            write(expanded(answer))
        except FileExistsError as error:
            raise _UnwrittenError("This file exists. Choose another name.") from error
        except (OSError, ValueError) as error:  # ValueError: a name with a null byte, or damaged data
            reason = getattr(error, "strerror", None) or error
            raise _UnwrittenError(f"The file was not written: {reason}.") from error

    answer = await ask_name(app, title, name, in_thread(use))
    return expanded(answer) if answer is not None else None
