"""Protection against accidental answers: keys and clicks that come too early don't count. Independent of Textual."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Final, Protocol

DELAY_SECONDS: Final = 0.3
"""Time that a question must be visible before an answer counts."""


class TimedEvent(Protocol):
    """An event with a time stamp."""

    time: float


class Clock:
    """The current time, and the time of an event: when a key was pressed, not when it was handled."""

    def now(self) -> float:
        """Return the current time in seconds."""
        return monotonic()

    def of(self, event: TimedEvent) -> float:
        """Return the time of an event in seconds."""
        return event.time


clock: Clock = Clock()
"""The clock of every guard."""


class AnswerGuard:
    """The selected question, and the time since which each question is visible."""

    def __init__(self) -> None:
        self.selected: str | None = None
        """Id of the selected call."""
        self._selected_at = 0.0
        self._typed_at = float("-inf")
        self._seen_at: dict[str, float] = {}
        self._rows: dict[str, tuple[int | None, float]] = {}
        """Screen row of the answers of each call, and the time since which they are in that row."""

    def select(self, call_id: str | None) -> None:
        """Select a call, or none."""
        self.selected = call_id
        self._selected_at = clock.now()

    def show(self, rows: Mapping[str, int | None]) -> None:
        """Note which questions are visible.

        Args:
            rows: The visible calls, with the screen row of their answers, or None if the answers are not visible.
        """
        now = clock.now()
        self._seen_at = {call_id: self._seen_at.get(call_id, now) for call_id in rows}
        self._rows = {
            call_id: self._rows[call_id] if self._rows.get(call_id, (-1, 0.0))[0] == row else (row, now)
            for call_id, row in rows.items()
        }

    def restart(self, call_id: str) -> None:
        """Restart the delay of a call because its content has changed."""
        if call_id in self._seen_at:
            self._seen_at[call_id] = clock.now()

    def typed(self) -> None:
        """Restart every delay because the user may be typing."""
        self._typed_at = clock.now()

    def accepts(self, call_id: str, at: float) -> bool:
        """Return whether a key pressed at a time answers a call."""
        if call_id != self.selected or call_id not in self._seen_at:
            return False
        return at - max(self._selected_at, self._typed_at, self._seen_at[call_id]) >= DELAY_SECONDS

    def accepts_click(self, call_id: str, at: float) -> bool:
        """Return whether a click at a time answers a call; its answers must not have moved under the mouse."""
        row, since = self._rows.get(call_id, (None, at))
        return row is not None and at - since >= DELAY_SECONDS and self.accepts(call_id, at)
