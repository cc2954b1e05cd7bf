"""A dialog that edits a text of several lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from pegboard.results.clean import clean, clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form.editors import in_editor
from pegboard.tui.form.lines import Lines
from pegboard.tui.widgets.dialog import Dialog


class AskText(Dialog[str | None]):
    """A dialog that returns the edited text, or None.

    Args:
        title: Title of the dialog; plain text.
        text: Initial text.
        note: Note below the editor.
        check: Returns why a text can't be accepted; empty if it can.
    """

    PAGE = "Text"
    AUTO_FOCUS = "Lines"

    DEFAULT_CSS = """
    AskText {
        & > #box {
            width: 100; height: 24;
            Lines { height: 1fr; max-height: 100%; }
            #note { height: auto; max-height: 4; padding: 0 1; color: $text-muted; }
        }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("text.take", "ctrl+s", "take", "Accept", "Accept the text.", footer=True),
        Command("text.editor", "f4", "editor", "Editor", "Edit the text in $EDITOR.", footer=True),
        Command("text.close", "escape", "close", "Close", "Discard the changes.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, title: str, text: str, note: str = "", check: Callable[[str], str] | None = None) -> None:
        super().__init__(clean_line(title))
        self._check = check
        self._text = text
        self._note = note
        self._lines = Lines(text)
        self._is_over = False

    def compose_body(self) -> ComposeResult:
        """Compose the editor and the note."""
        yield self._lines
        if self._note or self._check is not None:
            yield Static(Content(clean(self._note)), id="note")

    def on_mount(self) -> None:
        """Move the cursor to the end of the text."""
        self._lines.move_cursor(self._lines.document.end)

    @property
    def _is_changed(self) -> bool:
        return self._lines.text != self._text

    def end(self, reason: str) -> None:
        """Accept the text no longer; it stays so that it can be copied.

        Args:
            reason: Why, and what the user can do; replaces the note.
        """
        self._is_over = True
        self._show_problem(reason)
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable accepting a text that is no longer needed."""
        return not (self._is_over and action == "take") and super().check_action(action, parameters)

    def action_take(self) -> None:
        """Close with the text if it is valid."""
        problem = self._check(self._lines.text) if self._check is not None else ""
        if problem:
            self._show_problem(problem)
        else:
            self.dismiss(self._lines.text)

    def _show_problem(self, problem: str) -> None:
        self.query_one("#note", Static).update(Content.styled(clean(problem), "$text-error"))

    @work(exclusive=True, group="change")
    async def action_editor(self) -> None:
        """Edit the text in the user's editor."""
        before = self._lines.text
        after = await in_editor(self.app, before, ".md")
        if after != before:
            self._lines.text = after
            self._lines.move_cursor(self._lines.document.end)

    def action_close(self) -> None:
        """Close without a text; ask first if it was changed."""
        self._discard()

    @work(exclusive=True, group="change")
    async def _discard(self) -> None:
        from pegboard.tui.dialogs.confirm import Confirm

        question = "The changes to this text will be lost."
        if not self._is_changed or await self.app.push_screen_wait(
            Confirm("Discard the changes?", question, "Discard")
        ):
            self.dismiss(None)
