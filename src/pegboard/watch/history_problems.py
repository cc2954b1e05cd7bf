"""Problems of the history as messages of a command that records what it watches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pegboard.history import History
from pegboard.models import Problem

_CLOSE_SECONDS: Final = 60.0
"""Time to write the last calls while another process locks the database."""
_MOST_MESSAGES: Final = 1_000


class HistoryProblems:
    """Reporter of why calls are not recorded; reports each reason once.

    Args:
        history: The history.
        on_message: Called, on any thread, with texts for the user.
    """

    def __init__(self, history: History, on_message: Callable[[str], None]) -> None:
        self._history = history
        self._on_message = on_message
        self._reported: set[str] = set()
        history.on_problem_changed = self._report_history

    def report(self, text: str) -> None:
        """Pass a message on, unless it was passed on before."""
        if text not in self._reported and len(self._reported) < _MOST_MESSAGES:
            self._reported.add(text)
            self._on_message(text)

    def write_rest(self) -> None:
        """Write the recorded calls; return when they are written, or when the time for this is over."""
        end = time.monotonic() + _CLOSE_SECONDS
        self._history.flush()
        while self._history.unrecorded is not None and time.monotonic() < end:
            time.sleep(0.5)
            self._history.flush()

    def _report_history(self) -> None:
        lost = self._history.unrecorded
        problems: tuple[Problem, ...] = (lost,) if lost is not None else self._history.problems
        for problem in problems:
            if problem.severity == "error" or problem is lost:
                self.report(f"calls are not recorded: {problem.message} {problem.fix}".strip())
