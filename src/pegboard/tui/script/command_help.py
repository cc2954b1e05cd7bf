"""Dialog with the help of a script command."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from pegboard.results.clean import clean, clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.script.offered_commands import OfferedCommand
from pegboard.tui.widgets.dialog import Dialog


class CommandHelp(Dialog[bool]):
    """Dialog that shows the output of `help COMMAND` and returns whether to insert the command.

    Args:
        command: The command.
    """

    PAGE = "Command"
    AUTO_FOCUS = "#help"

    DEFAULT_CSS = """
    CommandHelp {
        & > #box { width: 92; height: auto; }
        #help { height: auto; max-height: 1fr; padding: 0 1; margin-bottom: 1; scrollbar-size-vertical: 1; }
        #help Static { height: auto; }
    }
    """
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("command_help.put", "enter", "put", "Insert", "Insert the command into the script.", footer=True),
        Command("command_help.close", "escape,f2", "close", "Close", "Close and return to the script.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, command: OfferedCommand) -> None:
        super().__init__(clean_line(command.names[0]))
        self._command = command

    def compose_body(self) -> ComposeResult:
        """Yield the help text."""
        with VerticalScroll(id="help"):
            yield Static(Content(clean(self._command.help())))

    def action_put(self) -> None:
        """Close and insert the command."""
        self.dismiss(True)

    def action_close(self) -> None:
        """Close without inserting."""
        self.dismiss(False)
