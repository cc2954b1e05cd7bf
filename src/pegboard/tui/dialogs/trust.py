"""The question whether to trust the working directory."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from pegboard import config
from pegboard.config import Paths, TrustError, TrustRequest
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.question import QuestionScreen


class TrustScreen(QuestionScreen[bool]):
    """The settings of a folder, with two buttons. The focus is on the one that changes nothing.

    Args:
        request: The settings of the folder; all of it is untrusted text.
    """

    PAGE = "Trust"
    AUTO_FOCUS = "#no"
    ANSWERS = None
    HAS_FOOTER = False

    DEFAULT_CSS = """
    TrustScreen {
        & > #box {
            width: 100; height: auto; padding: 0 1; border: round $warning; border-title-color: $text-warning;
        }
        #review { height: auto; max-height: 1fr; scrollbar-size-vertical: 1; }
        #notice { height: auto; margin-bottom: 1; color: $text-muted; }
        #foot { margin: 1 0 0 0; }
        Button { margin-left: 2; min-width: 16; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("trust.no", "escape", "refuse", "Do not trust", "Close without trusting the folder."),
        Command("trust.other", "left,right", "other", "Other button", "Focus the other button."),
        Command("trust.up", "up", "scroll(-1)", "Up", "Scroll the settings up."),
        Command("trust.down", "down", "scroll(1)", "Down", "Scroll the settings down."),
        Command("trust.page_up", "pageup", "scroll_page(-1)", "Page up", "Scroll the settings up one page."),
        Command("trust.page_down", "pagedown", "scroll_page(1)", "Page down", "Scroll the settings down one page."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, request: TrustRequest) -> None:
        super().__init__(f"Trust {clean_line(request.folder)}?")
        self._request = request
        self._review = VerticalScroll(id="review")

    def compose_body(self) -> ComposeResult:
        """Compose the review, a notice and the buttons."""
        request = self._request
        text = "\n".join(map(clean_line, request.lines()))
        notice = request.obstacle or "If you trust it, Pegboard restarts. Running calls end, and unsent text is lost."
        with self._review:
            yield Static(Content(text))
        with Vertical(id="foot"):
            yield Static(Content(notice), id="notice")
            with Horizontal():
                yield Button(Content("Do not trust"), id="no", compact=True)
                if not request.obstacle:
                    yield Button(Content("Trust this folder"), id="yes", variant="warning", compact=True)

    def answer_by_button(self, button: str) -> None:
        """Close with the answer of a button."""
        self.dismiss(button == "yes")

    def action_other(self) -> None:
        """Focus the other button."""
        other = "#yes" if self.focused is not None and self.focused.id == "no" else "#no"
        for button in self.query(other):
            button.focus()

    def action_scroll(self, lines: int) -> None:
        """Scroll the settings, which don't have the focus."""
        self._review.scroll_relative(y=lines, animate=False)

    def action_scroll_page(self, pages: int) -> None:
        """Scroll the settings by pages."""
        self.action_scroll(pages * self._review.size.height)

    def action_refuse(self) -> None:
        """Close without trusting the folder."""
        self.dismiss(False)


async def review_folder(app: App[None], paths: Paths) -> bool:
    """Show the settings of the working directory and trust them if the user agrees.

    Args:
        app: The running app.
        paths: Locations of the configuration.

    Returns:
        Whether the folder was trusted; then the app must restart.
    """
    request = await asyncio.to_thread(config.review_folder, paths)
    if request.trust.state in {"trusted", "nothing"}:
        is_trusted = request.trust.state == "trusted"
        app.notify("This folder is already trusted." if is_trusted else request.obstacle, markup=False)
        return False
    if not await app.push_screen_wait(TrustScreen(request)):
        return False
    try:
        await asyncio.to_thread(config.trust_folder, paths, request)
    except TrustError as error:
        app.notify(clean_line(str(error)), severity="error", markup=False)
        return False
    return True
