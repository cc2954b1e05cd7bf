"""Recorded calls as lists show them: pages, counts, and changes such as deleting and pinning."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pegboard.history.history import History
from pegboard.history.notify import notify
from pegboard.history.plan import STATUS, Plan, may_be_beginning, narrow_to_turns, plan, quoted
from pegboard.history.reader import Reader
from pegboard.history.schema import EDITED, NOT_A_TURN, RUNNING, UNREADABLE
from pegboard.models import UNFINISHED, CallCount, CallState, DroppedCalls, HistoryPage, HistoryQuery, RecordedCall

if TYPE_CHECKING:
    from pegboard.history.database import Database
    from pegboard.history.rows import Column

COUNTED: Final = 10_000
"""Number of matching calls beyond which they are no longer counted."""
FREQUENT: Final = 5_000
"""Number of calls beyond which a word of a query matches only as a whole word."""
RECENT: Final = 2_000
"""Number of the latest calls whose agents complete a query."""
MOST_TERMS: Final = 300
"""Number of words with one beginning that are listed in a query of the index."""
EXIT_CODE: Final = (
    "CASE WHEN NOT (tool = 'script.run' AND ok AND json_valid(meta)) THEN NULL"
    " ELSE json_extract(meta, '$.exitCode') END"
)
"""Column with the exit code of a script that ran to its end."""
_COLUMNS: Final = (
    "calls.n, calls.id, at, tool, args, ok, error, duration_ms, source, session, parent, turn, status, agent, size,"
    f" pinned, {EXIT_CODE}"
)
_RUNNING: Final = f"FROM calls INDEXED BY calls_running WHERE status = {RUNNING}"
# Without the name of the index, SQLite searches all calls, because the rows are wanted in the order of their positions.
_STATES: Final[dict[int, CallState]] = {status: state for state, status in STATUS.items()}


def state_of(status: Column, *, waits: bool) -> CallState:
    """Return the state of a call from its columns.

    Args:
        status: The status.
        waits: Whether an unfinished call waits for approval: then its row has an error.
    """
    state = _STATES.get(int(status or 0), "failed")
    return "waiting" if state == "running" and waits else state


@dataclass(frozen=True)
class _Span:
    """Positions of a page.

    Attributes:
        position: Position next to the page; None for no limit.
        is_upward: Whether the page is above it and its oldest calls are wanted, rather than the newest below it.
    """

    position: int | None
    is_upward: bool = False

    @property
    def order(self) -> str:
        return "ASC" if self.is_upward else "DESC"

    @property
    def values(self) -> list[Column]:
        return [] if self.position is None else [self.position]

    def conditions(self, column: str) -> list[str]:
        return [] if self.position is None else [f"{column} {'>' if self.is_upward else '<'} ?"]


class RecordedCalls:
    """The calls of a history, running ones included, the newest first; every method blocks.

    All methods raise `StoreError` if the database can't be read or written.

    Args:
        history: The history.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self.reader = Reader(history)

    # Read

    def page(self, query: HistoryQuery, *, before: int | None = None, limit: int = 100) -> HistoryPage:
        """Return the newest calls that match.

        Args:
            query: The query.
            before: Position below which the page starts; None for the newest calls.
            limit: Maximum number of calls.
        """
        rows = self._positions(query, _Span(before), limit + 1)
        calls = self._calls(rows[:limit])
        return HistoryPage(calls=calls, next=int(rows[limit - 1][0] or 0) if len(rows) > limit > 0 else None)

    def page_after(self, query: HistoryQuery, after: int = 0, *, limit: int = 100) -> HistoryPage:
        """Return the oldest calls above a position that match, the newest first.

        Args:
            query: The query.
            after: Position above which the page starts; 0 for the oldest calls.
            limit: Maximum number of calls.

        Returns:
            The page; its `next` is the position to pass as `after` for newer calls, None after the newest call.
        """
        rows = self._positions(query, _Span(after, is_upward=True), limit + 1)
        calls = self._calls(rows[:limit][::-1])
        return HistoryPage(calls=calls, next=int(rows[limit - 1][0] or 0) if len(rows) > limit > 0 else None)

    def count(self, query: HistoryQuery) -> CallCount:
        """Return the number of calls that match, exactly up to a limit."""
        if query.is_empty:
            [(finished,)] = self.reader.select("SELECT coalesce(sum(calls), 0) FROM uses")
            [(running,)] = self.reader.select(f"SELECT count(*) {_RUNNING} AND deleted_at IS NULL AND {NOT_A_TURN}")
            return CallCount(calls=int(finished or 0) + int(running or 0), is_exact=True)
        found = self._count(query.model_copy(update={"turns": False}))
        turns = self._count(query, only_turns=True) if query.turns else 0
        return CallCount(calls=min(found, COUNTED), is_exact=found <= COUNTED, turns=min(turns, COUNTED))

    def _count(self, query: HistoryQuery, *, only_turns: bool = False) -> int:
        """Return the number of lines of a query, or a larger number than `COUNTED`."""
        return sum(
            int(self.reader.select(f"SELECT count(*) FROM ({statement})", values)[0][0] or 0)  # noqa: S608 - our own text
            for statement, values in self._statements("1", query, _Span(None), COUNTED + 1, only_turns=only_turns)
        )

    def get(self, call_id: str) -> RecordedCall | None:
        """Return a call by its id, or by the unique start of its id; None if there is none."""
        return next(iter(self.find([call_id])), None) or self._by_start(call_id)

    def find(self, ids: Sequence[str]) -> tuple[RecordedCall, ...]:
        """Return the calls with these ids that exist, the newest first."""
        rows = self.reader.select(
            f"SELECT {_COLUMNS} FROM calls WHERE id IN (SELECT value FROM json_each(?)) AND deleted_at IS NULL"  # noqa: S608 - our own text
            " ORDER BY n DESC",
            [json.dumps(list(ids))],
        )
        return self._calls(rows)

    def tools(self) -> tuple[str, ...]:
        """Return the names of all tools that the history contains."""
        return tuple(str(tool) for (tool,) in self.reader.select("SELECT tool FROM uses WHERE calls > 0 ORDER BY tool"))

    def agents(self) -> tuple[str, ...]:
        """Return the names of the agents of recent calls, the latest first."""
        rows = self.reader.select(
            "SELECT agent FROM (SELECT n, agent FROM calls WHERE deleted_at IS NULL ORDER BY n DESC LIMIT ?)"
            " WHERE agent IS NOT NULL GROUP BY agent ORDER BY max(n) DESC",
            [RECENT],
        )
        return tuple(name for (agent,) in rows if (name := str(agent)).isprintable())

    def dropped(self) -> DroppedCalls | None:
        """Return what the size limit has removed, or None if it has removed nothing."""
        from pegboard.history.rows import moment

        rows = self.reader.select("SELECT name, value FROM facts WHERE name LIKE 'dropped%'")
        facts = {str(name): value for name, value in rows}
        if not facts.get("dropped"):
            return None
        return DroppedCalls(
            calls=int(facts["dropped"] or 0),
            until=moment(facts.get("dropped_until")),
            size_limit=self._history.size_limit,
        )

    def _by_start(self, call_id: str) -> RecordedCall | None:
        if len(call_id) < 4:
            return None
        rows = self.reader.select(
            f"SELECT {_COLUMNS} FROM calls WHERE id >= ? AND id < ? AND deleted_at IS NULL LIMIT 2",  # noqa: S608 - our own text
            [call_id, f"{call_id}\U0010ffff"],
        )
        return next(iter(self._calls(rows)), None) if len(rows) == 1 else None

    def _whole_id(self, call_id: str) -> str:
        """Return the id of the only call whose id starts with a text, or the text if there is none."""
        if self.reader.select("SELECT 1 FROM calls WHERE id = ?", [call_id]):
            return call_id
        found = self._by_start(call_id)
        return call_id if found is None else found.id

    def _positions(self, query: HistoryQuery, span: _Span, limit: int) -> list[tuple[Column, ...]]:
        rows = [
            row
            for statement, values in self._statements(_COLUMNS, query, span, limit)
            for row in self.reader.select(statement, values)
        ]
        return sorted(rows, key=lambda row: int(row[0] or 0), reverse=not span.is_upward)[:limit]

    def _statements(
        self, columns: str, query: HistoryQuery, span: _Span, limit: int, *, only_turns: bool = False
    ) -> list[tuple[str, list[Column]]]:
        tools = [str(tool) for (tool,) in self.reader.select("SELECT DISTINCT tool FROM uses")] if query.tools else []
        if query.tools:
            tools += [str(tool) for (tool,) in self.reader.select(f"SELECT DISTINCT tool {_RUNNING}")]
        if query.parent not in {None, "none"}:
            query = query.model_copy(update={"parent": self._whole_id(str(query.parent))})
        terms = {word: found for word in query.words if (found := self._terms(word))}
        made = plan(query, dict.fromkeys(tools), terms)
        if only_turns:
            narrow_to_turns(made)
        statements = []
        where = " AND ".join([*made.alone, *span.conditions("calls.n"), "deleted_at IS NULL"])
        if not made.match:
            statement = f"SELECT {columns} FROM calls WHERE {where} ORDER BY n {span.order} LIMIT ?"  # noqa: S608 - our own text
            return [(statement, [*made.alone_values, *span.values, limit])]
        if made.with_finished:
            statements.append(self._indexed(columns, made, span, limit))
        if made.with_running:
            statement = f"SELECT {columns} {_RUNNING} AND {where} ORDER BY n {span.order} LIMIT ?"
            statements.append((statement, [*made.alone_values, *span.values, limit]))
        return statements

    def _terms(self, word: str) -> Sequence[str]:
        """Return the words of the index that a word of a query matches; empty if the index finds them faster itself.

        A word that occurs often itself matches only as a whole word, because its beginning says little.
        """
        if not may_be_beginning(word):
            return ()
        statement = "SELECT 1 FROM calls_text WHERE calls_text MATCH ? LIMIT 1 OFFSET ?"
        if self.reader.select(statement, [f"words : {quoted(word)}", FREQUENT]):
            return [word]
        if not (word.isascii() and word.isalnum()):
            return ()  # the index may write it in another way
        found: list[str] = []
        start = wanted = word.lower()
        while len(found) <= MOST_TERMS:
            rows = self.reader.select("SELECT term FROM temp.calls_terms WHERE term >= ? LIMIT 1", [start])
            term = str(rows[0][0]) if rows else ""
            if not term.startswith(wanted):
                return found
            found.append(term)
            start = f"{term}\x01"
        return ()  # so many words are rare ones

    def _indexed(self, columns: str, made: Plan, span: _Span, limit: int) -> tuple[str, list[Column]]:
        where = " AND ".join(["calls_text MATCH ?", *span.conditions("calls_text.rowid"), *made.rest])
        if columns == "1" and not made.rest:
            return f"SELECT 1 FROM calls_text WHERE {where} LIMIT ?", [made.match, *span.values, limit]  # noqa: S608 - our own text
        statement = (
            f"SELECT {columns} FROM calls_text CROSS JOIN calls ON calls.n = calls_text.rowid WHERE {where}"  # noqa: S608 - our own text
            f" ORDER BY calls_text.rowid {span.order} LIMIT ?"
        )
        return statement, [made.match, *span.values, *made.rest_values, limit]

    def _calls(self, rows: Sequence[tuple[Column, ...]]) -> tuple[RecordedCall, ...]:
        ids = json.dumps([str(row[1]) for row in rows])
        made = self.reader.select(
            "SELECT parent, count(*) FROM calls WHERE parent IN (SELECT value FROM json_each(?))"
            " AND deleted_at IS NULL GROUP BY parent UNION ALL"
            " SELECT turn, count(*) FROM calls WHERE turn IN (SELECT value FROM json_each(?))"
            " AND turn <> id AND parent IS NULL AND deleted_at IS NULL GROUP BY turn",
            [ids, ids],
        )
        inner = {str(parent): int(count or 0) for parent, count in made}
        calls = []
        for row in rows:
            try:
                calls.append(_call_of(row, inner.get(str(row[1]), 0)))
            except UNREADABLE:
                self._history.report_damage()
        return tuple(calls)

    # Change

    def delete(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Delete finished calls and turns, and the calls that they made; return the ids to `restore` within an hour."""
        now = int(time.time() * 1e6)
        return self._change(
            ids,
            "WITH RECURSIVE gone (id) AS (SELECT value FROM json_each(?) UNION SELECT calls.id FROM gone"  # noqa: S608 - our own text
            " JOIN calls ON calls.parent = gone.id UNION SELECT calls.id FROM gone JOIN calls ON calls.turn = gone.id)"
            " SELECT id FROM calls WHERE id IN (SELECT id FROM gone)"
            f" AND deleted_at IS NULL AND status <> {RUNNING}",
            deleted_at=now,
        )

    def restore(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Undo `delete`, with the calls that were deleted together with these; return the ids of those restored."""
        return self._change(
            ids,
            "WITH RECURSIVE back (id, deleted) AS (SELECT id, deleted_at FROM calls"  # noqa: S608 - our own text
            f" WHERE id IN (SELECT value FROM json_each(?)) AND deleted_at IS NOT NULL UNION {_deleted_with('parent')}"
            f" UNION {_deleted_with('turn')})"
            " SELECT id FROM calls WHERE id IN (SELECT id FROM back)",
            deleted_at=None,
        )

    def pin(self, ids: Sequence[str], *, pinned: bool = True) -> tuple[str, ...]:
        """Keep calls regardless of the size limit, or no longer; return the ids of those that exist."""
        found = "SELECT id FROM calls WHERE id IN (SELECT value FROM json_each(?)) AND deleted_at IS NULL"
        return self._change(ids, found, pinned=int(pinned))

    def _change(self, ids: Sequence[str], found: str, **new: Column) -> tuple[str, ...]:
        """Change columns of the calls that a query finds for ids; return the ids of these calls."""
        columns = ", ".join(f"{column} = ?" for column in new)
        statement = f"UPDATE calls SET {columns} WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608 - our own names

        def change(database: Database) -> tuple[str, ...]:
            database.require_file()
            with database.transaction() as run:
                changed = [str(call) for (call,) in run(found, [json.dumps(list(ids))])]
                run(statement, [*new.values(), json.dumps(changed)])
                run(EDITED, [])
            return tuple(changed)

        changed = self._history.act(change)
        notify(self._history.bells)
        return changed

    def close(self) -> None:
        """Close the connection."""
        self.reader.close()


def _deleted_with(column: str) -> str:
    """Return the SQL for the calls whose `column` is an id in `back` and that were deleted together with it."""
    # With the index of deletions, each call would be compared with all that were deleted together; `+` excludes it.
    condition = f"calls.{column} = back.id AND +calls.deleted_at = back.deleted"
    return f"SELECT calls.id, back.deleted FROM back JOIN calls ON {condition}"  # noqa: S608 - our own text


def _call_of(row: tuple[Column, ...], inner: int) -> RecordedCall:
    from pegboard.history.rows import record_of

    position, *columns = row
    record = record_of(tuple(columns[:11]))
    status, agent, size, pinned, exit_code = columns[11:]
    state = state_of(status, waits=record.error is not None)
    values = dict(record)
    if state in UNFINISHED:
        values["error"] = None
        values["duration_ms"] = max(0.0, time.time() * 1000 - record.at.timestamp() * 1000)
    return RecordedCall.model_construct(
        **values,
        position=int(position or 0),
        state=state,
        agent=None if agent is None else str(agent),
        size=int(size or 0),
        pinned=bool(pinned),
        calls=inner,
        exit_code=exit_code if isinstance(exit_code, int) else None,
    )
