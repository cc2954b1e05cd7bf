"""The line with the use of a tool: calls, failure rate, durations and a sparkline."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from pegboard.models.statistics import ToolStatistics
from pegboard.results.sizes import count, duration

_LEVELS: Final = "▁▂▃▄▅▆▇█"
_NARROWEST: Final = 4
"""Width of the narrowest sparkline."""


class UsageLine(Widget):
    """Use of a tool in one line; hidden for a tool that was never called."""

    DEFAULT_CSS = """
    UsageLine {
        height: 1;
        padding: 0 1;
        color: $text-muted;
        text-wrap: nowrap;
        text-overflow: ellipsis;
        display: none;
    }
    """

    statistics: reactive[ToolStatistics | None] = reactive(None, init=False)
    """Statistics of the tool; None while unknown."""

    def watch_statistics(self) -> None:
        """Hide the line if there is nothing to show; until that is known, keep it, so that the form doesn't move."""
        if self.statistics is not None:
            self.display = self.statistics.calls > 0

    def render(self) -> Content:
        """Return the use in as many words as fit."""
        return usage(self.statistics, self.content_size.width) if self.statistics is not None else Content()


def never_called(tool: str) -> ToolStatistics:
    """Return the statistics of a tool without calls."""
    return ToolStatistics.model_construct(  # a validator would be built only for this
        tool=tool, calls=0, failures=0, last_at=None, p50_ms=None, p95_ms=None, durations_ms=(), sampled=0
    )


def usage(statistics: ToolStatistics, width: int) -> Content:
    """Return `12 calls · 8 % failed (1) · p50 12 ms, p95 1.2 s · ▁▂▇`, shortened if it doesn't fit.

    Args:
        statistics: The use of the tool.
        width: Available width in cells.
    """
    line = _facts(statistics, is_short=False)
    if line.cell_length + 3 + len(statistics.durations_ms) > width:
        line = _facts(statistics, is_short=True)
    room = width - line.cell_length - 1
    if len(statistics.durations_ms) < 2 or room < _NARROWEST:
        return line
    is_roomy = room >= len(statistics.durations_ms) + 2
    blocks = sparkline(_merged(statistics.durations_ms, room - 2 * is_roomy))
    return Content.assemble(line, (" · " if is_roomy else " ", "$text-disabled"), (blocks, "$text-primary"))


def _facts(statistics: ToolStatistics, *, is_short: bool) -> Content:
    facts = [Content(f"{statistics.calls:,} ×" if is_short else count(statistics.calls, "call"))]
    if statistics.rejected:
        facts.append(Content(f"{statistics.rejected:,} not run"))
    if statistics.failures:
        rate = 100 * statistics.failure_rate
        number = "" if is_short else f" ({statistics.failures:,})"
        facts.append(Content.styled(f"{f'{rate:.0f}' if rate >= 1 else '< 1'} % failed{number}", "$text-error"))
    elif statistics.calls > statistics.rejected:
        facts.append(Content.styled("none failed", "$text-success"))
    if statistics.p50_ms is not None and statistics.p95_ms is not None:
        facts.append(Content(f"p50 {duration(statistics.p50_ms)}, p95 {duration(statistics.p95_ms)}"))
    return Content.styled(" · ", "$text-disabled").join(facts)


def _merged(values: Sequence[float], most: int) -> Sequence[float]:
    """Return the means of at most `most` consecutive groups."""
    groups = min(len(values), most)
    limits = [index * len(values) // groups for index in range(groups + 1)]
    return [sum(values[start:end]) / (end - start) for start, end in pairwise(limits)]


def sparkline(values: Sequence[float]) -> str:
    """Return one block per value, whose height is its share of the largest one."""
    largest = max(values, default=0.0)
    if largest <= 0:
        return _LEVELS[0] * len(values)
    return "".join(_LEVELS[round(max(value, 0.0) / largest * (len(_LEVELS) - 1))] for value in values)
