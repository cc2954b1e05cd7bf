"""Records of calls."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from pydantic import Field

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
    turn: str | None = None
    """The id of the model turn in which the call was made; of a turn, its own."""

    @property
    def is_turn(self) -> bool:
        """Whether this is the record of a model turn, whose calls have its id as `turn`."""
        return self.turn == self.id

    @property
    def is_batch(self) -> bool:
        """Whether this is the record of a batch, the parent of the calls of its rows."""
        return self.source == "batch" and self.parent is None

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
            turn=call.turn,
        )


class ToolUses(DataModel):
    """Number of calls of a tool in the history."""

    calls: int = 0
    failures: int = 0
    rejected: int = 0
    """Calls for which the tool didn't run, because their arguments were invalid, or they were denied or not allowed."""
    last_at: datetime | None = None


CallState = Literal["waiting", "running", "ok", "failed", "cancelled", "denied", "interrupted"]
"""State of a recorded call; *waiting*: for approval; *interrupted*: its process ended before it finished."""
UNFINISHED: Final[frozenset[CallState]] = frozenset({"waiting", "running"})
"""States of calls without a result."""


class RecordedCall(CallRecord):
    """One call in the history, finished or not, as lists show it."""

    position: int
    """Number that grows with each recorded call; a page of calls starts below one."""
    state: CallState
    agent: str | None
    size: int
    """Size of the result's JSON, in bytes."""
    pinned: bool
    calls: int = 0
    """Number of recorded calls that this call, or this turn, made itself."""
    exit_code: int | None = Field(default=None, exclude_if=lambda code: code is None)
    """Exit code of a script that ran to its end; its state is ok even if the code isn't 0."""


class QueryProblem(DataModel):
    """Part of a history query that has no effect because it is invalid."""

    start: int
    """Index of its first character in the query."""
    end: int
    message: str
    allowed: tuple[str, ...] = ()
    """Valid values or keys."""


class HistoryQuery(DataModel):
    """Conditions on recorded calls; all of them must hold, and one of several values of a condition."""

    tools: tuple[str, ...] = ()
    """Names, names of packs, or patterns with `*`."""
    sources: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    """Ids, or the start of ids."""
    agents: tuple[str, ...] = ()
    states: tuple[CallState, ...] = ()
    parent: str | None = None
    """Id of the call or the turn that made them; `none` for calls that no other call made."""
    turns: bool = False
    """Whether model turns are listed too. Calls of turns then have a parent: their turn."""
    since: datetime | None = None
    before: datetime | None = None
    slower: float | None = None
    """Shortest duration in seconds."""
    pinned: bool = False
    words: tuple[str, ...] = ()
    """Words or beginnings of words in the tool's name, the arguments, the error or the result."""
    phrases: tuple[str, ...] = ()
    """Sequences of whole words."""

    @property
    def is_empty(self) -> bool:
        """Whether every call matches."""
        return self == HistoryQuery()


class ParsedQuery(DataModel):
    """A query as text, parsed as far as it is valid."""

    query: HistoryQuery
    problems: tuple[QueryProblem, ...] = ()


class HistoryPage(DataModel):
    """Consecutive calls of a query, the newest first."""

    calls: tuple[RecordedCall, ...]
    next: int | None
    """Position to pass as `before` (or `after`) for the next page; None after the last call."""


class CallCount(DataModel):
    """Number of calls that match a query."""

    calls: int
    is_exact: bool
    """Whether there are no more than `calls`."""
    turns: int = 0
    """Number of turns that match, up to the same limit, if the query lists turns."""


class DroppedCalls(DataModel):
    """Calls that the size limit removed from the history."""

    calls: int
    until: datetime
    """Time of the newest of them."""
    size_limit: int
    """The limit in bytes."""
