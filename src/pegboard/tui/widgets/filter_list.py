"""The base of every list that filters as you type and renders only its visible lines."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from textwrap import wrap
from typing import ClassVar

from textual import events
from textual.app import App
from textual.content import Content, Span
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive, var
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style

from pegboard.tui.commands import Command, in_reach, key_of
from pegboard.tui.keys import key_names
from pegboard.tui.state.fuzzy import match_positions

_LONGEST_FILTER = 200
_VIM_KEYS = {"j": "move(1)", "k": "move(-1)", "g": "move_to(0)", "G": "move_to(-1)"}


def navigation(prefix: str) -> tuple[Command, ...]:
    """Return the commands that move the selection.

    Args:
        prefix: First part of their ids.
    """
    return (
        Command(f"{prefix}.up", "up", "move(-1)", "Up", "Select the previous line."),
        Command(f"{prefix}.down", "down", "move(1)", "Down", "Select the next line."),
        Command(f"{prefix}.page_up", "pageup", "page(-1)", "Page up", "Scroll one page up."),
        Command(f"{prefix}.page_down", "pagedown", "page(1)", "Page down", "Scroll one page down."),
        Command(f"{prefix}.first", "home", "move_to(0)", "First", "Select the first line."),
        Command(f"{prefix}.last", "end", "move_to(-1)", "Last", "Select the last line."),
    )


class FilterList(ScrollView, can_focus=True):
    """Lines, one of them selected; printable keys filter.

    A subclass provides the number of lines (`row_count`, `total`) and draws one on request; `sought` is the filter.

    Args:
        vim_keys: Whether j, k, g and G move the selection; then only `/` starts filtering.
        own_keys: Printable characters that are keys of commands: they filter only after `/`. So does a key that the
            user assigned to a command of the list, its page or its dialog.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "filter-list--line",
        "filter-list--note",
        "filter-list--match",
        "filter-list--cursor",
        "filter-list--hover",
    }
    DEFAULT_CSS = """
    FilterList {
        height: 1fr;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        & > .filter-list--line { color: $foreground; }
        & > .filter-list--note { color: $text-muted; }
        & > .filter-list--match { text-style: bold underline; }
        & > .filter-list--hover { background: $block-hover-background; }
        & > .filter-list--cursor {
            color: $block-cursor-blurred-foreground;
            background: $block-cursor-blurred-background;
            text-style: $block-cursor-blurred-text-style;
        }
        &:ansi > .filter-list--cursor { text-style: bold underline; }
        &:focus > .filter-list--cursor {
            color: $block-cursor-foreground;
            background: $block-cursor-background;
            text-style: $block-cursor-text-style;
        }
        &:nocolor:focus > .filter-list--cursor { text-style: reverse; }
        &:nocolor > .filter-list--cursor { text-style: underline; }
    }
    """

    sought: reactive[str] = reactive("", init=False)
    """The filter; trailing spaces count."""
    typing: reactive[bool] = reactive(False, init=False)
    """Whether every printable key is added to the filter, because `/` was pressed."""
    renews: reactive[bool] = reactive(False, init=False)
    """Whether the next character begins a new filter, because the focus has returned to the old one."""
    cursor: var[int] = var(0, init=False)
    """Index of the selected line among the shown ones."""
    empty: reactive[str] = reactive("No matches.")
    """Text of an empty list."""

    RENEWS: ClassVar[bool] = False
    """Whether a filter that was typed before the focus left is replaced by the next one instead of extended."""

    @dataclass
    class Filtered(Message):
        """The filter or its matches changed."""

        query: str
        found: int
        total: int
        typing: bool
        renews: bool

    def __init__(self, *, vim_keys: bool = False, own_keys: str = "") -> None:
        super().__init__()
        self._vim_keys = vim_keys
        self._own_keys = own_keys
        self._hover: int | None = None
        self.show_horizontal_scrollbar = False

    def filter_hint(self, command_id: str) -> str:
        """Return how to begin a filter, for an empty filter line.

        Args:
            command_id: The id of the command that starts filtering.
        """
        return f"{key_of(self, command_id)} to filter" if self._vim_keys else "type to filter"

    # Lines

    @property
    @abstractmethod
    def row_count(self) -> int:
        """Number of lines that match the filter."""

    @property
    @abstractmethod
    def total(self) -> int:
        """Number of lines without a filter."""

    @abstractmethod
    def draw(self, row: int, width: int, *, is_selected: bool) -> Content:
        """Return the content of a line.

        Args:
            row: Index of the line among the shown ones.
            width: Available width in cells.
            is_selected: Whether the line is selected; a selected line has no colors of its own.
        """

    @abstractmethod
    def post_selected(self) -> None:
        """Post that the selection may have changed."""

    @abstractmethod
    def action_choose(self) -> None:
        """Choose the selected line."""

    def rows_changed(self, cursor: int, *, keeps_offset: bool) -> None:
        """Show other lines.

        Args:
            cursor: Index of the line to select.
            keeps_offset: Whether the selection keeps its position on the screen; otherwise the list starts at its top.
        """
        offset = max(self.cursor - round(self.scroll_y), 0)
        self._hover = None
        self._resize()
        self.set_reactive(FilterList.cursor, cursor)
        top = max(0, cursor - offset) if keeps_offset else 0
        self.scroll_to(y=top, animate=False, force=True, immediate=True)
        self._reveal()
        self.refresh()
        self.post_filtered()
        self.post_selected()

    def watch_cursor(self) -> None:
        """Scroll to the selected line."""
        self._reveal()
        self.refresh()
        self.post_selected()

    def watch_typing(self) -> None:
        """Post whether the filter accepts every key."""
        self.post_filtered()

    def watch_renews(self) -> None:
        """Post whether the filter is about to be replaced."""
        self.post_filtered()

    def on_focus(self, event: events.Focus) -> None:
        """Let the next character begin a new filter, unless only the terminal had lost the focus."""
        self.renews = self.RENEWS and bool(self.sought) and not event.from_app_focus

    def on_blur(self) -> None:
        """Show the filter as one that stays; its key begins the next one, unless only the terminal lost the focus."""
        self.renews = False
        if self.RENEWS and self.app.app_focus:
            self.typing = False

    def on_resize(self) -> None:
        """Keep the selected line visible."""
        self._resize()
        self._reveal()

    def post_filtered(self) -> None:
        """Post the filter and the number of its matches."""
        self.post_message(self.Filtered(self.sought, self.row_count, self.total, self.typing, self.renews))

    def _resize(self) -> None:
        """Update the virtual size without a layout of the whole screen."""
        size = Size(self.size.width, self.row_count)
        self.set_reactive(ScrollView.virtual_size, size)
        self._scroll_update(size)

    def _reveal(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True, immediate=True)

    # Input

    def action_move(self, lines: int) -> None:
        """Move the selection by some lines."""
        self.cursor = max(0, min(self.cursor + lines, self.row_count - 1))

    def action_page(self, pages: int) -> None:
        """Move the selection by pages."""
        self.action_move(pages * max(1, self.size.height - 1))

    def action_move_to(self, line: int) -> None:
        """Select a line; -1 is the last."""
        self.cursor = max(0, self.row_count - 1) if line < 0 else line

    def action_filter(self) -> None:
        """Start filtering."""
        self.typing = True

    def action_erase(self) -> None:
        """Delete the last character of the filter."""
        self.renews = False
        self.sought = self.sought[:-1]

    def action_erase_word(self) -> None:
        """Delete the last word of the filter."""
        self.renews = False
        self.sought = self.sought.rstrip().rpartition(" ")[0]

    def action_erase_all(self) -> None:
        """Clear the filter."""
        self.sought = ""

    def action_clear(self) -> None:
        """Clear the filter and stop filtering."""
        self.typing = False
        self.sought = ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys that shorten the filter to an ancestor if the filter is empty."""
        if action == "clear":
            return bool(self.sought) or self.typing
        return bool(self.sought) if action in {"erase", "erase_word"} else True

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Return whether a key is input for the filter."""
        if character is None or not character.isprintable():
            return False
        return self.typing or not self._is_of_command(key, character)

    def _is_of_command(self, key: str, character: str) -> bool:
        """Return whether a printable key runs a command unless a filter is being typed."""
        keymap = self.app._keymap  # noqa: SLF001 - nothing public returns it
        for owner, command in in_reach(self):
            if key not in key_names(keymap.get(command.id, command.keys)):
                continue
            if character in self._own_keys:
                return True
            if command.id in keymap and not command.priority and not isinstance(owner, App):
                return True
        return False

    async def on_key(self, event: events.Key) -> None:
        """Append printable keys to the filter; with vim keys only after `/`."""
        character = event.character
        if not event.is_printable or character is None:
            return
        if not self.typing and self._is_of_command(event.key, character):
            return
        if self._vim_keys and not self.typing:
            if character in _VIM_KEYS:
                event.stop()
                await self.run_action(_VIM_KEYS[character])
            return
        event.stop()
        event.prevent_default()
        if self.sought or character != " ":
            self._type(character)

    def on_paste(self, event: events.Paste) -> None:
        """Append the first line of a pasted text to the filter."""
        if not self.filters_by(event.text):
            return
        event.stop()
        line = event.text.strip().split("\n", 1)[0]
        self._type("".join(character for character in line if character.isprintable()))

    def filters_by(self, pasted: str) -> bool:
        """Return whether a pasted text is input for the filter; otherwise an ancestor handles it."""
        del pasted
        return True

    def _type(self, text: str) -> None:
        # A space can only begin a further word of the filter.
        earlier = "" if self.renews and text != " " else self.sought
        self.renews = False
        self.sought = (earlier + text)[:_LONGEST_FILTER]

    # Mouse

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
        """Select the clicked line, and choose it if that is what a click does here."""
        line = event.y + round(self.scroll_y)
        if line >= self.row_count:
            return
        event.stop()
        is_second = line == self.cursor and event.chain > 1
        self.cursor = line
        if self.chooses_on_click(is_second=is_second):
            self.action_choose()

    def chooses_on_click(self, *, is_second: bool) -> bool:
        """Return whether a click chooses the selected line.

        Args:
            is_second: Whether the same line was clicked just before.
        """
        return is_second

    # Rendering

    def render_line(self, y: int) -> Strip:
        """Render one line."""
        width = self.size.width
        row = y + round(self.scroll_y)
        plain = self.get_visual_style("filter-list--line")
        if row >= self.row_count:
            lines = () if self.row_count else _wrapped(self.empty_text, max(1, width - 2))
            text = lines[y] if y < len(lines) else ""
            return _strip(Content(f" {text}"), width, self.get_visual_style("filter-list--note"))
        drawn = self.draw(row, width, is_selected=row == self.cursor)
        if row == self.cursor:
            return _strip(drawn, width, self.get_visual_style("filter-list--cursor"))
        if row == self._hover:
            plain += self.get_visual_style("filter-list--hover", partial=True)
        return _strip(drawn, width, plain)

    @property
    def empty_text(self) -> str:
        """Text of the list while it is empty."""
        return self.empty

    def part_style(self, name: str) -> Style:
        """Return the style of a component for a part of a line, without a background.

        A color such as `auto 60%` depends on the background of the list, which a partial style doesn't have.
        """
        return replace(self.get_visual_style(name), background=None)

    def highlighted(self, text: str, *, is_selected: bool = False) -> Content:
        """Return a text with the letters of the filter highlighted."""
        match = self.get_visual_style("filter-list--match", partial=True)
        if is_selected:
            match = match.without_color
        return Content(text, [Span(offset, offset + 1, match) for offset in match_positions(self.sought, text)])


def fitted(left: Content, right: Content, width: int) -> Content:
    """Return a line with a text at each end; the left one is cut with an ellipsis if they don't fit."""
    return left.truncate(max(width - right.cell_length, 0), ellipsis=True, pad=True) + right


@lru_cache(maxsize=4)
def _wrapped(text: str, width: int) -> tuple[str, ...]:
    return tuple(line for part in text.split("\n") for line in wrap(part, width) or [""])


def _strip(content: Content, width: int, style: Style) -> Strip:
    line = content.truncate(width, pad=True)
    return Strip(line.render_segments(style), width)
