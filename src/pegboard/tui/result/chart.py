"""View of numbers as a chart."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING
from unicodedata import normalize

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from pegboard.results.chart import Chart
from pegboard.results.sizes import count

if TYPE_CHECKING:
    from textual_plotext import Plot


_AXIS_LINES = 3
_NO_CELL = "\u200b"
"""Character without width."""


class ChartView(Vertical, can_focus=True):
    """Numbers as bars with labels, or as a line if there are many.

    Args:
        chart: The numbers.
    """

    DEFAULT_CSS = """
    ChartView {
        height: 1fr;
        width: 1fr;
        background: $surface;
        padding: 0 1;
        &:focus { background-tint: $foreground 3%; }
        & > .caption { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        & > PlotextPlot { height: 1fr; width: 1fr; }
    }
    """

    def __init__(self, chart: Chart) -> None:
        super().__init__()
        self._chart = chart

    def compose(self) -> ComposeResult:
        """Yield the line with the range of the numbers."""
        shown = self._chart
        name = f"{shown.title} · " if shown.title else ""
        total = count(shown.total, "number")
        least, greatest = min(shown.values), max(shown.values)
        yield Static(Content(f"{name}{total} from {least:,.6g} to {greatest:,.6g}"), classes="caption", markup=False)

    async def on_mount(self) -> None:
        """Load the library and draw the chart."""
        # The library takes a while to import.
        await asyncio.to_thread(importlib.import_module, "textual_plotext")
        from textual_plotext import PlotextPlot

        chart = self._chart

        class SafePlot(PlotextPlot):
            """Plot that reports numbers that the library can't draw."""

            _has_bars: bool | None = None

            def render(self) -> object:  # type: ignore[override] # Textual accepts any renderable
                """Render the plot: bars if each has a line of its own, otherwise a line."""
                has_bars = 0 < len(chart.labels) <= self.size.height - _AXIS_LINES
                try:
                    if has_bars is not self._has_bars:
                        self._has_bars = has_bars
                        self.plt.clear_figure()
                        _draw(self.plt, chart, has_bars=has_bars)
                    return super().render()
                except (ValueError, ArithmeticError, IndexError, TypeError, KeyError):
                    return Content("These numbers can't be drawn.")

        await self.mount(SafePlot())


def _draw(plot: Plot, chart: Chart, *, has_bars: bool) -> None:
    if has_bars:
        # The first bar is drawn at the bottom.
        labels = [_one_character_per_cell(label) for label in reversed(chart.labels)]
        plot.bar(labels, list(reversed(chart.values)), orientation="horizontal", width=0.6)
    else:
        plot.plot(list(chart.positions), list(chart.values), marker="braille")


def _one_character_per_cell(label: str) -> str:
    """Return a label whose characters are as many as its cells; the library counts characters."""
    widths = ((character, cell_len(character)) for character in normalize("NFC", label))
    return "".join(character + _NO_CELL * (width - 1) for character, width in widths if width)
