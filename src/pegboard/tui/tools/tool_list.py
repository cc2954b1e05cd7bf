"""The tool list, rendered line by line so that its cost does not depend on the number of tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.style import Style

from pegboard import models
from pegboard.models import ServerState
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.state.catalogue import Catalogue, CatalogueRow, Hits, PackEntry, ToolEntry
from pegboard.tui.widgets.filter_list import FilterList, fitted, navigation
from pegboard.tui.widgets.paste import may_be_call
from pegboard.tui.widgets.server_text import SERVER_SIGNS, server_label

if TYPE_CHECKING:
    from pegboard.models import ServerStatus

STATE_SYMBOLS = {"ready": "●", "degraded": "◐", "blocked": "○"}
"""Symbol of each state of a tool."""

LEGEND = (
    ("●", "ready"),
    ("◐", "degraded: an optional requirement is missing"),
    ("○", "blocked: a requirement is missing"),
    ("W", "may write: not declared read-only"),
    ("D", "destructive: may delete or overwrite"),
    ("!", "has a problem"),
    ("✖", "pack that can't be read, or MCP server that failed"),
    ("…", "MCP server that is connecting"),
    ("?", "MCP server that needs a login"),
    ("◌", "MCP server that is disabled"),
)
"""The symbols of the list and their meaning, for the help screen."""

_OWN_KEYS = "/?!"
_SERVER_STYLES = {
    ServerState.CONNECTING: "filter-list--note",
    ServerState.READY: "tool-list--good",
    ServerState.DEGRADED: "tool-list--warning",
    ServerState.FAILED: "tool-list--error",
    ServerState.NEEDS_LOGIN: "tool-list--warning",
    ServerState.DISABLED: "filter-list--note",
}


class ToolList(FilterList):
    """Collapsible packs and their tools. Typing filters for the best matches."""

    PAGE = "Tool list"
    RENEWS = True

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "tool-list--pack",
        "tool-list--good",
        "tool-list--warning",
        "tool-list--error",
    }

    DEFAULT_CSS = """
    ToolList {
        & > .tool-list--pack { text-style: bold; color: $foreground; }
        & > .filter-list--match { color: $text-primary; text-style: bold underline; }
        & > .tool-list--good { color: $text-success; }
        & > .tool-list--warning { color: $text-warning; }
        & > .tool-list--error { color: $text-error; text-style: bold; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        *navigation("list"),
        Command("list.fold", "left", "fold", "Collapse", "Hide the tools of the pack."),
        Command("list.unfold", "right", "unfold", "Expand", "Show the tools of the pack."),
        Command(
            "list.open",
            "enter",
            "choose",
            "Open",
            "Go to the tool's form, or expand or collapse the pack.",
            footer=True,
        ),
        Command("list.filter", "slash", "filter", "Filter", "Type part of a name or of a description.", footer=True),
        Command("list.erase", "backspace", "erase", "Erase", "Delete the last character of the filter."),
        Command(
            "list.erase_word",
            "ctrl+w,ctrl+backspace",
            "erase_word",
            "Erase word",
            "Delete the last word of the filter.",
        ),
        Command("list.erase_all", "ctrl+u", "erase_all", "Erase all", "Clear the filter."),
        Command("list.clear", "escape", "clear", "Clear filter", "Show every tool again."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    catalogue: reactive[Catalogue] = reactive(Catalogue, init=False)
    """Tools and packs to list."""

    @dataclass
    class Moved(Message):
        """Another row was selected, or none."""

        row: CatalogueRow | None

    @dataclass
    class Opened(Message):
        """A tool was opened."""

        entry: ToolEntry

    @dataclass
    class ServerOpened(Message):
        """An MCP server was opened."""

    def __init__(self, *, vim_keys: bool = False) -> None:
        super().__init__(vim_keys=vim_keys, own_keys=_OWN_KEYS)
        self._rows: list[CatalogueRow] = []
        self._folded: frozenset[str] = frozenset()
        self._posted: CatalogueRow | None = None
        self._lost: ToolEntry | None = None
        """The selected tool that disappeared; it is selected again if it comes back before the user moves."""
        self._searches: dict[str, Hits] = {}
        """Matches of the filter and of its prefixes."""

    @property
    def row_count(self) -> int:
        """Number of listed packs and tools."""
        return len(self._rows)

    @property
    def total(self) -> int:
        """Number of tools."""
        return len(self.catalogue.entries)

    @property
    def row(self) -> CatalogueRow | None:
        """The selected row."""
        return self._rows[self.cursor] if 0 <= self.cursor < len(self._rows) else None

    def select(self, name: str) -> bool:
        """Select a tool; clear the filter and expand its pack if they hide it.

        Args:
            name: Qualified name of the tool.

        Returns:
            Whether the tool exists.
        """
        entry = next((entry for entry in self.catalogue.entries if entry.spec.name == name), None)
        if entry is None:
            return False
        self._unfold(entry.spec.pack)
        with self.prevent(ToolList.Filtered):
            self.sought = ""
        self._show(entry.key)
        return True

    def select_pack(self, name: str) -> bool:
        """Select a pack; clear the filter.

        Returns:
            Whether the pack exists.
        """
        if all(pack.name != name for pack in self.catalogue.packs):
            return False
        with self.prevent(ToolList.Filtered):
            self.sought = ""
        self._show(("pack", name))
        return True

    def restore(self, name: str, query: str) -> None:
        """Filter as in the last run, unless nothing matches, and select its tool, if it is found.

        Args:
            name: Qualified name of the tool.
            query: The filter.
        """
        entry = next((entry for entry in self.catalogue.entries if entry.spec.name == name), None)
        self.set_reactive(ToolList.sought, query)
        self.set_reactive(ToolList.renews, bool(query) and self.has_focus)
        self._show(None)
        if not self._rows:
            self.sought = ""
        if entry is not None and entry in self._rows:
            self.cursor = self._rows.index(entry)

    # State

    def watch_catalogue(self) -> None:
        """List the new rows, keeping the selection and its position on the screen."""
        self._searches = {}
        row = self._lost or self.row
        self._show(row.key if row else None, row.spec.pack if isinstance(row, ToolEntry) else None)
        if isinstance(row, ToolEntry) and (self.row is None or self.row.key != row.key):
            self._lost = row

    def watch_cursor(self) -> None:
        """Keep the selection that the user chose, even if an earlier one comes back."""
        self._lost = None
        super().watch_cursor()

    def watch_sought(self, before: str, query: str) -> None:
        """List the matches and select the best; clearing the filter keeps the selection."""
        if query.split() == before.split():
            self.post_filtered()
            return
        row = self.row
        if query.strip():
            self._show(None)
            return
        if isinstance(row, ToolEntry):
            self._unfold(row.spec.pack)
        self._show(row.key if row else None)

    def _list(self) -> list[CatalogueRow]:
        query = " ".join(self.sought.split())
        if not query:
            return self.catalogue.rows(self._folded)
        self._searches = {earlier: hits for earlier, hits in self._searches.items() if query.startswith(earlier)}
        if query not in self._searches:
            nearest = max(self._searches, key=len, default=None)
            within = self._searches[nearest] if nearest is not None else None
            self._searches[query] = self.catalogue.search(query, within)
        return list(self._searches[query])

    def _show(self, key: tuple[str, str] | None, pack: str | None = None) -> None:
        """Rebuild the lines and select a row at its position on the screen, or the nearest line.

        Args:
            key: Key of the row to select.
            pack: Pack that is selected instead if the row is missing, because the pack can't be read or because
                keys that are meant for the row's form must not reach another form.
        """
        self._lost = None
        self._rows = self._list()
        if pack is not None and all(row.key != key for row in self._rows):
            home = next((row for row in self.catalogue.packs if row.name == pack), None)
            if home is not None and (home.broken or not self.has_focus):
                key = home.key
                self._rows = self._rows if home in self._rows else [home, *self._rows]
        self.rows_changed(self._find(key), keeps_offset=key is not None)

    def _find(self, key: tuple[str, str] | None) -> int:
        """Return the line of the row with this key, or of the nearest one."""
        if key is not None:
            nearest = max(0, min(self.cursor, len(self._rows) - 1))
            return next((index for index, row in enumerate(self._rows) if row.key == key), nearest)
        if self.sought.strip():
            return 0
        return next((index for index, row in enumerate(self._rows) if isinstance(row, ToolEntry)), 0)

    def _unfold(self, pack: str) -> None:
        self._folded -= {pack}

    def post_selected(self) -> None:
        """Post the selected row if it is another one."""
        row = self.row
        if row is not self._posted:
            self._posted = row
            self.post_message(self.Moved(row))

    # Actions

    def action_fold(self) -> None:
        """Hide the tools of the selected row's pack, and select the pack."""
        match self.row:
            case ToolEntry(spec=spec) if not self.sought.strip():
                self._folded |= {spec.pack}
                self._show(("pack", spec.pack))
            case PackEntry(name=name) if not self.sought.strip():
                self._folded |= {name}
                self._show(("pack", name))

    def action_unfold(self) -> None:
        """Show the tools of the selected pack."""
        match self.row:
            case PackEntry(name=name) as pack if name in self._folded:
                self._unfold(name)
                self._show(pack.key)
            case PackEntry(entries=entries) if entries:
                self.action_move(1)

    def action_choose(self) -> None:
        """Open the selected tool, or expand or collapse the selected pack; with vim keys, letters move again."""
        if self._vim_keys:
            self.typing = False
        match self.row:
            case ToolEntry() as entry:
                self.post_message(self.Opened(entry))
            case PackEntry(entries=(), server=models.ServerStatus()):
                self.post_message(self.ServerOpened())
            case PackEntry(name=name) if name in self._folded:
                self.action_unfold()
            case PackEntry():
                self.action_fold()

    def filters_by(self, pasted: str) -> bool:
        """Leave a text that looks like a call to the page."""
        return not may_be_call(pasted)

    def chooses_on_click(self, *, is_second: bool) -> bool:
        """Select a tool on the first click and open it on the second; expand or collapse a pack."""
        return is_second or isinstance(self.row, PackEntry)

    # Rendering

    @property
    def empty_text(self) -> str:
        """The reason why no row is listed."""
        return f"No tool matches “{self.sought.strip()}”." if self.sought.strip() else self.empty

    def draw(self, row: int, width: int, *, is_selected: bool) -> Content:
        """Return a pack with its number of tools, or a tool with its badges."""
        style = _no_style if is_selected else self.part_style
        match self._rows[row]:
            case PackEntry() as pack:
                return fitted(*self._draw_pack(pack, style), width)
            case ToolEntry() as entry:
                return fitted(*self._draw_tool(entry, style, is_selected=is_selected), width)

    def _draw_pack(self, pack: PackEntry, style: Callable[[str], Style]) -> tuple[Content, Content]:
        name = (clean_line(pack.name), style("tool-list--pack"))
        if pack.server is not None:
            return self._draw_server(pack, pack.server, style)
        if not pack.entries:
            note = " can't be read " if pack.broken else " no tools "
            error = style("tool-list--error")
            return Content.assemble(("✖ ", error), name), Content.styled(note, error)
        arrow = "▸ " if pack.name in self._folded else "▾ "
        muted = style("filter-list--note")
        problem = (" !", style("tool-list--error" if pack.broken else "tool-list--warning")) if pack.problems else ""
        return Content.assemble((arrow, muted), name), Content.assemble(problem, (f" {len(pack.entries)} ", muted))

    def _draw_server(
        self, pack: PackEntry, server: ServerStatus, style: Callable[[str], Style]
    ) -> tuple[Content, Content]:
        """Return a server with the sign and the name of its state, and its number of tools."""
        muted = style("filter-list--note")
        arrow = "  " if not pack.entries else "▸ " if pack.name in self._folded else "▾ "
        left = Content.assemble((arrow, muted), (server_label(server), style("tool-list--pack")))
        state = f" {SERVER_SIGNS[server.state]} {server.state} "
        number = f"{len(pack.entries)} " if pack.entries else ""
        return left, Content.assemble((state, style(_SERVER_STYLES[server.state])), (number, muted))

    def _draw_tool(
        self, entry: ToolEntry, style: Callable[[str], Style], *, is_selected: bool
    ) -> tuple[Content, Content]:
        is_filtered = bool(self.sought.strip())
        state = style("tool-list--good" if entry.state == "ready" else "tool-list--warning")
        name = self.highlighted(entry.name, is_selected=is_selected) if is_filtered else entry.function
        left = Content.assemble(" " if is_filtered else "  ", (STATE_SYMBOLS[entry.state] + " ", state), name)
        hints = entry.spec.hints
        badges = [
            ("!", "tool-list--warning", bool(entry.spec.problems)),
            ("D", "tool-list--error", hints.destructive),
            ("W", "filter-list--note", not hints.read_only and not hints.destructive),
        ]
        shown = [(badge, style(name)) for badge, name, is_shown in badges if is_shown]
        return left, Content.assemble(" ", *shown, " ")


def _no_style(name: str) -> Style:
    """Return the style of every part of the selected line."""
    del name
    return Style()
