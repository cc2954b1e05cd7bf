"""A dialog whose answer counts only after it has been visible for a moment."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Generic, TypeVar

from textual import events

from pegboard.tui.widgets import answer_guard
from pegboard.tui.widgets.answer_guard import AnswerGuard
from pegboard.tui.widgets.dialog import Dialog

ResultT = TypeVar("ResultT")

_SELF = "dialog"
_MEANT_FOR_TEXT = frozenset({"tab", "shift+tab", "backspace", "delete"})
"""Keys that somebody presses while they type, beside printable ones."""


class QuestionScreen(Dialog[ResultT], Generic[ResultT]):
    """Base class: ignores answers by keys and clicks that were meant for what had the focus before."""

    ANSWERS: ClassVar[Collection[str]] = ()
    """Ids of the commands that answer; before the delay is over their keys do nothing, nor does enter. Escape does."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = AnswerGuard()
        self._down_at: float | None = None

    def on_screen_resume(self) -> None:
        """Start the delay once the dialog is visible."""
        self._guard.show({})
        self.call_after_refresh(self._start_delay)

    def _start_delay(self) -> None:
        self._guard.select(_SELF)
        self._guard.show({_SELF: 0})

    def on_key(self, event: events.Key) -> None:
        """Ignore early answers; while somebody types, the delay starts again."""
        self._down_at = None
        own = {key for key, binding in self._bindings if binding.id in self.ANSWERS} - {"escape"}
        is_answer = event.key == "enter" or event.key in own
        if is_answer and not self._guard.accepts(_SELF, answer_guard.clock.of(event)):
            event.stop()
            event.prevent_default()
            self._guard.typed()
        elif not is_answer and (event.is_printable or event.key in _MEANT_FOR_TEXT):
            self._guard.typed()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Note when the mouse button went down."""
        self._down_at = answer_guard.clock.of(event)

    @property
    def is_deliberate(self) -> bool:
        """Whether a button that is pressed now is an answer: not clicked as soon as the dialog appeared."""
        return self._down_at is None or self._guard.accepts(_SELF, self._down_at)
