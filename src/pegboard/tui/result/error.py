"""View of an error."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.reactive import var
from textual.widgets import Static

from pegboard.models import Fault, ToolError
from pegboard.results.advice import advice, failing_line
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count
from pegboard.tui.commands import Command, bindings, key_of

_LONGEST = 20_000


class ErrorView(VerticalScroll, can_focus=True):
    """Code, message and validation errors of a failed call, advice, and the traceback, collapsed initially.

    Args:
        error: The error.
        traceback: Traceback of the tool's own code.
    """

    PAGE = "Error"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("result.error.traceback", "t,enter,space", "unfold", "Traceback", "Show or hide the traceback."),
        Command("result.error.open", "o", "open_source", "Open line", "Open the failing line in your editor.", True),
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
        & .validation { margin-top: 1; }
        & .source { margin-top: 1; &:hover { text-style: underline; pointer: pointer; } }
        & .fold { margin-top: 1; width: auto; text-style: bold; &:hover { text-style: bold underline; } }
        & .traceback { color: $text-muted; }
    }
    """

    unfolded: var[bool] = var(False)
    """Whether the traceback is visible."""

    def __init__(self, error: ToolError, traceback: str | None) -> None:
        super().__init__()
        self._error = error
        self._traceback = traceback
        self._source = failing_line(traceback)

    @property
    def text(self) -> str:
        """The whole error as plain text."""
        error = self._error
        faults = "".join(f"\n{fault}" for fault in error.faults)
        return f"{self._title}\n{error.message}{faults}" + (f"\n\n{self._traceback}" if self._traceback else "")

    @property
    def _title(self) -> str:
        return " · ".join([self._error.code, *([self._error.detail] if self._error.detail else [])])

    def compose(self) -> ComposeResult:
        """Yield the card."""
        error = self._error
        with Vertical(classes="card -cancelled" if error.detail == "cancelled" else "card") as card:
            card.border_title = Content(clean_line(self._title))
            yield Static(Content(_bounded(error.message)), classes="message")
            if error.faults:
                yield Static(Content("\n").join(_fault(fault) for fault in error.faults), classes="validation")
            if self._source is not None:
                yield Static(self._where, classes="source")
            if hint := advice(error):
                yield Static(Content(hint), classes="advice")
            if self._traceback:
                yield Static(self._fold, classes="fold")
                traceback = Static(Content(_bounded(self._traceback)), classes="traceback")
                traceback.display = False
                yield traceback

    @property
    def _where(self) -> Content:
        """The failing line of the pack, and what to do next."""
        assert self._source is not None
        file, line, function = self._source
        at = f"{clean_line(Path(file).name)}:{line}"
        inside = f", in {clean_line(function)}" if function else ""
        key = key_of(self, "result.error.open")
        hint = f"Click here or press {key} in this pane to open the line. Fix it, then run the tool again."
        return Content.assemble("Failed at ", (at, "bold"), f"{inside}. ", (hint, "$text-muted"))

    @property
    def _fold(self) -> Content:
        lines = (self._traceback or "").rstrip("\n").count("\n") + 1
        return Content(f"{'▾' if self.unfolded else '▸'} Traceback, {count(lines, 'line')}")

    def watch_unfolded(self, unfolded: bool) -> None:
        """Show or hide the traceback."""
        for traceback in self.query(".traceback"):
            traceback.display = unfolded
        for fold in self.query(".fold").results(Static):
            fold.update(self._fold)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the command only if there is a traceback."""
        del parameters
        match action:
            case "unfold":
                return self._traceback is not None
            case "open_source":
                return self._source is not None
            case _:
                return True

    def action_unfold(self) -> None:
        """Show or hide the traceback."""
        self.unfolded = not self.unfolded

    @work(exclusive=True, group="editor")
    async def action_open_source(self) -> None:
        """Open the failing line of the pack in the editor."""
        from pegboard.tui.widgets.external_editor import open_in_editor

        if self._source is not None:
            await open_in_editor(self.app, self._source.file, self._source.line)

    def on_click(self, event: events.Click) -> None:
        """Show or hide the traceback on a click on its heading; open the failing line on a click on it."""
        if event.widget is not None and event.widget.has_class("fold"):
            self.action_unfold()
        elif event.widget is not None and event.widget.has_class("source"):
            self.action_open_source()


def _fault(fault: Fault) -> Content:
    return Content.assemble("• ", (clean_line(fault.where or "arguments"), "bold"), "  ", clean_line(fault.message))


def _bounded(text: str) -> str:
    """Return the cleaned text; the middle of a very long one is omitted."""
    if len(text) <= _LONGEST:
        return clean(text)
    half = _LONGEST // 2
    return clean(f"{text[:half]}\n… {len(text) - _LONGEST:,} characters …\n{text[-half:]}")
