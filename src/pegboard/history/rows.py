"""Conversion of calls and results to database rows and back.

`row_of` is the only function that creates rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from pydantic import BaseModel, JsonValue
from pydantic_core import from_json, to_json

from pegboard.data.unicode import encodable
from pegboard.history.schema import CANCELLED, DENIED, FAILED, INTERRUPTED, OK, RUNNING
from pegboard.models import CallRecord, ResultMeta, ToolCall, ToolError, ToolResult

Column: TypeAlias = str | int | float | None

RECORD_COLUMNS = "id, at, tool, args, ok, error, duration_ms, source, session, parent, turn"
RESULT_COLUMNS = "ok, error, meta, data, file"

LARGEST = 2**63 - 1
"""Largest integer that SQLite stores."""

_SPECIAL = {"cancelled": CANCELLED, "denied": DENIED, "interrupted": INTERRUPTED}
"""Status of a failed call by the detail of its error, where the tool itself did not fail."""
_WAITS = '{"code":"execution_error","message":"The call waits for approval.","detail":"waiting"}'
"""Error of the row of a call that waits for approval; that of a running call has none."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ROW_OVERHEAD = 300
"""Approximate bytes of a row besides its texts: short columns and indexes."""


@dataclass
class StoredCall:
    """One recorded call. Not frozen, because that would quadruple the time to create one."""

    id: str
    at: int
    tool: str
    args: str
    ok: bool
    error: str | None
    duration_ms: float
    source: str
    session: str | None
    parent: str | None
    turn: str | None
    meta: str
    data: str | None
    """The result as JSON, if it is stored in the row."""
    file: str | None
    """Name of the file with the complete result, or with the part that `data` lacks."""
    bytes: int
    """Size of the call, including its files."""
    status: int
    """One of the values in `schema`."""
    agent: str | None
    process: str | None
    """Token of the process that runs the call; None once it has finished."""
    size: int
    """Size of the result's JSON, in bytes."""
    excerpt: str | None
    """Start of a result that is stored in a file only, for full-text search."""

    @property
    def is_finished_call(self) -> bool:
        """Whether the call has finished, and is not a turn."""
        return self.status != RUNNING and self.turn != self.id

    @property
    def is_finished_batch(self) -> bool:
        """Whether this is the record of a batch that has ended."""
        return self.status != RUNNING and self.source == "batch" and self.parent is None


def row_of(
    call: ToolCall, result: ToolResult, at: datetime, data: str | None, file: str | None, size: int, *, media: int = 0
) -> StoredCall:
    """Convert a finished call to a row.

    Args:
        call: The call.
        result: Its result.
        at: When it was requested.
        data: The result as JSON, if it is stored in the row.
        file: Name of the file with the result.
        size: Size of that file, in bytes.
        media: Size of the images and other files of the call, in bytes.
    """
    args, meta = json_of(call.args), json_of(result.meta)
    error = json_of(result.error) if result.error else None
    return StoredCall(
        **_request(call, at, args),
        ok=result.ok,
        error=error,
        duration_ms=result.meta.duration_ms,
        meta=meta,
        data=data,
        file=file,
        bytes=min(_ROW_OVERHEAD + len(args) + len(meta) + len(error or "") + len(data or "") + size + media, LARGEST),
        status=_status(result),
        process=None,
        size=min(result.meta.size or (size if file else len(data or "") if result.data is not None else 0), LARGEST),
        excerpt=None,
    )


def started_row(call: ToolCall, at: datetime, process: str | None, *, waits: bool) -> StoredCall:
    """Convert a call that runs, or that waits for approval, to a row."""
    args = json_of(call.args)
    return StoredCall(
        **_request(call, at, args),
        ok=False,
        error=_WAITS if waits else None,
        duration_ms=0.0,
        meta="{}",
        data=None,
        file=None,
        bytes=_ROW_OVERHEAD + len(args),
        status=RUNNING,
        process=process,
        size=0,
        excerpt=None,
    )


def _request(call: ToolCall, at: datetime, args: str) -> dict[str, Any]:
    return {
        "id": encodable(call.id),
        "at": microseconds(at),
        "tool": encodable(call.name),
        "args": args,
        "source": call.source,
        "session": encodable(call.session) if call.session is not None else None,
        "parent": encodable(call.parent) if call.parent is not None else None,
        "turn": call.turn,
        "agent": encodable(call.agent.name or "MCP client") if call.agent is not None else None,
    }


def _status(result: ToolResult) -> int:
    if result.ok:
        return OK
    return _SPECIAL.get(result.error.detail or "", FAILED) if result.error else FAILED


def record_of(row: tuple[Column, ...]) -> CallRecord:
    """Convert a row with the columns `RECORD_COLUMNS` to a record.

    Raises:
        TypeError: The row is damaged.
        ValueError: The row is damaged.
        OverflowError: The row is damaged.
        RecursionError: The arguments are nested too deeply to be read.
    """
    call, at, tool, args, ok, error, duration, source, session, parent, turn = row
    arguments = value_of(str(args))
    if not isinstance(arguments, dict):
        raise TypeError("arguments that are not an object")
    columns: dict[str, object] = {
        "id": call,
        "at": moment(at),
        "tool": tool,
        "args": {},
        "ok": bool(ok),
        "error": _error(error),
        "duration_ms": duration,
        "source": source,
        "session": session,
        "parent": parent,
        "turn": turn,
    }
    # The arguments may be nested more deeply than pydantic supports. They were validated when the call was made.
    return CallRecord.model_validate(columns).model_copy(update={"args": arguments})


def result_of(ok: Column, error: Column, meta: Column, data: JsonValue) -> ToolResult:
    """Build a result from its columns and its data."""
    # The data may be large and was validated when the call finished.
    return ToolResult.model_construct(
        ok=bool(ok), data=data, error=_error(error), meta=ResultMeta.model_validate_json(str(meta))
    )


def json_of(value: object) -> str:
    """Return compact JSON; characters that are not valid Unicode become question marks."""
    try:
        return to_json(value, inf_nan_mode="strings").decode()
    except ValueError:  # too deeply nested for pydantic, or contains lone surrogates
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_content)
        return encodable(text)


def _content(value: object) -> object:
    """Return the fields of a model.

    Raises:
        TypeError: The value is neither JSON nor a model.
    """
    if isinstance(value, BaseModel):
        return value.model_dump()
    raise TypeError(f"{type(value).__name__} is not JSON")


def value_of(text: str | bytes) -> Any:  # noqa: ANN401 - outside data; the caller knows its type
    """Parse text written by `json_of`.

    Raises:
        ValueError: The text is not JSON.
        RecursionError: It is nested too deeply.
    """
    try:
        return from_json(text)
    except ValueError:  # it may be nested too deeply for pydantic only
        return json.loads(text)


def microseconds(at: datetime) -> int:
    """Return microseconds since 1970 UTC. A time without time zone counts as local."""
    return (at.astimezone(UTC) - _EPOCH) // _MICROSECOND


def moment(at: Column) -> datetime:
    """Convert microseconds since 1970 to a time in UTC.

    Raises:
        TypeError: The value has the wrong type.
        ValueError: The value is not a number.
        OverflowError: The time is outside the calendar.
    """
    return _EPOCH + int(at or 0) * _MICROSECOND


def _error(column: Column) -> ToolError | None:
    return None if column is None else ToolError.model_validate_json(str(column))
