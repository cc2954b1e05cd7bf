"""Sidebar with the commands available to scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.script.offered_commands import OfferedCommand
from pegboard.tui.widgets.filter_line import FilterLine
from pegboard.tui.widgets.pick_list import PickLine, PickList


class _CommandList(PickList):
    """List whose commands are inserted once by a double click, too."""

    def chooses_on_click(self, *, is_second: bool) -> bool:
        """Choose on the first click."""
        return not is_second


class CommandsPane(Vertical):
    """Filterable list of commands with the usage of the selected one."""

    PAGE = "Commands"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("commands.clear", "escape", "clear", "Clear", "Clear the filter; without one, go to the editor."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    CommandsPane {
        #about { height: auto; max-height: 6; padding: 0 1; background: $panel; color: $text-muted; }
    }
    """

    @dataclass
    class Inserted(Message):
        """Request to insert a command into the script."""

        command: OfferedCommand

    def __init__(self) -> None:
        super().__init__()
        self.list = _CommandList()
        self._commands: Sequence[OfferedCommand] = ()
        self._lines: list[PickLine] = []
        self._about = Static(id="about")

    def compose(self) -> ComposeResult:
        """Yield the filter, the list and the usage of the selected command."""
        yield FilterLine("type to filter")
        yield self.list
        yield self._about

    def show(self, commands: Sequence[OfferedCommand], empty: str) -> None:
        """List commands and keep the selection if its command is still listed.

        Args:
            commands: The commands.
            empty: Text of an empty list.
        """
        marked = self.marked
        self._commands = commands
        self._lines = [PickLine(clean_line(command.names[0])) for command in commands]
        self.list.empty = empty if not commands else "No matching tools."
        names = [command.names[0] for command in commands]
        index = names.index(marked.names[0]) if marked is not None and marked.names[0] in names else 0
        self.list.renew(self._lines, index)

    @property
    def marked(self) -> OfferedCommand | None:
        """The selected command, or None."""
        index = self.list.marked
        return self._commands[index] if index is not None and index < len(self._commands) else None

    def action_clear(self) -> None:
        """Clear the filter; without one, leave the key to the page."""
        if not self.list.sought:
            raise SkipAction
        self.list.erase_filter()

    @on(PickList.Filtered)
    def _filtered(self, event: PickList.Filtered) -> None:
        event.stop()
        self.query_one(FilterLine).show(event.query, f"{event.found:,} of {event.total:,}")

    @on(PickList.Marked)
    def _marked(self, event: PickList.Marked) -> None:
        event.stop()
        command = self.marked
        text = Content()
        if command is not None:
            usage = Content.styled(clean_line(command.usage), "$foreground")
            text = Content.assemble(usage, "\n", clean_line(command.summary)) if command.summary else usage
        self._about.update(text)

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        self.post_message(self.Inserted(self._commands[event.index]))
