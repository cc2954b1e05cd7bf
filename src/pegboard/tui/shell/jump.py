"""A letter on everything that can have the focus; typing one goes there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Label

from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.dialog import Dialog

_LETTERS = "asdfghjklqwertyuiopzxcvbnm1234567890"


class JumpScreen(Dialog[Widget | None]):
    """Letters over the screen below; closes with the widget that was named.

    Args:
        targets: The widgets that can be gone to, in the order of the focus.
    """

    PAGE = "Jump"

    DEFAULT_CSS = """
    JumpScreen {
        background: transparent;
        Label {
            position: absolute; width: auto; height: 1; padding: 0 1;
            background: $accent; color: $background; text-style: bold;
        }
        &:ansi Label { color: ansi_black; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("jump.cancel", "escape,ctrl+o", "cancel", "Stay", "Stay where you are."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, targets: Sequence[Widget]) -> None:
        super().__init__()
        self._targets = dict(zip(_LETTERS, targets, strict=False))

    def compose(self) -> ComposeResult:
        """A label at the corner of each target."""
        for letter, target in self._targets.items():
            label = Label(letter, markup=False)
            label.styles.offset = target.region.offset
            yield label

    def on_key(self, event: events.Key) -> None:
        """Goes to the target of the letter."""
        target = self._targets.get(event.character or "")
        if target is not None:
            event.stop()
            self.dismiss(target)

    def on_click(self) -> None:
        """Stays."""
        self.dismiss(None)

    def action_cancel(self) -> None:
        """Stays."""
        self.dismiss(None)
