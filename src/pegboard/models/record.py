"""Records of calls."""

from __future__ import annotations

from datetime import datetime

from pegboard.models.call import CallSource, ToolCall
from pegboard.models.model import DataModel, JsonObject
from pegboard.models.result import ToolError, ToolResult


class CallRecord(DataModel):
    """One call in the history; its result, which may be large, is fetched separately."""

    id: str
    at: datetime
    """When the call was requested, UTC."""
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
        """Return the record of a call that was requested at `at`."""
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


class ToolUses(DataModel):
    """Number of calls of a tool in the history."""

    calls: int = 0
    failures: int = 0
    last_at: datetime | None = None
