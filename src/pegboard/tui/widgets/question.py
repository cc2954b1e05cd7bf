"""A dialog whose answer counts only after it has been visible for a moment."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from textual import events, on
from textual.widgets import Button

from pegboard.tui.commands import bindings_of
from pegboard.tui.widgets import answer_guard
from pegboard.tui.widgets.answer_guard import AnswerGuard
from pegboard.tui.widgets.dialog import Dialog

ResultT = TypeVar("ResultT")

_SELF = "dialog"
_TYPING_KEYS = frozenset({"tab", "shift+tab", "backspace", "delete"})
"""Keys that users press while they type, besides printable ones."""


@dataclass
class _Now:
    """An event that happens now."""

    time: float


class QuestionScreen(Dialog[ResultT], Generic[ResultT]):
    """Base class of dialogs that ignore keys and clicks meant for the widget that had the focus before."""

    ANSWERS: ClassVar[Collection[str] | None] = ()
    """Ids of the commands that answer; they and enter are ignored until the delay is over, escape is not.

    None: every key is ignored until then.
    """

    DEFAULT_CSS = """
    QuestionScreen {
        & > #box { overflow-y: auto; scrollbar-size-vertical: 1; }
    }
    """

    def __init__(self, title: str = "", subtitle: str = "") -> None:
        super().__init__(title, subtitle)
        self._guard = AnswerGuard()
        self._down_at: float | None = None

    def on_mount(self) -> None:
        """Watch whether the terminal has the focus."""
        self.watch(self.app, "app_focus", self.restart_delay, init=False)

    def on_resize(self, event: events.Resize) -> None:
        """Restart the delay: the dialog moves under the mouse."""
        del event
        self.restart_delay()

    def restart_delay(self) -> None:
        """Restart the delay: a click may be meant for something else, such as to bring the terminal to the front."""
        self._guard.typed()

    def on_screen_resume(self) -> None:
        """Start the delay once the dialog is visible."""
        self._guard.show({})
        self.call_after_refresh(self.start_delay)

    def start_delay(self) -> None:
        """Start the delay, because the question is visible now."""
        self._guard.select(_SELF)
        self._guard.show({_SELF: 0})

    def on_key(self, event: events.Key) -> None:
        """Ignore early answers; typing restarts the delay."""
        if event.key == "enter":
            self._down_at = None
        is_answer = self._is_answer(event.key)
        if is_answer and not self._guard.accepts(_SELF, answer_guard.clock.of(event)):
            event.stop()
            event.prevent_default()
            self._guard.typed()
        elif not is_answer and (event.is_printable or event.key in _TYPING_KEYS):
            self._guard.typed()

    @property
    def answers(self) -> Collection[str] | None:
        """The `ANSWERS` that are possible now."""
        return self.ANSWERS

    def _is_answer(self, key: str) -> bool:
        if self.answers is None:
            return True
        closing = [one.id for declared, one in self._bindings if declared == key == "escape"]
        ids = {one.id for pressed, one in bindings_of(self) if pressed == key}.difference(closing)
        return key == "enter" or not ids.isdisjoint(self.answers)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Note when the mouse button went down; an early click must not leave the focus on a button."""
        self._down_at = answer_guard.clock.of(event)
        if not self.is_deliberate and isinstance(self.focused, Button):
            self.set_focus(self.query(self.AUTO_FOCUS).first() if self.AUTO_FOCUS else None)

    @on(Button.Pressed)
    def _button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if self.is_deliberate:
            self.answer_by_button(event.button.id or "")

    def answer_by_button(self, button: str) -> None:
        """Answer by the button with this id."""

    @property
    def accepts_now(self) -> bool:
        """Whether a key pressed now would be an answer."""
        return self._guard.accepts(_SELF, answer_guard.clock.of(_Now(answer_guard.clock.now())))

    @property
    def is_deliberate(self) -> bool:
        """Whether a button pressed now is an answer: it was not clicked as soon as the dialog appeared."""
        return self._down_at is None or self._guard.accepts(_SELF, self._down_at)
