"""The recorded calls of a `GivenRuntime`: those of this run, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime, timedelta

from pegboard.history.query import parse_query
from pegboard.history.watch import HistoryChange
from pegboard.models import (
    CallCount,
    HistoryPage,
    HistoryQuery,
    ParsedQuery,
    RecordedCall,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from pegboard.models.statistics import ToolStatistics


class GivenActivity:
    """The activity facet of a `GivenRuntime`: pages, filters by tool and word, deletion and statistics.

    Args:
        started: Time of the first call; each further one is a second later.
        tool_of: Returns a tool by its name.
        made: Returns the calls that count as uses.
    """

    def __init__(
        self,
        started: datetime,
        tool_of: Callable[[str], ToolSpec | None],
        made: Callable[[], Sequence[ToolCall]],
    ) -> None:
        self._started = started
        self._tool_of = tool_of
        self._made = made
        self._calls: list[RecordedCall] = []
        self._results: dict[str, ToolResult] = {}
        self._deleted: dict[str, RecordedCall] = {}
        self._changed = asyncio.Event()

    def record(self, call: ToolCall, result: ToolResult) -> None:
        """Record a finished call."""
        position = len(self._calls) + len(self._deleted) + 1
        self._calls.append(
            RecordedCall(
                id=call.id,
                at=self._started + timedelta(seconds=position),
                tool=call.name,
                args=call.args,
                ok=result.ok,
                error=result.error,
                duration_ms=result.meta.duration_ms,
                source=call.source,
                session=call.session,
                parent=call.parent,
                position=position,
                state="ok" if result.ok else "failed",
                agent=None,
                size=result.meta.size or 0,
                pinned=False,
            )
        )
        self._results[call.id] = result
        self._changed.set()

    @staticmethod
    def parse(text: str) -> ParsedQuery:
        return parse_query(text)

    def completions(self, text: str) -> tuple[str, ...]:
        del text
        return ()

    def page(self, query: HistoryQuery | None = None, *, before: int | None = None, limit: int = 100) -> HistoryPage:
        found = [call for call in self._matching(query) if before is None or call.position < before][::-1]
        return HistoryPage(calls=tuple(found[:limit]), next=found[limit - 1].position if len(found) > limit else None)

    def page_after(self, query: HistoryQuery | None = None, *, after: int = 0, limit: int = 100) -> HistoryPage:
        found = [call for call in self._matching(query) if call.position > after]
        following = found[limit - 1].position if len(found) > limit else None
        return HistoryPage(calls=tuple(found[:limit][::-1]), next=following)

    def _matching(self, query: HistoryQuery | None) -> Sequence[RecordedCall]:
        wanted = query or HistoryQuery()
        return [
            call
            for call in self._calls
            if (not wanted.tools or call.tool in wanted.tools)
            and wanted.parent in {None, call.parent or "none"}
            and all(word in f"{call.tool} {call.args}" for word in (*wanted.words, *wanted.phrases))
        ]

    def count(self, query: HistoryQuery | None = None) -> CallCount:
        return CallCount(calls=len(self._matching(query)), is_exact=True)

    def dropped(self) -> None:
        """Return None: nothing is removed."""

    def get(self, call_id: str) -> RecordedCall | None:
        return next(iter(self.find([call_id])), None)

    def find(self, ids: Sequence[str]) -> tuple[RecordedCall, ...]:
        return tuple(call for call in reversed(self._calls) if call.id in ids)

    def calls_of(self, call_id: str, *, limit: int = 1000) -> HistoryPage:
        return self.page(HistoryQuery(parent=call_id), limit=limit)

    def result(self, call_id: str) -> ToolResult | None:
        return self._results.get(call_id)

    async def changes(self) -> AsyncIterator[HistoryChange]:
        """Yield at the start, and after each recorded, deleted or restored call."""
        yield HistoryChange(frozenset())
        while True:
            await self._changed.wait()
            self._changed.clear()
            yield HistoryChange(frozenset(), everything=True)

    def delete(self, ids: Sequence[str]) -> tuple[str, ...]:
        gone = {call.id: call for call in self._calls if call.id in ids}
        self._deleted |= gone
        self._calls = [call for call in self._calls if call.id not in gone]
        self._changed.set()
        return tuple(gone)

    def restore(self, ids: Sequence[str]) -> tuple[str, ...]:
        back = [self._deleted.pop(call_id) for call_id in ids if call_id in self._deleted]
        self._calls = sorted([*self._calls, *back], key=lambda call: call.position)
        self._changed.set()
        return tuple(call.id for call in back)

    def tool_of(self, call: RecordedCall) -> ToolSpec | None:
        return self._tool_of(call.tool)

    def unusable(self, call: RecordedCall) -> str:
        return "" if self._tool_of(call.tool) is not None else f"{call.tool} is not available."

    def statistics(self, tools: Sequence[str]) -> tuple[ToolStatistics, ...]:
        return tuple(self._statistics_of(tool) for tool in tools if any(call.name == tool for call in self._made()))

    def _statistics_of(self, tool: str) -> ToolStatistics:
        calls = sum(call.name == tool for call in self._made())
        return ToolStatistics(
            tool=tool,
            calls=calls,
            failures=0,
            last_at=self._started,
            p50_ms=12.0,
            p95_ms=12.0,
            durations_ms=(12.0,) * min(calls, 24),
            sampled=calls,
        )
