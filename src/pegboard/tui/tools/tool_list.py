"""The list of packs and tools: line by line, so that ten thousand of them cost what is seen of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from textwrap import wrap
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive, var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.state.catalogue import Catalogue, CatalogueRow, Hits, PackEntry, ToolEntry, match_positions
from pegboard.tui.widgets.paste import may_be_call

STATE_SYMBOLS = {"ready": "●", "degraded": "◐", "blocked": "○"}
"""What a tool wears for its state."""

LEGEND = (
    ("●", "ready"),
    ("◐", "ready in part: something optional is missing"),
    ("○", "blocked: something it needs is missing"),
    ("R", "read-only: changes nothing"),
    ("D", "destructive: may delete or overwrite"),
    ("!", "has a problem"),
    ("✖", "a pack that can't be read"),
)
"""The marks of the list and what they mean, for the help screen."""

_OWN_CHARACTERS = frozenset("/?!")
_VIM_KEYS = {"j": "move(1)", "k": "move(-1)", "g": "move_to(0)", "G": "move_to(-1)"}


class ToolList(ScrollView, can_focus=True):
    """Packs that fold and their tools; typing filters to the best matches."""

    PAGE = "List"

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "tool-list--pack",
        "tool-list--tool",
        "tool-list--muted",
        "tool-list--match",
        "tool-list--good",
        "tool-list--warning",
        "tool-list--error",
        "tool-list--cursor",
        "tool-list--hover",
    }

    DEFAULT_CSS = """
    ToolList {
        height: 1fr;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        & > .tool-list--pack { text-style: bold; color: $foreground; }
        & > .tool-list--tool { color: $foreground; }
        & > .tool-list--muted { color: $text-muted; }
        & > .tool-list--match { color: $text-primary; text-style: bold underline; }
        & > .tool-list--good { color: $text-success; }
        & > .tool-list--warning { color: $text-warning; }
        & > .tool-list--error { color: $text-error; text-style: bold; }
        & > .tool-list--hover { background: $block-hover-background; }
        & > .tool-list--cursor {
            color: $block-cursor-blurred-foreground;
            background: $block-cursor-blurred-background;
            text-style: $block-cursor-blurred-text-style;
        }
        &:focus > .tool-list--cursor {
            color: $block-cursor-foreground;
            background: $block-cursor-background;
            text-style: $block-cursor-text-style;
        }
        &:nocolor:focus > .tool-list--cursor { text-style: reverse; }
        &:nocolor > .tool-list--cursor { text-style: underline; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("list.up", "up", "move(-1)", "Up", "Go to the line above."),
        Command("list.down", "down", "move(1)", "Down", "Go to the line below."),
        Command("list.page_up", "pageup", "page(-1)", "Page up", "Go one screenful up."),
        Command("list.page_down", "pagedown", "page(1)", "Page down", "Go one screenful down."),
        Command("list.first", "home", "move_to(0)", "First", "Go to the first line."),
        Command("list.last", "end", "move_to(-1)", "Last", "Go to the last line."),
        Command("list.fold", "left", "fold", "Fold", "Hide the tools of the pack."),
        Command("list.unfold", "right", "unfold", "Unfold", "Show the tools of the pack."),
        Command("list.open", "enter", "open", "Open", "Go to the tool's form, or fold and unfold a pack.", footer=True),
        Command("list.filter", "slash", "filter", "Filter", "Type part of a name or of a description.", footer=True),
        Command("list.erase", "backspace", "erase(1)", "Erase", "Take back a character of the filter."),
        Command("list.erase_word", "ctrl+w,ctrl+backspace", "erase_word", "Erase word", "Take back a word."),
        Command("list.clear", "escape", "clear", "Clear filter", "Show every tool again."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    catalogue: reactive[Catalogue] = reactive(Catalogue, init=False)
    """What there is to list."""
    sought: reactive[str] = reactive("", init=False)
    """What is typed in the filter; spaces at its end count."""
    typing: reactive[bool] = reactive(False, init=False)
    """With vim keys: whether letters go to the filter now."""
    cursor: var[int] = var(0, init=False)
    """The line that is marked."""
    vim_keys: var[bool] = var(False)
    """Whether j, k, g and G move; then only `/` filters."""
    empty: reactive[str] = reactive("")
    """What to say when there is no tool at all."""

    @dataclass
    class Moved(Message):
        """Another row is marked, or none."""

        row: CatalogueRow | None

    @dataclass
    class Opened(Message):
        """A tool was chosen to work with."""

        entry: ToolEntry

    @dataclass
    class Filtered(Message):
        """The filter, or what it found, changed."""

        query: str
        found: int
        typing: bool

    def __init__(self, *, vim_keys: bool = False, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.set_reactive(ToolList.vim_keys, vim_keys)
        self._rows: list[CatalogueRow] = []
        self._folded: frozenset[str] = frozenset()
        self._hover: int | None = None
        self._told: CatalogueRow | None = None
        self._searches: dict[str, Hits] = {}
        """What the filter and its beginnings found."""
        self.show_horizontal_scrollbar = False

    @property
    def row(self) -> CatalogueRow | None:
        """The marked row."""
        return self._rows[self.cursor] if 0 <= self.cursor < len(self._rows) else None

    def select(self, name: str) -> bool:
        """Marks a tool, clearing the filter and unfolding its pack where they hide it.

        Args:
            name: The qualified name.

        Returns:
            Whether there is such a tool.
        """
        entry = next((entry for entry in self.catalogue.entries if entry.spec.name == name), None)
        if entry is None:
            return False
        self._unfold(entry.spec.pack)
        with self.prevent(ToolList.Filtered):
            self.sought = ""
        self._show(entry.key)
        return True

    # What changes

    def watch_catalogue(self) -> None:
        """Lists the new rows; the mark stays on its row and its row in its place on the screen."""
        self._searches = {}
        self._show(self.row.key if self.row else None)

    def watch_sought(self, before: str, query: str) -> None:
        """Lists what the filter lets through: the best match is marked, and a cleared filter keeps the mark."""
        if query.split() == before.split():
            self._tell_filter()
            return
        row = self.row
        if query.strip():
            self._show(None)
            return
        if isinstance(row, ToolEntry):
            self._unfold(row.spec.pack)
        self._show(row.key if row else None)

    def watch_typing(self) -> None:
        """Tells whether the filter takes letters."""
        self._tell_filter()

    def watch_cursor(self) -> None:
        """Brings the marked row into view."""
        self._reveal()
        self.refresh()
        self._tell()

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

    def _show(self, key: tuple[str, str] | None) -> None:
        """Lists the rows anew and marks that of `key`, which keeps its place on the screen; else the nearest line."""
        line = self.cursor - round(self.scroll_y)
        self._rows = self._list()
        found = self._find(key)
        self._hover = None
        self._resize(len(self._rows))
        self.set_reactive(ToolList.cursor, found)
        self.scroll_to(y=max(0, found - max(line, 0)) if key else 0, animate=False, force=True, immediate=True)
        self._reveal()
        self.refresh()
        self._tell()
        self._tell_filter()

    def _find(self, key: tuple[str, str] | None) -> int:
        """Gives the line of the row of that key, or the best in its place."""
        if key is not None:
            nearest = max(0, min(self.cursor, len(self._rows) - 1))
            return next((index for index, row in enumerate(self._rows) if row.key == key), nearest)
        if self.sought.strip():
            return 0
        return next((index for index, row in enumerate(self._rows) if isinstance(row, ToolEntry)), 0)

    def _resize(self, lines: int) -> None:
        """Takes over the number of lines as a layout would, but without laying out the whole screen."""
        size = Size(self.size.width, lines)
        self.set_reactive(ScrollView.virtual_size, size)
        self._scroll_update(size)

    def _reveal(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True, immediate=True)

    def _unfold(self, pack: str) -> None:
        self._folded -= {pack}

    def _tell(self) -> None:
        row = self.row
        if row is not self._told:
            self._told = row
            self.post_message(self.Moved(row))

    def _tell_filter(self) -> None:
        self.post_message(self.Filtered(self.sought, len(self._rows), self.typing))

    # What the user does

    def action_move(self, lines: int) -> None:
        """Moves the mark by some lines."""
        self.cursor = max(0, min(self.cursor + lines, len(self._rows) - 1))

    def action_page(self, pages: int) -> None:
        """Moves the mark by screenfuls."""
        self.action_move(pages * max(1, self.size.height - 1))

    def action_move_to(self, line: int) -> None:
        """Marks a line; -1 is the last."""
        self.cursor = max(0, len(self._rows) - 1) if line < 0 else line

    def action_fold(self) -> None:
        """Hides the tools of the marked row's pack, and marks the pack."""
        match self.row:
            case ToolEntry(spec=spec) if not self.sought.strip():
                self._folded |= {spec.pack}
                self._show(("pack", spec.pack))
            case PackEntry(name=name) if not self.sought.strip():
                self._folded |= {name}
                self._show(("pack", name))

    def action_unfold(self) -> None:
        """Shows the tools of the marked pack."""
        match self.row:
            case PackEntry(name=name) as pack if name in self._folded:
                self._unfold(name)
                self._show(pack.key)
            case PackEntry(entries=entries) if entries:
                self.action_move(1)

    def action_open(self) -> None:
        """Opens the marked tool, or folds the marked pack."""
        if self.typing and self.vim_keys:
            self.typing = False
        match self.row:
            case ToolEntry() as entry:
                self.post_message(self.Opened(entry))
            case PackEntry(name=name) if name in self._folded:
                self.action_unfold()
            case PackEntry():
                self.action_fold()

    def action_filter(self) -> None:
        """Begins to filter."""
        self.typing = True

    def action_erase(self, count: int) -> None:
        """Takes characters back."""
        self.sought = self.sought[:-count]

    def action_erase_word(self) -> None:
        """Takes the last word back."""
        self.sought = self.sought.rstrip().rpartition(" ")[0]

    def action_clear(self) -> None:
        """Ends filtering."""
        self.typing = False
        self.sought = ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Lets `escape` and `backspace` pass where there is nothing to take back."""
        if action == "clear":
            return bool(self.sought) or self.typing
        return bool(self.sought) if action in {"erase", "erase_word"} else True

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Says whether a key is text for the filter."""
        return character is not None and character.isprintable() and character not in _OWN_CHARACTERS

    async def on_key(self, event: events.Key) -> None:
        """Takes printable keys for the filter; with vim keys only after `/`."""
        character = event.character
        if not event.is_printable or character is None or (character in _OWN_CHARACTERS and not self.typing):
            return
        if self.vim_keys and not self.typing:
            if character in _VIM_KEYS:
                event.stop()
                await self.run_action(_VIM_KEYS[character])
            return
        event.stop()
        event.prevent_default()
        if self.sought or character != " ":
            self.sought += character

    def on_paste(self, event: events.Paste) -> None:
        """Filters by pasted text; what looks like a call is for the screen."""
        if may_be_call(event.text):
            return
        event.stop()
        line = event.text.strip().split("\n", 1)[0]
        self.sought += "".join(character for character in line if character.isprintable())[:200]

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Marks the line under the pointer faintly."""
        self._set_hover(event.y + round(self.scroll_y))

    def on_leave(self) -> None:
        """Forgets the line under the pointer."""
        self._set_hover(None)

    def _set_hover(self, line: int | None) -> None:
        if line != self._hover:
            self._hover = line
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Marks a tool; folds or unfolds a pack; a second click opens a tool."""
        line = event.y + round(self.scroll_y)
        if line >= len(self._rows):
            return
        again = line == self.cursor and event.chain > 1
        self.cursor = line
        if isinstance(self.row, PackEntry) or again:
            self.action_open()

    # What is seen

    def render_line(self, y: int) -> Strip:
        """Draws one line of the list."""
        width = self.size.width
        index = y + round(self.scroll_y)
        if not self._rows:
            return self._render_empty(y, width)
        if index >= len(self._rows):
            return Strip.blank(width, self.get_component_rich_style("tool-list--tool"))
        row = self._rows[index]
        over: Style | None = None
        if index == self.cursor:
            over = self.get_component_rich_style("tool-list--cursor")
        elif index == self._hover:
            over = Style(bgcolor=self.get_component_rich_style("tool-list--hover").bgcolor)
        left, right = self._pack_line(row) if isinstance(row, PackEntry) else self._tool_line(row)
        room = max(0, width - sum(segment.cell_length for segment in right))
        line = Strip(_fit(left, room, self.get_component_rich_style("tool-list--tool")) + right)
        return line.apply_style(over) if index != self.cursor and over else _paint(line, over)

    def _render_empty(self, y: int, width: int) -> Strip:
        text = f"No tool matches “{self.sought.strip()}”." if self.sought.strip() else self.empty
        lines = _wrapped(text, max(1, width - 2))
        muted = self.get_component_rich_style("tool-list--muted")
        return Strip([Segment(" " + lines[y] if y < len(lines) else "", muted)]).adjust_cell_length(width, muted)

    def _pack_line(self, pack: PackEntry) -> tuple[list[Segment], list[Segment]]:
        style = self.get_component_rich_style
        if not pack.entries:
            name = [Segment("✖ ", style("tool-list--error")), Segment(clean_line(pack.name), style("tool-list--pack"))]
            return name, [Segment(" can't be read " if pack.broken else " no tools ", style("tool-list--error"))]
        arrow = "▸ " if pack.name in self._folded else "▾ "
        right = [Segment(f" {len(pack.entries)} ", style("tool-list--muted"))]
        if pack.problems:
            kind = "tool-list--error" if pack.broken else "tool-list--warning"
            right.insert(0, Segment(" !", style(kind)))
        return [
            Segment(arrow, style("tool-list--muted")),
            Segment(clean_line(pack.name), style("tool-list--pack")),
        ], right

    def _tool_line(self, entry: ToolEntry) -> tuple[list[Segment], list[Segment]]:
        style = self.get_component_rich_style
        searching = bool(self.sought.strip())
        state = style("tool-list--good" if entry.state == "ready" else "tool-list--warning")
        left = [
            Segment(" " if searching else "  ", style("tool-list--tool")),
            Segment(STATE_SYMBOLS[entry.state] + " ", state),
        ]
        if searching:
            left += _marked(self.sought, entry.name, style("tool-list--tool"), style("tool-list--match"))
        else:
            left.append(Segment(entry.function, style("tool-list--tool")))
        right = [Segment(" ", style("tool-list--tool"))]
        if entry.spec.problems:
            right.append(Segment("!", style("tool-list--warning")))
        if entry.spec.hints.destructive:
            right.append(Segment("D", style("tool-list--error")))
        if entry.spec.hints.read_only:
            right.append(Segment("R", style("tool-list--muted")))
        right.append(Segment(" ", style("tool-list--tool")))
        return left, right


@lru_cache(maxsize=4)
def _wrapped(text: str, width: int) -> list[str]:
    return [line for part in text.split("\n") for line in wrap(part, width) or [""]]


def _marked(query: str, name: str, plain: Style, match: Style) -> list[Segment]:
    """Cuts a name into segments, those that the query matches marked."""
    marked = set(match_positions(query, name))
    return [Segment(letter, match if index in marked else plain) for index, letter in enumerate(name)]


def _fit(segments: list[Segment], width: int, style: Style) -> list[Segment]:
    """Makes a line exactly `width` cells long; what doesn't fit ends in an ellipsis."""
    strip = Strip(segments)
    if strip.cell_length > width:
        last = segments[-1].style
        strip = Strip([*strip.crop(0, max(0, width - 1)), Segment("…", last)])
    return list(strip.adjust_cell_length(width, style))


def _paint(line: Strip, style: Style | None) -> Strip:
    """Draws a line in one style, keeping what is underlined."""
    if style is None:
        return line
    kept = [
        Segment(text, style + Style(underline=True) if own is not None and own.underline else style)
        for text, own, _ in line
    ]
    return Strip(kept, line.cell_length)
