"""The question whether to trust the working directory."""

from __future__ import annotations

from time import monotonic
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from pegboard.config import TrustRequest
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings

EARLY_SECONDS: Final = 0.3
"""Keys and clicks this soon after the dialog appears were meant for what was there before."""


class TrustScreen(ModalScreen[bool]):
    """What the folder would change, and two answers; the focus is on the one that changes nothing.

    Args:
        request: What was read from the folder. All of it is untrusted text.
    """

    PAGE = "Trust"
    AUTO_FOCUS = "#no"

    DEFAULT_CSS = """
    TrustScreen {
        align: center middle;
        background: $background 60%;
        #box {
            width: 100; max-width: 94%; height: auto; max-height: 90%;
            padding: 0 1; background: $surface;
            border: round $warning; border-title-color: $text-warning; border-title-style: bold;
        }
        #review { height: auto; max-height: 1fr; scrollbar-size-vertical: 1; }
        #notice { height: auto; margin-top: 1; color: $text-muted; }
        #answers { height: auto; align-horizontal: right; margin-top: 1; }
        Button { margin-left: 2; min-width: 16; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("trust.no", "escape", "refuse", "Do not trust", "Close without trusting the folder."),
        Command("trust.other", "left,right", "other", "Other answer", "Focus the other button."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, request: TrustRequest) -> None:
        super().__init__()
        self._request = request
        self._shown_at: float | None = None

    def compose(self) -> ComposeResult:
        """The review, a notice, and the answers."""
        request = self._request
        text = "\n".join(map(clean_line, request.lines()))
        notice = request.obstacle or "If you trust it, Pegboard restarts. Running calls end, and unsent text is lost."
        with Vertical(id="box") as box:
            box.border_title = Content(f"Trust {clean_line(request.folder)}?")
            with VerticalScroll(id="review"):
                yield Static(Content(text))
            yield Static(Content(notice), id="notice")
            with Horizontal(id="answers"):
                yield Button(Content("Do not trust"), id="no", compact=True)
                if not request.obstacle:
                    yield Button(Content("Trust this folder"), id="yes", variant="warning", compact=True)

    def on_mount(self) -> None:
        """Start counting when the dialog is visible."""
        self.call_after_refresh(self._note_shown)

    def _note_shown(self) -> None:
        self._shown_at = monotonic()

    def ignores(self, event: events.InputEvent) -> bool:
        """Return whether an event was made too early to be meant for this dialog."""
        return self._shown_at is None or event.time - self._shown_at < EARLY_SECONDS

    def _forward_event(self, event: events.Event) -> None:
        """Drop early mouse events that don't come through the app."""
        if not (isinstance(event, events.InputEvent) and self.ignores(event)):
            super()._forward_event(event)

    @on(Button.Pressed)
    def _answer(self, event: Button.Pressed) -> None:
        event.stop()
        self.dismiss(event.button.id == "yes")

    def action_other(self) -> None:
        """Focus the other button."""
        other = "#yes" if self.focused is not None and self.focused.id == "no" else "#no"
        for button in self.query(other):
            button.focus()

    def action_refuse(self) -> None:
        """Close without trusting the folder."""
        self.dismiss(False)
