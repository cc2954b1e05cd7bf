"""One call of a server's tool, on the connections' thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    URL_ELICITATION_REQUIRED,
    CallToolResult,
    ElicitationRequiredErrorData,
    InputResponses,
    TextContent,
)
from pydantic import TypeAdapter, ValidationError

from pegboard.data.json_text import write
from pegboard.mcp.failures import ERRORS, cannot_ask, error_text, more_time, unanswered, validation_text
from pegboard.mcp.results import ResultReader
from pegboard.mcp.session import in_session
from pegboard.mcp.texts import MORE_PERMISSIONS, OwnWords, quotation
from pegboard.models import ResultMeta, ServerState, Started, ToolError, ToolResult, ToolSpec
from pegboard.results.sizes import count

if TYPE_CHECKING:
    from mcp import Client
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import ElicitRequestURLParams

    from pegboard.mcp.connection import ServerConnection
    from pegboard.mcp.running_call import RunningCall

_RESPONSES = TypeAdapter(InputResponses)
_MOST_ROUNDS = 10
"""Times that a server may ask for input during a call."""
_REST_SECONDS = 0.1
"""Time before a call is repeated that a server delays without asking."""
_SMALL = 100_000
"""Characters of content that are converted here; more is converted in a thread."""


class _ChangedError(RuntimeError):
    """The tool is no longer as it was when its call was allowed."""


async def send_call(
    connection: ServerConnection, running: RunningCall, spec: ToolSpec, tool: str, seconds: float, *, is_started: bool
) -> None:
    """Call a tool and end the call with its result. Never raise because of the server.

    Args:
        connection: The server.
        running: The call.
        spec: The tool.
        tool: The server's own name of the tool.
        seconds: Time limit, once the server is connected.
        is_started: Whether the caller knows that the call starts.
    """
    client = await _connected(connection, running, spec)
    if client is None:
        return
    if not is_started:
        running.post(Started(call=running.call, worker=f"MCP server {connection.pack}"))
    began = asyncio.get_running_loop().time()

    def fail(message: str, detail: str | None = None) -> None:
        meta = ResultMeta(duration_ms=milliseconds(), log_bytes_dropped=running.dropped)
        error = ToolError(code="execution_error", message=message, detail=detail)
        running.end(ToolResult(ok=False, error=error, meta=meta))

    def milliseconds() -> float:
        return (asyncio.get_running_loop().time() - began) * 1000

    strays = connection.strays
    try:
        async with connection.running(running, seconds) as limit:
            answer = await in_session(
                client, lambda one: _answer(connection, one, running, tool), partial(_renewed, connection, spec)
            )
        if limit.cancelled_caught:
            stray = connection.strays - strays
            answered = f" The server sent {count(stray, 'answer')} to no open request." if stray else ""
            # A caller that chose the timeout of this call itself can't change it in the configuration.
            advice = f" {more_time(connection.config, seconds)}" if running.call.timeout is None else ""
            fail(f"{spec.name} was stopped because it timed out after {seconds:g} s.{answered}{advice}", "timeout")
            return
    except MCPError as error:
        if (why := await _lost(connection, error)) is not None:
            fail(f"The connection to the server {connection.pack} ended during the call. {why}", "crashed")
        elif (login := connection.login_missing()) is not None:
            fail(f"{spec.name} was not called. {login.reason} {login.fix}", "needs_login")
        else:
            fail(_failure_text(connection, spec, error), "server_error")
        return
    except _ChangedError:
        running.end(ToolResult.changed(spec.name).timed(milliseconds()))
        return
    except (ValidationError, *ERRORS) as error:
        fail(_failure(connection, spec, error), "server_error")
        return
    _note_login(connection)
    result = await _converted(connection, running, spec, answer, milliseconds())
    for line in _log_lines(result.meta):
        running.log("log", line)
    running.end(result)


def _note_login(connection: ServerConnection) -> None:
    """Note after a call that the user has logged in elsewhere, such as on the command line."""
    status = connection.status
    if status.state is ServerState.NEEDS_LOGIN and not status.reason.startswith(MORE_PERMISSIONS):
        connection.list_again()


async def _connected(connection: ServerConnection, running: RunningCall, spec: ToolSpec) -> Client | None:
    """Return the connected client; None if there is none, or if the tool is another by then, which ends the call."""
    client = await connection.client()
    if client is None:
        problem = connection.problem()
        message = f"{spec.name} was not called. {problem.message} {problem.fix}".strip()
        running.end(ToolResult.failed("execution_error", message, "not_connected"))
        return None
    if _has_changed(connection, spec):
        running.end(ToolResult.changed(spec.name))
        return None
    return client


async def _renewed(connection: ServerConnection, spec: ToolSpec, client: Client) -> Client | None:
    """Return a client with a new session, whose server may have been replaced by another version.

    Raises:
        _ChangedError: The tool is another by then.
    """
    renewed = await connection.renew_session(client)
    if renewed is not None and _has_changed(connection, spec):
        raise _ChangedError
    return renewed


def _has_changed(connection: ServerConnection, spec: ToolSpec) -> bool:
    listed = next((one for one in connection.snapshot.specs if one.name == spec.name), spec)
    return listed is not spec and _relied_on(listed) != _relied_on(spec)


def _relied_on(spec: ToolSpec) -> tuple[object, ...]:
    """Return the parts that the decision on a call relies on.

    Not the timeout and the entry: a call that waits while its server is started again with another entry may run. Calls
    that wait for approval when the entry changes are rejected by the gateway.
    """
    return spec.hints.read_only, spec.hints.destructive, spec.input_schema


async def _lost(connection: ServerConnection, error: MCPError) -> str | None:
    """Return why the connection ended before the response, by the SDK's own words; None if the server responded."""
    if error.code != CONNECTION_CLOSED:
        return None
    if error.message.startswith("SSE stream ended "):
        return "The server ended its response before the result."
    if error.message != "Connection closed":
        return None
    await connection.wait_until_lost()
    return connection.lost()


def _failure(connection: ServerConnection, spec: ToolSpec, error: Exception) -> str:
    """Return that a call failed without a valid response, and why."""
    if isinstance(error, ValidationError):
        return f"The answer of the server {connection.pack} is not valid MCP: {validation_text(error)}."
    return unanswered(f"The call of {spec.name}", error)


def _failure_text(connection: ServerConnection, spec: ToolSpec, error: MCPError) -> str:
    """Return that a call failed, and why: the server's own words, or Pegboard's about its response."""
    if isinstance(error.data, OwnWords):
        return f"The call of {spec.name} failed. {error.message}"
    if required := _required_visits(error):
        addresses = " and ".join(f"{quotation(one.message)} {one.url}" for one in required)
        advice = f"Finish it, then run {spec.name} again."
        return f"The server {connection.pack} requires a visit first: {addresses}\n{advice}"
    return f"The server {connection.pack} answered with an error: {_with_advice(connection, error_text(error))}"


def _required_visits(error: MCPError) -> list[ElicitRequestURLParams]:
    """Return the visits to URLs that an error of a server requires before the call; none if it is another error."""
    if error.code != URL_ELICITATION_REQUIRED:
        return []
    try:
        return ElicitationRequiredErrorData.model_validate(error.data).elicitations
    except ValidationError:
        return []


def _with_advice(connection: ServerConnection, message: str) -> str:
    """Return an error of the server with what to do about it, if Pegboard knows."""
    advice = cannot_ask(connection.config, connection.status.protocol, message)
    return f"{message}\n{advice}" if advice else message


def _log_lines(meta: ResultMeta) -> Iterator[str]:
    """Yield what the log shows of a result."""
    for warning in meta.warnings:
        yield f"warning: {warning}\n"
    for content in meta.content:
        yield f"content: {content if isinstance(content, str) else write(content)}\n"


async def _answer(connection: ServerConnection, client: Client, running: RunningCall, tool: str) -> CallToolResult:
    """Call the tool; if it first requires visits to URLs, ask the user and call it again."""

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        running.progress(progress, total, message or "")

    async def call() -> CallToolResult:
        if connection.services.user.requests is not None:  # they are passed on to MCP clients
            return await _forwarding(connection, client, running, tool, on_progress)
        return await client.call_tool(tool, dict(running.call.args), progress_callback=on_progress)

    try:
        return await call()
    except MCPError as error:
        required = _required_visits(error)
        if not required:
            raise
        for question in required:
            if await connection.answer(question) != "accept":
                raise
        return await call()


async def _forwarding(
    connection: ServerConnection, client: Client, running: RunningCall, tool: str, on_progress: ProgressFnT
) -> CallToolResult:
    """Call the tool; pass requests that come instead of a result on to the MCP client that made the call."""
    state: str | None = None
    responses: InputResponses | None = None
    for _ in range(_MOST_ROUNDS):
        result = await client.session.call_tool(
            tool,
            dict(running.call.args),
            progress_callback=on_progress,
            input_responses=responses,
            request_state=state,
            allow_input_required=True,
        )
        if isinstance(result, CallToolResult):
            return result
        state, responses = result.request_state, None
        if result.input_requests:
            answers = await connection.answer_all(running.call, result.input_requests)
            responses = _RESPONSES.validate_python(answers)
        else:
            await asyncio.sleep(_REST_SECONDS)
    raise MCPError(INTERNAL_ERROR, f"The server asked for input more than {_MOST_ROUNDS} times.", OwnWords())


async def _converted(
    connection: ServerConnection, running: RunningCall, spec: ToolSpec, answer: CallToolResult, milliseconds: float
) -> ToolResult:
    services = connection.services
    reader = ResultReader(services.results, services.result_limit, running.call.id)

    def convert() -> ToolResult:
        return reader.tool_result(answer, spec, running.call, milliseconds=milliseconds, dropped=running.dropped)

    # Structured content is repeated as text, as the specification asks for; if it isn't, its size is unknown.
    is_small = bool(answer.content) and all(
        isinstance(block, TextContent) and len(block.text) < _SMALL for block in answer.content
    )
    result = convert() if is_small else await asyncio.to_thread(convert)
    if result.error is None:
        return result
    error = result.error.model_copy(update={"message": _with_advice(connection, result.error.message)})
    return result.model_copy(update={"error": error})
