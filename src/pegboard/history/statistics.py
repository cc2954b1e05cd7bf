"""Statistics of tools, and the timeline of a session."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pegboard.history.plan import NOT_RUN, not_run
from pegboard.history.reader import Reader
from pegboard.history.recorded import EXIT_CODE, state_of
from pegboard.history.schema import CANCELLED, FAILED, NOT_A_TURN, RUNNING, UNREADABLE
from pegboard.history.turns import turn_bars
from pegboard.models.statistics import ToolStatistics
from pegboard.models.timeline import SessionTimeline, SessionTool, TimelineBar, TimelineGap

if TYPE_CHECKING:
    from pegboard.history.rows import Column

SAMPLE: Final = 1000
"""Number of the latest calls of a tool that durations are computed from."""
BUCKETS: Final = 24
"""Maximum number of values of a sparkline."""
_MOST_BARS: Final = 2000
_SHORTEST_GAP: Final = timedelta(seconds=1)
_LABEL: Final = 60


def statistics(reader: Reader, tools: Sequence[str] | None = None) -> tuple[ToolStatistics, ...]:
    """Return the statistics of tools, the most used first; block.

    Args:
        reader: The history.
        tools: Names of the tools; None for all that were called.

    Raises:
        StoreError: The database can't be read.
    """
    rows = reader.select("SELECT tool, calls, failures, last_at FROM uses WHERE calls > 0 ORDER BY calls DESC, tool")
    return tuple(_statistics_of(reader, row) for row in rows if tools is None or row[0] in tools)


def _statistics_of(reader: Reader, row: tuple[Column, ...]) -> ToolStatistics:
    tool, calls, failures, last = row
    [(rejected, failed)] = reader.select(*not_run(str(tool)))
    durations = [
        float(duration or 0)
        for (duration,) in reader.select(
            f"SELECT duration_ms FROM calls WHERE tool = ? AND deleted_at IS NULL AND {NOT_A_TURN}"  # noqa: S608 - our own text
            f" AND status NOT IN (?, ?) AND NOT ({NOT_RUN}) AND typeof(duration_ms) IN ('real', 'integer')"
            " ORDER BY at DESC LIMIT ?",
            [tool, RUNNING, CANCELLED, SAMPLE],
        )
    ]
    durations.reverse()
    ordered = sorted(durations)
    return ToolStatistics(
        tool=str(tool),
        calls=int(calls or 0),
        failures=max(int(failures or 0) - int(failed or 0), 0),
        rejected=int(rejected or 0),
        last_at=_moment(last),
        p50_ms=_median(ordered) if ordered else None,
        p95_ms=percentile(ordered, 0.95),
        durations_ms=_medians(durations),
        sampled=len(durations),
    )


def _moment(at: Column) -> datetime | None:
    """Return the time of the last call, or None if it is not known or its row is damaged."""
    from pegboard.history.rows import moment

    try:
        return None if at is None else moment(at)
    except UNREADABLE:
        return None


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the smallest value that is not exceeded by a share of the values, or None without values."""
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else None


def _median(ordered: Sequence[float]) -> float:
    return ordered[len(ordered) // 2]


def _medians(durations: Sequence[float]) -> tuple[float, ...]:
    groups = min(BUCKETS, len(durations))
    limits = [index * len(durations) // groups for index in range(groups + 1)] if groups else []
    return tuple(_median(sorted(durations[start:end])) for start, end in pairwise(limits))


def session_tools(reader: Reader, session: str) -> tuple[SessionTool, ...]:
    """Return the totals of the tools that a session called, the most used first; block.

    Raises:
        StoreError: The database can't be read.
    """
    rows = reader.select(
        "SELECT tool, count(*), sum(status = ?), sum(duration_ms), sum(CASE WHEN parent IS NULL THEN size END)"  # noqa: S608 - our own text
        f" FROM calls WHERE session = ? AND deleted_at IS NULL AND {NOT_A_TURN}"
        " GROUP BY tool ORDER BY count(*) DESC, tool",
        [FAILED, session],
    )
    return tuple(
        SessionTool(
            tool=str(tool),
            calls=int(calls or 0),
            failures=int(failures or 0),
            duration_ms=float(duration or 0),
            size=int(size or 0),
        )
        for tool, calls, failures, duration, size in rows
    )


def ids_of(reader: Reader, session: str) -> tuple[str, ...]:
    """Return the ids of a session's calls, the oldest first; block.

    Raises:
        StoreError: The database can't be read.
    """
    rows = reader.select(
        f"SELECT id FROM calls WHERE session = ? AND deleted_at IS NULL AND {NOT_A_TURN} ORDER BY n",  # noqa: S608 - our own text
        [session],
    )
    return tuple(str(call) for (call,) in rows)


def timeline(reader: Reader, session: str) -> SessionTimeline:
    """Return the model turns and calls of a session, and the gaps between them; block.

    A turn starts with the message before it and ends with its own.

    Args:
        reader: The reader.
        session: Id of the session, or the start of the id if no other session has it.

    Raises:
        StoreError: The database can't be read.
    """
    session = _whole_id(reader, session)
    bars = [*_calls(reader, session), *_turns(reader, session), *turn_bars(reader, session, _MOST_BARS)]
    bars.sort(key=lambda bar: (bar.start, bar.end))
    is_whole = len(bars) < _MOST_BARS
    bars = bars[-_MOST_BARS:]
    return SessionTimeline(session=session, bars=tuple(bars), gaps=tuple(_gaps(bars)), is_whole=is_whole)


def _whole_id(reader: Reader, start: str) -> str:
    """Return the id of the only session that starts with a text; the text if there are none or several."""
    # Separate queries, because one for both ends would read all calls of the session.
    ends = [
        reader.select(
            f"SELECT {end}(session) FROM {table} WHERE session >= ? AND session < ? || char(1114111)",  # noqa: S608 - our own text
            [start, start],
        )
        for table in ("calls", "messages")
        for end in ("min", "max")
    ]
    found = {str(session) for [(session,)] in ends if session is not None}
    return found.pop() if len(found) == 1 else start


def _calls(reader: Reader, session: str) -> list[TimelineBar]:
    from pegboard.history.rows import moment

    rows = reader.select(
        f"SELECT id, tool, at, duration_ms, status, error IS NOT NULL, parent, {EXIT_CODE} FROM calls"  # noqa: S608 - our own text
        " WHERE session = ? AND deleted_at IS NULL"
        f" AND {NOT_A_TURN} ORDER BY n DESC LIMIT ?",
        [session, _MOST_BARS],
    )
    bars = []
    for call, tool, at, duration, status, has_error, parent, exit_code in rows:
        start = moment(at)
        lasted = timedelta(milliseconds=min(max(float(duration or 0), 0.0), 1e12))
        bars.append(
            TimelineBar(
                kind="call",
                id=str(call),
                label=str(tool),
                start=start,
                end=max(start, datetime.now(UTC)) if status == RUNNING else start + lasted,
                state=state_of(status, waits=bool(has_error)),
                parent=None if parent is None else str(parent),
                exit_code=exit_code if isinstance(exit_code, int) else None,
            )
        )
    return bars


def _turns(reader: Reader, session: str) -> list[TimelineBar]:
    from pegboard.history.rows import moment

    rows = reader.select(
        "SELECT position, at, substr(text, 1, 200), json_extract(message, '$.role') FROM messages"
        " WHERE session = ? AND json_valid(message) ORDER BY position DESC LIMIT ?",
        [session, _MOST_BARS],
    )
    rows.reverse()
    bars = []
    for (_, before, _, _), (position, at, text, role) in pairwise(rows):
        if role == "model":
            label = " ".join(str(text or "").split())[:_LABEL]
            start = min(moment(before), moment(at))
            bars.append(
                TimelineBar(kind="turn", id=str(position), label=label, start=start, end=moment(at), state="ok")
            )
    return bars


def _gaps(bars: Sequence[TimelineBar]) -> list[TimelineGap]:
    gaps = []
    end: datetime | None = None
    for bar in bars:
        if end is not None and bar.start - end >= _SHORTEST_GAP:
            gaps.append(TimelineGap(start=end, end=bar.start))
        end = bar.end if end is None else max(end, bar.end)
    return gaps
