"""The sidebar: the filter and the tool list."""

from __future__ import annotations

from dataclasses import replace

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.getters import query_one

from pegboard.tui.state.catalogue import Catalogue
from pegboard.tui.state.remembered import Remembered
from pegboard.tui.state.tool_scan import ToolScan
from pegboard.tui.tools.tool_list import ToolList
from pegboard.tui.widgets.filter_line import FilterLine

_OVERVIEW = "fs.list_dir"
"""The built-in tool to start with: it lists the working directory."""


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
        self.border_title = "Tools"

    def compose(self) -> ComposeResult:
        """Yield the filter and the list."""
        yield FilterLine("/ to filter" if self._vim_keys else "type to filter")
        yield ToolList(vim_keys=self._vim_keys)

    def on_mount(self) -> None:
        """List the tools of each scan."""
        self.watch(self.app, "tool_scan", self._show_scan)

    def _show_scan(self, scan: ToolScan) -> None:
        self.list.empty = scan.empty
        self.list.catalogue = scan.catalogue
        if self._first is not None and not scan.scanning:
            if not self.list.sought and scan.catalogue.entries:
                self.list.restore(self._first.tool or _first_tool(scan.catalogue), self._first.query)
            self._first = None

    @on(ToolList.Filtered)
    def _filtered(self, event: ToolList.Filtered) -> None:
        count = f"{event.found:,} of {event.total:,}"
        self._filter.show(event.query, count, typing=event.typing, renews=event.renews)


def _first_tool(catalogue: Catalogue) -> str:
    """Return the tool to select at the first start: one that runs without arguments and harms nothing."""
    for entry in catalogue.entries:
        harmless = entry.spec.hints.read_only and not entry.spec.hints.open_world
        if harmless and not entry.is_built_in and not entry.spec.input_schema.get("required"):
            return entry.spec.name
    return _OVERVIEW
