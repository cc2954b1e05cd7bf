"""A yes-or-no question before an action that can't be undone."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Button

from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.cut_text import CutText
from pegboard.tui.widgets.question import QuestionScreen


class Confirm(QuestionScreen[bool]):
    """A yes-or-no question, with the focus on no. No letter means yes: the dialog may open while the user types.

    Args:
        title: Title of the dialog; plain text.
        question: Consequences of the action; plain text.
        yes: Label of the button that confirms.
    """

    PAGE = "Question"
    AUTO_FOCUS = "#no"
    ANSWERS = ("confirm.yes", "confirm.no")
    HAS_FOOTER = False

    DEFAULT_CSS = """
    Confirm {
        & > #box {
            width: 60; max-width: 90%; height: auto; padding: 1 2;
            border: round $error; border-title-color: $text-error;
        }
        #question { height: auto; max-height: 1fr; }
        #foot { margin: 1 0 0 0; }
        Button { margin-left: 2; min-width: 12; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("confirm.yes", "ctrl+y", "answer(True)", "Yes", "Confirm the action."),
        Command("confirm.no", "n,escape", "answer(False)", "No", "Close without doing anything."),
        Command("confirm.other", "left,right", "app.focus_next", "Other button", "Focus the other button."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, title: str, question: str, yes: str) -> None:
        super().__init__(title, "{confirm.yes} confirms · {confirm.no} closes")
        self._question = question
        self._yes = yes

    def compose_body(self) -> ComposeResult:
        """Compose the question and the buttons."""
        question = CutText(id="question")
        question.text = Content(self._question)
        yield question
        with Horizontal(id="foot"):
            yield Button(Content("No"), id="no", compact=True)
            yield Button(Content(self._yes), id="yes", variant="error", compact=True)

    def answer_by_button(self, button: str) -> None:
        """Close with the answer of a button."""
        self.dismiss(button == "yes")

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        self.dismiss(yes)
