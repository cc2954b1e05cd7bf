"""Events between a call and its result."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from pegboard.models.call import ToolCall
from pegboard.models.model import DataModel
from pegboard.models.result import ToolResult


class _CallEvent(DataModel):
    """Event with the call that it belongs to."""

    call: ToolCall

    @property
    def owner(self) -> str:
        """The id of the call that the event belongs to; nested calls have their own events."""
        return self.call.id


class _OutputEvent(DataModel):
    """Event with only the id of its call, as there may be many of them."""

    call_id: str

    @property
    def owner(self) -> str:
        """The id of the call that the event belongs to; nested calls have their own events."""
        return self.call_id


class ApprovalRequested(_CallEvent):
    """The call awaits approval."""

    kind: Literal["approval_requested"] = "approval_requested"
    reason: str = ""


class Started(_CallEvent):
    """The tool starts with these arguments (aliases resolved)."""

    kind: Literal["started"] = "started"
    at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    worker: str | None = None


class Log(_OutputEvent):
    """Output of the tool: untrusted text, not necessarily a whole line."""

    kind: Literal["log"] = "log"
    stream: Literal["stdout", "stderr", "log"]
    text: str


class Progress(_OutputEvent):
    """Progress of the tool."""

    kind: Literal["progress"] = "progress"
    done: float
    total: float | None = None
    message: str = ""


class Finished(_CallEvent):
    """The last event of every call."""

    kind: Literal["finished"] = "finished"
    result: ToolResult


CallEvent = Annotated[ApprovalRequested | Started | Log | Progress | Finished, Field(discriminator="kind")]
"""Everything that `gateway.call` yields; the call's own `Finished` comes exactly once and last.

Events of nested calls come in between, without their `Log` and `Progress`. An event belongs to the call whose id is its
`owner`."""
