"""One connection of a client to the watched server: its agent, its tools and its calls in flight."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from pegboard.config.servers import pack_name
from pegboard.data.message_id import request_id, response_id
from pegboard.mcp.specs import tool_specs
from pegboard.models import Agent, JsonObject, McpHandler, ServerConfig, ToolCall, ToolResult, ToolSpec
from pegboard.watch.command_name import command_name
from pegboard.watch.flight import Flight
from pegboard.watch.messages import call_of, clipped_result, failed_result, items, key_of, read, result_of
from pegboard.watch.record import CallRecorder, moment
from pegboard.watch.tasks import Tasks

_MOST_IN_FLIGHT: Final = 10_000
_CLIENT_INFO: Final = ("clientInfo", "io.modelcontextprotocol/clientInfo")


class SeenCall(NamedTuple):
    """A call in a message of a client."""

    key: str
    """Key of its id; empty for a notification."""
    call: ToolCall
    note: str = ""
    """Why its arguments are left out; empty if they are complete."""


@dataclass
class ClientConnection:
    """State of a connection.

    Args:
        recorder: The record.
        server: The server's name, which rules use.
        agent: The client, as far as it is known.
        tools: The tools that the server listed, by its own names; all its connections share them.
        worker: What runs the calls, in records; by default the MCP server.
        edit_problem: Why the arguments of waiting calls can't be edited, as a clause; empty if they can.
    """

    recorder: CallRecorder
    server: str
    agent: Agent
    tools: dict[str, ToolSpec]
    worker: str = ""
    edit_problem: str = ""
    flights: dict[str, deque[Flight]] = field(default_factory=dict)
    tasks: Tasks = field(default_factory=Tasks)
    keeps_tasks: bool = True
    """Whether its tasks end with it."""

    @classmethod
    def opened(
        cls, about: dict[str, Any], recorder: CallRecorder, tools: dict[str, ToolSpec], sessionless: Tasks
    ) -> ClientConnection:
        """Return the connection that the proxy describes.

        Args:
            about: What the proxy knows of it.
            recorder: The record.
            tools: The tools that the server listed.
            sessionless: Calls of requests without a session that run as tasks; such a request is a connection of its
                own, and the result of a task comes in another one.
        """
        name = str(about.get("name") or "")
        if not name:
            command = about.get("command")
            words = [str(word) for word in command] if isinstance(command, list) else []
            name = command_name(words) if words else pack_name(str(about.get("url", "")))
        process = int(about.get("client_pid") or 0) or None
        agent = Agent.connected(process, started=str(about.get("started") or ""))
        found = cls(recorder, name, agent, tools)
        if about.get("sessionless"):
            found.tasks, found.keeps_tasks = sessionless.shared(), False
        return found

    @classmethod
    def of_tasks(cls, recorder: CallRecorder, tasks: Tasks) -> ClientConnection:
        """Return a connection that has only calls that run as tasks, to record those that are left at the end."""
        return cls(recorder, "", Agent.connected(None), {}, tasks=tasks)

    def begin_session(self) -> None:
        """Note that the connection has a session now, which has tasks of its own."""
        self.tasks, self.keeps_tasks = Tasks(), True

    # Messages of the client

    def notice(self, message: object) -> None:
        """Read who the client is, and for which results of tasks it asks."""
        for item in items(message):
            self.tasks.ask(item)
            params = item.get("params")
            if not isinstance(params, dict):
                continue
            meta = params.get("_meta")
            for holder in (params, meta if isinstance(meta, dict) else {}):
                for key in _CLIENT_INFO:
                    info = holder.get(key)
                    if isinstance(info, dict):
                        named = {"name": str(info.get("name") or ""), "version": str(info.get("version") or "")}
                        self.agent = self.agent.model_copy(update=named)

    def calls(self, message: object) -> list[SeenCall]:
        """Return the calls in a message."""
        found = []
        for item in items(message):
            called = call_of(item)
            if called is not None:
                tool, args = called
                name = self.spec(tool).name
                key = key_of(item["id"]) if "id" in item else ""
                note = "" if args is not None else "The arguments are not recorded because they are not an object."
                try:
                    found.append(SeenCall(key, self._call(name, args or {}), note))
                except ValidationError:
                    note = "The arguments are not recorded because they are nested too deeply."
                    found.append(SeenCall(key, self._call(name, {}), note))
        return found

    def begin(self, key: str, call: ToolCall, at: float, note: str = "", released: float = 0.0) -> None:
        """Add a call that is forwarded. A notification has no response, so it is recorded as it is."""
        self.recorder.started(call, moment(at))
        if not key:
            self._finish(Flight(key, call, at), failed_result("The call has no id, so it has no response.", "no_id"))
            return
        if sum(map(len, self.flights.values())) < _MOST_IN_FLIGHT:
            self.flights.setdefault(key, deque()).append(Flight(key, call, at, note, released))

    def begin_clipped(self, total: int, part: bytes, at: float) -> None:
        """Add a message that was too long to be parsed, if it may be a call."""
        id_ = request_id(part, part)
        if id_ is None or b"tools/call" not in part:
            return
        call = self._call(f"{self.server}.unknown", {})
        self.begin(
            key_of(id_), call, at, f"The arguments are not recorded because the message is too long ({total} bytes)."
        )

    def rejected(self, call: ToolCall, at: float, text: str, detail: str = "denied", released: float = 0.0) -> None:
        """Record a call that is not forwarded; `released` is the end of its wait, if it waited."""
        self._finish(Flight("", call, at, released=released), failed_result(text, detail))

    # Messages of the server

    def receive(self, line: bytes, at: float) -> None:
        """Read a message of the server: a response to a call, the end of a task, or its tools."""
        message = read(line)
        for item in items(message):
            waiting = self.flights.get(key_of(item["id"])) if "id" in item and "method" not in item else None
            if waiting:
                flight = self._take(waiting)
                if not self.tasks.keep(flight, item):
                    self._respond(flight, item, at, len(line))
            elif (outcome := self.tasks.receive(item)) is None:
                self._read_tools(item.get("result"))
            elif outcome.message is None:
                cancelled = failed_result("The task was cancelled.", "cancelled", outcome.flight.milliseconds(at))
                self._finish(outcome.flight, cancelled)
            else:
                self._respond(outcome.flight, outcome.message, at, len(line))

    def _respond(self, flight: Flight, message: dict[str, Any], at: float, length: int) -> None:
        """Record a call with the response to it."""
        milliseconds = flight.milliseconds(at)
        self._finish(flight, lambda: result_of(message, milliseconds, length, self._worker))

    def receive_clipped(self, total: int, part: bytes, at: float) -> None:
        """Read a message of the server that was too long to be parsed."""
        id_ = response_id(part, part)
        if id_ is None:
            return
        key = key_of(id_)
        waiting = self.flights.get(key)
        flight = self._take(waiting) if waiting else self.tasks.answered(key)
        if flight is not None:
            self._finish(flight, clipped_result(total, flight.milliseconds(at), self._worker))

    def cancel(self, key: str, at: float) -> None:
        """Record a call that the client cancelled; the server may no longer respond to it."""
        waiting = self.flights.get(key)
        if waiting:
            flight = self._take(waiting)
            text = "The client cancelled the call."
            self._finish(flight, failed_result(text, "cancelled", flight.milliseconds(at)))

    def close(self, at: float, why: str) -> None:
        """Record calls in flight as interrupted."""
        for waiting in [*self.flights.values()]:
            for flight in waiting:
                self._finish(flight, failed_result(why, "interrupted", flight.milliseconds(at)))
        self.flights.clear()
        if self.keeps_tasks:
            for flight, result in self.tasks.rest(at):
                self._finish(flight, result)

    # Tools

    def spec(self, tool: str) -> ToolSpec:
        """Return the description of a tool by the server's own name; a minimal one if the server hasn't listed it."""
        if tool not in self.tools:
            found, _ = tool_specs(self._config, self.server, [{"name": tool or "unnamed"}], ())
            handler = McpHandler(server=self.server, tool=tool, listed=False)
            if not found:
                return ToolSpec(name=f"{self.server}.unnamed", pack=self.server, input_schema={}, handler=handler)
            return found[0].model_copy(update={"handler": handler})
        return self.tools[tool]

    def spec_named(self, name: str) -> ToolSpec:
        """Return the description of a tool by its qualified name."""
        found = next((spec for spec in self.tools.values() if spec.name == name), None)
        return found or self.spec(name.removeprefix(f"{self.server}."))

    @property
    def _config(self) -> ServerConfig:
        return ServerConfig(name=self.server)

    @property
    def _worker(self) -> str:
        return self.worker or f"MCP server {self.server}"

    def _read_tools(self, result: object) -> None:
        listed = result.get("tools") if isinstance(result, dict) and "content" not in result else None
        if isinstance(listed, list):
            specs, _ = tool_specs(self._config, self.server, listed, ())
            for spec in specs:
                if isinstance(spec.handler, McpHandler):
                    self.tools[spec.handler.tool] = spec

    def _call(self, name: str, args: JsonObject) -> ToolCall:
        return ToolCall(name=name, args=args, source="watch", session=self.agent.session, agent=self.agent)

    def _take(self, waiting: deque[Flight]) -> Flight:
        flight = waiting.popleft()
        if not waiting:
            del self.flights[flight.key]
        return flight

    def _finish(self, flight: Flight, result: Any) -> None:  # noqa: ANN401 - a result, or a function that returns it
        def finish() -> ToolResult:
            found: ToolResult = result() if callable(result) else result
            found = found.after_wait((flight.released - flight.at) * 1000 if flight.released else 0.0)
            if flight.note:
                meta = found.meta.model_copy(update={"warnings": (*found.meta.warnings, flight.note)})
                found = found.model_copy(update={"meta": meta})
            return found

        self.recorder.finished(flight.call, finish, moment(flight.at))
