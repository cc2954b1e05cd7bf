"""Protection against answers by accident: what was pressed too early, or meant for something else, doesn't count.

Knows nothing of Textual.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Final, Protocol

DELAY_SECONDS: Final = 0.3
"""How long a question must have been visible before an answer counts."""


class TimedEvent(Protocol):
    """An event that knows when it happened."""

    time: float


class Clock:
    """The time now, and the time of an event: when a key was pressed, not when it was handled."""

    def now(self) -> float:
        """Return the time now, in seconds."""
        return monotonic()

    def of(self, event: TimedEvent) -> float:
        """Return the time of an event."""
        return event.time


clock: Clock = Clock()
"""The clock that every guard reads."""


class AnswerGuard:
    """Which call is selected, since when each is visible, and whether an answer counts by now."""

    def __init__(self) -> None:
        self.selected: str | None = None
        """The id of the call that the user selected."""
        self._selected_at = 0.0
        self._typed_at = float("-inf")
        self._seen_at: dict[str, float] = {}
        self._rows: dict[str, tuple[int | None, float]] = {}
        """Row of the answers on the screen, and since when they are there."""

    def select(self, call_id: str | None) -> None:
        """Select a call, or none."""
        self.selected = call_id
        self._selected_at = clock.now()

    def show(self, rows: Mapping[str, int | None]) -> None:
        """Note what is visible now.

        Args:
            rows: The calls that can be seen, with the row of their answers on the screen; None if it can't be seen.
        """
        now = clock.now()
        self._seen_at = {call_id: self._seen_at.get(call_id, now) for call_id in rows}
        self._rows = {
            call_id: self._rows[call_id] if self._rows.get(call_id, (-1, 0.0))[0] == row else (row, now)
            for call_id, row in rows.items()
        }

    def restart(self, call_id: str) -> None:
        """Start the delay of a call again: what it shows has changed."""
        if call_id in self._seen_at:
            self._seen_at[call_id] = clock.now()

    def typed(self) -> None:
        """Note a key that was no answer: somebody may be typing, so the delay starts again."""
        self._typed_at = clock.now()

    def accepts(self, call_id: str, at: float) -> bool:
        """Tell whether a key that was pressed at some time answers a call."""
        if call_id != self.selected or call_id not in self._seen_at:
            return False
        return at - max(self._selected_at, self._typed_at, self._seen_at[call_id]) >= DELAY_SECONDS

    def accepts_click(self, call_id: str, at: float) -> bool:
        """Tell whether a click at some time answers a call: its answers haven't moved under the pointer either."""
        row, since = self._rows.get(call_id, (None, at))
        return row is not None and at - since >= DELAY_SECONDS and self.accepts(call_id, at)
