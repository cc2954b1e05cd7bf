"""A list that filters as you type and renders only its visible lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import ClassVar, NamedTuple

from textual import events
from textual.actions import SkipAction
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive, var
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style

from pegboard.tui.commands import Command, bindings
from pegboard.tui.state.fuzzy import FuzzyQuery, match_positions

_LONGEST_FILTER = 200


class PickLine(NamedTuple):
    """One line of a `PickList`."""

    text: str
    """Text that is shown and searched: one line, safe to display."""
    note: str = ""
    """Muted text at the right end."""
    pinned: bool = False
    """Whether no filter hides the line."""


def ranked(query: str, lines: Sequence[PickLine]) -> list[int]:
    """Return the indexes of the lines that match a query: pinned lines first, then the best matches.

    Args:
        query: The text as typed; case and spaces are ignored.
        lines: The lines to search.
    """
    fuzzy = FuzzyQuery(query)
    if not fuzzy.letters:
        return list(range(len(lines)))
    ranks: list[tuple[int, int]] = []
    for index, line in enumerate(lines):
        folded = line.text.lower()
        if line.pinned:
            ranks.append((-1, index))
        elif fuzzy.matches(folded):
            ranks.append((fuzzy.level(folded), index))
    return [index for _, index in sorted(ranks)]


class PickList(ScrollView, can_focus=True):
    """Lines, one of them marked; printable keys filter.

    Args:
        sign: Function that returns a prefix of a line, such as a tick; called whenever the line is rendered.
        own_keys: Printable characters that don't filter because they are keys of commands.
    """

    PAGE = "List"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("pick.up", "up", "move(-1)", "Up", "Mark the previous line."),
        Command("pick.down", "down", "move(1)", "Down", "Mark the next line."),
        Command("pick.page_up", "pageup", "page(-1)", "Page up", "Scroll one page up."),
        Command("pick.page_down", "pagedown", "page(1)", "Page down", "Scroll one page down."),
        Command("pick.first", "home", "move_to(0)", "First", "Mark the first line."),
        Command("pick.last", "end", "move_to(-1)", "Last", "Mark the last line."),
        Command("pick.choose", "enter", "choose", "Choose", "Choose the marked line.", footer=True),
        Command("pick.erase", "backspace", "erase", "Erase", "Delete the last character of the filter."),
        Command("pick.erase_all", "ctrl+u,ctrl+w", "erase_all", "Erase all", "Clear the filter."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "pick-list--line",
        "pick-list--note",
        "pick-list--match",
        "pick-list--cursor",
        "pick-list--hover",
    }
    DEFAULT_CSS = """
    PickList {
        height: 1fr;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        & > .pick-list--line { color: $foreground; }
        & > .pick-list--note { color: $text-muted; }
        & > .pick-list--match { text-style: bold underline; }
        & > .pick-list--hover { background: $block-hover-background; }
        & > .pick-list--cursor {
            color: $block-cursor-blurred-foreground;
            background: $block-cursor-blurred-background;
            text-style: $block-cursor-blurred-text-style;
        }
        &:focus > .pick-list--cursor {
            color: $block-cursor-foreground;
            background: $block-cursor-background;
            text-style: $block-cursor-text-style;
        }
        &:nocolor:focus > .pick-list--cursor { text-style: reverse; }
        &:nocolor > .pick-list--cursor { text-style: underline; }
    }
    """

    sought: reactive[str] = reactive("", init=False)
    """The filter."""
    cursor: var[int] = var(0, init=False)
    """Index of the marked line among the shown lines."""
    empty: reactive[str] = reactive("No matches.")
    """Text of an empty list."""

    @dataclass
    class Chosen(Message):
        """A line was chosen."""

        index: int

    @dataclass
    class Marked(Message):
        """The marked line changed; `index` is None if no line is left."""

        index: int | None

    @dataclass
    class Filtered(Message):
        """The filter or its matches changed."""

        query: str
        found: int
        """Number of lines that match, without pinned ones, which no filter hides."""
        total: int

    def __init__(self, *, sign: Callable[[int], str] | None = None, own_keys: str = "") -> None:
        super().__init__()
        self._sign = sign
        self._own_keys = own_keys
        self._lines: Sequence[PickLine] = ()
        self._shown: list[int] = []
        self._hover: int | None = None
        self.show_horizontal_scrollbar = False

    @property
    def marked(self) -> int | None:
        """Index of the marked line, or None."""
        return self._shown[self.cursor] if 0 <= self.cursor < len(self._shown) else None

    @property
    def found(self) -> int:
        """Number of shown lines."""
        return len(self._shown)

    def show(self, lines: Sequence[PickLine], marked: int = 0, *, sought: str = "") -> None:
        """Replace the lines.

        Args:
            lines: The new lines.
            marked: Index of the line to mark, if the filter shows it.
            sought: The filter.
        """
        self._lines = lines
        self.set_reactive(PickList.sought, sought)
        self._list(marked if not sought else None)

    def erase_filter(self) -> None:
        """Clear the filter and keep the marked line."""
        marked = self.marked
        self.set_reactive(PickList.sought, "")
        self._list(marked)

    # Changes

    def watch_sought(self) -> None:
        """Show the matches of the filter."""
        self._list(None)

    def watch_cursor(self) -> None:
        """Scroll to the marked line."""
        self._reveal()
        self.refresh()
        self.post_message(self.Marked(self.marked))

    def on_resize(self) -> None:
        """Keep the marked line visible."""
        self._resize()
        self._reveal()

    def sift(self, query: str) -> list[int]:
        """Return the indexes of the lines that match a filter, in display order."""
        return ranked(query, self._lines)

    def _list(self, marked: int | None) -> None:
        self._shown = self.sift(self.sought)
        self._hover = None
        self._resize()
        best = next((at for at, index in enumerate(self._shown) if not self._lines[index].pinned), 0)
        if marked is not None:
            best = next((at for at, index in enumerate(self._shown) if index == marked), 0)
        self.set_reactive(PickList.cursor, best)
        self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self._reveal()
        self.refresh()
        found = sum(not self._lines[index].pinned for index in self._shown)
        total = sum(not line.pinned for line in self._lines)
        self.post_message(self.Filtered(self.sought, found, total))
        self.post_message(self.Marked(self.marked))

    def _resize(self) -> None:
        """Update the virtual size without a layout of the whole screen."""
        size = Size(self.size.width, len(self._shown))
        self.set_reactive(ScrollView.virtual_size, size)
        self._scroll_update(size)

    def _reveal(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True, immediate=True)

    # Input

    def action_move(self, by: int) -> None:
        """Move the mark by some lines."""
        self.cursor = max(0, min(self.cursor + by, len(self._shown) - 1))

    def action_page(self, by: int) -> None:
        """Move the mark by pages."""
        self.action_move(by * max(1, self.size.height - 1))

    def action_move_to(self, line: int) -> None:
        """Mark a line; -1 is the last."""
        self.cursor = max(0, len(self._shown) - 1) if line < 0 else line

    def action_choose(self) -> None:
        """Choose the marked line."""
        if self.marked is not None:
            self.post_message(self.Chosen(self.marked))

    def action_erase(self) -> None:
        """Delete the last character of the filter; if the filter is empty, leave the key to an ancestor."""
        if not self.sought:
            raise SkipAction
        self.sought = self.sought[:-1]

    def action_erase_all(self) -> None:
        """Clear the filter."""
        self.sought = ""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Return whether a key is input for the filter."""
        return character is not None and character.isprintable() and character not in self._own_keys

    def on_key(self, event: events.Key) -> None:
        """Append printable keys to the filter."""
        if event.is_printable and event.character is not None and event.character not in self._own_keys:
            event.stop()
            event.prevent_default()
            if self.sought or event.character != " ":
                self._type(event.character)

    def on_paste(self, event: events.Paste) -> None:
        """Append pasted text to the filter."""
        event.stop()
        self._type("".join(character for character in event.text.strip() if character.isprintable()))

    def _type(self, text: str) -> None:
        self.sought = (self.sought + text)[:_LONGEST_FILTER]

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Highlight the line under the mouse."""
        self._set_hover(event.y + round(self.scroll_y))

    def on_leave(self) -> None:
        """Remove the highlight."""
        self._set_hover(None)

    def _set_hover(self, line: int | None) -> None:
        if line != self._hover:
            self._hover = line
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Choose the clicked line."""
        line = event.y + round(self.scroll_y)
        if line < len(self._shown):
            event.stop()
            self.cursor = line
            self.action_choose()

    # Rendering

    def render_line(self, y: int) -> Strip:
        """Render one line."""
        width = self.size.width
        index = y + round(self.scroll_y)
        plain = self.get_visual_style("pick-list--line")
        if index >= len(self._shown):
            text = "" if self._shown else self._empty_line(y, width)
            return _strip(Content(f" {text}"), width, self.get_visual_style("pick-list--note"))
        is_marked = index == self.cursor
        drawn = self.draw(self._shown[index], width, is_marked=is_marked)
        if is_marked:
            return _strip(drawn, width, self.get_visual_style("pick-list--cursor"))
        if index == self._hover:
            plain += self.get_visual_style("pick-list--hover", partial=True)
        return _strip(drawn, width, plain)

    def _empty_line(self, y: int, width: int) -> str:
        lines = [line for part in self.empty.split("\n") for line in wrap(part, max(1, width - 2)) or [""]]
        return lines[y] if y < len(lines) else ""

    def draw(self, index: int, width: int, *, is_marked: bool) -> Content:
        """Return the content of a line.

        Args:
            index: Index of the line.
            width: Available width in cells.
            is_marked: Whether the line is marked; a marked line has no colours of its own.
        """
        line = self._lines[index]
        note = Content(f" {line.note} " if line.note else " ").truncate(width // 2, ellipsis=True)
        left = Content.assemble(" ", self._sign(index) if self._sign else "", self.highlighted(line.text))
        left = left.truncate(max(width - note.cell_length, 0), ellipsis=True, pad=True)
        muted = self.get_visual_style("pick-list--note", partial=True)
        return left + (note if is_marked else note.stylize(muted))

    def highlighted(self, text: str) -> Content:
        """Return a text with the letters of the filter highlighted."""
        shown = Content(text)
        match = self.get_visual_style("pick-list--match", partial=True)
        for offset in match_positions(self.sought, text):
            shown = shown.stylize(match, offset, offset + 1)
        return shown


def _strip(content: Content, width: int, style: Style) -> Strip:
    fitted = content.truncate(width, pad=True)
    return Strip(fitted.render_segments(style), width)
