"""The whole result of one call, over everything else."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from pegboard.models import ToolCall, ToolResult
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.messages import TalkAbout
from pegboard.tui.result import ResultPane
from pegboard.tui.shell.footer import KeysLine
from pegboard.tui.widgets.dialog import Dialog


class ResultScreen(Dialog[None]):
    """Shows a call that is over in every view that fits it.

    Args:
        call: The call.
        result: Its result.
        folder: Where a file goes when nothing else takes a copy.
    """

    PAGE = "Result"
    DEFAULT_CSS = """
    ResultScreen {
        align: center middle;
        background: $background 60%;
        #box {
            width: 96%; height: 94%; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
        }
    }
    """
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("result.close", "escape", "close", "Close", "Go back to the conversation.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, call: ToolCall, result: ToolResult, folder: Path) -> None:
        super().__init__()
        self._call = call
        self._result = result
        self._pane = ResultPane(folder=folder)

    def compose(self) -> ComposeResult:
        """The pane in a box."""
        with Vertical(id="box") as box:
            box.border_title = Content(f"Result of {clean_line(self._call.name)}")
            yield self._pane
            yield KeysLine()

    def on_mount(self) -> None:
        """Shows the result."""
        self._pane.show(self._call, self._result)
        self._pane.focus()

    @on(TalkAbout)
    def _leave(self) -> None:
        """Closes it: the words go into the message behind it."""
        self.dismiss()

    def action_close(self) -> None:
        """Closes it."""
        self.dismiss()
