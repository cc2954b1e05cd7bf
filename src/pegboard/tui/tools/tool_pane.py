"""The sidebar: the filter and the tool list."""

from __future__ import annotations

from dataclasses import replace

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.getters import query_one

from pegboard.tui.state.catalogue import Catalogue
from pegboard.tui.state.remembered import Remembered
from pegboard.tui.state.tool_scan import ToolScan
from pegboard.tui.tools.tool_list import ToolList
from pegboard.tui.widgets.filter_line import FilterLine

_OVERVIEW = "fs.list_dir"
"""The built-in tool to start with: it lists the working directory."""

_LEAST_COLUMNS, _MOST_COLUMNS = 34, 56
"""Width of the list in a wide terminal: as wide as its longest name, within these limits."""
_PAGE_COLUMNS = 116
"""Columns that the tool page has beside a list wider than the minimum; form and result are then side by side."""
_AROUND_NAME = 12
"""Columns around a name: border, indentation, sign of the state, badges and scrollbar."""


class ToolListPane(Vertical):
    """Tool list by pack, with a filter.

    Args:
        remembered: The tool and the filter to start with.
        vim_keys: See `ToolList`.
    """

    ALLOW_MAXIMIZE = True

    list = query_one(ToolList)
    _filter = query_one(FilterLine)

    def __init__(self, remembered: Remembered, *, vim_keys: bool = False) -> None:
        super().__init__()
        self._first: Remembered | None = replace(remembered)
        """What to select after the first scan."""
        self._vim_keys = vim_keys
        self._longest = 0
        """Width of the longest name."""
        self.border_title = "Tools"

    def compose(self) -> ComposeResult:
        """Yield the filter and the list."""
        tool_list = ToolList(vim_keys=self._vim_keys)
        yield FilterLine(tool_list.filter_hint("list.filter"))
        yield tool_list

    def on_mount(self) -> None:
        """List the tools of each scan."""
        self.watch(self.app, "tool_scan", self._show_scan)

    def _show_scan(self, scan: ToolScan) -> None:
        self.list.empty = scan.empty
        self.list.catalogue = scan.catalogue
        self._longest = max((cell_len(entry.name) for entry in scan.catalogue.entries), default=0)
        self.fit(self.screen.size.width)
        if self._first is not None and not scan.scanning:
            if not self.list.sought and scan.catalogue.entries:
                self.list.restore(self._first.tool or _first_tool(scan.catalogue), self._first.query)
            self._first = None

    def fit(self, columns: int) -> None:
        """Widen the list for its longest name, as far as the tool page needs no space.

        Args:
            columns: Width of the terminal.
        """
        most = min(columns - _PAGE_COLUMNS, _MOST_COLUMNS)
        wanted = min(self._longest + _AROUND_NAME, most)
        self.styles.min_width = wanted if wanted > _LEAST_COLUMNS else None

    @on(ToolList.Filtered)
    def _filtered(self, event: ToolList.Filtered) -> None:
        count = f"{event.found:,} of {event.total:,}"
        self._filter.show(event.query, count, typing=event.typing, renews=event.renews)


class ListAndPage(Horizontal):
    """The tool list, and the page of the selected tool."""

    def on_resize(self, event: events.Resize) -> None:
        """Fit the width of the list."""
        self.query_one(ToolListPane).fit(event.size.width)


def _first_tool(catalogue: Catalogue) -> str:
    """Return the tool to select at the first start: one that runs without arguments and harms nothing."""
    for entry in catalogue.entries:
        harmless = entry.spec.hints.read_only and not entry.spec.hints.open_world
        if harmless and not entry.is_built_in and not entry.spec.input_schema.get("required"):
            return entry.spec.name
    return _OVERVIEW
