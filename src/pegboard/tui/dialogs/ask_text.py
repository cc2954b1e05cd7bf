"""A text of several lines to be written or changed."""

from __future__ import annotations

from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from pegboard.results.clean import clean, clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form.editors import in_editor
from pegboard.tui.form.lines import Lines
from pegboard.tui.shell.footer import KeysLine
from pegboard.tui.widgets.dialog import Dialog


class AskText(Dialog[str | None]):
    """Closes with the text as it was left, or None.

    Args:
        title: What the text is for.
        text: What it begins with.
        note: What the user should know before.
    """

    PAGE = "Text"
    AUTO_FOCUS = "Lines"

    DEFAULT_CSS = """
    AskText {
        align: center middle;
        background: $background 60%;
        #box {
            width: 100; max-width: 94%; height: 24; max-height: 90%; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            Lines { height: 1fr; max-height: 100%; }
            #note { height: auto; max-height: 4; padding: 0 1; color: $text-muted; }
        }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("text.take", "ctrl+s", "take", "Take", "Take the text as it is.", footer=True),
        Command("text.editor", "f4", "editor", "Editor", "Edit the text in $EDITOR.", footer=True),
        Command("text.close", "escape", "close", "Close", "Leave the text as it was.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, title: str, text: str, note: str = "") -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._note = note
        self._lines = Lines(text)
        # what is taken for a change is measured by this: an editor of lines knows no other line ends than its own
        self._begin = self._lines.text

    def compose(self) -> ComposeResult:
        """The text over the note."""
        with Vertical(id="box") as box:
            box.border_title = Content(clean_line(self._title))
            yield self._lines
            if self._note:
                yield Static(Content(clean(self._note)), id="note")
            yield KeysLine()

    def on_mount(self) -> None:
        """Goes to the end of the text."""
        self._lines.move_cursor(self._lines.document.end)

    @property
    def _is_changed(self) -> bool:
        return self._lines.text != self._begin

    def action_take(self) -> None:
        """Closes with the text; one that nobody touched comes back as it was given."""
        self.dismiss(self._lines.text if self._is_changed else self._text)

    @work(exclusive=True, group="change")
    async def action_editor(self) -> None:
        """Edits the text in the user's editor."""
        before = self._lines.text
        after = await in_editor(self.app, before, ".md")
        if after != before:
            self._lines.text = after
            self._lines.move_cursor(self._lines.document.end)

    @work(exclusive=True, group="change")
    async def action_close(self) -> None:
        """Closes without a text; asks first if it was changed."""
        from pegboard.tui.dialogs.confirm import Confirm

        question = "What you changed in this text is lost."
        if not self._is_changed or await self.app.push_screen_wait(Confirm("Leave it?", question, "Leave")):
            self.dismiss(None)
