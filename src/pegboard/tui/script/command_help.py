"""Dialog with the help of a script command."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from pegboard.results.clean import clean, clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.script.api import OfferedCommand
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.keys_line import KeysLine


class CommandHelp(Dialog[bool]):
    """Dialog that shows the output of `help COMMAND` and returns whether to insert the command.

    Args:
        command: The command.
    """

    PAGE = "Command"
    AUTO_FOCUS = "#help"

    DEFAULT_CSS = """
    CommandHelp {
        align: center middle;
        background: $background 60%;
        #box {
            width: 92; max-width: 94%; height: auto; max-height: 90%; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
        }
        #help { height: auto; max-height: 100%; padding: 0 1; scrollbar-size-vertical: 1; }
        #help Static { height: auto; }
        KeysLine { dock: none; margin-top: 1; }
    }
    """
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("command_help.put", "enter", "put", "Insert", "Insert the command into the script.", footer=True),
        Command("command_help.close", "escape,f2", "close", "Close", "Close and return to the script.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, command: OfferedCommand) -> None:
        super().__init__()
        self._command = command

    def compose(self) -> ComposeResult:
        """Yield the help text."""
        with Vertical(id="box") as box:
            box.border_title = Content(clean_line(self._command.names[0]))
            with VerticalScroll(id="help"):
                yield Static(Content(clean(self._command.help())))
            yield KeysLine()

    def action_put(self) -> None:
        """Close and insert the command."""
        self.dismiss(True)

    def action_close(self) -> None:
        """Close without inserting."""
        self.dismiss(False)
