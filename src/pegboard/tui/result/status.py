"""Lines around a result: call status, progress, view tabs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual import events
from textual.app import RenderResult
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from pegboard.models import Progress, ToolResult
from pegboard.results.clean import clean_line
from pegboard.results.sizes import duration, share, size

_GAP = "  "


def outcome(result: ToolResult) -> list[tuple[str, str]]:
    """Return the outcome of a call as styled texts: `✓ ok`, `12 ms`, `3.4 kB`."""
    meta = result.meta
    pieces: list[tuple[str, str]] = []
    if meta.exit_code:
        pieces.append((f"✗ exit {meta.exit_code}", "bold $text-error"))
    elif result.ok:
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
    return pieces


def elapsed(seconds: float) -> str:
    """Return the time since the start of a call as text."""
    return f"{seconds:.1f} s" if seconds < 60 else duration(seconds * 1000)


class StatusLine(Widget):
    """Status of the call in one line, truncated at the right; in several lines where the styles allow more."""

    DEFAULT_CSS = """
    StatusLine { height: 1; width: 1fr; padding: 0 1; }
    """

    pieces: reactive[Sequence[tuple[str, str]]] = reactive[Sequence[tuple[str, str]]](())
    """Texts and their styles."""

    def watch_pieces(self) -> None:
        """Adjust the height if it depends on the text."""
        if self.styles.auto_dimensions:
            self.refresh(layout=True)

    def render(self) -> RenderResult:
        """Join the texts."""
        parts = [Content.styled(text, style) for text, style in self.pieces]
        line = Content(" · ").join(parts)
        return line if self.styles.auto_dimensions else line.truncate(max(self.content_size.width, 1), ellipsis=True)


class ProgressLine(Widget):
    """Progress of a running tool: a bar if the total is known, and the tool's message."""

    DEFAULT_CSS = """
    ProgressLine { height: 1; width: 1fr; padding: 0 1; color: $text-primary; }
    """

    progress: reactive[Progress | None] = reactive[Progress | None](None)
    """The latest progress event."""

    def render(self) -> RenderResult:
        """Render the bar, the figures and the message."""
        progress = self.progress
        if progress is None:
            return ""
        figures = share(progress.done, progress.total)
        bar = ""
        if progress.total is not None and progress.total > 0:
            part = min(max(progress.done / progress.total, 0.0), 1.0)
            cells = min(max(self.content_size.width // 4, 6), 30)
            full = int(part * cells)
            # A part is not rounded up to 100 % before the end; 29 of 100 is a little less than 0.29.
            bar = "█" * full + "░" * (cells - full) + f" {int(100 * part + 1e-9)}% "
        message = clean_line(progress.message[:500])
        line = Content(f"{bar}{figures}{' · ' + message if message else ''}")
        return line.truncate(max(self.content_size.width, 1), ellipsis=True)


class ViewBar(Widget):
    """Tabs of the views of a result, with a note at the right. A click selects a view."""

    DEFAULT_CSS = """
    ViewBar { height: 1; width: 1fr; padding: 0 1; }
    """

    titles: reactive[Sequence[tuple[str, str]]] = reactive[Sequence[tuple[str, str]]](())
    """Name and title of each view."""
    shown: reactive[str] = reactive("")
    """Name of the current view."""
    note: reactive[str] = reactive("")
    """Note of the view: the path at the cursor, or the search result."""
    keeps_start: reactive[bool] = reactive(False)
    """Whether a note that is too long loses its end, because its start says that something is left out."""

    class Chosen(Message):
        """A view was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def render(self) -> RenderResult:
        """Render the titles, and as much of the note as fits."""
        titles = Content(_GAP).join(
            Content.styled(f"[{title}]" if name == self.shown else f" {title} ", _title_style(name == self.shown))
            for name, title in self.titles
        )
        space = self.content_size.width - titles.cell_length - len(_GAP)
        note = clean_line(self.note)
        note = _head(note, space) if self.keeps_start else _tail(note, space)
        gap = " " * max(self.content_size.width - titles.cell_length - cell_len(note), 0)
        return Content.assemble(titles, gap, (note, "dim"))

    def on_click(self, event: events.Click) -> None:
        """Post `Chosen` for the clicked title."""
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


def _head(text: str, space: int) -> str:
    """Return the start of a text that is too long."""
    return Content(text).truncate(space, ellipsis=True).plain if space > 0 else ""


def _tail(text: str, space: int) -> str:
    """Return the end of a text that is too long, because the end of a path matters most."""
    if cell_len(text) <= space:
        return text
    if space < len(_GAP):
        return ""
    text = text[-4 * space :]  # joined characters have no width of their own
    while cell_len(text) > space - 1:
        text = text[1:]
    return "…" + text
