"""The arguments of a call that waits, in the form of its tool."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from pegboard.models import JsonObject, ToolSpec
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form import FormPane
from pegboard.tui.shell.footer import KeysLine
from pegboard.tui.widgets.dialog import Dialog


class EditCallScreen(Dialog[JsonObject | None]):
    """Closes with the arguments to run with, or None where the call is to wait on.

    Args:
        spec: The tool.
        arguments: As they were proposed.
    """

    PAGE = "Edit the call"
    DEFAULT_CSS = """
    EditCallScreen {
        align: center middle;
        background: $background 60%;
        #box {
            width: 100; max-width: 96%; height: 30; max-height: 92%; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            border-subtitle-color: $text-muted;
        }
        FormPane { height: 1fr; scrollbar-size-vertical: 1; }
    }
    """
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("edit_call.run", "ctrl+r", "run", "Run with these", "Let it run like this.", True, priority=True),
        Command("edit_call.close", "escape", "close", "Back", "Go back; the call waits on.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, spec: ToolSpec, arguments: JsonObject) -> None:
        super().__init__()
        self._spec = spec
        self._arguments = arguments
        self._form = FormPane()

    def compose(self) -> ComposeResult:
        """The form in a box."""
        with Vertical(id="box") as box:
            box.border_title = Content(f"Edit {clean_line(self._spec.name)} before it runs")
            box.border_subtitle = "the model is told what you change"
            yield self._form
            yield KeysLine()

    def on_mount(self) -> None:
        """Fills the form."""
        self._form.show(self._spec, self._arguments)
        self._form.focus_field()

    def action_run(self) -> None:
        """Closes with the arguments, unless they have faults."""
        arguments = self._form.submit()
        if arguments is not None:
            self.dismiss(arguments)

    def action_close(self) -> None:
        """Closes without a change."""
        self.dismiss(None)
