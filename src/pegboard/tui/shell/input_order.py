"""The order of input.

Textual lets the focused widget insert a character, but a key with a binding first passes every widget around it, each
with a queue of its own. Of keys that arrive together, as from a slow connection or while the app is busy, a later
character would be inserted before an earlier backspace deletes, and before an earlier tab moves the focus.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from textual import events
from textual.app import App
from textual.message import Message
from textual.widget import Widget

_LONGEST_WAIT: Final = 0.25
"""Seconds after which the next input is handled in any case: a widget that is removed loses its messages."""


class InputPassed(Message):
    """Every widget in the path of a key or of pasted text has handled it, because this message followed it.

    Attributes:
        number: Number of the wait that it ends.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class InputOrder:
    """Input that waits until the key or the pasted text before it was handled, and what its action requested.

    Args:
        app: The app.
        handle: Handles an event, or forwards it to a widget.
    """

    def __init__(self, app: App[None], handle: Callable[[events.Event], Awaitable[None]]) -> None:
        self._app = app
        self._handle = handle
        self._waiting: deque[events.Event] = deque()
        self._last: events.Event | None = None
        """The key or text that was forwarded last, until it is known that it was handled."""
        self._target: Widget | None = None
        """The widget to which it was forwarded."""
        self._number = 0
        """Number of the last wait."""
        self._timer: asyncio.TimerHandle | None = None
        """Ends the wait; None while no message follows the key or text."""

    async def add(self, event: events.Event) -> None:
        """Handle an event now or after the earlier ones."""
        self._waiting.append(event)
        await self._continue()

    async def passed(self, message: InputPassed) -> None:
        """Handle what waited for a key or text."""
        if self._timer is not None and message.number == self._number:
            self._end_wait()
            await self._continue()

    async def arrived(self, event: events.Event) -> None:
        """Wait for the messages of the action that a key ran when it arrived at the app, such as to move the focus."""
        if event is self._last:
            self._stop_timer()
            self._follow()
            await self._continue()

    async def _continue(self) -> None:
        while self._waiting:
            event = self._waiting[0]
            if self._last is not None and not self._is_typed(self._last, event):
                self._follow()
                if self._last is not None:
                    return
            self._waiting.popleft()
            await self._handle(event)
            if isinstance(event, events.Key | events.Paste) and event.is_forwarded:
                self._end_wait()
                self._last = event
                self._target = self._app.focused or self._app.screen

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

    def _follow(self) -> None:
        """Send a message after the last key or text, unless that is done; the wait ends if there is no way for it."""
        target = self._target
        if target is None or not target.is_attached:
            self._end_wait()
            return
        if self._timer is not None:
            return
        self._number += 1
        number = self._number
        if not target.post_message(InputPassed(number)):
            self._end_wait()
            return
        self._timer = asyncio.get_running_loop().call_later(_LONGEST_WAIT, self._app.post_message, InputPassed(number))

    def _end_wait(self) -> None:
        self._last = self._target = None
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
