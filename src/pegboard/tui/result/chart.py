"""View of numbers as a chart."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import math
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.color import Color
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from pegboard.results.chart import Chart
from pegboard.results.sizes import amount, count

if TYPE_CHECKING:
    from textual_plotext import Plot


_AXIS_LINES = 3
_MOST_TICKS = 6
_TICK_CELLS = 12
_TICK_LINES = 2
_SHORTEST_LABEL = 4


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
        & > PlotextPlot { height: 1fr; width: 1fr; text-wrap: nowrap; }
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
        least, greatest = amount(min(shown.values)), amount(max(shown.values))
        yield Static(Content(f"{name}{total} from {least} to {greatest}"), classes="caption", markup=False)

    async def on_mount(self) -> None:
        """Load the library and draw the chart."""
        # The library takes a while to import.
        await asyncio.to_thread(importlib.import_module, "textual_plotext")
        from textual_plotext import PlotextPlot

        chart = self._chart

        class SafePlot(PlotextPlot):
            """Plot that reports numbers that the library can't draw."""

            _drawn_for: tuple[Size, str] | None = None

            def render(self) -> object:  # type: ignore[override] # Textual accepts any renderable
                """Render the plot: bars if each has a line of its own, otherwise a line."""
                try:
                    if 0 < len(chart.labels) <= self.size.height:
                        return _bars(chart, self.size.width)
                    color = self.app.theme_variables["primary"]
                    if (self.size, color) != self._drawn_for:
                        self._drawn_for = self.size, color
                        self.plt.clear_figure()
                        _draw(self.plt, chart, self.size, Color.parse(color))
                    return super().render()
                except (ValueError, ArithmeticError, IndexError, TypeError, KeyError):
                    return Content("These numbers can't be drawn.")

        plot = SafePlot()
        plot.theme = "clear"  # the colors of the widget; the library has none for themes of ANSI colors
        await self.mount(plot)


def _bars(chart: Chart, width: int) -> Content:
    """Return a line for each value, with its label, its bar and the number."""
    numbers = list(map(amount, chart.values))
    labels = [Content(label).truncate(max(_SHORTEST_LABEL, width // 3), ellipsis=True) for label in chart.labels]
    label_cells = max(label.cell_length for label in labels)
    cells = max(1, width - label_cells - max(map(len, numbers)) - len(" ┤ "))
    values = [value / 2 for value in chart.values]  # otherwise the span of the largest numbers would be infinite
    least, greatest = min(0, *values), max(0, *values)
    span = greatest - least or 1
    left = round(-least / span * cells)
    lines = []
    for label, value, number in zip(labels, values, numbers, strict=True):
        bar = _bar(value / span * cells) if value >= 0 else "█" * round(-value / span * cells)
        start = " " * (left if value >= 0 else left - len(bar))
        end = " " * (0 if value >= 0 else left - len(start) - len(bar))
        lines.append(
            Content.assemble(
                " " * (label_cells - label.cell_length),
                label.stylize("$text-muted"),
                (" ┤", "$text-muted"),
                (f"{start}{bar}{end}", "$primary"),
                f" {number}",
            )
        )
    return Content("\n").join(lines)


def _bar(cells: float) -> str:
    """Return a bar, to an eighth of a cell; the shortest one is one eighth."""
    whole, rest = divmod(max(round(cells * 8), cells > 0), 8)
    return "█" * whole + " ▏▎▍▌▋▊▉"[rest].strip()


def _draw(plot: Plot, chart: Chart, size: Size, color: Color) -> None:
    lines = size.height - _AXIS_LINES
    plotted = color.rgb if color.ansi is None else color.ansi
    plot.plot(list(chart.positions), list(chart.values), marker="braille", color=plotted)
    values = round_numbers(min(chart.values), max(chart.values), most=max(2, lines // _TICK_LINES))
    plot.yticks(values, list(map(_tick, values)))
    positions = round_numbers(chart.positions[0], chart.positions[-1], most=size.width // _TICK_CELLS)
    positions = [position for position in positions if position.is_integer()]
    plot.xticks(positions, list(map(_tick, positions)))


def round_numbers(first: float, last: float, *, most: int) -> list[float]:
    """Return the round numbers, at most six or `most`, that mark a range on an axis; at least the least is marked."""
    power = math.floor(math.log10(last - first)) - 1 if last > first else 0
    steps = (digit * 10.0**exponent for exponent in itertools.count(power) for digit in (1, 2, 5))
    step = next(step for step in steps if (last - first) / step < max(1, min(most, _MOST_TICKS)))
    ticks = range(math.ceil(first / step), math.floor(last / step) + 1)
    return [tick * step for tick in ticks] or [first]


def _tick(number: float) -> str:
    return f"{number:,.12g}"
