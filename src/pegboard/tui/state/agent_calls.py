"""Calls of other processes that wait for a person, and the pause of agents' calls. Independent of Textual."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from pegboard.brake import BrakeState, Presence, Question, Questions

CallsChanged: TypeAlias = Callable[[tuple[Question, ...], BrakeState], object]


class AgentCalls:
    """The waiting calls of all processes of this user, which this process shows from `open` to `close`.

    All methods read or write small files.

    Args:
        state: The state folder.
        changed: Receives the waiting calls, the oldest first, and the pause, on any thread.
    """

    def __init__(self, state: Path, changed: CallsChanged) -> None:
        self.questions = Questions(state)
        self._changed = changed
        self._lock = threading.Lock()
        self._presence: Presence | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._is_closed = False

    def open(self) -> None:
        """Announce that this process shows waiting calls, and report them whenever they change.

        Raises:
            OSError: The process can't be announced; waiting calls are reported nevertheless.
        """
        with self._lock:
            if self._is_closed:
                return
            self._unsubscribe = self.questions.subscribe(self._report)
        self._report()
        with self._lock:
            if not self._is_closed:
                self._presence = self.questions.announce()

    def close(self) -> None:
        """Withdraw the announcement."""
        with self._lock:
            self._is_closed = True
            if self._unsubscribe is not None:
                self._unsubscribe()
            if self._presence is not None:
                self._presence.close()

    def _report(self) -> None:
        self._changed(self.questions.pending(), self.questions.brake.state)
