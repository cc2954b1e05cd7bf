"""Reading of recorded calls off the event loop, in pages, and following their changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pegboard.errors import StoreError, explained
from pegboard.models import CallCount, DroppedCalls, HistoryQuery, ParsedQuery
from pegboard.results.clean import clean_line
from pegboard.tui.activity.rows import CallRow, CallRows, Expanded

if TYPE_CHECKING:
    from pegboard.runtime.activity import Activity

PAGE: Final = 100
_MOST_NEW: Final = 10_000
"""New calls beyond which they are loaded only when they are needed, so that the list keeps what the user reads."""
MOST_INNER: Final = 1_000
"""Calls shown below the call that made them."""
_MOST_BETWEEN: Final = 1_000
"""Calls that are loaded up to the oldest call; if there are more, only the oldest are loaded."""
_PAUSE_SECONDS: Final = 0.1
"""Shortest pause between two updates by changes."""


@dataclass(frozen=True)
class _Newest:
    """The calls that were read after a change."""

    head: list[CallRow]
    following: int | None
    changed: dict[str, CallRow | None]
    inner: dict[str, list[CallRow]]
    is_connected: bool
    """Whether no call is missing between `head` and the calls that were loaded before."""


class CallFeed:
    """The calls that match a query, read in a thread, one read at a time.

    Args:
        activity: The recorded calls.
        changed: Called when `rows`, `count`, `problem` or `parsed` have changed.
        needed: Returns the first and the last line that must stay loaded; without it, all stay.
    """

    def __init__(
        self, activity: Activity, changed: Callable[[], object], needed: Callable[[], tuple[int, int]] | None = None
    ) -> None:
        self._activity = activity
        self._changed = changed
        self._needed = needed
        self._wake = asyncio.Event()
        self._text = ""
        self._is_new_query = True
        self._is_unread = False
        """Whether the last query is still to be read, because that failed."""
        self._is_outdated = False
        self._is_everything_outdated = False
        self._wants_more = self._wants_newer = self._wants_oldest = False
        self._to_unfold: list[str] = []
        self._opened: set[str] = set()
        """Ids of the turns that were expanded because they were running."""
        self.is_paused = False
        """Whether changes wait, because another page is shown."""
        self.rows = CallRows()
        """The loaded calls."""
        self.parsed = ParsedQuery(query=HistoryQuery())
        """The query of the loaded calls."""
        self.text = ""
        """Text of that query."""
        self.is_loaded = False
        """Whether calls were read."""
        self.count: CallCount | None = None
        """Number of calls that match; None while unknown."""
        self.dropped: DroppedCalls | None = None
        """What the size limit has removed."""
        self.problem = ""
        """Why the calls can't be read; empty if they can."""
        self.edits = 0
        """Number of changes to finished calls that were noticed, such as redactions."""
        self.generation = 0
        """Number of times that the list was started again, with another query or at its other end."""
        self.starts_at_oldest = False
        """Whether the list was started again at the oldest call."""

    # Requests

    def search(self, text: str) -> None:
        """List the calls that match a query."""
        self._text, self._is_new_query = text, True
        self._wake.set()

    def load_more(self) -> None:
        """Load older calls, if there are any."""
        if self.rows.next is not None and not self._wants_more:
            self._wants_more = True
            self._wake.set()

    def load_newer(self) -> None:
        """Load newer calls, if there are any between the loaded ones and the newest."""
        if self.rows.newer is not None and not self._wants_newer:
            self._wants_newer = True
            self._wake.set()

    def go_to_oldest(self) -> None:
        """List the oldest calls; the newer ones are loaded when they are needed."""
        self._wants_oldest = True
        self._wake.set()

    def go_to_newest(self) -> None:
        """List the newest calls."""
        self.search(self._text)

    def unfold(self, call_id: str) -> None:
        """Show the calls that a call made."""
        self._to_unfold.append(call_id)
        self._wake.set()

    def fold(self, call_id: str) -> None:
        """Hide the calls that a call made."""
        self.rows.fold(call_id)
        self._changed()

    def refresh(self, *, everything: bool = False) -> None:
        """Read the newest calls again.

        Args:
            everything: Whether to read every loaded call again.
        """
        self._is_outdated = True
        self._is_everything_outdated |= everything
        self._wake.set()

    def pause(self, *, is_paused: bool) -> None:
        """Pause or resume updates."""
        self.is_paused = is_paused
        self._wake.set()

    @property
    def is_idle(self) -> bool:
        """Whether everything requested was read."""
        return self.is_loaded and not (
            self._is_new_query
            or self._is_outdated
            or self._wants_more
            or self._wants_newer
            or self._wants_oldest
            or self._to_unfold
            or self._wake.is_set()
        )

    # Work

    async def follow(self) -> None:
        """Note the changes of every process; never return."""
        while True:
            try:
                async with aclosing(self._activity.changes()) as changes:
                    async for change in changes:
                        self.refresh(everything=change.everything)
                        await asyncio.sleep(_PAUSE_SECONDS)
            except StoreError as error:
                self._fail(error)
                await asyncio.sleep(1)

    async def run(self) -> None:
        """Read as requested; never return."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._is_new_query |= self._is_unread
            while (job := self._next_job()) is not None:
                try:
                    await job()
                except StoreError as error:
                    self._fail(error)

    def _fail(self, error: StoreError) -> None:
        self.problem = clean_line(explained(error, "The history can't be read"))
        self.is_loaded = True
        self._changed()

    def _next_job(self) -> Callable[[], Coroutine[None, None, None]] | None:
        if self._is_new_query:
            return self._start_over
        if self._to_unfold:
            return self._load_inner
        if self._wants_oldest:
            return self._load_oldest
        if self._wants_more:
            return self._load_older
        if self._wants_newer:
            return self._load_newer
        if self._is_outdated and not self.is_paused:
            return self._update
        return None

    async def _start_over(self) -> None:
        self._is_new_query = self._is_outdated = self._is_everything_outdated = False
        self._wants_more = self._wants_newer = self._wants_oldest = False
        self._is_unread = True
        text = self._text
        parsed = self._activity.parse(text)
        rows, following = await asyncio.to_thread(self._page, parsed.query, None, PAGE)
        if self._is_new_query:  # the user has typed more
            return
        self._is_unread = False
        self.text, self.parsed, self.problem, self.is_loaded = text, parsed, "", True
        self.count = None
        self.generation += 1
        self.starts_at_oldest = False
        self.rows = CallRows()
        self.rows.replace(rows, following)
        self._opened.clear()
        self._unfold_running()
        self._changed()
        await self._count()

    async def _count(self) -> None:
        query = self.parsed.query
        lines = query if query.is_empty else _listed(query)
        count, dropped = await asyncio.to_thread(lambda: (self._activity.count(lines), self._activity.dropped()))
        if query is self.parsed.query and (count, dropped) != (self.count, self.dropped):
            self.count, self.dropped = count, dropped
            self._changed()

    async def _load_older(self) -> None:
        self._wants_more = False
        if self.rows.next is not None:
            rows, following = await asyncio.to_thread(self._page, self.parsed.query, self.rows.next, PAGE)
            self.rows.append(rows, following)
            self._changed()

    async def _load_newer(self) -> None:
        self._wants_newer = False
        if self.rows.newer is not None:
            rows, newer = await asyncio.to_thread(self._page_after, self.parsed.query, self.rows.newer)
            self.rows.prepend(rows, newer)
            self._changed()

    async def _load_oldest(self) -> None:
        """Load all older calls, or only the oldest ones if there are too many."""
        self._wants_oldest = self._wants_more = False
        query, following = self.parsed.query, self.rows.next
        if following is not None:
            rows: list[CallRow] = []
            if self.count is None or self.count.calls <= len(self.rows.top) + _MOST_BETWEEN:
                rows, following = await asyncio.to_thread(self._page, query, following, _MOST_BETWEEN)
            if following is None:
                self.rows.append(rows, None)
            else:
                rows, newer = await asyncio.to_thread(self._page_after, query, 0)
                self.rows.replace(rows, None, newer)
        if self._is_new_query:
            return
        self.generation += 1
        self.starts_at_oldest = True
        self._changed()

    async def _load_inner(self) -> None:
        wanted = [*dict.fromkeys(self._to_unfold)]
        self._to_unfold.clear()
        self.rows.unfold(await asyncio.to_thread(self._inner, wanted))
        self._changed()

    async def _update(self) -> None:
        """Read the calls from the newest to those that were loaded before, and those that were running."""
        everything, rows = self._is_everything_outdated, self.rows
        self._is_outdated = self._is_everything_outdated = False
        least = max(PAGE, len(rows.top)) if everything else PAGE
        # Without the newest calls, only the loaded ones can have changed.
        below = None if rows.newer is None else rows.newest + 1
        expanded = rows.expanded()
        if everything:
            expanded = {call_id: one._replace(may_change=True) for call_id, one in expanded.items()}
        found = await asyncio.to_thread(
            self._newest, self.parsed.query, below, least, rows.newest, [*rows.running], expanded
        )
        if not found.is_connected:
            rows.newer = rows.newest
            self._is_outdated, self._is_everything_outdated = True, everything  # read the loaded calls again
            return
        self.problem = ""
        self.edits += everything
        lines = len(rows.listed)
        rows.merge(found.head, found.following, found.changed)
        self._unfold_running()
        rows.unfold({call_id: made for call_id, made in found.inner.items() if call_id in rows.unfolded})
        if self._needed is not None:
            first, last = self._needed()
            rows.trim(first, last + max(0, len(rows.listed) - lines))
        self._changed()
        await self._count()

    def _unfold_running(self) -> None:
        """Show the calls of running turns, unless they are listed themselves or the user has hidden them since."""
        if self.parsed.query.is_empty:
            newest = self.rows.top[:PAGE]
            running = {row.id for row in newest if row.is_turn and row.state == "running"} - self._opened
            self._opened |= running
            for call_id in running:
                self.unfold(call_id)

    # In a thread

    def _page(self, query: HistoryQuery, before: int | None, limit: int) -> tuple[list[CallRow], int | None]:
        page = self._activity.page(_listed(query), before=before, limit=limit)
        return [CallRow.of(call) for call in page.calls], page.next

    def _page_after(self, query: HistoryQuery, after: int) -> tuple[list[CallRow], int | None]:
        page = self._activity.page_after(_listed(query), after=after, limit=PAGE)
        return [CallRow.of(call) for call in page.calls], page.next

    def _inner(self, ids: Sequence[str]) -> dict[str, list[CallRow]]:
        return {
            call_id: [CallRow.of(call) for call in reversed(self._activity.calls_of(call_id, limit=MOST_INNER).calls)]
            for call_id in ids
        }

    def _newest(
        self,
        query: HistoryQuery,
        below: int | None,
        least: int,
        newest: int,
        running: Sequence[str],
        expanded: Mapping[str, Expanded],
    ) -> _Newest:
        head: list[CallRow] = []
        following = below
        while True:
            rows, following = self._page(query, following, min(1_000, max(PAGE, least - len(head))))
            head += rows
            is_connected = not newest or not rows or rows[-1].position <= newest
            if following is None or (is_connected and len(head) >= least) or len(head) > max(_MOST_NEW, least):
                break
        known = {row.id for row in head}
        others = [call_id for call_id in running if call_id not in known]
        changed: dict[str, CallRow | None] = dict.fromkeys(others)
        if others:
            changed |= {call.id: CallRow.of(call) for call in self._activity.find(others)}
        calls = {row.id: row.calls for row in head}
        outdated = [
            call_id for call_id, one in expanded.items() if one.may_change or calls.get(call_id, one.calls) != one.calls
        ]
        return _Newest(head, following, changed, self._inner(outdated), is_connected=is_connected or following is None)


def _listed(query: HistoryQuery) -> HistoryQuery:
    """Return the query of the lines: without conditions, inner calls are only below the call or turn that made them."""
    return query.model_copy(update={"turns": True, "parent": "none" if query.is_empty else query.parent})
