"""The listed calls: pages of recorded calls, and the calls that they made, expanded. Independent of Textual."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, overload

from pegboard.models import UNFINISHED, CallState, RecordedCall
from pegboard.models.turn import ModelTurn
from pegboard.results.clean import clean_line
from pegboard.results.text import preview

_ARGUMENTS: Final = 300
"""Characters of the arguments that a list can show."""
_NAME: Final = 200
_MOST_NEWER: Final = 10_000
"""Calls that are kept above the visible ones; if there are more, they are loaded again when they are needed."""
_MOST_OLDER: Final = 2_000
"""Calls that are kept below the visible ones."""
_LEFT: Final = 500
"""Calls that are left above or below the visible ones when others are dropped, which thus happens rarely."""


@dataclass(frozen=True, slots=True)
class CallRow:
    """A recorded call or turn as the list shows it, without its arguments and result, which may be large."""

    id: str
    position: int
    at: datetime
    tool: str
    """Name of the tool, sanitized."""
    source: str
    origin: str
    """The agent or the chat session that made the call, sanitized; may be empty."""
    arguments: str
    """The arguments in one line, or the first line of a turn's text, sanitized."""
    duration_ms: float
    size: int
    state: CallState
    reason: str
    """Kind of failure, sanitized, or exit code of a script if it isn't 0; otherwise empty."""
    pinned: bool
    calls: int
    """Number of calls that it made itself."""
    parent: str | None
    """Id of the call or the turn that made it."""
    is_turn: bool
    is_batch: bool

    @classmethod
    def of(cls, call: RecordedCall) -> CallRow:
        """Return the row of a recorded call."""
        commands = call.args.get("commands")
        arguments = (
            _first_line(ModelTurn.of(call))
            if call.is_turn
            else clean_line(commands[:_ARGUMENTS])
            if call.tool == "script.run" and isinstance(commands, str)
            else preview(call.args, _ARGUMENTS)
            if call.args
            else ""
        )
        return cls(
            id=call.id,
            position=call.position,
            at=call.at,
            tool=clean_line(call.tool[:_NAME]),
            source=call.source,
            origin=clean_line((call.agent or call.session or "")[:_NAME]),
            arguments=arguments,
            duration_ms=call.duration_ms,
            size=call.size,
            state=call.state,
            reason=_reason(call),
            pinned=call.pinned,
            calls=call.calls,
            parent=call.parent or (None if call.is_turn else call.turn),
            is_turn=call.is_turn,
            is_batch=call.is_batch,
        )


@dataclass(frozen=True, slots=True)
class ListedCall:
    """A line of the list."""

    row: CallRow
    depth: int
    key: str
    """Ids of the expanded calls that contain it and its own; unique in the list and stable."""
    is_unfolded: bool


class Expanded(NamedTuple):
    """The number of loaded calls that an expanded call made, and whether there may be others by now."""

    calls: int
    may_change: bool


class _Lines(Sequence[ListedCall]):
    """Lines that are built when they are read, because there may be many.

    Args:
        rows: The calls, without those that they made.
        expanded: The line of each expanded call and of those that it made, by its index in `rows`, in order.
    """

    def __init__(self, rows: Sequence[CallRow], expanded: Mapping[int, Sequence[ListedCall]]) -> None:
        self._rows = rows
        self._groups = [*expanded.values()]
        self._starts: list[int] = []
        """Line of each expanded call."""
        self._ends = [index + 1 for index in expanded]
        """Index in `rows` after each expanded call."""
        self._more = 0
        """Number of lines that are below an expanded call."""
        for index, group in expanded.items():
            self._starts.append(index + self._more)
            self._more += len(group) - 1

    def __len__(self) -> int:
        return len(self._rows) + self._more

    @overload
    def __getitem__(self, index: int) -> ListedCall: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ListedCall]: ...
    def __getitem__(self, index: int | slice) -> ListedCall | Sequence[ListedCall]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        line = range(len(self))[index]
        number = bisect_right(self._starts, line)
        if number:
            below = line - self._starts[number - 1]
            group = self._groups[number - 1]
            if below < len(group):
                return group[below]
            line = self._ends[number - 1] + below - len(group)
        row = self._rows[line]
        return ListedCall(row, 0, row.id, is_unfolded=False)


class CallRows:
    """The loaded calls, the newest first, with expanded calls after the call that made them, in the order of time."""

    def __init__(self) -> None:
        self.top: list[CallRow] = []
        """Loaded calls that match the query."""
        self.next: int | None = None
        """Position below which older calls follow; None if all are loaded."""
        self.newer: int | None = None
        """Position above which newer calls follow; None if the newest are loaded."""
        self.unfolded: set[str] = set()
        """Ids of the expanded calls."""
        self._made: dict[str, Sequence[CallRow]] = {}
        self._running: set[str] = set()
        self._groups: Mapping[int, Sequence[ListedCall]] = {}
        """The lines of each expanded call and of those that it made, by its index in `top`."""
        self.listed: Sequence[ListedCall] = ()
        """The lines of the list."""

    @property
    def newest(self) -> int:
        """Position of the newest loaded call; 0 without any."""
        return self.top[0].position if self.top else 0

    @property
    def running(self) -> AbstractSet[str]:
        """Ids of the calls that were unfinished when they were loaded."""
        inner = {row.id for made in self._made.values() for row in made if row.state in UNFINISHED}
        return self._running | inner

    def replace(self, rows: Iterable[CallRow], following: int | None, newer: int | None = None) -> None:
        """Show other calls, and keep which calls are expanded.

        Args:
            rows: The calls, the newest first.
            following: Position below which older calls follow.
            newer: Position above which newer calls follow.
        """
        self.top, self.next, self.newer = list(rows), following, newer
        self._running = _running(self.top)
        self._list()

    def append(self, rows: Sequence[CallRow], following: int | None) -> None:
        """Add older calls."""
        self.top += rows
        self.next = following
        self._running |= _running(rows)
        self._list()

    def prepend(self, rows: Sequence[CallRow], newer: int | None) -> None:
        """Add newer calls.

        Args:
            rows: The calls, the newest first.
            newer: Position above which newer calls follow.
        """
        self.top = [*rows, *self.top]
        self.newer = newer
        self._running |= _running(rows)
        self._list()

    def merge(self, head: Sequence[CallRow], following: int | None, changed: Mapping[str, CallRow | None]) -> None:
        """Replace the newest calls.

        Args:
            head: All matching calls from the newest to the oldest one of `head`.
            following: Position below which older calls follow; None if `head` has all.
            changed: Other loaded calls that have changed; None if they were deleted.
        """
        kept: list[CallRow] = []
        if following is None:
            self.next = None
        else:
            kept = self.top[bisect_right(self.top, -following, key=lambda row: -row.position) :]
            if not kept:
                self.next = following
        if changed:
            updated = (changed.get(row.id, row) for row in kept)
            kept = [row for row in updated if row is not None]
        left = {call_id for call_id in self._running if call_id not in changed}
        self.top = [*head, *kept]
        self._running = _running(head) | (left - {row.id for row in head}) | _running(filter(None, changed.values()))
        self._list()

    def expanded(self) -> dict[str, Expanded]:
        """Return the expanded calls of the list by their id, with the state of the calls that they made."""
        found: dict[str, Expanded] = {}
        for row in (line.row for group in self._groups.values() for line in group):
            if row.id in self.unfolded:
                made = self._made.get(row.id, ())
                is_running = row.state in UNFINISHED or any(one.state in UNFINISHED for one in made)
                found[row.id] = Expanded(len(made), is_running or row.calls != len(made))
        return found

    def trim(self, first: int, last: int) -> None:
        """Drop the calls that are far from some lines.

        Args:
            first: The first line that is needed.
            last: The last line that is needed.
        """
        above = first - (len(self.listed) - len(self.top))  # lines of expanded calls may be above
        start = above - _LEFT if above > _MOST_NEWER else 0
        end = last + _LEFT if len(self.top) - last > _MOST_OLDER else len(self.top)
        if start == 0 and end == len(self.top):
            return
        if end < len(self.top):
            self.next = self.top[end - 1].position
        self.top = self.top[start:end]
        if start:
            self.newer = self.top[0].position
        self._list()
        self.unfolded &= self.expanded().keys()
        self._made = {call_id: made for call_id, made in self._made.items() if call_id in self.unfolded}

    def fold(self, call_id: str) -> None:
        """Hide the calls that a call made."""
        self.unfolded.discard(call_id)
        self._made.pop(call_id, None)
        self._list()

    def unfold(self, made: Mapping[str, Sequence[CallRow]]) -> None:
        """Show the calls that calls made.

        Args:
            made: The calls by the id of the call that made them, the oldest first.
        """
        if made:
            self.unfolded |= made.keys()
            self._made.update(made)
            self._list()

    def _list(self) -> None:
        unfolded = self.unfolded
        at = [index for index, row in enumerate(self.top) if row.id in unfolded] if unfolded else []
        self._groups = {index: self._lines_of(self.top[index]) for index in at}
        self.listed = _Lines(self.top, self._groups)

    def _lines_of(self, expanded: CallRow) -> list[ListedCall]:
        """Return the line of a call and those of the calls that it made."""
        lines: list[ListedCall] = []
        waiting = [(expanded, 0, "")]
        while waiting:
            row, depth, prefix = waiting.pop()
            key = f"{prefix}{row.id}"
            made = self._made.get(row.id, ()) if row.id in self.unfolded else ()
            lines.append(ListedCall(row, depth, key, is_unfolded=bool(made)))
            waiting += ((one, depth + 1, f"{key}/") for one in reversed(made))
        return lines


def _reason(call: RecordedCall) -> str:
    if call.exit_code:
        return f"exit {call.exit_code}"
    if call.error is None or call.state not in {"failed", "interrupted"}:
        return ""
    reason = call.error.detail or call.error.code
    return "" if reason == "execution_error" else clean_line(reason[:_NAME])


def _first_line(turn: ModelTurn) -> str:
    """Return the first line of a turn's text, or its model if it has no text."""
    line = turn.text.strip().partition("\n")[0] or turn.model
    return clean_line(line[:_ARGUMENTS])


def _running(rows: Iterable[CallRow]) -> set[str]:
    return {row.id for row in rows if row.state in UNFINISHED}
