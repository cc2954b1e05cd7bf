"""The sidebar: the filter and the tool list."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.getters import query_one

from pegboard.tui.state.tool_scan import ToolScan
from pegboard.tui.tools.tool_list import ToolList
from pegboard.tui.widgets.filter_line import FilterLine


class ToolListPane(Vertical):
    """Tool list by pack, with a filter."""

    ALLOW_MAXIMIZE = True

    list = query_one(ToolList)
    _filter = query_one(FilterLine)

    def __init__(self, *, vim_keys: bool = False, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
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

    @on(ToolList.Filtered)
    def _filtered(self, event: ToolList.Filtered) -> None:
        self._filter.show(event.query, f"{event.found:,} of {event.total:,}", typing=event.typing)
