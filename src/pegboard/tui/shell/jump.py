"""Jump mode: labels on every focusable element."""

from __future__ import annotations

from typing import Any, ClassVar  # Any: screens with results of any type

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.errors import NoWidget
from textual.geometry import Region
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Label

from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.dialog import Overlay

_LETTERS = "asdfghjklqwertyuiopzxcvbnm1234567890"


class JumpScreen(Overlay[Widget | None]):
    """Labels over a screen. Returns the widget whose label is typed, or None.

    Args:
        below: The screen. Its focusable widgets get labels in focus order, without those that are scrolled out of view.
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
        Command(
            "jump.cancel",
            "escape,ctrl+o",
            "cancel",
            "Cancel",
            "Keep the focus where it is, as any key without a label does.",
        ),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, below: Screen[Any]) -> None:
        super().__init__()
        self._below = below
        self._targets = dict(zip(_LETTERS, filter(self._visible, below.focus_chain), strict=False))
        self._labels = {letter: Label(letter, markup=False) for letter in self._targets}

    def compose(self) -> ComposeResult:
        """Compose a label for each target."""
        yield from self._labels.values()

    def on_mount(self) -> None:
        """Place the labels, and again when the page below is laid out differently."""
        self._place()
        self._below.screen_layout_refresh_signal.subscribe(self, lambda _: self._place())

    def _place(self) -> None:
        """Put the labels at the corners of their targets."""
        for letter, target in self._targets.items():
            region = self._visible(target)
            self._labels[letter].styles.offset = region.offset
            self._labels[letter].display = bool(region)

    def _visible(self, target: Widget) -> Region:
        """Return the part of a widget that is not scrolled out of view."""
        try:
            return self._below.find_widget(target).visible_region
        except NoWidget:
            return Region()

    def on_key(self, event: events.Key) -> None:
        """Close with the target of the typed label, or without one if no label is typed."""
        event.stop()
        target = self._targets.get(event.character or "")
        self.dismiss(target if target is not None and self._visible(target) else None)

    def on_click(self) -> None:
        """Cancel."""
        self.dismiss(None)

    def action_cancel(self) -> None:
        """Close without a target."""
        self.dismiss(None)
