"""Calls and results as rows of the database, and back.

`row_of` is the one place where a call becomes something that is kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from pegboard.models import CallRecord, ResultMeta, ToolCall, ToolError, ToolResult

Column: TypeAlias = str | int | float | None

RECORD_COLUMNS = "id, at, tool, args, ok, error, duration_ms, source, session, parent"
RESULT_COLUMNS = "ok, error, meta, data, file"

LARGEST = 2**63 - 1
"""The largest integer of SQLite."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ROW_OVERHEAD = 300
"""About what a row costs beside its texts: the short columns and the indexes."""


@dataclass(frozen=True)
class Row:
    """One call as it is kept."""

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
    meta: str
    data: str | None
    """The result as JSON, if it is kept in the row."""
    file: str | None
    """The name of the file that the result is kept in: all of it, or what `data` lacks."""
    bytes: int
    """What the call takes up, its file included."""


def row_of(call: ToolCall, result: ToolResult, at: datetime, data: str | None, file: str | None, size: int) -> Row:
    """Makes the row of a call.

    Args:
        call: What was asked for.
        result: What came of it.
        at: When it was asked for.
        data: The result as JSON, if it goes into the row.
        file: The name of the file that has the result.
        size: The bytes of that file.
    """
    args, meta = json_of(call.args), json_of(result.meta.model_dump())
    error = json_of(result.error.model_dump()) if result.error else None
    return Row(
        id=unicode_of(call.id),
        at=microseconds(at),
        tool=unicode_of(call.name),
        args=args,
        ok=result.ok,
        error=error,
        duration_ms=result.meta.duration_ms,
        source=call.source,
        session=unicode_of(call.session) if call.session is not None else None,
        parent=unicode_of(call.parent) if call.parent is not None else None,
        meta=meta,
        data=data,
        file=file,
        bytes=min(_ROW_OVERHEAD + len(args) + len(meta) + len(error or "") + len(data or "") + size, LARGEST),
    )


def record_of(row: tuple[Column, ...]) -> CallRecord:
    """Reads a row of `RECORD_COLUMNS`.

    Raises:
        TypeError: It is damaged.
        ValueError: Likewise.
        OverflowError: Likewise.
        RecursionError: Its arguments are nested too deeply to be read here.
    """
    call, at, tool, args, ok, error, duration, source, session, parent = row
    arguments = value_of(str(args))
    if not isinstance(arguments, dict):
        raise TypeError("arguments that are no object")
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
    }
    # The arguments may be nested more deeply than pydantic goes; they were validated when it was a call.
    return CallRecord.model_validate(columns).model_copy(update={"args": arguments})


def result_of(ok: Column, error: Column, meta: Column, data: JsonValue) -> ToolResult:
    """Puts a result together from its columns and its data."""
    # The data was validated when it was a call's answer; it may be large.
    return ToolResult.model_construct(
        ok=bool(ok), data=data, error=_error(error), meta=ResultMeta.model_validate_json(str(meta))
    )


def json_of(value: object) -> str:
    """Gives JSON in one line; what of a text is no Unicode becomes a question mark."""
    try:
        return to_json(value, inf_nan_mode="strings").decode()
    except ValueError:  # it is nested too deeply for pydantic, or contains lone surrogates
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()


def value_of(text: str | bytes) -> Any:  # noqa: ANN401 - outside data; the caller knows what was written
    """Reads what `json_of` wrote.

    Raises:
        ValueError: It is no JSON.
        RecursionError: It is nested too deeply to be read here.
    """
    try:
        return from_json(text)
    except ValueError:  # it may only be nested too deeply for pydantic
        return json.loads(text)


def microseconds(at: datetime) -> int:
    """Gives microseconds since 1970 UTC; a time without zone counts as local."""
    return (at.astimezone(UTC) - _EPOCH) // _MICROSECOND


def moment(at: Column) -> datetime:
    """Gives the time in UTC of so many microseconds since 1970.

    Raises:
        TypeError: It is no time, as in the cases below.
        ValueError: It is no number.
        OverflowError: It is out of the calendar.
    """
    return _EPOCH + int(at or 0) * _MICROSECOND


def _error(column: Column) -> ToolError | None:
    return None if column is None else ToolError.model_validate_json(str(column))


def unicode_of(text: str) -> str:
    """Gives a text that SQLite takes: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
