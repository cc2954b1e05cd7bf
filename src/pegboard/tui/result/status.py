"""The lines above and below a result: how the call goes, its progress, the views, the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult, RenderResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input, Label
from textual.widgets.input import Selection

from pegboard.models import Progress, ToolResult
from pegboard.results.clean import clean_line
from pegboard.results.sizes import duration, size
from pegboard.tui.commands import Command, bindings

_GAP = "  "


def outcome(result: ToolResult) -> list[tuple[str, str]]:
    """Gives how a call went, piece by piece: `✓ ok`, `12 ms`, `3.4 kB`, … each with its style."""
    meta = result.meta
    pieces: list[tuple[str, str]] = []
    if result.ok:
        pieces.append(("✓ ok", "bold $text-success"))
    elif result.error and result.error.detail == "cancelled":
        pieces.append(("⊘ cancelled", "bold $text-warning"))
    else:
        pieces.append(("✗ failed", "bold $text-error"))
        if result.error:
            pieces.append((clean_line(result.error.detail or result.error.code), "$text-error"))
    if meta.duration_ms:
        pieces.append((duration(meta.duration_ms), ""))
    if meta.size:
        pieces.append((size(meta.size), ""))
    if meta.truncated:
        pieces.append(("truncated", "bold $text-warning"))
    if meta.cached:
        pieces.append(("cached", "$text-accent"))
    if meta.log_bytes_dropped:
        pieces.append((f"{size(meta.log_bytes_dropped)} of log dropped", "$text-warning"))
    if meta.worker:
        pieces.append((clean_line(meta.worker), "dim"))
    return pieces


class StatusLine(Widget):
    """One line of pieces that says how the call goes; what doesn't fit is cut at the right."""

    DEFAULT_CSS = """
    StatusLine { height: 1; width: 1fr; padding: 0 1; }
    """

    pieces: reactive[Sequence[tuple[str, str]]] = reactive[Sequence[tuple[str, str]]](())
    """Texts and their styles."""

    def render(self) -> RenderResult:
        """Joins the pieces."""
        parts = [Content.styled(text, style) for text, style in self.pieces]
        line = Content(" · ").join(parts)
        return line.truncate(max(self.content_size.width, 1), ellipsis=True)


class ProgressLine(Widget):
    """How far a running tool is: a bar where it said of how much, and its words."""

    DEFAULT_CSS = """
    ProgressLine { height: 1; width: 1fr; padding: 0 1; color: $text-primary; }
    """

    progress: reactive[Progress | None] = reactive[Progress | None](None)
    """What the tool said last."""

    def render(self) -> RenderResult:
        """Draws the bar, the figures and the message."""
        progress = self.progress
        if progress is None:
            return ""
        figures = f"{progress.done:,g}"
        bar = ""
        if progress.total is not None and progress.total > 0:
            share = min(max(progress.done / progress.total, 0.0), 1.0)
            cells = min(max(self.content_size.width // 4, 6), 30)
            full = int(share * cells)
            bar = "█" * full + "░" * (cells - full) + f" {share:.0%} "
            figures += f" of {progress.total:,g}"
        message = clean_line(progress.message[:500])
        line = Content(f"{bar}{figures}{' · ' + message if message else ''}")
        return line.truncate(max(self.content_size.width, 1), ellipsis=True)


class ViewBar(Widget):
    """The views of a result, the shown one marked, and a note at the right; a click shows a view."""

    DEFAULT_CSS = """
    ViewBar { height: 1; width: 1fr; padding: 0 1; }
    """

    titles: reactive[Sequence[tuple[str, str]]] = reactive[Sequence[tuple[str, str]]](())
    """The name of each view and its title."""
    shown: reactive[str] = reactive("")
    """The name of the view that is shown."""
    note: reactive[str] = reactive("")
    """What the view has to say: where the cursor is, what the search found."""

    class Chosen(Message):
        """A view was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def render(self) -> RenderResult:
        """Draws the titles, and the note as far as there is room."""
        titles = Content(_GAP).join(
            Content.styled(f"[{title}]" if name == self.shown else f" {title} ", _title_style(name == self.shown))
            for name, title in self.titles
        )
        room = self.content_size.width - titles.cell_length - len(_GAP)
        note = _tail(clean_line(self.note), room)
        gap = " " * max(self.content_size.width - titles.cell_length - cell_len(note), 0)
        return Content.assemble(titles, gap, (note, "dim"))

    def on_click(self, event: events.Click) -> None:
        """Asks for the view that was clicked."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        x = 0
        for name, title in self.titles:
            end = x + len(title) + 2
            if x <= offset.x < end:
                self.post_message(self.Chosen(name))
                return
            x = end + len(_GAP)


def _title_style(shown: bool) -> str:
    return "bold $text-primary" if shown else "dim"


def _tail(text: str, room: int) -> str:
    """The end of a text that is too long, since the end of a path tells the most."""
    if cell_len(text) <= room:
        return text
    if room < len(_GAP):
        return ""
    while cell_len(text) > room - 1:
        text = text[1:]
    return "…" + text


PromptKind = Literal["search", "save"]


class Prompt(Horizontal):
    """A line to type in at the foot of the pane; hidden until it is asked for."""

    PAGE = "Search and save"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("result.prompt.close", "escape", "close", "Close", "Leave the line without doing anything."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    Prompt {
        height: 1;
        width: 1fr;
        display: none;
        background: $panel;
        & > Label { width: auto; padding: 0 1; text-style: bold; }
        & > Input { width: 1fr; }
    }
    """

    class Typed(Message):
        """The text changed."""

        def __init__(self, kind: PromptKind, text: str) -> None:
            super().__init__()
            self.kind = kind
            self.text = text

    class Answered(Typed):
        """Enter was pressed."""

    class Closed(Message):
        """It was left."""

    kind: PromptKind = "search"

    def compose(self) -> ComposeResult:
        """Yields the question and the line."""
        yield Label("", markup=False)
        yield Input(compact=True, select_on_focus=False)

    def ask(self, kind: PromptKind, question: str, text: str = "") -> None:
        """Shows the line with a question, and `text` to begin with: a search is typed anew, a file name goes on."""
        self.kind = kind
        self.query_one(Label).update(Content(question))
        line = self.query_one(Input)
        with self.prevent(Input.Changed):
            line.value = text
        line.selection = Selection(0 if kind == "search" else len(text), len(text))
        # Notices stand at the foot of the screen too, over the line that is to be typed in.
        self.app.clear_notifications()
        self.display = True
        line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Passes on what is typed."""
        event.stop()
        self.post_message(self.Typed(self.kind, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Passes on the answer."""
        event.stop()
        self.post_message(self.Answered(self.kind, event.value))

    def action_close(self) -> None:
        """Hides the line."""
        self.display = False
        self.post_message(self.Closed())
