"""What is kept of a call."""

from __future__ import annotations

from datetime import datetime

from pegboard.models.call import CallSource, ToolCall
from pegboard.models.model import JsonObject, Model
from pegboard.models.result import ToolError, ToolResult


class CallRecord(Model):
    """One call in the history; its result is fetched on its own (it may be large)."""

    id: str
    at: datetime
    """When it was asked for, UTC."""
    tool: str
    args: JsonObject
    ok: bool
    error: ToolError | None
    duration_ms: float
    source: CallSource
    session: str | None
    parent: str | None

    @classmethod
    def of(cls, call: ToolCall, result: ToolResult, at: datetime) -> CallRecord:
        """The record of `call`, asked for at `at` and answered by `result`."""
        return cls.model_construct(
            id=call.id,
            at=at,
            tool=call.name,
            args=call.args,
            ok=result.ok,
            error=result.error,
            duration_ms=result.meta.duration_ms,
            source=call.source,
            session=call.session,
            parent=call.parent,
        )


class ToolUses(Model):
    """How often a tool was called, by the history."""

    calls: int = 0
    failures: int = 0
    last_at: datetime | None = None
