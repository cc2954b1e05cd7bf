"""The registry: a line for the filter and the list of tools."""

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
    """The wall: every tool by pack, and a filter over them."""

    ALLOW_MAXIMIZE = True

    catalogue: reactive[Catalogue] = reactive(Catalogue, init=False)
    """What there is to list."""
    empty: reactive[str] = reactive("", init=False)
    """What to say when there is no tool at all."""

    list = query_one(ToolList)
    _filter = query_one(FilterLine)

    def __init__(self, *, vim_keys: bool = False, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._vim_keys = vim_keys
        self.border_title = "Tools"

    def compose(self) -> ComposeResult:
        """The filter above the list."""
        yield FilterLine("/ to filter" if self._vim_keys else "type to filter")
        yield ToolList(vim_keys=self._vim_keys).data_bind(RegistryPane.catalogue, RegistryPane.empty)

    @on(ToolList.Filtered)
    def _filtered(self, event: ToolList.Filtered) -> None:
        count = f"{event.found:,} of {len(self.catalogue.entries):,}"
        self._filter.show(event.query, count, typing=event.typing)
