"""Calls that a server runs as tasks: their result comes in a later message, or never.

Protocol 2025-11-25 returns it in the response to `tasks/result`. Its successor, the extension
`io.modelcontextprotocol/tasks`, puts it into the status of the task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple  # Any: messages

from pegboard.models import ResultMeta, ToolResult
from pegboard.watch.messages import failed_result, key_of

if TYPE_CHECKING:
    from pegboard.watch.flight import Flight

_MOST: Final = 10_000
_STATUS: Final = frozenset({"notifications/tasks", "notifications/tasks/status"})
"""Notifications with the status of a task."""
_FINAL: Final = frozenset({"completed", "failed"})


class TaskEnd(NamedTuple):
    """The end of a task."""

    flight: Flight
    message: dict[str, Any] | None
    """A response with the result or the error of the call; None if the task was cancelled."""


@dataclass
class Tasks:
    """Calls of one connection, or of all connections of clients without sessions, that run as tasks."""

    _flights: dict[str, Flight] = field(default_factory=dict)
    """By the ids of the tasks."""
    _status: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The last status and its message, by the same ids."""
    _asked: dict[str, str] = field(default_factory=dict)
    """Key of a request for a result → id of its task."""

    def shared(self) -> Tasks:
        """Return the same calls for another connection, whose requests have ids of their own."""
        return Tasks(self._flights, self._status)

    def keep(self, flight: Flight, message: dict[str, Any]) -> bool:
        """Keep a call whose response says that it runs as a task; return False for any other response."""
        result = message.get("result")
        if not isinstance(result, dict) or "content" in result:
            return False
        task = result if result.get("resultType") == "task" else result.get("task")
        id_ = task.get("taskId") if isinstance(task, dict) else None
        if not isinstance(id_, str) or len(self._flights) >= _MOST:
            return False
        self._flights[id_] = flight
        return True

    def ask(self, message: dict[str, Any]) -> None:
        """Note a message of the client, if it asks for the result of a task."""
        params = message.get("params")
        id_ = params.get("taskId") if isinstance(params, dict) else None
        if message.get("method") == "tasks/result" and isinstance(id_, str) and id_ in self._flights:
            self._asked[key_of(message.get("id"))] = id_

    def answered(self, key: str) -> Flight | None:
        """Return the call whose result is in the response with this key, or None; it is no longer kept then."""
        return self._taken(self._asked.pop(key, ""))

    def receive(self, message: dict[str, Any]) -> TaskEnd | None:
        """Read a message of the server; return the end of a task if the message contains it."""
        if "id" in message and "method" not in message:
            flight = self.answered(key_of(message["id"]))
            if flight is not None:
                return TaskEnd(flight, message)
            task = message.get("result")
        elif message.get("method") in _STATUS:
            task = message.get("params")
        else:
            return None
        id_ = task.get("taskId") if isinstance(task, dict) else None
        if not isinstance(task, dict) or not isinstance(id_, str) or id_ not in self._flights:
            return None
        status = str(task.get("status", ""))
        if self._status.get(id_, ("",))[0] not in _FINAL:  # a later response may be older
            self._status[id_] = status, str(task.get("statusMessage") or "")
        ends = {key: task[key] for key in ("result", "error") if isinstance(task.get(key), dict)}
        if not ends and status != "cancelled":
            return None
        flight = self._taken(id_)
        assert flight is not None, "it is kept"
        return TaskEnd(flight, ends or None)

    def rest(self, at: float) -> Iterator[tuple[Flight, ToolResult]]:
        """Yield the calls whose result never passed, as far as it is known."""
        for id_, flight in self._flights.items():
            status, said = self._status.get(id_, ("", ""))
            milliseconds = flight.milliseconds(at)
            if status == "completed":
                note = "The result is not recorded because the client didn't ask for it."
                yield flight, ToolResult(ok=True, meta=ResultMeta(duration_ms=milliseconds, warnings=(note,)))
            elif status == "failed":
                yield flight, failed_result(f"The task failed. {said}".strip(), "server_error", milliseconds)
            else:
                text = "The call ran as a task whose result never passed, so its outcome is unknown."
                yield flight, failed_result(text, "interrupted", milliseconds)
        self._flights.clear()

    def _taken(self, id_: str) -> Flight | None:
        self._status.pop(id_, None)
        return self._flights.pop(id_, None)
