"""The chat prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive

from pegboard.tui.commands import Command, bindings, bindings_of
from pegboard.tui.form.lines import Lines

_OWN = ("ask.send", "ask.newline")
"""Commands whose keys a text area would insert as text."""


class AskLine(Lines):
    """Multi-line prompt with a history of sent messages."""

    PAGE = "Message"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("ask.send", "enter", "send", "Send", "Send the message.", footer=True),
        Command(
            "ask.newline", "ctrl+j,shift+enter,ctrl+enter,alt+enter", "line_break", "New line", "Insert a line break."
        ),
        Command("ask.earlier", "up", "recall(-1)", "Earlier", "In the first row: recall the previous message."),
        Command("ask.later", "down", "recall(1)", "Later", "In the last row: recall the next message."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    AskLine { min-height: 1; max-height: 8; scrollbar-size-vertical: 1; }
    """

    hint: reactive[str] = reactive("", init=False)
    """Placeholder."""

    @dataclass
    class Sent(Message):
        """The user sent a message."""

        text: str

    def __init__(self) -> None:
        super().__init__("")
        self._sent: list[str] = []
        self._at = 0
        self._draft = ""

    @property
    def unsent(self) -> str:
        """Text that was typed and not sent, also while a sent message is recalled."""
        if not (self._draft and self._at < len(self._sent)):
            return self.text
        return self._draft if self.text == self._sent[self._at] else f"{self._draft}\n{self.text}".rstrip("\n")

    async def _on_key(self, event: events.Key) -> None:
        """Handle send and line break in the order of typing, which bindings would not keep."""
        own = {key: binding.action for key, binding in bindings_of(self) if binding.id in _OWN}
        wanted = own.get(event.key)
        if wanted is None:
            await super()._on_key(event)
        else:
            event.stop()
            event.prevent_default()
            await self.run_action(wanted)

    def watch_hint(self, hint: str) -> None:
        """Show the placeholder."""
        self.placeholder = Content(hint)

    def action_send(self) -> None:
        """Send the message unless it is blank."""
        text = self.text
        if not text.strip():
            return
        if self._sent[-1:] != [text]:
            self._sent.append(text)
        self._at, self._draft = len(self._sent), ""
        self.load_text("")
        self.post_message(self.Sent(text))

    def put(self, text: str) -> None:
        """Replace the text and move the cursor to its end."""
        self.load_text(text)
        self.move_cursor(self.document.end)

    def put_before(self, text: str) -> None:
        """Insert a text, unless it is empty, in lines of its own before the draft and move the cursor to the end."""
        if text:
            self.put("\n".join(filter(None, [text, self.text])))

    def remember(self, sent: list[str]) -> None:
        """Set the history of sent messages; if it lacks the recalled one, show the draft again."""
        if self._at >= len(self._sent) or sent[: self._at + 1] != self._sent[: self._at + 1]:
            if self._draft and self.text != self.unsent:
                self.put(self.unsent)
            self._at, self._draft = len(sent), ""
        self._sent = sent

    def action_recall(self, by: int) -> None:
        """Recall the previous or next message; within a longer text, move the cursor."""
        at = self.cursor_location
        if by < 0 and not self.navigator.is_first_wrapped_line(at):
            self.action_cursor_up()
            return
        if by > 0 and not self.navigator.is_last_wrapped_line(at):
            self.action_cursor_down()
            return
        if not 0 <= self._at + by <= len(self._sent):
            return
        if self._at == len(self._sent):
            self._draft = self.text
        self._at += by
        self.put(self._draft if self._at == len(self._sent) else self._sent[self._at])
