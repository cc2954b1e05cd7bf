"""A question before something that can't be undone."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Static

from pegboard.tui.commands import Command, bindings, key_of
from pegboard.tui.widgets.question import QuestionScreen


class Confirm(QuestionScreen[bool]):
    """Ask yes or no, with the focus on no. No letter says yes: the dialog may open while somebody types.

    Args:
        title: What would be done.
        question: What the user should know before saying yes; plain text.
        yes: What the button that does it says.
    """

    PAGE = "Question"
    AUTO_FOCUS = "#no"
    ANSWERS = ("confirm.yes", "confirm.no")

    DEFAULT_CSS = """
    Confirm {
        align: center middle;
        background: $background 60%;
        #box {
            width: 60; max-width: 90%; height: auto; max-height: 90%;
            padding: 1 2; background: $surface;
            border: round $error; border-title-color: $text-error; border-title-style: bold;
            border-subtitle-color: $text-muted;
        }
        #question { height: auto; max-height: 12; }
        #answers { height: auto; align-horizontal: right; margin-top: 1; }
        Button { margin-left: 2; min-width: 12; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("confirm.yes", "ctrl+y", "answer(True)", "Yes", "Do it."),
        Command("confirm.no", "n,escape", "answer(False)", "No", "Leave everything as it is."),
        Command("confirm.other", "left,right", "app.focus_next", "Other answer", "Go to the other button."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, title: str, question: str, yes: str) -> None:
        super().__init__()
        self._title = title
        self._question = question
        self._yes = yes

    def compose(self) -> ComposeResult:
        """The question over its two answers."""
        with Vertical(id="box") as box:
            box.border_title = Content(self._title)
            yes = key_of(self, "confirm.yes")
            box.border_subtitle = Content(f"{yes} confirms · esc closes" if yes else "esc closes")
            yield Static(Content(self._question), id="question")
            with Horizontal(id="answers"):
                yield Button(Content("No"), id="no", compact=True)
                yield Button(Content(self._yes), id="yes", variant="error", compact=True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if self.is_deliberate:
            self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        self.dismiss(yes)
