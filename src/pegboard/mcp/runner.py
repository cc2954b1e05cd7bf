"""Runner of the tools of MCP servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from pegboard.mcp.running_call import RunningCall
from pegboard.models import CallEvent, Finished, McpHandler, Started, ToolCall, ToolResult, ToolSpec
from pegboard.ports import Calls

if TYPE_CHECKING:
    from pegboard.mcp.hub import Hub


class McpRunner:
    """Runner that sends each call to its server; implements `pegboard.ports.ToolRunner`.

    Use it from any event loop.

    Args:
        hub: The connections.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._running: dict[str, RunningCall] = {}

    async def run(
        self,
        spec: ToolSpec,
        call: ToolCall,
        *,
        timeout: float,  # noqa: ASYNC109 - it bounds the tool, not the caller's waiting
        calls: Calls | None = None,
    ) -> AsyncGenerator[CallEvent]:
        """Run a call, and never raise because of the server. Closing the generator early cancels the call.

        Args:
            spec: Tool with an `McpHandler`.
            call: Call with valid arguments.
            timeout: Time limit in seconds, from the moment when the server is connected. Time during which the user
                answers the server's questions doesn't count.
            calls: Not used, because servers make no calls of other tools.
        """
        del calls
        assert isinstance(spec.handler, McpHandler), "the gateway chooses the runner by it"
        if call.id in self._running:
            result = ToolResult.failed("execution_error", f"A call with the id {call.id} is already running.")
            yield Finished(call=call, result=result)
            return
        self._hub.services.user.is_here()
        running = self._running[call.id] = RunningCall(call, self._hub.services.log_limit)
        connection = self._hub.connection(spec.handler.server)
        is_started = connection is not None and connection.is_ready
        try:
            stop = await self._hub.spawn(
                lambda: self._send(running, spec, timeout, is_started=is_started), lambda task: _ended(running, task)
            )
        except RuntimeError as error:
            del self._running[call.id]
            yield Finished(call=call, result=ToolResult.failed("execution_error", str(error), "cancelled"))
            return
        except asyncio.CancelledError:
            del self._running[call.id]
            raise
        try:
            if is_started:  # here, because a message from thread to thread would slow down the call
                yield Started(call=call, worker=f"MCP server {spec.pack}")
            is_over = False
            while not is_over:
                event = await running.next_event()
                is_over = isinstance(event, Finished)
                yield event
        finally:
            del self._running[call.id]
            stop()

    async def cancel(self, call_id: str) -> bool:
        """Cancel a call, also at the server; return False if none has this id."""
        running = self._running.get(call_id)
        if running is None or running.result is not None:
            return False
        running.end(ToolResult.failed("execution_error", "The call was cancelled.", "cancelled"))
        return True

    async def close(self) -> None:
        """Cancel every running call and end all connections."""
        for running in [*self._running.values()]:
            running.end(ToolResult.failed("execution_error", "Pegboard was closed during the call.", "cancelled"))
        await self._hub.close()

    async def _send(self, running: RunningCall, spec: ToolSpec, seconds: float, *, is_started: bool) -> None:
        """Run a call on the connections' thread."""
        from pegboard.mcp.calls import send_call

        handler = spec.handler
        assert isinstance(handler, McpHandler), "`run` checks it"
        connection = self._hub.connection(handler.server)
        if connection is None:
            message = f"{spec.name} was not called because the server {handler.server} no longer exists."
            running.end(ToolResult.failed("execution_error", message, "not_connected"))
            return
        await send_call(connection, running, spec, handler.tool, seconds, is_started=is_started)


def _ended(running: RunningCall, task: asyncio.Task[None]) -> None:
    """Make sure that a call has a result."""
    if task.cancelled():
        running.end(ToolResult.failed("execution_error", "Pegboard was closed during the call.", "cancelled"))
    elif (error := task.exception()) is not None:
        running.end(ToolResult.failed("execution_error", f"The call failed: {error!r}"))
