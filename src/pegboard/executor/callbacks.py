"""What a running tool asks of Pegboard, and what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any  # a message, before it is read

from pegboard.executor.deadline import Clock, Unanswered
from pegboard.models import ApprovalRequested, CallEvent, Finished, Started, ToolCall, ToolResult, ToolSpec
from pegboard.ports import Calls, Grants
from pegboard.worker.wire import line

_MOST_AT_ONCE = 1_000
"""Calls that one tool may make at a time: as many threads as no tool has."""


class Questions:
    """Answers what one running tool asks; made inside a running event loop.

    Args:
        call: The call of the tool.
        calls: Where the calls go that it makes of others.
        grants: Who knows where secrets come from.
        clock: The time that is left to it, and so to them; it stands still while the user is asked about one of them.
        tell: Learns of their beginnings and ends, and that the user is asked.
        reply: Sends a reply to its worker.
    """

    def __init__(
        self,
        call: ToolCall,
        calls: Calls | None,
        grants: Grants | None,
        clock: Clock,
        tell: Callable[[CallEvent], None],
        reply: Callable[[bytes], None],
    ) -> None:
        self._call = call
        self._calls = calls
        self._grants = grants
        self._clock = clock
        self._tell = tell
        self._reply = reply
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unanswered = Unanswered()
        self._has_ended = False

    def take(self, message: Mapping[str, Any]) -> None:
        """Takes a question, and sees to it that a reply is sent.

        Raises:
            KeyError, TypeError, ValueError: It is none: the tool itself wrote it.
        """
        number = message["ask"]
        if not isinstance(number, int):
            raise TypeError("questions are numbered")
        if "secret" in message:
            if not isinstance(message["secret"], str):
                raise TypeError("secrets have names")
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
            timeout=max(self._clock.left, 0.001),
        )
        if len(self._tasks) >= _MOST_AT_ONCE:
            refusal = f"{call.name} was not called: {_MOST_AT_ONCE:,} calls at a time are the most."
            self._answer(number, ToolResult.failed("execution_error", refusal))
            return
        self._begin(self._make(number, call))

    async def end(self) -> None:
        """Ends the calls that are still running, and waits until they have ended."""
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
        result = ToolResult.failed("execution_error", f"{call.name} can't be called from here.")
        try:
            if self._calls is not None:
                async with aclosing(self._calls.call(call)) as events:
                    async for event in events:
                        if isinstance(event, Finished) and event.owner == call.id:
                            result = event.result
                        if isinstance(event, ApprovalRequested | Started | Finished):
                            self._unanswered.heard(event, call.id)
                            self._mind_clock()
                            self._tell(event)
        finally:
            self._answer(number, result)

    def _mind_clock(self) -> None:
        if self._unanswered:
            self._clock.stand()
        elif not self._has_ended:
            self._clock.go()

    def _answer(self, number: int, result: ToolResult) -> None:
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
        pack = packs.setdefault(spec.pack, {"tools": [], "aliases": {}, "file": spec.location.file})
        pack["tools"].append(spec.function)
        pack["aliases"].update(dict.fromkeys(spec.aliases, spec.function))
    return packs
