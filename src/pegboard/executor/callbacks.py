"""Answers to the questions of a running tool: nested calls, available packs, sources of secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any  # fields of messages that are not validated yet

from pegboard.executor.deadline import CallClock, PendingApprovals
from pegboard.models import ApprovalRequested, CallEvent, Finished, Started, ToolCall, ToolResult, ToolSpec
from pegboard.ports import Calls, Grants
from pegboard.worker.wire import line

_MOST_AT_ONCE = 1_000
"""Maximum number of concurrent nested calls of one tool; far more than usual."""


class ToolQuestions:
    """Handler of the questions of one running tool. Create it inside a running event loop.

    Args:
        call: Call of the tool.
        calls: Target of nested calls.
        grants: Source of secrets.
        clock: Time limit of the call, also for nested calls. It is paused while one of them awaits approval.
        notify: Callback for the approval requests, starts and ends of nested calls.
        reply: Function that sends a reply to the worker.
    """

    def __init__(
        self,
        call: ToolCall,
        calls: Calls | None,
        grants: Grants | None,
        clock: CallClock,
        notify: Callable[[CallEvent], None],
        reply: Callable[[bytes], None],
    ) -> None:
        self._call = call
        self._calls = calls
        self._grants = grants
        self._clock = clock
        self._notify = notify
        self._reply = reply
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._approvals = PendingApprovals()
        self._has_ended = False

    def answer(self, message: Mapping[str, Any]) -> None:
        """Start a task that answers a question.

        Raises:
            KeyError, TypeError, ValueError: The message is invalid; the tool itself wrote it.
        """
        number = message["ask"]
        if not isinstance(number, int):
            raise TypeError("the number of a question must be an integer")
        if "secret" in message:
            if not isinstance(message["secret"], str):
                raise TypeError("the name of a secret must be text")
            self._begin(self._locate(number, message["secret"]))
            return
        if "packs" in message:
            self._begin(self._list(number))
            return
        call = ToolCall(
            name=message["call"],
            args=message["args"],
            source=self._call.source,
            session=self._call.session,
            parent=self._call.id,
            turn=self._call.turn,
            unattended=self._call.unattended,
            timeout=max(self._clock.left, 0.001),
        )
        if len(self._tasks) >= _MOST_AT_ONCE:
            refusal = f"{call.name} was not called because a tool can make at most {_MOST_AT_ONCE:,} concurrent calls."
            self._send_result(number, ToolResult.failed("execution_error", refusal))
            return
        self._begin(self._make(number, call))

    async def end(self) -> None:
        """End the nested calls and wait for them."""
        self._has_ended = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _begin(self, answering: Coroutine[Any, Any, None]) -> None:
        if self._has_ended:
            answering.close()
            return
        task = self._loop.create_task(answering)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _list(self, number: int) -> None:
        specs: Sequence[ToolSpec] = ()
        try:
            if self._calls is not None:
                specs = await self._calls.refreshed()
        finally:
            self._reply(line({"reply": number, "packs": _packs(specs)}))

    async def _locate(self, number: int, secret: str) -> None:
        source, reason = None, f"{secret} is not set."
        if self._grants is not None:
            source, reason = await asyncio.to_thread(self._grants.where, secret)
        self._reply(line({"reply": number, "source": source, "reason": reason}))

    async def _make(self, number: int, call: ToolCall) -> None:
        result = ToolResult.failed("execution_error", f"{call.name} was not called because nested calls are disabled.")
        try:
            if self._calls is not None:
                async with aclosing(self._calls.call(call)) as events:
                    async for event in events:
                        if isinstance(event, Finished) and event.owner == call.id:
                            result = event.result
                        if isinstance(event, ApprovalRequested | Started | Finished):
                            self._approvals.update(event, call.id)
                            self._update_clock()
                            self._notify(event)
        finally:
            self._send_result(number, result)

    def _update_clock(self) -> None:
        if self._approvals:
            self._clock.pause()
        elif not self._has_ended:
            self._clock.resume()

    def _send_result(self, number: int, result: ToolResult) -> None:
        error = result.error
        whole = result.meta.truncated
        self._reply(
            line(
                {
                    "reply": number,
                    "data": None if whole else result.data,
                    "file": whole.file if whole else None,
                    "error": error and {**error.model_dump(exclude={"faults"}), "said": error.said},
                }
            )
        )


def _packs(specs: Iterable[ToolSpec]) -> dict[str, dict[str, Any]]:
    packs: dict[str, dict[str, Any]] = {}
    for spec in specs:
        pack = packs.setdefault(spec.pack, {"tools": [], "aliases": {}, "file": spec.file})
        pack["tools"].append(spec.function)
        pack["aliases"].update(dict.fromkeys(spec.aliases, spec.function))
    return packs
