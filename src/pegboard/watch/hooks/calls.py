"""The calls of one session of an agent, from the hook before each to what the agent reports afterwards."""

from __future__ import annotations

import json
import time
from collections import OrderedDict, deque
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from pegboard.models import Agent, JsonObject, ToolSpec
from pegboard.watch.connection import ClientConnection
from pegboard.watch.flight import Flight
from pegboard.watch.hooks.decisions import UNEDITABLE
from pegboard.watch.hooks.events import HookEvent
from pegboard.watch.hooks.transcript import EVERY_CALL
from pegboard.watch.messages import key_of
from pegboard.watch.record import CallRecorder

if TYPE_CHECKING:
    from pegboard.watch.hooks.servers import WatchedServers

_MOST_KNOWN: Final = 10_000
_NO_RESULT: Final = "The agent reported no result of this call: it was rejected there, interrupted, or it failed."
_ENDED: Final = "The agent ended before the call did."

_Place: TypeAlias = tuple[str, str]
"""A subagent, empty for the agent itself, and the id of a call."""
_Value = TypeVar("_Value")


class SessionCalls:
    """Calls of one session.

    Args:
        recorder: The record.
        state: The state folder.
    """

    def __init__(self, recorder: CallRecorder, state: Path) -> None:
        self._recorder = recorder
        self._state = state
        self._connections: dict[tuple[str, str], ClientConnection] = {}
        """By server and subagent."""
        self._tools: dict[str, dict[str, ToolSpec]] = {}
        self._watched: dict[str, WatchedServers] = {}
        self._done: OrderedDict[_Place, None] = OrderedDict()
        """Calls that were rejected or have a result."""
        self._closed: OrderedDict[_Place, Flight] = OrderedDict()
        """Calls that were recorded as interrupted; their result may still come."""
        self._edited: OrderedDict[_Place, str] = OrderedDict()
        """Ids of calls whose arguments are their id and were edited."""

    @property
    def are_running(self) -> bool:
        """Whether there is a call without a result."""
        return any(connection.flights for connection in self._connections.values())

    def is_watched(self, seen: HookEvent, agent: str, folder: Path) -> bool:
        """Return whether a call is recorded and decided on by the proxy of its MCP server.

        Args:
            seen: The event.
            agent: Name of the agent.
            folder: Its working directory.
        """
        if not seen.mcp_server:
            return False
        from pegboard.watch.hooks.servers import WatchedServers

        if agent not in self._watched:
            self._watched[agent] = WatchedServers(agent, self._state)
        return self._watched[agent].has(seen.mcp_server, folder)

    def connection(self, seen: HookEvent, agent: Agent) -> ClientConnection:
        """Return the connection that the call of an event belongs to."""
        place = seen.server, seen.part
        if place not in self._connections:
            tools = self._tools.setdefault(seen.server, {})
            self._connections[place] = ClientConnection(
                self._recorder,
                seen.server,
                agent,
                tools,
                worker=agent.name,
                edit_problem=UNEDITABLE.get(seen.dialect, ""),
            )
        return self._connections[place]

    def finish(self, seen: HookEvent, connection: ClientConnection) -> None:
        """Record a call with its result, also if the call itself wasn't seen."""
        at, seconds = time.time(), seen.milliseconds / 1000
        place = seen.part, seen.id
        id_ = self._edited.pop(place, seen.id)
        key = key_of(id_)
        ((_, call, note),) = connection.calls(seen.request)
        if key not in connection.flights:
            if seen.kind == "rest" and place in self._done:
                return
            if (flight := self._closed.pop(place, None)) is not None:
                connection.flights[key] = deque([flight])
            else:
                connection.begin(key, call, at - seconds, note)
        if waiting := connection.flights.get(key):
            flight = waiting[0]
            flight.call = flight.call.model_copy(update={"args": call.args})  # Another hook may have changed them.
            flight.note = flight.note or note
            if seconds:  # Only the agent knows when the tool began.
                at = max(flight.at, flight.released) + seconds
        if seen.is_cancelled:
            connection.cancel(key, at)
        else:
            connection.receive(as_line({**seen.response, "id": id_}), at)
        _keep(self._done, place, None)

    def reject(self, seen: HookEvent, connection: ClientConnection, reason: str = "") -> None:
        """Note that a call is not made; record it as failed if it was already recorded as running."""
        if reason:
            result: JsonObject = {"content": [{"type": "text", "text": reason}], "isError": True}
            connection.receive(as_line({**seen.response, "result": result}), time.time())
        _keep(self._done, (seen.part, seen.id), None)

    def edit(self, seen: HookEvent, args: JsonObject) -> None:
        """Note that a person edited the arguments of a call."""
        if (new := seen.id_with(args)) != seen.id:
            _keep(self._edited, (seen.part, new), seen.id)

    def end_turn(self, seen: HookEvent) -> None:
        """Record the calls of a turn, or of a session, that have no result as interrupted."""
        for (_, part), connection in self._connections.items():
            if seen.kind == "session end" or part == seen.part:
                for key, flights in connection.flights.items():
                    _keep(self._closed, (part, json.loads(key)), flights[-1])
                connection.close(time.time(), _NO_RESULT)

    def interrupt(self, id_: str) -> None:
        """Record a call as cancelled, or every call, as its agent's transcript says; its result may still come."""
        for (_, part), connection in self._connections.items():
            for key, flights in [*connection.flights.items()]:
                if id_ in (EVERY_CALL, json.loads(key)):
                    _keep(self._closed, (part, json.loads(key)), flights[-1])
                    for _flight in [*flights]:
                        connection.cancel(key, time.time())

    def close(self) -> None:
        """Record the calls in flight: the agent has ended."""
        for connection in self._connections.values():
            connection.close(time.time(), _ENDED)


def as_line(message: JsonObject) -> bytes:
    """Return a message as a line."""
    return json.dumps(message).encode("utf-8", "backslashreplace")


def _keep(known: OrderedDict[_Place, _Value], place: _Place, value: _Value) -> None:
    known[place] = value
    if len(known) > _MOST_KNOWN:
        known.popitem(last=False)
