"""The calls that wait for the user's word, whoever asks for them. Knows nothing of Textual."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from pegboard.models import ToolCall, ToolSpec
from pegboard.models.approval import Approval


@dataclass(frozen=True, eq=False)
class Request:
    """A call that waits for the user's word."""

    spec: ToolSpec
    call: ToolCall
    answer: asyncio.Future[Approval] = field(repr=False)


class Approvals:
    """Lets calls wait until the user has said what is to become of them. A `pegboard.ports.Approver`.

    Args:
        tell: Takes what waits, the oldest first, whenever that changed.
    """

    def __init__(self, tell: Callable[[tuple[Request, ...]], object]) -> None:
        self._tell = tell
        self._waiting: dict[str, Request] = {}

    async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
        """Waits for the user's word on one call."""
        answer: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()
        self._waiting[call.id] = Request(spec, call, answer)
        self._tell(tuple(self._waiting.values()))
        try:
            return await answer
        finally:
            del self._waiting[call.id]
            self._tell(tuple(self._waiting.values()))

    def answer(self, call_id: str, approval: Approval) -> bool:
        """Says what is to become of a call; gives whether it waited for that."""
        request = self._waiting.get(call_id)
        if request is None or request.answer.done():
            return False
        request.answer.set_result(approval)
        return True
