"""Calls of MCP clients, and the requests of connected servers that belong to them.

A call runs in a task of its own: a client of the protocol 2026-07-28 answers what a server asks with a second request,
while the call waits.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import anyio
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    INVALID_PARAMS,
    ClientCapabilities,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitResult,
    ListRootsResult,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    server_request_adapter,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from pegboard.data.json_text import same
from pegboard.models import ApprovalRequested, Finished, JsonObject, Log, Progress, ToolCall, ToolResult
from pegboard.models.model import as_json

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

Context: TypeAlias = ServerRequestContext[Any, Any]

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_LOG_LEVEL: Final = "pegboard.logLevel"
"""Key of a connection's state."""
_ANSWER_SECONDS: Final = 600.0
"""Time that a client of the protocol 2026-07-28 has to answer; then its call is cancelled."""
_UNSENDABLE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError)
"""Errors of messages to a client that has disconnected."""
_RESULTS: Final[Mapping[str, type[BaseModel]]] = {
    "elicitation/create": ElicitResult,
    "sampling/createMessage": CreateMessageResult,
    "roots/list": ListRootsResult,
}


class Input(NamedTuple):
    """Requests that the client must answer before a call continues, and the state that it sends back."""

    requests: Mapping[str, JsonObject]
    state: str


class ServedCall:
    """One call of an MCP client.

    Args:
        call: The call.
        runtime: Runs it.
        context: The request that made the call.
        answers: Answers that came with it, by the keys of the server's requests; a client may know them already.
    """

    def __init__(self, call: ToolCall, runtime: Runtime, context: Context, answers: Mapping[str, JsonObject]) -> None:
        self.call = call
        self.name = call.name
        self.missing: set[str] = set()
        """Capabilities that the call needs, and that the client didn't declare."""
        self._asked: ToolCall | None = None
        self._ran = call
        self._runtime = runtime
        self._context: Context | None = context
        self._known = dict(answers)
        self._input: Input | None = None
        self._answers: asyncio.Future[Mapping[str, JsonObject]] | None = None
        self._received: dict[str, JsonObject] = {}
        self._changed = asyncio.Event()
        self._expiry: asyncio.TimerHandle | None = None
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(lambda _: self._changed.set())

    @property
    def edited(self) -> JsonObject | None:
        """The arguments that the call ran with, if a person edited them, without secrets; otherwise None."""
        return self._ran.args if self._asked is not None and not same(self._asked.args, self._ran.args) else None

    @property
    def task(self) -> asyncio.Task[ToolResult]:
        """The task that runs the call."""
        return self._task

    async def wait(self) -> ToolResult | Input:
        """Wait for the result, or for requests to the client; cancel the call if this is cancelled."""
        try:
            while True:
                if self._task.done():
                    return self._task.result()
                if self._input is not None:
                    self._context = None
                    self._expiry = asyncio.get_running_loop().call_later(_ANSWER_SECONDS, self.cancel)
                    return self._input
                self._changed.clear()
                await self._changed.wait()
        except asyncio.CancelledError:
            self.cancel()
            raise

    def resume(self, context: Context, answers: Mapping[str, JsonObject]) -> None:
        """Continue with the answers of the client; those that are missing are asked for again.

        Args:
            context: The request that has the answers.
            answers: Results of requests by their keys.
        """
        self._context = context
        if self._expiry is not None:
            self._expiry.cancel()
        assert self._input is not None, "the state was known"
        self._received |= answers
        missing = {key: request for key, request in self._input.requests.items() if key not in answers}
        self._input = Input(missing, secrets.token_urlsafe(24)) if missing else None
        if not missing and self._answers is not None and not self._answers.done():
            self._answers.set_result(self._received)

    def cancel(self) -> None:
        """Cancel the call; its record says so."""
        self._context = None
        if not self._task.done():
            self._ending = asyncio.create_task(self._end())

    async def _end(self) -> None:
        if not await self._runtime.cancel(self.call.id):
            self._task.cancel()

    async def ask(self, requests: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
        """Send requests of a server to the client; return the results of those that it supports and answers."""
        known = {key: self._known.pop(key) for key in requests if key in self._known}
        requests = {key: request for key, request in requests.items() if key not in known}
        context = self._context
        if context is None or not requests:
            return known
        self.missing |= {
            "sampling" for request in requests.values() if request.get("method") == "sampling/createMessage"
        } - _names(context.session.client_capabilities)
        supported = {
            key: request
            for key, request in requests.items()
            if _is_supported(request, context.session.client_capabilities)
        }
        if not supported:
            return known
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return {**known, **await self._ask_with_result(supported)}
        sent = {key: await _send(context, one) for key, one in supported.items()}
        return {**known, **{key: answer for key, answer in sent.items() if answer is not None}}

    async def _ask_with_result(self, requests: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
        """Ask with the response to the client's request; the client answers with its next request."""
        while self._answers is not None:  # the server asks twice at the same time
            await asyncio.wait({self._answers})
            await asyncio.sleep(0)
        self._answers, self._received = asyncio.get_running_loop().create_future(), {}
        self._input = Input(requests, secrets.token_urlsafe(24))
        self._changed.set()
        try:
            return await self._answers
        finally:
            self._input = self._answers = None

    async def _run(self) -> ToolResult:
        async with aclosing(self._runtime.call(self.call)) as events:
            async for event in events:
                if event.owner != self.call.id:
                    continue
                match event:
                    case ApprovalRequested(call=asked):
                        self._asked = asked
                    case Finished(call=ran, result=result):
                        self._ran = ran
                        return result
                    case Progress() | Log() if self._context is not None:
                        with suppress(*_UNSENDABLE, MCPError):
                            await _notify(self._context, event)
                    case _:
                        pass
        raise AssertionError("the last event of a call is its result")


class ServedCalls:
    """All calls of MCP clients; a `pegboard.ports.ClientRequests`.

    Args:
        runtime: Runs them.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._calls: dict[str, ServedCall] = {}
        self._waiting: dict[str, ServedCall] = {}

    def start(self, call: ToolCall, context: Context, answers: Mapping[str, JsonObject]) -> ServedCall:
        """Start a call; see `ServedCall`."""
        served = self._calls[call.id] = ServedCall(call, self._runtime, context, answers)
        served.task.add_done_callback(lambda _: self._forget(served))
        return served

    def resume(self, name: str, context: Context, state: str, answers: Mapping[str, JsonObject]) -> ServedCall:
        """Return the call that waits for answers with a state.

        Raises:
            MCPError: No call of this tool waits with this state.
        """
        served = self._waiting.get(state)
        if served is None or served.name != name:
            raise MCPError(INVALID_PARAMS, "No call waits with this requestState. Call the tool again without it.")
        del self._waiting[state]
        served.resume(context, answers)
        return served

    async def wait(self, served: ServedCall) -> ToolResult | Input:
        """Wait for the result of a call, or for requests to its client."""
        outcome = await served.wait()
        if isinstance(outcome, Input):
            self._waiting[outcome.state] = served
        return outcome

    async def ask(self, call: ToolCall, requests: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
        """Send requests of a server to the client that made the call, or the script that made it."""
        served = self._calls.get(call.id) or self._calls.get(call.parent or "")
        return {} if served is None else await served.ask(requests)

    async def close(self) -> None:
        """Cancel all calls, and wait until they have ended."""
        calls = [*self._calls.values()]
        for served in calls:
            served.cancel()
        if calls:
            await asyncio.wait([served.task for served in calls], timeout=5.0)

    def _forget(self, served: ServedCall) -> None:
        self._calls.pop(served.call.id, None)
        for state in [state for state, waiting in self._waiting.items() if waiting is served]:
            del self._waiting[state]
        if not served.task.cancelled():
            served.task.exception()


def set_log_level(context: Context, level: str) -> None:
    """Send the client of a connection only messages of this level and above."""
    context.session._connection.state[_LOG_LEVEL] = level  # noqa: SLF001 - handlers have no other way to its state


async def _notify(context: Context, event: Progress | Log) -> None:
    if isinstance(event, Progress):
        await context.session.report_progress(event.done, event.total, event.message or None)
        return
    lowest = context.session._connection.state.get(_LOG_LEVEL, "debug")  # noqa: SLF001 - as above
    allowed = allowed_log_levels(context.protocol_version, context.meta)
    if not allowed:
        return
    for level, logger, text in _messages(event):
        if level in allowed and LEVELS.index(level) >= LEVELS.index(lowest):
            params = LoggingMessageNotificationParams.model_validate({"level": level, "logger": logger, "data": text})
            await context.session.send_notification(
                LoggingMessageNotification(params=params), related_request_id=context.request_id
            )


def _messages(log: Log) -> list[tuple[str, str, str]]:
    """Return the messages in output of a tool: level, logger and text."""
    if log.stream != "log":
        return [("info", log.stream, log.text.rstrip("\n"))] if log.text.strip() else []
    messages = []
    for line in log.text.splitlines():
        level, colon, text = line.partition(": ")
        messages.append((level, "log", text) if colon and level in LEVELS else ("info", "log", line))
    return messages


def _names(capabilities: ClientCapabilities | None) -> set[str]:
    return set() if capabilities is None else set(capabilities.model_dump(exclude_none=True))


def _is_supported(request: JsonObject, capabilities: ClientCapabilities | None) -> bool:
    if capabilities is None:
        return False
    params = request.get("params")
    params = params if isinstance(params, dict) else {}
    match request.get("method"):
        case "elicitation/create":
            elicitation = capabilities.elicitation
            if elicitation is None:
                return False
            if params.get("mode") == "url":
                return elicitation.url is not None
            return elicitation.form is not None or elicitation.url is None
        case "sampling/createMessage":
            sampling = capabilities.sampling
            return sampling is not None and (not params.get("tools") or sampling.tools is not None)
        case "roots/list":
            return capabilities.roots is not None
        case _:
            return False


async def _send(context: Context, request: JsonObject) -> JsonObject | None:
    """Send a request to a client of the protocol 2025-11-25; return None if it refuses."""
    params = request.get("params")
    answer = _RESULTS[str(request["method"])]
    if answer is CreateMessageResult and isinstance(params, dict) and params.get("tools"):
        answer = CreateMessageResultWithTools
    try:
        result = await context.session.send_request(
            server_request_adapter.validate_python(_with_id(request)),
            answer,
            metadata=ServerMessageMetadata(related_request_id=context.request_id),
        )
    except (MCPError, ValidationError, *_UNSENDABLE):
        return None
    return as_json(result)


def _with_id(request: JsonObject) -> JsonObject:
    """Return a request with the id that the protocol 2025-11-25 requires of a visit; later ones have none."""
    params = request.get("params")
    if not isinstance(params, dict) or params.get("mode") != "url" or params.get("elicitationId"):
        return request
    return {**request, "params": {**params, "elicitationId": secrets.token_urlsafe(24)}}
