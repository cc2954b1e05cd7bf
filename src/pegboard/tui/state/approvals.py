"""Calls awaiting approval. Independent of Textual."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from pegboard.models import ToolCall, ToolSpec
from pegboard.models.approval import Approval


@dataclass(frozen=True, eq=False)
class ApprovalRequest:
    """A call awaiting approval."""

    spec: ToolSpec
    call: ToolCall
    answer: asyncio.Future[Approval] = field(repr=False)


class Approvals:
    """The `pegboard.ports.Approver` of the interface: calls wait here until the user answers.

    Args:
        changed: Callback that receives the pending requests, the oldest first, after every change.
    """

    def __init__(self, changed: Callable[[tuple[ApprovalRequest, ...]], object]) -> None:
        self._changed = changed
        self._pending: dict[str, ApprovalRequest] = {}

    async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
        """Wait for the user's answer to one call."""
        answer: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()
        self._pending[call.id] = ApprovalRequest(spec, call, answer)
        self._changed(tuple(self._pending.values()))
        try:
            return await answer
        finally:
            del self._pending[call.id]
            self._changed(tuple(self._pending.values()))

    async def release(self, is_allowed: Callable[[ToolCall], bool]) -> None:
        """Approve the pending calls that rules allow by now, because one was added while they waited.

        Args:
            is_allowed: Returns whether the rules allow a call; called in a thread.
        """
        for request in [*self._pending.values()]:
            if await asyncio.to_thread(is_allowed, request.call):
                self.answer(request.call.id, Approval(answer="once"))

    def answer(self, call_id: str, approval: Approval) -> bool:
        """Answer a pending approval; return False if none is pending."""
        request = self._pending.get(call_id)
        if request is None or request.answer.done():
            return False
        request.answer.set_result(approval)
        return True
