"""A dialog with the result of one call."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from pegboard.models import ToolCall, ToolResult
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.messages import KeepCall, TalkAbout
from pegboard.tui.result import ResultPane
from pegboard.tui.widgets.dialog import Dialog


class ResultScreen(Dialog[None]):
    """The result of a finished call in every suitable view.

    Args:
        call: The call.
        result: Its result.
        folder: Folder for copied text if no clipboard is available.
        title: Title of the dialog; plain text. By default, it names the tool.
    """

    PAGE = "Result"

    DEFAULT_CSS = """
    ResultScreen {
        & > #box { width: 96%; max-width: 96%; height: 94%; max-height: 94%; }
    }
    """
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("result.keep", "alt+k", "keep", "Keep as check", "Keep the call with its result as a check."),
        Command("result.close", "escape", "close", "Close", "Close this dialog.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, call: ToolCall, result: ToolResult, folder: Path, title: str = "") -> None:
        super().__init__(title or f"Result of {clean_line(call.name)}")
        self._call = call
        self._result = result
        self._pane = ResultPane(folder=folder)

    def compose_body(self) -> ComposeResult:
        """Compose the result pane."""
        yield self._pane

    def on_mount(self) -> None:
        """Show the result."""
        self._pane.show(self._call, self._result)
        self._pane.focus()

    def action_keep(self) -> None:
        """Keep the call as a check."""
        self.app.post_message(KeepCall(self._call.id))

    def refill(self, call: ToolCall, result: ToolResult) -> None:
        """Show another result."""
        self._pane.show(call, result)

    @on(TalkAbout)
    def _leave(self) -> None:
        """Close: the text is inserted into the prompt of the Chat page."""
        self.dismiss()
