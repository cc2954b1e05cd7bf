"""Markdown as it is meant to look."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Markdown, Static

from pegboard.results.clean import clean
from pegboard.results.markdown import pieces
from pegboard.tui.commands import Command, bindings


class MarkdownView(VerticalScroll, can_focus=True):
    """A text rendered as Markdown, a piece at a time as one reads on; links are shown, never followed.

    Args:
        text: Untrusted text.
    """

    PAGE = "Markdown"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("result.markdown.more", "enter", "more", "Read on", "Render the next piece of a long text."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    MarkdownView {
        height: 1fr;
        width: 1fr;
        background: $surface;
        scrollbar-gutter: stable;
        &:focus { background-tint: $foreground 3%; }
        & > Markdown { background: transparent; padding: 0 1; margin: 0; }
        & > .more { height: 1; padding: 0 1; color: $text-muted; }
    }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._pieces = pieces(clean(text))
        self._more = Static("… more: enter", classes="more", markup=False)
        self._next = next(self._pieces, None)

    def compose(self) -> ComposeResult:
        """Yields the line that stands for what is not rendered yet."""
        yield self._more

    async def on_mount(self) -> None:
        """Renders the first piece."""
        await self.action_more()

    async def action_more(self) -> None:
        """Renders the next piece, if there is one."""
        if self._next is None:
            return
        piece, self._next = self._next, next(self._pieces, None)
        self._more.display = self._next is not None
        await self.mount(Markdown(piece, open_links=False), before=self._more)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Renders on when the end comes near."""
        super().watch_scroll_y(old_value, new_value)
        if self._next is not None and self.max_scroll_y - new_value < self.size.height:
            self.call_next(self.action_more)

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        """Shows where a link leads; whether to go there is the user's business."""
        event.stop()
        self.notify(clean(event.href), title="This link leads to", markup=False)
