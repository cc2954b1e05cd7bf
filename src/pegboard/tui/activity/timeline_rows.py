"""The timeline of a session as rows: one per model turn, call and gap. Independent of Textual."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from pegboard.models.timeline import SessionTimeline, TimelineBar, TimelineGap

TimelineItem: TypeAlias = TimelineBar | TimelineGap

_LONGEST_GAP: Final = 0.1
"""Largest share of the time with activity that a gap is drawn with."""


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A bar or a gap."""

    item: TimelineItem
    depth: int
    """Number of calls that contain it."""


def rows_of(timeline: SessionTimeline) -> Sequence[TimelineRow]:
    """Return turns, calls and gaps in the order of their start."""
    bars = {bar.id: bar for bar in timeline.bars if bar.kind == "call"}
    items: list[TimelineItem] = sorted([*timeline.bars, *timeline.gaps], key=lambda item: (item.start, item.end))
    return [TimelineRow(item, _depth(item, bars)) for item in items]


def _depth(item: TimelineItem, bars: dict[str, TimelineBar]) -> int:
    depth = 0
    while isinstance(item, TimelineBar) and item.parent in bars and depth < 8:
        item = bars[str(item.parent)]
        depth += 1
    return depth


class TimeScale:
    """Position of a time on an axis on which long gaps are shortened.

    Args:
        timeline: The session.
    """

    def __init__(self, timeline: SessionTimeline) -> None:
        self.start = min((bar.start for bar in timeline.bars), default=None)
        """Start of the first bar; None without bars."""
        self.end = max((bar.end for bar in timeline.bars), default=None)
        """End of the last bar."""
        self._times: list[datetime] = []
        self._at: list[float] = []
        self._rates: list[float] = []
        if self.start is None or self.end is None:
            return
        gaps = sum((gap.end - gap.start).total_seconds() for gap in timeline.gaps)
        active = (self.end - self.start).total_seconds() - gaps
        longest = max(active * _LONGEST_GAP, 0.5)
        at = 0.0
        now = self.start
        for gap in timeline.gaps:
            self._add(now, at, 1.0)
            at += (gap.start - now).total_seconds()
            length = (gap.end - gap.start).total_seconds()
            drawn = min(length, longest)
            self._add(gap.start, at, drawn / length if length else 0.0)
            at, now = at + drawn, gap.end
        self._add(now, at, 1.0)
        self._length = at + (self.end - now).total_seconds()

    def _add(self, time: datetime, at: float, rate: float) -> None:
        self._times.append(time)
        self._at.append(at)
        self._rates.append(rate)

    def _position(self, time: datetime) -> float:
        index = max(bisect_right(self._times, time) - 1, 0)
        return self._at[index] + (time - self._times[index]).total_seconds() * self._rates[index]

    def cells(self, item: TimelineItem, width: int) -> tuple[int, int]:
        """Return the first cell of a bar or gap, and the cell after its last; at least one cell."""
        if not self._times or width < 1:
            return 0, 0
        scale = width / self._length if self._length > 0 else 0.0
        first = min(max(int(self._position(item.start) * scale), 0), width - 1)
        return first, min(max(round(self._position(item.end) * scale), first + 1), width)
