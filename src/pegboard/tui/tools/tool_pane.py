"""The sidebar: the filter and the tool list."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.getters import query_one
from textual.reactive import reactive

from pegboard.tui.state.catalogue import Catalogue
from pegboard.tui.tools.tool_list import ToolList
from pegboard.tui.widgets.filter_line import FilterLine


class RegistryPane(Vertical):
    """Tool list by pack, with a filter."""

    ALLOW_MAXIMIZE = True

    catalogue: reactive[Catalogue] = reactive(Catalogue, init=False)
    """Tools and packs to list."""
    empty: reactive[str] = reactive("", init=False)
    """Text to show if no tools exist."""

    list = query_one(ToolList)
    _filter = query_one(FilterLine)

    def __init__(self, *, vim_keys: bool = False, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._vim_keys = vim_keys
        self.border_title = "Tools"

    def compose(self) -> ComposeResult:
        """Yield the filter and the list."""
        yield FilterLine("/ to filter" if self._vim_keys else "type to filter")
        yield ToolList(vim_keys=self._vim_keys).data_bind(RegistryPane.catalogue, RegistryPane.empty)

    @on(ToolList.Filtered)
    def _filtered(self, event: ToolList.Filtered) -> None:
        count = f"{event.found:,} of {len(self.catalogue.entries):,}"
        self._filter.show(event.query, count, typing=event.typing)
