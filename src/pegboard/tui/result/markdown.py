"""View of rendered Markdown."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Markdown, Static

from pegboard.results.clean import clean
from pegboard.results.markdown import pieces
from pegboard.tui.commands import Command, as_word, bindings, first_key


class MarkdownView(VerticalScroll, can_focus=True):
    """Text rendered as Markdown, in pieces as the user scrolls. Links are shown, never followed.

    Args:
        text: Untrusted text.
    """

    PAGE = "Markdown"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("result.markdown.more", "enter", "more", "Show more", "Render the next piece of a long text."),
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
        self._more = Static(classes="more", markup=False)
        self._next = next(self._pieces, None)

    def compose(self) -> ComposeResult:
        """Yield the line that represents the text that is not rendered yet."""
        yield self._more

    async def on_mount(self) -> None:
        """Render the first piece."""
        key = as_word(first_key(self, "result.markdown.more"))
        self._more.update(Content(f"… more: {key}" if key else "… more"))
        await self.action_more()

    async def action_more(self) -> None:
        """Render the next piece, if any."""
        if self._next is None:
            return
        piece, self._next = self._next, next(self._pieces, None)
        self._more.display = self._next is not None
        await self.mount(Markdown(piece, open_links=False), before=self._more)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Render the next piece when the end comes into view."""
        super().watch_scroll_y(old_value, new_value)
        if self._next is not None and self.max_scroll_y - new_value < self.size.height:
            self.call_next(self.action_more)

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        """Show the target of a link instead of opening it."""
        event.stop()
        self.notify(clean(event.href), title="Link target", markup=False)
