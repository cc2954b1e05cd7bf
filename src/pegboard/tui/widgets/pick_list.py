"""A list to pick from: typing filters it, and thousands of lines cost what is seen of them."""

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
from pegboard.tui.state.catalogue import in_order, match_positions

_LONGEST_FILTER = 200


class PickLine(NamedTuple):
    """One thing to pick."""

    text: str
    """What is shown and searched: in one line, and safe to show."""
    note: str = ""
    """What stands at the right end, muted."""
    pinned: bool = False
    """Whether it stays whatever is typed."""


def ranked(query: str, lines: Sequence[PickLine]) -> list[int]:
    """Finds the lines that have the query's letters in order.

    Args:
        query: As typed; case and spaces don't matter.
        lines: What to look through.

    Returns:
        The indexes: pinned lines, then those that begin with the query, those with a word that does, those that hold
        it in one piece, and the rest; within each in their order.
    """
    letters = "".join(query.lower().split())
    if not letters:
        return list(range(len(lines)))
    fits = in_order(letters)
    levels: tuple[list[int], ...] = ([], [], [], [], [])
    for index, line in enumerate(lines):
        folded = line.text.lower()
        if line.pinned:
            levels[0].append(index)
        elif fits(folded):
            levels[_level(folded, letters)].append(index)
    return [index for level in levels for index in level]


def _level(folded: str, letters: str) -> int:
    at = folded.find(letters)
    if at < 0:
        return 4
    if at == 0:
        return 1
    return 3 if folded[at - 1].isalnum() else 2


class PickList(ScrollView, can_focus=True):
    """Lines, one of them marked; printable keys filter.

    Args:
        sign: Gives what stands before a line, such as a box that is ticked; asked whenever the line is drawn.
        own_keys: Printable characters that don't filter, since they do something.
    """

    PAGE = "List to pick from"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("pick.up", "up", "move(-1)", "Up", "Go to the line above."),
        Command("pick.down", "down", "move(1)", "Down", "Go to the line below."),
        Command("pick.page_up", "pageup", "page(-1)", "Page up", "Go one screenful up."),
        Command("pick.page_down", "pagedown", "page(1)", "Page down", "Go one screenful down."),
        Command("pick.first", "home", "move_to(0)", "First", "Go to the first line."),
        Command("pick.last", "end", "move_to(-1)", "Last", "Go to the last line."),
        Command("pick.choose", "enter", "choose", "Choose", "Take the marked line.", footer=True),
        Command("pick.erase", "backspace", "erase", "Erase", "Take back a character of the filter."),
        Command("pick.erase_all", "ctrl+u,ctrl+w", "erase_all", "Erase all", "Take back the whole filter."),
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
    """What is typed."""
    cursor: var[int] = var(0, init=False)
    """Which of the lines that are shown is marked."""
    empty: reactive[str] = reactive("Nothing fits.")
    """What to say where there is no line."""

    @dataclass
    class Chosen(Message):
        """A line was taken."""

        index: int

    @dataclass
    class Marked(Message):
        """Another line is marked, or none; or the same index is another line now."""

        index: int | None

    @dataclass
    class Filtered(Message):
        """The filter, or what it lets through, changed."""

        query: str
        found: int
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
        """The index of the marked line; None if there is none."""
        return self._shown[self.cursor] if 0 <= self.cursor < len(self._shown) else None

    @property
    def found(self) -> int:
        """How many lines are shown."""
        return len(self._shown)

    def show(self, lines: Sequence[PickLine], marked: int = 0, *, sought: str = "") -> None:
        """Shows other lines.

        Args:
            lines: What can be picked.
            marked: The index of the line to mark, where the filter lets it through.
            sought: The filter to begin with.
        """
        self._lines = lines
        self.set_reactive(PickList.sought, sought)
        self._list(marked if not sought else None)

    def erase_filter(self) -> None:
        """Shows every line, the mark where it is."""
        marked = self.marked
        self.set_reactive(PickList.sought, "")
        self._list(marked)

    # What changes

    def watch_sought(self) -> None:
        """Shows what the filter lets through."""
        self._list(None)

    def watch_cursor(self) -> None:
        """Brings the marked line into view."""
        self._reveal()
        self.refresh()
        self.post_message(self.Marked(self.marked))

    def on_resize(self) -> None:
        """Keeps the marked line in view."""
        self._resize()
        self._reveal()

    def sift(self, query: str) -> list[int]:
        """Gives the indexes of the lines that a filter lets through, in the order in which they are shown."""
        return ranked(query, self._lines)

    def _list(self, marked: int | None) -> None:
        self._shown = self.sift(self.sought)
        self._hover = None
        self._resize()
        best = next((place for place, index in enumerate(self._shown) if not self._lines[index].pinned), 0)
        if marked is not None:
            best = next((place for place, index in enumerate(self._shown) if index == marked), 0)
        self.set_reactive(PickList.cursor, best)
        self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self._reveal()
        self.refresh()
        self.post_message(self.Filtered(self.sought, len(self._shown), len(self._lines)))
        self.post_message(self.Marked(self.marked))

    def _resize(self) -> None:
        """Takes over the number of lines as a layout would, but without laying out the whole screen."""
        size = Size(self.size.width, len(self._shown))
        self.set_reactive(ScrollView.virtual_size, size)
        self._scroll_update(size)

    def _reveal(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True, immediate=True)

    # What the user does

    def action_move(self, by: int) -> None:
        """Moves the mark by some lines."""
        self.cursor = max(0, min(self.cursor + by, len(self._shown) - 1))

    def action_page(self, by: int) -> None:
        """Moves the mark by screenfuls."""
        self.action_move(by * max(1, self.size.height - 1))

    def action_move_to(self, line: int) -> None:
        """Marks a line; -1 is the last."""
        self.cursor = max(0, len(self._shown) - 1) if line < 0 else line

    def action_choose(self) -> None:
        """Takes the marked line."""
        if self.marked is not None:
            self.post_message(self.Chosen(self.marked))

    def action_erase(self) -> None:
        """Takes a character back; without one, the key is for whoever is around the list."""
        if not self.sought:
            raise SkipAction
        self.sought = self.sought[:-1]

    def action_erase_all(self) -> None:
        """Takes all of the filter back."""
        self.sought = ""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Says whether a key is text for the filter."""
        return character is not None and character.isprintable() and character not in self._own_keys

    def on_key(self, event: events.Key) -> None:
        """Takes printable keys for the filter."""
        if event.is_printable and event.character is not None and event.character not in self._own_keys:
            event.stop()
            event.prevent_default()
            if self.sought or event.character != " ":
                self._type(event.character)

    def on_paste(self, event: events.Paste) -> None:
        """Filters by pasted text."""
        event.stop()
        self._type("".join(character for character in event.text.strip() if character.isprintable()))

    def _type(self, text: str) -> None:
        self.sought = (self.sought + text)[:_LONGEST_FILTER]

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
        """Takes the line that was clicked."""
        line = event.y + round(self.scroll_y)
        if line < len(self._shown):
            event.stop()
            self.cursor = line
            self.action_choose()

    # What is seen

    def render_line(self, y: int) -> Strip:
        """Draws one line."""
        width = self.size.width
        place = y + round(self.scroll_y)
        plain = self.get_visual_style("pick-list--line")
        if place >= len(self._shown):
            said = "" if self._shown else self._why_empty(y, width)
            return _strip(Content(f" {said}"), width, self.get_visual_style("pick-list--note"))
        is_marked = place == self.cursor
        drawn = self.draw(self._shown[place], width, is_marked=is_marked)
        if is_marked:
            return _strip(drawn, width, self.get_visual_style("pick-list--cursor"))
        if place == self._hover:
            plain += self.get_visual_style("pick-list--hover", partial=True)
        return _strip(drawn, width, plain)

    def _why_empty(self, y: int, width: int) -> str:
        lines = [line for part in self.empty.split("\n") for line in wrap(part, max(1, width - 2)) or [""]]
        return lines[y] if y < len(lines) else ""

    def draw(self, index: int, width: int, *, is_marked: bool) -> Content:
        """Gives what is shown of a line.

        Args:
            index: Which of the lines.
            width: Cells that it may take.
            is_marked: Whether it is marked, and then wears no colours of its own.
        """
        line = self._lines[index]
        note = Content(f" {line.note} " if line.note else " ").truncate(width // 2, ellipsis=True)
        left = Content.assemble(" ", self._sign(index) if self._sign else "", self.highlighted(line.text))
        left = left.truncate(max(width - note.cell_length, 0), ellipsis=True, pad=True)
        muted = self.get_visual_style("pick-list--note", partial=True)
        return left + (note if is_marked else note.stylize(muted))

    def highlighted(self, text: str) -> Content:
        """Gives a text with the letters marked that the filter found in it."""
        shown = Content(text)
        match = self.get_visual_style("pick-list--match", partial=True)
        for offset in match_positions(self.sought, text):
            shown = shown.stylize(match, offset, offset + 1)
        return shown


def _strip(content: Content, width: int, style: Style) -> Strip:
    fitted = content.truncate(width, pad=True)
    return Strip(fitted.render_segments(style), width)
