"""Dialogs for what MCP servers ask the user: forms, addresses to visit, and prompts for the model."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, TypeVar, cast  # Any: dialogs with results of any type
from urllib.parse import urlsplit

from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from pegboard.models import Elicitation, ElicitationAction, ElicitationAnswer, JsonObject, SamplingRequest, ToolSpec
from pegboard.models.spec import McpHandler
from pegboard.results.clean import clean, clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form import FormPane
from pegboard.tui.messages import Copy
from pegboard.tui.widgets import answer_guard
from pegboard.tui.widgets.long_text import LongText
from pegboard.tui.widgets.question import QuestionScreen

_T = TypeVar("_T")

_FOCUS_SECONDS = 0.1
"""Interval at which a form checks whether it may have the focus."""
_WEB = frozenset({"http", "https"})


class ServerQuestion(QuestionScreen[_T]):
    """A question of a server, with buttons. It closes without an answer when the server no longer waits."""

    IS_OPENED_BY_USER = False

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.is_over = False
        """Whether the server no longer waits for an answer."""

    def end(self) -> None:
        """Close without an answer, as soon as no other dialog is on top."""
        self.is_over = True
        self.dismiss(None)

    def on_screen_resume(self) -> None:
        """Start the delay, or close if the question is over."""
        super().on_screen_resume()
        if self.is_over:
            self.call_later(self.dismiss, None)


_QUESTION_CSS = """
    {name} {{
        & > #box {{
            width: 90; max-width: 96%; height: auto; max-height: 92%; padding: 0 1;
            border: round $warning; border-title-color: $text-warning;
        }}
        #head {{ dock: top; height: auto; }}
        #from {{ height: auto; max-height: 3; color: $text-muted; }}
        #message {{ max-height: 60%; }}
        Button {{ margin-left: 2; min-width: 12; }}
        {more}
    }}
"""


class ElicitationScreen(ServerQuestion[ElicitationAnswer | None]):
    """A form that a server asks the user to fill in. Nothing has the focus until the delay is over.

    Args:
        elicitation: The question; every text in it is untrusted.
    """

    PAGE = "Question from a server"
    AUTO_FOCUS = ""
    ANSWERS = None
    DEFAULT_CSS = _QUESTION_CSS.format(
        name="ElicitationScreen",
        more="& > #box { height: 22; }"
        " FormPane { height: 1fr; min-height: 3; margin-top: 1; scrollbar-size-vertical: 1; }",
    )
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("elicitation.accept", "ctrl+r,ctrl+s", "answer('accept')", "Accept", "Send the values.", footer=True),
        Command("elicitation.decline", "alt+d", "answer('decline')", "Decline", "Refuse to answer.", True),
        Command("elicitation.cancel", "escape", "answer('cancel')", "Cancel", "Close without a choice.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, elicitation: Elicitation) -> None:
        super().__init__(f"{clean_line(elicitation.server)} asks")
        self._elicitation = elicitation
        self._form = FormPane("Nothing to fill in.")
        self._moved_at = float("-inf")

    def compose_body(self) -> ComposeResult:
        """Compose the origin, the message, the form and the buttons."""
        yield Static(origin(self._elicitation.server, self._elicitation.tool, "asks you"), id="from")
        with LongText(id="message"):
            yield Static(Content(clean(self._elicitation.message)))
        yield self._form
        with Horizontal(id="foot"):
            yield Button(Content("Cancel"), id="cancel", compact=True)
            yield Button(Content("Decline"), id="decline", compact=True)
            yield Button(Content("Accept"), id="accept", variant="warning", compact=True)

    def on_mount(self) -> None:
        """Show the form, and focus it once keys count."""
        server = self._elicitation.server
        schema: JsonObject = self._elicitation.json_schema or {"type": "object", "properties": {}}
        handler = McpHandler(server=server, tool="elicitation")
        self._form.show(ToolSpec(name=f"{server}.elicitation", pack=server, input_schema=schema, handler=handler))
        self.set_interval(_FOCUS_SECONDS, self._focus_form)

    def _focus_form(self) -> None:
        """Focus the first field, unless the delay isn't over or the user has moved the focus."""
        if self.focused is None and self.is_current and self.accepts_now:
            self._form.focus_field()

    async def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Take the focus from a field that got it by an early click, which would type into the form."""
        del event
        if not self.accepts_now and not isinstance(self.focused, Button):
            self.set_focus(None)

    def restart_delay(self) -> None:
        """Restart the delay of clicks only: what the user types belongs to the form."""
        self._moved_at = answer_guard.clock.now()

    @property
    def is_deliberate(self) -> bool:
        """Whether a button pressed now is an answer: it did not move under the mouse as it was clicked."""
        is_early = self._down_at is not None and self._down_at - self._moved_at < answer_guard.DELAY_SECONDS
        return super().is_deliberate and not is_early

    def action_answer(self, action: ElicitationAction) -> None:
        """Close with an answer; an accepted form must be valid."""
        self._answer(action)

    def answer_by_button(self, button: str) -> None:
        """Close with the answer of a button; an accepted form must be valid."""
        if button in {"accept", "decline", "cancel"}:
            self._answer(cast("ElicitationAction", button))

    def _answer(self, action: ElicitationAction) -> None:
        content = self._form.submit() if action == "accept" else None
        if action != "accept" or content is not None:
            self.dismiss(ElicitationAnswer(action=action, content=content))


class VisitScreen(ServerQuestion[ElicitationAnswer | None]):
    """An address that a server asks the user to visit, in full. The focus is on the button that opens nothing.

    Args:
        origin: Who asks.
        message: Why; plain text.
        url: The address.
        title: Title of the dialog; plain text.
    """

    PAGE = "Address to visit"
    AUTO_FOCUS = "#decline"
    ANSWERS = None
    DEFAULT_CSS = _QUESTION_CSS.format(
        name="VisitScreen",
        more="#message { max-height: 5; }"
        " #url { max-height: 8; margin-top: 1; } #url Static { text-style: bold; }"
        " #foot { margin: 0 0 1 0; } #host { height: auto; max-height: 3; margin-bottom: 1; }",
    )
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("visit.open", "ctrl+y", "open", "Open", "Open the address in the browser.", footer=True),
        Command("visit.copy", "c", "copy", "Copy address", "Copy the address.", footer=True),
        Command("visit.decline", "n", "answer('decline')", "Decline", "Do not visit the address.", footer=True),
        Command("visit.cancel", "escape", "answer('cancel')", "Cancel", "Close without a choice.", footer=True),
        Command("visit.other", "left,right", "app.focus_next", "Other button", "Focus the next button."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, origin: Content, message: str, url: str, title: str) -> None:
        super().__init__(title)
        self._origin: Content = origin
        self._message = clean(message)
        self._url = url
        self._is_opening = False

    def compose_body(self) -> ComposeResult:
        """Compose the origin, the message, the address and the buttons."""
        yield Static(self._origin, id="from")
        with LongText(id="message"):
            yield Static(Content(self._message))
        with LongText(id="url"):
            yield Static(Content(clean_line(self._url)))
        with Vertical(id="foot"):
            yield Static(Content.assemble(("Host: ", "$text-muted"), clean_line(_host(self._url))), id="host")
            with Horizontal():
                yield Button(Content("Cancel"), id="cancel", compact=True)
                yield Button(Content("Decline"), id="decline", compact=True)
                if _is_web(self._url):
                    yield Button(Content("Open in browser"), id="accept", variant="warning", compact=True)

    def action_copy(self) -> None:
        """Copy the address."""
        self.post_message(Copy(self._url))

    def action_open(self) -> None:
        """Open the address and accept."""
        if not _is_web(self._url):
            self.notify("Only addresses that start with http:// or https:// can be opened.", severity="warning")
        elif not self._is_opening:
            self._is_opening = True
            self.run_worker(self._open(), group="open")

    async def _open(self) -> None:
        await _open_in_browser(self.app, self._url)
        self.dismiss(ElicitationAnswer(action="accept"))

    def action_answer(self, action: ElicitationAction) -> None:
        """Close without opening the address."""
        self.dismiss(ElicitationAnswer(action=action))

    def answer_by_button(self, button: str) -> None:
        """Open the address, or close without opening it."""
        if button == "accept":
            self.action_open()
        else:
            self.dismiss(ElicitationAnswer(action="decline" if button == "decline" else "cancel"))


class SamplingScreen(ServerQuestion[bool | None]):
    """A server's prompt for the configured model, in full. The focus is on the text, which only scrolls.

    Args:
        request: The prompt; every text in it is untrusted.
        model: Name of the configured model.
    """

    PAGE = "Prompt from a server"
    AUTO_FOCUS = "#prompt"
    ANSWERS = None
    DEFAULT_CSS = _QUESTION_CSS.format(
        name="SamplingScreen",
        more="#prompt { height: auto; max-height: 1fr; margin-top: 1; scrollbar-size-vertical: 1; }"
        " #prompt Static { height: auto; } #limits { height: auto; max-height: 2; }",
    )
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("sampling.approve", "ctrl+y", "answer(True)", "Approve", "Send the prompt to the model.", footer=True),
        Command("sampling.reject", "n,escape", "answer(False)", "Reject", "Refuse to ask the model.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, request: SamplingRequest, model: str) -> None:
        super().__init__(f"{clean_line(request.server)} asks the model")
        self._request = request
        self._model = model

    def compose_body(self) -> ComposeResult:
        """Compose the origin, the whole prompt and the buttons."""
        request = self._request
        limit = f"{request.max_tokens:,}" if request.max_tokens is not None else "not limited"
        facts = f"Model: {clean_line(self._model) or 'none is configured'} · maximum tokens: {limit}"
        with Vertical(id="head"):
            yield Static(origin(request.server, request.tool, "asks to send this prompt"), id="from")
            yield Static(Content(facts), id="limits")
        with VerticalScroll(id="prompt"):
            yield Static(Content("\n").join(self._prompt()))
        with Horizontal(id="foot"):
            yield Button(Content("Reject"), id="reject", compact=True)
            yield Button(Content("Approve"), id="approve", variant="warning", compact=True)

    def _prompt(self) -> list[Content]:
        parts = [("system", self._request.system)] if self._request.system else []
        parts += [(role, text) for role, text in self._request.messages]
        return [line for role, text in parts for line in (Content.styled(f"{role}:", "bold"), Content(clean(text)))]

    def action_answer(self, approve: bool) -> None:
        """Close with the answer."""
        self.dismiss(approve)

    def answer_by_button(self, button: str) -> None:
        """Close with the answer of a button."""
        self.dismiss(button == "approve")


def origin(server: str, tool: str | None, verb: str) -> Content:
    """Return who asks, with the names in bold."""
    during = (" during ", (clean_line(tool), "bold")) if tool else ("",)
    return Content.assemble("The MCP server ", (clean_line(server), "bold"), f" {verb}", *during, ".")


def _is_web(url: str) -> bool:
    try:
        return urlsplit(url).scheme in _WEB
    except ValueError:
        return False


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or "none"
    except ValueError:
        return "none"


async def _open_in_browser(app: App[Any], url: str) -> None:
    """Open an address in a browser with a window of its own; one in this terminal would destroy the screen."""
    if not await asyncio.to_thread(_opened, url):
        app.notify("No browser could be opened. Copy the address and visit it yourself.", severity="warning")
        app.post_message(Copy(url))


def _opened(url: str) -> bool:
    import webbrowser

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    if isinstance(browser, webbrowser.GenericBrowser) and not isinstance(browser, webbrowser.BackgroundBrowser):
        return False
    return browser.open(url)
