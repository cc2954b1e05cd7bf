"""The record of watched calls, written to the history on a thread of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pegboard.gateway.redaction import redacted_texts
from pegboard.history import History
from pegboard.models import ToolCall, ToolResult
from pegboard.watch.history_problems import HistoryProblems

if TYPE_CHECKING:
    from pegboard.runtime.redaction import SecretRedaction


class CallRecorder:
    """Recorder of calls. Secrets are removed before anything is written.

    Args:
        history: The history.
        redaction: The known secrets.
        on_message: Called, on another thread, with texts about calls that can't be recorded.
    """

    def __init__(self, history: History, redaction: SecretRedaction, on_message: Callable[[str], None]) -> None:
        self._history = history
        self._redaction = redaction
        self._on_message = on_message
        self._problems = HistoryProblems(history, on_message)
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="pegboard-record", daemon=True)
        self._thread.start()

    def started(self, call: ToolCall, at: datetime, *, waits: bool = False) -> None:
        """Record that a call was requested, so that it appears as running or waiting.

        Args:
            call: The call.
            at: When it was requested.
            waits: Whether it waits for approval.
        """
        self._queue.put(lambda: self._start(call, at, waits=waits))

    def finished(self, call: ToolCall, finish: Callable[[], ToolResult], at: datetime) -> None:
        """Record a call and its result.

        Args:
            call: The call.
            finish: Returns its result; called on the recorder's thread, because it may take long.
            at: When it was requested.
        """
        self._queue.put(lambda: self._record(call, finish, at))

    def close(self) -> None:
        """Write the queue; return when it is written or can't be written."""
        self._queue.put(None)
        self._thread.join()
        self._problems.write_rest()
        self._history.close()

    def _run(self) -> None:
        while (task := self._queue.get()) is not None:
            try:
                task()
            except Exception as error:  # noqa: BLE001 - one damaged message must not end the record of all others
                self._on_message(f"a call was not recorded: {type(error).__name__}: {error}")

    def _start(self, call: ToolCall, at: datetime, *, waits: bool) -> None:
        self._redaction.renew_now()
        self._history.start(self._redacted(call), at, waits=waits)

    def _redacted(self, call: ToolCall) -> ToolCall:
        return call.model_copy(update={"args": self._redaction.value(call.args)})

    def _record(self, call: ToolCall, finish: Callable[[], ToolResult], at: datetime) -> None:
        self._redaction.renew_now()
        result = finish()
        call = self._redacted(call)
        data = self._redaction.value(result.data)
        result = redacted_texts(result, self._redaction)
        self._history.record(call, result.model_copy(update={"data": data}), at)


def moment(seconds: float) -> datetime:
    """Return a time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)
