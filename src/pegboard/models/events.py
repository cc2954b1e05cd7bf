"""Events between a call and its result."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from pegboard.models.call import ToolCall
from pegboard.models.model import Model
from pegboard.models.result import ToolResult


class ApprovalRequested(Model):
    """The call awaits approval."""

    kind: Literal["approval_requested"] = "approval_requested"
    call: ToolCall
    reason: str = ""


class Started(Model):
    """The tool starts with these arguments (aliases resolved)."""

    kind: Literal["started"] = "started"
    call: ToolCall
    at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    worker: str | None = None


class Log(Model):
    """Output of the tool: untrusted text, not necessarily a whole line."""

    kind: Literal["log"] = "log"
    call_id: str
    stream: Literal["stdout", "stderr", "log"]
    text: str


class Progress(Model):
    """Progress of the tool."""

    kind: Literal["progress"] = "progress"
    call_id: str
    done: float
    total: float | None = None
    message: str = ""


class Finished(Model):
    """The last event of every call."""

    kind: Literal["finished"] = "finished"
    call: ToolCall
    result: ToolResult


CallEvent = Annotated[ApprovalRequested | Started | Log | Progress | Finished, Field(discriminator="kind")]
"""Everything that `gateway.call` yields; the call's own `Finished` comes exactly once and last.

What happens to the calls that its tool makes of others comes in between, their `Log` and `Progress` left out: their
`call` has another id, and the `parent` that they were made in."""
