"""Dialog to choose the tools that the model sees, with the tokens of their definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from textual import on
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from pegboard.models import ToolSpec
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count, thousands
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.dialog import ListDialog
from pegboard.tui.widgets.pick_list import PickLine, PickList


class OfferedRow(NamedTuple):
    """A row of the list: a tool, or a pack with all its tools."""

    text: str
    tools: tuple[str, ...]
    """Names of the tools."""
    about: str = ""
    """Summary of a tool; empty for a pack."""
    is_pack: bool = False


class OfferedScreen(ListDialog[frozenset[str] | None]):
    """Dialog that returns the names of the hidden tools, or None if nothing changed.

    Args:
        specs: The available tools.
        without: Names of hidden tools; names of unavailable tools are preserved.
        weights: Estimated tokens of each tool's definition.
    """

    PAGE = "Tools that the model sees"
    HAS_PREVIEW = False

    DEFAULT_CSS = """
    OfferedScreen > #box { width: 80; height: 32; }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "offered.tick",
            "space",
            "tick",
            "Select",
            "Show the highlighted tool or pack to the model, or hide it.",
            True,
        ),
        Command("offered.all", "ctrl+a", "tick_all", "All", "Select all matching tools, or none.", True),
        Command("offered.done", "escape,ctrl+s", "done", "Done", "Close; the model sees the selected tools.", True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, specs: Sequence[ToolSpec], without: frozenset[str], weights: Mapping[str, int]) -> None:
        super().__init__(subtitle="changes apply on close", pick_list=PickList(sign=self._sign, own_keys=" "))
        self._before = without
        self._without = set(without)
        self._weights = weights
        self._tools = tuple(spec.name for spec in specs)
        self._rows = tuple(_rows(specs))
        self._lines = [PickLine(row.text) for row in self._rows]

    def on_mount(self) -> None:
        """List the tools."""
        self.list.empty = "No matching tools." if self._rows else "No tools available."
        self._count()
        self.list.show(self._lines)

    # Actions

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        self._toggle(self._rows[event.index].tools)

    def action_tick(self) -> None:
        """Show or hide the highlighted tool or pack."""
        if self.list.marked is not None:
            self._toggle(self._rows[self.list.marked].tools)

    def action_tick_all(self) -> None:
        """Select all matching tools; if all are selected, deselect them."""
        shown = (self._rows[index] for index in self.list.sift(self.list.sought))
        self._toggle([name for row in shown for name in row.tools])

    def action_done(self) -> None:
        """Return the hidden tools."""
        self.dismiss(frozenset(self._without) if self._without != self._before else None)

    def _toggle(self, tools: Sequence[str]) -> None:
        if self._without.isdisjoint(tools):
            self._without.update(tools)
        else:
            self._without.difference_update(tools)
        self._count()
        self.list.refresh()

    # Display

    def describe_found(self, event: PickList.Filtered) -> str:
        """Return the number of matching tools, without packs."""
        found = sum(not self._rows[index].is_pack for index in self.list.sift(event.query))
        return f"{found:,} of {len(self._tools):,}"

    @on(PickList.Marked)
    def _marked(self, event: PickList.Marked) -> None:
        event.stop()
        row = None if event.index is None else self._rows[event.index]
        about = "" if row is None else f"Pack with {count(len(row.tools), 'tool')}" if row.is_pack else row.about
        self.show_about(Content(about))

    def _count(self) -> None:
        """Show number and tokens of the selected tools, in total and per pack."""
        for index, row in enumerate(self._rows):
            seen = self._seen(row.tools)
            cost = self._cost(seen if row.is_pack else row.tools)
            some = f"{len(seen):,} of {len(row.tools):,}   " if row.is_pack else ""
            self._lines[index] = PickLine(row.text, f"{some}{cost:>5}")
        seen = self._seen(self._tools)
        cost = self._cost(seen)
        title = f"{len(seen):,} of {count(len(self._tools), 'tool')}{f', {cost} tokens' if cost else ''}"
        self.query_one("#box", Vertical).border_title = Content(title)

    def _seen(self, tools: Sequence[str]) -> Sequence[str]:
        return [name for name in tools if name not in self._without]

    def _cost(self, tools: Sequence[str]) -> str:
        """Return the estimated tokens of some tools, or an empty string if one is unknown."""
        known = [self._weights[name] for name in tools if name in self._weights]
        if len(known) < len(tools):
            return ""
        return thousands(sum(known))

    def _sign(self, index: int) -> str:
        row = self._rows[index]
        seen = len(self._seen(row.tools))
        box = "☑ " if seen == len(row.tools) else "◪ " if seen else "☐ "
        return box if row.is_pack else f"  {box}"


def _rows(specs: Sequence[ToolSpec]) -> Iterator[OfferedRow]:
    """Yield a row for each pack, followed by rows for its tools."""
    packs: dict[str, list[ToolSpec]] = {}
    for spec in specs:
        packs.setdefault(spec.pack, []).append(spec)
    for pack, tools in packs.items():
        yield OfferedRow(clean_line(pack), tuple(spec.name for spec in tools), is_pack=True)
        for spec in tools:
            yield OfferedRow(clean_line(spec.name), (spec.name,), clean_line(spec.summary))
