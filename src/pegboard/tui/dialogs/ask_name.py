"""A question for a name."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from pegboard.results.clean import clean
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.dialog import Dialog


class AskName(Dialog[str | None]):
    """Closes with the name that was typed, or None.

    Args:
        title: What the name is for.
        name: What stands in the line at first.
        note: What the user should know before.
    """

    PAGE = "Name"
    AUTO_FOCUS = "Input"

    DEFAULT_CSS = """
    AskName {
        align: center middle;
        background: $background 60%;
        #box {
            width: 60; max-width: 94%; height: auto; padding: 1 2; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            border-subtitle-color: $text-muted;
        }
        Input, Input:focus { border: none; border-left: outer $border; height: 1; padding: 0 1; background: $panel; }
        #note { height: auto; margin-top: 1; color: $text-warning; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("name.close", "escape", "close", "Close", "Leave everything as it is."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, title: str, name: str = "", note: str = "") -> None:
        super().__init__()
        self._title = title
        self._begin = name
        self._note = note

    def compose(self) -> ComposeResult:
        """A line to type in, and the note."""
        with Vertical(id="box") as box:
            box.border_title = Content(self._title)
            box.border_subtitle = "enter takes it · esc closes"
            yield Input(self._begin, select_on_focus=False)
            if self._note:
                yield Static(Content(clean(self._note)), id="note")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self.dismiss(event.value.strip())

    def action_close(self) -> None:
        """Closes without a name."""
        self.dismiss(None)
