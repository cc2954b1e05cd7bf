"""Scrollable rows of a conversation. Rows outside the viewport are not rendered."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from textwrap import wrap
from time import perf_counter
from typing import ClassVar

from textual import events
from textual.reactive import reactive, var
from textual.strip import Strip

from pegboard.results.sizes import count
from pegboard.tui.chat.blocks import Block, BlockRow
from pegboard.tui.commands import as_word, first_key
from pegboard.tui.result.markdown_lines import MarkedLines
from pegboard.tui.widgets.line_view import LineSpan

_FRAME_SECONDS = 1 / 30
_SHARE = 4
"""Factor of a frame's duration to wait before the next one, so that keys are handled in between."""
GUTTER = 2
EXAMPLE_INDENT = "    "
"""Beginning of a line of the greeting that is an example of a message."""
_MARGIN = 1
_STRIPS = 1_000
"""Size of the cache of rendered rows."""


class BlockLines(MarkedLines):
    """Column of blocks, one of which may be marked. Follows the end until the user scrolls up."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "line-view--gutter",
        "line-view--under-user",
        "line-view--under-card",
        "line-view--under-asking",
    }
    DEFAULT_CSS = """
    BlockLines {
        & > .line-view--gutter { color: $border-blurred; }
        &:focus > .line-view--gutter { color: $border; }
        & > .line-view--under-user { background: $panel; }
        & > .line-view--under-card { background: $foreground 4%; }
        & > .line-view--under-asking { background: $warning 12%; }
        &:ansi > .line-view--under-asking { background: ansi_default; } /* the terminal's colors have no opacity */
    }
    """

    marked: var[Block | None] = var(None, init=False)
    """The marked block; None if none is."""
    hidden: reactive[int] = reactive(0, init=False)
    """Number of messages of the session before the first block."""
    greeting: reactive[Sequence[str]] = reactive[Sequence[str]]((), init=False)
    """Lines shown in an empty conversation."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[Block] = []
        self._tops: list[int] = [0]
        self._drawn: list[list[BlockRow]] = []
        self._drawn_blocks: list[Block] = []
        """The blocks at the last drawing; since then, the conversation may have lost some."""
        self._width = 0
        self._is_stale = False
        self._following = True
        self._frame: asyncio.TimerHandle | None = None
        self._begun = self._took = 0.0
        self._strips: dict[tuple[int, BlockRow, bool, bool, int], Strip] = {}
        self.show_horizontal_scrollbar = False

    # Drawing

    def show(self, blocks: list[Block]) -> None:
        """Show a conversation from its end; the list may grow, and `renew` is called when it or a block changes."""
        self._blocks = blocks
        self._following = True
        self.set_reactive(BlockLines.marked, None)
        self.draw()

    def prepare(self, blocks: Iterable[Block]) -> None:
        """Draw blocks that aren't shown yet, in a thread, so that `show` is quick."""
        width = self.block_width
        for block in blocks if width > 0 else ():
            block.rows(width)

    def renew(self) -> None:
        """Schedule drawing of changed blocks for the next frame."""
        self._is_stale = True
        if self._frame is None and self.is_mounted:
            due = self._begun + max(_FRAME_SECONDS, self._took * _SHARE)
            # a Textual timer is dropped if the machine is too slow for one interval
            loop = asyncio.get_running_loop()
            self._frame = loop.call_later(max(due - perf_counter(), 0.0), self.call_next, self._next_frame)

    def on_unmount(self) -> None:
        """Cancel the scheduled frame."""
        if self._frame is not None:
            self._frame.cancel()

    def _next_frame(self) -> None:
        self._frame = None
        if self._is_stale:
            self.draw()

    def draw(self) -> None:
        """Draw changed blocks now."""
        self._is_stale = False
        self._begun = perf_counter()
        width = self.block_width
        self._width = self.row_width
        if self.marked is not None and self.marked not in self._blocks:
            self.forget_marked()
        self._drawn_blocks = [*self._blocks]
        # Without columns, each block has no rows.
        self._drawn = [block.rows(width) if width > 0 else [] for block in self._drawn_blocks]
        self._tops = list(accumulate(map(len, self._drawn), initial=int(bool(self.hidden))))
        self.resize_rows()
        if self._following:
            self.scroll_end(animate=False, immediate=True, x_axis=False)
        self.refresh()
        self.call_after_refresh(self.note_painted)
        self._took = perf_counter() - self._begun

    @property
    def block_width(self) -> int:
        """Width of the rows of a block, in cells."""
        return self.row_width - GUTTER - _MARGIN

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return self._tops[-1] if self._blocks else len(self._greeting_rows)

    @property
    def _greeting_rows(self) -> list[str]:
        """The greeting, wrapped to the width."""
        width = self.block_width
        return [row for line in self.greeting for row in wrap(line, width) or [""]] if width > 0 else []

    def example_at(self, index: int) -> str:
        """Return the example in a row of the greeting, which is indented, or an empty string."""
        rows = self._greeting_rows
        row = rows[index] if 0 <= index < len(rows) else ""
        return row.strip() if row.startswith(EXAMPLE_INDENT) else ""

    def row(self, index: int) -> tuple[str, Sequence[LineSpan]]:
        """Return a row with the mark of its block before it."""
        if not self._blocks:
            line = self._greeting_rows[index]
            return f"  {line}", [(0, len(line) + GUTTER, "plain" if index == 0 else "muted")]
        if index < self._tops[0]:
            keys = [as_word(first_key(self, f"talk.{name}")) for name in ("first", "up")]
            how = f"press {', then '.join(keys)}, or click here" if all(keys) else "click here"
            text = f"  … {count(self.hidden, 'earlier message')}: {how}"
            return text, [(0, len(text), "muted")]
        number, shown = self._at(index)
        mark = "▌ " if self._drawn_blocks[number] is self.marked and shown.row.text else "  "
        pieces = [(start + GUTTER, end + GUTTER, str(kind)) for start, end, kind in shown.row.pieces]
        return mark + shown.row.text, [(0, 1, "gutter"), *pieces]

    def continues(self, index: int) -> bool:
        """Return whether a row is the rest of a line that the row before it begins."""
        return self._has_block(index) and self._at(index)[1].row.margin is not None

    def margin(self, index: int) -> int:
        """Return the number of characters before the text of a row: the mark of its block, and an indentation."""
        return GUTTER + ((self._at(index)[1].row.margin or 0) if self._has_block(index) else 0)

    def _has_block(self, index: int) -> bool:
        return bool(self._blocks) and index >= self._tops[0]

    def row_style(self, index: int) -> str | None:
        """Return the component class of a row's background."""
        if not self._blocks or index < self._tops[0]:
            return None
        under = self._at(index)[1].under
        return f"line-view--under-{under}" if under else None

    def render_line(self, y: int) -> Strip:
        """Render a row, or return it from the cache."""
        index = y + self.scroll_offset.y
        if not self._blocks or not self._tops[0] <= index < self._tops[-1] or self.text_selection is not None:
            return super().render_line(y)
        number, shown = self._at(index)
        key = (index, shown, self._drawn_blocks[number] is self.marked, self.has_focus, self.size.width)
        strip = self._strips.get(key)
        if strip is None:
            if len(self._strips) > _STRIPS:
                self._strips.clear()
            strip = self._strips[key] = super().render_line(y)
        return strip

    def notify_style_update(self) -> None:
        """Discard rendered rows: the colors may have changed."""
        self._strips.clear()
        super().notify_style_update()

    def _at(self, index: int) -> tuple[int, BlockRow]:
        number = bisect_right(self._tops, index) - 1
        return number, self._drawn[number][index - self._tops[number]]

    def watch_greeting(self) -> None:
        """Show the greeting."""
        self.resize_rows()
        self.refresh()

    def watch_hidden(self) -> None:
        """Show or hide the row of earlier messages."""
        self.renew()

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the rows to a new width and keep the same text at the top."""
        del event
        if self.row_width == self._width and self._drawn:
            if self._following:
                self.scroll_end(animate=False, immediate=True, x_axis=False)
            self.call_after_refresh(self.note_painted)
            return
        top = max(bisect_right(self._tops, self.scroll_offset.y) - 1, 0)
        places = _places(self._drawn[top]) if top < len(self._drawn) else []
        row = self.scroll_offset.y - self._tops[top]
        was_following = self._following  # with fewer rows, the viewport may be at the end for a moment
        self.draw()
        if not was_following and top < len(self._tops):
            has_place = top < len(self._drawn) and 0 <= row < len(places)
            same = bisect_right(_places(self._drawn[top]), places[row]) - 1 if has_place else 0
            self.scroll_to(y=self._tops[top] + max(same, 0), animate=False, immediate=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the end while it is in the viewport."""
        super().watch_scroll_y(old_value, new_value)
        self._following = self.is_vertical_scroll_end
        self.call_after_refresh(self.note_painted)

    # The marked block

    @property
    def cursor(self) -> int | None:
        """Index of the marked block; None if none is."""
        return self._blocks.index(self.marked) if self.marked is not None and self.marked in self._blocks else None

    def forget_marked(self) -> None:
        """Unmark a block that was removed."""
        self.marked = None

    def note_painted(self) -> None:
        """Handle a change of the visible rows. Subclasses override it."""

    def watch_marked(self) -> None:
        """Show the mark."""
        self.refresh()
        self.refresh_bindings()

    def _catch_up(self) -> None:
        """Draw blocks added since the last frame."""
        if len(self._tops) != len(self._blocks) + 1:
            self.draw()

    def _reveal(self) -> None:
        """Scroll just far enough to show the marked block, or at least its first row."""
        self._catch_up()
        cursor = self.cursor
        if cursor is None:
            return
        top, bottom = self._tops[cursor], self._tops[cursor + 1] - 1
        if top < self.scroll_offset.y or bottom - top > self.page:
            self.scroll_to(y=top, animate=False, immediate=True)
        elif bottom > self.scroll_offset.y + self.page:
            self.scroll_to(y=bottom - self.page, animate=False, immediate=True)


def _places(rows: Sequence[BlockRow]) -> list[tuple[int, int]]:
    """Return where each row of a block begins in its text, whatever the width: its line, and characters before it."""
    places: list[tuple[int, int]] = []
    line, characters = -1, 0
    for row in rows:
        if row.row.margin is None:
            line, characters = line + 1, 0
        places.append((line, characters))
        characters += len(row.row.text) - (row.row.margin or 0)
    return places
