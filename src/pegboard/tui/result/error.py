"""Why a call failed, as a card."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.reactive import var
from textual.widgets import Static

from pegboard.models import Fault, ToolError
from pegboard.results.advice import advice
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count
from pegboard.tui.commands import Command, bindings

_LONGEST = 20_000


class ErrorView(VerticalScroll, can_focus=True):
    """An error's code, message and faults, what to do about it, and the traceback, folded at first.

    Args:
        error: The error.
        traceback: The frames of the tool's own code.
    """

    PAGE = "Error"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("result.error.traceback", "t,enter,space", "unfold", "Traceback", "Unfold or fold the traceback."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    ErrorView {
        height: 1fr;
        width: 1fr;
        background: $surface;
        &:focus { background-tint: $foreground 3%; }
        & > .card {
            height: auto;
            border: round $error;
            border-title-color: $text-error;
            border-title-style: bold;
            padding: 0 1;
        }
        & > .card.-cancelled { border: round $warning; border-title-color: $text-warning; }
        & .card > * { height: auto; }
        & .advice { color: $text-muted; margin-top: 1; }
        & .faults { margin-top: 1; }
        & .fold { margin-top: 1; width: auto; text-style: bold; &:hover { text-style: bold underline; } }
        & .traceback { color: $text-muted; }
    }
    """

    unfolded: var[bool] = var(False)
    """Whether the traceback is seen."""

    def __init__(self, error: ToolError, traceback: str | None) -> None:
        super().__init__()
        self._error = error
        self._traceback = traceback

    @property
    def text(self) -> str:
        """All of it as plain text."""
        error = self._error
        faults = "".join(f"\n{fault}" for fault in error.faults)
        return f"{self._title}\n{error.message}{faults}" + (f"\n\n{self._traceback}" if self._traceback else "")

    @property
    def _title(self) -> str:
        return " · ".join([self._error.code, *([self._error.detail] if self._error.detail else [])])

    def compose(self) -> ComposeResult:
        """Yields the card."""
        error = self._error
        with Vertical(classes="card -cancelled" if error.detail == "cancelled" else "card") as card:
            card.border_title = Content(clean_line(self._title))
            yield Static(Content(_bounded(error.message)), classes="message")
            if error.faults:
                yield Static(Content("\n").join(_fault(fault) for fault in error.faults), classes="faults")
            if hint := advice(error):
                yield Static(Content(hint), classes="advice")
            if self._traceback:
                yield Static(self._fold, classes="fold")
                traceback = Static(Content(_bounded(self._traceback)), classes="traceback")
                traceback.display = False
                yield traceback

    @property
    def _fold(self) -> Content:
        lines = (self._traceback or "").rstrip("\n").count("\n") + 1
        return Content(f"{'▾' if self.unfolded else '▸'} Traceback, {count(lines, 'line')}")

    def watch_unfolded(self, unfolded: bool) -> None:
        """Shows or hides the traceback."""
        for traceback in self.query(".traceback"):
            traceback.display = unfolded
        for fold in self.query(".fold").results(Static):
            fold.update(self._fold)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There is nothing to unfold without a traceback."""
        del parameters
        return self._traceback is not None if action == "unfold" else True

    def action_unfold(self) -> None:
        """Unfolds or folds the traceback."""
        self.unfolded = not self.unfolded

    def on_click(self, event: events.Click) -> None:
        """Unfolds or folds the traceback where its line is clicked."""
        if event.widget is not None and event.widget.has_class("fold"):
            self.action_unfold()


def _fault(fault: Fault) -> Content:
    return Content.assemble("• ", (clean_line(fault.path or "/"), "bold"), "  ", clean_line(fault.message))


def _bounded(text: str) -> str:
    """The text, clean; of a very long one the beginning and the end."""
    if len(text) <= _LONGEST:
        return clean(text)
    half = _LONGEST // 2
    return clean(f"{text[:half]}\n… {len(text) - _LONGEST:,} characters …\n{text[-half:]}")
