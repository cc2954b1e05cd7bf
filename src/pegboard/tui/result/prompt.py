"""Input line of the result pane: for a search, a file name, a jq filter or a filter for rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Label, Static
from textual.widgets.input import Selection

from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.control_pictures import ControlPictures
from pegboard.tui.widgets.text_input import TextInput

PromptKind = Literal["search", "save", "jq", "rows"]

_SELECTED = {"search", "rows"}
"""Kinds whose initial text is selected, because the next one is usually another."""


class ResultPrompt(Vertical):
    """Input line at the bottom of the pane, hidden until `ask` shows it, with a line for errors and completions."""

    PAGE = "Result prompt"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("result.prompt.close", "escape", "close", "Close", "Close the input line without an answer."),
        Command(
            "result.prompt.complete",
            "tab",
            "complete",
            "Complete",
            "Complete the path in the jq filter; again: the next completion.",
            meaning="Next",
        ),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    ResultPrompt {
        height: auto;
        width: 1fr;
        display: none;
        background: $panel;
        & > Horizontal { height: 1; }
        & Label { width: auto; padding: 0 1; text-style: bold; }
        & Input { width: 1fr; }
        & > .hint {
            height: 1;
            padding: 0 1;
            color: $text-muted;
            text-wrap: nowrap;
            text-overflow: ellipsis;
            display: none;
            &.-error { color: $text-error; }
        }
    }
    """

    class Typed(Message):
        """The text was edited."""

        def __init__(self, kind: PromptKind, text: str) -> None:
            super().__init__()
            self.kind = kind
            self.text = text

    class Answered(Typed):
        """The text was submitted."""

    class Closed(Message):
        """The prompt was cancelled."""

        def __init__(self, kind: PromptKind) -> None:
            super().__init__()
            self.kind = kind

    kind: PromptKind = "search"

    def __init__(self) -> None:
        super().__init__()
        self._complete: Callable[[str], Sequence[str]] | None = None
        self._completions: list[str] = []
        self._begun = ""
        """The text as long as it is still a beginning of a jq filter that ends with a dot."""

    def compose(self) -> ComposeResult:
        """Yield the label, the input and the hint."""
        with Horizontal():
            yield Label("", markup=False)
            yield TextInput(compact=True, select_on_focus=False, highlighter=ControlPictures())
        yield Static("", classes="hint", markup=False)

    @property
    def text(self) -> str:
        """The text of the input."""
        return self.query_one(Input).value

    def ask(
        self,
        kind: PromptKind,
        question: str,
        text: str = "",
        *,
        complete: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        """Show the line.

        Args:
            kind: Kind of the answer.
            question: Label of the line.
            text: Initial text.
            complete: Returns the texts that complete a text.
        """
        self.kind = kind
        self._complete = complete
        self._completions = []
        self._begun = text if kind == "jq" and text in {".", "fromjson | ."} else ""
        self.query_one(Label).update(Content(question))
        self.hint("")
        line = self.query_one(Input)
        with self.prevent(Input.Changed):
            line.value = text
        line.selection = Selection(0 if kind in _SELECTED else len(text), len(text))
        # Toasts are at the bottom of the screen too and would cover the line.
        self.app.clear_notifications()
        self.display = True
        line.focus()

    def hint(self, text: str, *, is_error: bool = False) -> None:
        """Show a line under the input; none if the text is empty."""
        hint = self.query_one(".hint", Static)
        hint.update(Content(clean_line(text)))
        hint.set_class(is_error, "-error")
        hint.display = bool(text)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Post each edit."""
        event.stop()
        if self._begun and event.value.startswith(f"{self._begun}."):
            self._drop_letter(len(self._begun))  # the user typed or pasted the dot that is already there
        self._begun = ""
        if event.value not in self._completions:
            self._completions = []
        self.post_message(self.Typed(self.kind, event.value))

    def _drop_letter(self, index: int) -> None:
        line = self.query_one(Input)
        at = line.cursor_position
        line.value = line.value[:index] + line.value[index + 1 :]
        line.cursor_position = at - 1

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Post the answer."""
        event.stop()
        self.post_message(self.Answered(self.kind, event.value))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the completion only where there is one; elsewhere, `tab` leaves the line."""
        del parameters
        return action != "complete" or (self._complete is not None and self.query_one(Input).has_focus)

    def action_complete(self) -> None:
        """Replace the text by its first completion, or by the next one."""
        line = self.query_one(Input)
        if line.value in self._completions:
            at = self._completions.index(line.value) + 1
        else:
            self._completions, at = list(self._complete(line.value) if self._complete else ()), 0
        if self._completions:
            line.value = self._completions[at % len(self._completions)]
            line.cursor_position = len(line.value)

    def action_close(self) -> None:
        """Hide the line."""
        self.display = False
        self.post_message(self.Closed(self.kind))
