"""The order of input.

Textual lets the focused widget insert a character, but a key with a binding first passes every widget around it, each
with a queue of its own. Of keys that arrive together, as from a slow connection or while the app is busy, a later
character would be inserted before an earlier backspace deletes, and before an earlier tab moves the focus. The same
holds for keys after a click, such as one that adds a row.

Keys after one that opens a dialog or a form wait until its widgets are mounted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Final

from textual import events
from textual.app import App, ScreenStackError
from textual.errors import NoWidget
from textual.message import Message
from textual.widget import Widget
from textual.worker import Worker

_LONGEST_WAIT: Final = 0.25
"""Seconds after which the next input is handled in any case: a widget that is removed loses its messages."""
_LONGEST_PREPARATION: Final = 1.0
"""Seconds after which input is handled although a dialog or a form isn't ready for it."""
_LOOK_SECONDS: Final = 0.01
"""Seconds after which input looks again whether a dialog or a form is ready."""
_ROUNDS: Final = 1
"""How often the wait for a key begins again, for messages that widgets send when they handle those of the key."""
_FIRST_TURNS: Final = 8
"""Turns of the event loop in which a worker that an action started opens its dialog, unless it waits for something."""


class InputPassed(Message):
    """Every widget in the path of a key or of pasted text has handled it, because this message followed it.

    Attributes:
        number: Number of the wait that it ends; 0 looks again whether a widget is ready for input.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class InputOrder:
    """Input that waits until the key, pasted text or click before it was handled, and what its action requested.

    Args:
        app: The app.
        handle: Handles an event, or forwards it to a widget.
        is_early: Returns whether an event comes before the app can handle it, and waits a second at most.
    """

    def __init__(
        self,
        app: App[None],
        handle: Callable[[events.Event], Awaitable[None]],
        is_early: Callable[[events.Event], bool],
    ) -> None:
        self._app = app
        self._handle = handle
        self._is_early = is_early
        self._waiting: deque[events.Event] = deque()
        self._last: events.Event | None = None
        """The key, text or click that was forwarded last, until it is known that it was handled."""
        self._target: Widget | None = None
        """The widget to which it was forwarded."""
        self._around: tuple[Widget, ...] = ()
        """The widgets around that one, from the inside out; they remain if the key or text removes it."""
        self._carrier: Widget | None = None
        """The widget to which the message that follows was sent."""
        self._number = 0
        """Number of the last wait."""
        self._rounds = 0
        """How often the wait for the last key begins again."""
        self._timer: asyncio.TimerHandle | None = None
        """Ends the wait; None while no message follows the key or text."""
        self._looking: asyncio.TimerHandle | None = None
        self._preparing_until: float | None = None
        """Time on the monotonic clock at which input no longer waits for a dialog or form."""
        self._workers: set[Worker[object]] = set()
        """The workers that ran before the last key or text."""
        self._turns = 0
        """Turns of the event loop for which input still waits if the last key has started a worker."""

    async def add(self, event: events.Event) -> None:
        """Handle an event now or after the earlier ones."""
        self._waiting.append(event)
        await self._continue()

    async def passed(self, message: InputPassed) -> None:
        """Handle what waited for a key or text."""
        if not message.number:
            self._looking = None
        elif self._timer is not None and message.number == self._number:
            if self._rounds and (isinstance(self._last, events.Paste) or not self._was_typed()):
                # What a widget announced when it handled the key comes after this message, such as a complete line,
                # or pasted text that needs another editor.
                self._rounds -= 1
                self._stop_timer()
                self._follow()
                if self._timer is not None:
                    return
            # Text opens no dialog. It may open completions, which a key typed before they appear must not reach.
            self._turns = 0 if self._was_typed() else _FIRST_TURNS
            self._end_wait()
        else:
            return
        await self._continue()

    async def arrived(self, event: events.Event) -> None:
        """Wait for the messages of the action that a key ran when it arrived at the app, such as to move the focus."""
        if event is self._last:
            self._stop_timer()
            self._rounds = _ROUNDS
            self._follow()
            await self._continue()

    async def _continue(self) -> None:
        while self._waiting:
            event = self._waiting[0]
            if self._last is not None and not self._is_typed(self._last, event):
                self._follow()
                if self._last is not None:
                    return
            if self._must_prepare(event):
                return
            self._waiting.popleft()
            self._workers, self._turns = {*self._app.workers}, 0
            clicked = self._find_clicked(event)
            await self._handle(event)
            # A key with a priority binding isn't forwarded, but what its action requested comes later, too.
            if clicked or isinstance(event, events.Key) or (isinstance(event, events.Paste) and event.is_forwarded):
                self._end_wait()
                with suppress(ScreenStackError):  # the app is ending
                    self._target = clicked or self._app.focused or self._app.screen
                    self._around = tuple(one for one in self._target.ancestors if isinstance(one, Widget))
                    self._last, self._rounds = event, _ROUNDS

    def _find_clicked(self, event: events.Event) -> Widget | None:
        """Return the widget on which a mouse button is released, or None if the event is another one."""
        if not isinstance(event, events.MouseUp):
            return None
        try:
            return self._app.get_widget_at(event.x, event.y)[0]
        except (NoWidget, ScreenStackError):
            return None

    def _is_typed(self, last: events.Event, event: events.Event) -> bool:
        """Return whether the same widget takes an event and the one after it as text, in their order."""
        target = self._target
        return (
            isinstance(last, events.Key)
            and isinstance(event, events.Key)
            and target is not None
            and target is self._app.focused
            and target.check_consume_key(last.key, last.character)
            and target.check_consume_key(event.key, event.character)
        )

    def _was_typed(self) -> bool:
        """Return whether the last input was a text, or a key that was taken as text."""
        last, target = self._last, self._target
        if not isinstance(last, events.Key):
            return isinstance(last, events.Paste)
        return target is not None and target.check_consume_key(last.key, last.character)

    def _follow(self) -> None:
        """Send a message after the last key or text, unless that is done; the wait ends if there is no way for it."""
        if self._timer is not None:
            if self._carrier is not None and self._carrier.is_attached:
                return
            self._stop_timer()  # a widget that is removed loses its messages
        self._number += 1
        number = self._number
        path = (self._target, *self._around) if self._target is not None else ()
        self._carrier = next((one for one in path if one.is_attached and one.post_message(InputPassed(number))), None)
        if self._carrier is None:
            self._end_wait()
            return
        self._timer = asyncio.get_running_loop().call_later(_LONGEST_WAIT, self._app.post_message, InputPassed(number))

    def _must_prepare(self, event: events.Event) -> bool:
        """Return whether an event waits for the app, a dialog or the field of a form; look again soon."""
        is_ready = self._is_ready(event)
        if is_ready and not (self._turns and self._has_started_worker()):
            self._preparing_until = None
            return False
        if self._preparing_until is None:
            self._preparing_until = monotonic() + _LONGEST_PREPARATION
        if monotonic() >= self._preparing_until:
            return False
        if self._looking is None:
            self._turns = max(0, self._turns - 1)
            self._looking = asyncio.get_running_loop().call_later(
                0 if is_ready else _LOOK_SECONDS, self._app.post_message, InputPassed(0)
            )
        return True

    def _is_ready(self, event: events.Event) -> bool:
        """Return whether the screen has its widgets, the focus is where the user works, and the event isn't early.

        A form that isn't mounted yet holds the focus for its field, although users can't focus the form itself.
        """
        try:
            screen = self._app.screen
        except ScreenStackError:  # the app is ending
            return True
        has_place = screen.is_mounted and (screen.focused is None or screen.focused.can_focus)
        return has_place and not self._is_early(event)

    def _has_started_worker(self) -> bool:
        return any(worker not in self._workers and not worker.is_finished for worker in self._app.workers)

    def _end_wait(self) -> None:
        self._last = self._target = self._carrier = None
        self._around = ()
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
