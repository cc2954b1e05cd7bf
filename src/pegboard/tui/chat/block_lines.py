"""Blocks of a conversation as rows: a row costs nothing before it is seen, however long the conversation is."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from time import perf_counter
from typing import ClassVar

from textual import events
from textual.geometry import Size
from textual.reactive import reactive, var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from pegboard.tui.chat.blocks import Block, Shown
from pegboard.tui.result.markdown_lines import MarkedLines
from pegboard.tui.widgets.line_view import Span

_FRAME_SECONDS = 1 / 30
_SHARE = 4
"""How many times as long as a frame took is waited for the next one, so that keys are answered in between."""
GUTTER = 2
_MARGIN = 1
_STRIPS = 1_000
"""Rows that are kept as they were drawn."""


class BlockLines(MarkedLines):
    """Blocks one under the other, one of them marked; follows the end as long as the user doesn't leave it."""

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
    }
    """

    marked: var[Block | None] = var(None, init=False)
    """The marked block, which stays marked wherever it moves to."""
    hidden: reactive[int] = reactive(0, init=False)
    """How many messages of the session come before the first block."""
    greeting: reactive[Sequence[str]] = reactive[Sequence[str]]((), init=False)
    """What is said while nothing was said yet."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[Block] = []
        self._tops: list[int] = [0]
        self._drawn: list[list[Shown]] = []
        self._width = 0
        self._is_old = False
        self._following = True
        self._frame: asyncio.TimerHandle | None = None
        self._begun = self._took = 0.0
        self._strips: dict[tuple[int, Shown, bool, bool, int], Strip] = {}
        self.show_horizontal_scrollbar = False

    # What is shown

    def show(self, blocks: list[Block]) -> None:
        """Show a conversation from its end; the list may grow, and `renew` is called when it or a block changes."""
        self._blocks = blocks
        self._following = True
        self.set_reactive(BlockLines.marked, None)
        self.draw()

    def renew(self) -> None:
        """Draws what has changed, with the next frame."""
        self._is_old = True
        if self._frame is None and self.is_mounted:
            due = self._begun + max(_FRAME_SECONDS, self._took * _SHARE)
            # Textual's timers are skipped for good where the machine is slower than their time for a moment.
            loop = asyncio.get_running_loop()
            self._frame = loop.call_later(max(due - perf_counter(), 0.0), self.call_next, self._next_frame)

    def on_unmount(self) -> None:
        """Draws nothing any more."""
        if self._frame is not None:
            self._frame.cancel()

    def _next_frame(self) -> None:
        self._frame = None
        if self._is_old:
            self.draw()

    def draw(self) -> None:
        """Draws what has changed, now."""
        self._is_old = False
        self._begun = perf_counter()
        room = self.room - GUTTER - _MARGIN
        if room < 1:
            return
        self._width = self.room
        if self.marked is not None and self.marked not in self._blocks:
            self.lost()
        self._drawn = [block.rows(room) for block in self._blocks]
        self._tops = list(accumulate(map(len, self._drawn), initial=int(bool(self.hidden))))
        self._resize()
        if self._following:
            self.scroll_end(animate=False, immediate=True, x_axis=False)
        self.refresh()
        self.call_after_refresh(self.painted)
        self._took = perf_counter() - self._begun

    def _resize(self) -> None:
        """Takes over the number of rows as a layout would, but without laying out the whole screen."""
        size = Size(self.room, self.row_count)
        self.set_reactive(ScrollView.virtual_size, size)
        self._scroll_update(size)

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return self._tops[-1] if self._blocks else len(self.greeting)

    def row(self, index: int) -> tuple[str, Sequence[Span]]:
        """Gives a row behind the mark of its block."""
        if not self._blocks:
            line = self.greeting[index]
            return f"  {line}", [(0, len(line) + GUTTER, "plain" if index == 0 else "muted")]
        if index < self._tops[0]:
            said = f"  … {self.hidden:,} earlier messages: home, then up, or a click"
            return said, [(0, len(said), "muted")]
        number, shown = self._at(index)
        mark = "▌ " if self._blocks[number] is self.marked and shown.row.text else "  "
        pieces = [(start + GUTTER, end + GUTTER, str(kind)) for start, end, kind in shown.row.pieces]
        return mark + shown.row.text, [(0, 1, "gutter"), *pieces]

    def row_style(self, index: int) -> str | None:
        """Gives what lies under a row."""
        if not self._blocks or index < self._tops[0]:
            return None
        under = self._at(index)[1].under
        return f"line-view--under-{under}" if under else None

    def render_line(self, y: int) -> Strip:
        """Draws a row, unless it was drawn before and looks the same."""
        index = y + self.scroll_offset.y
        if not self._blocks or not self._tops[0] <= index < self._tops[-1] or self.text_selection is not None:
            return super().render_line(y)
        number, shown = self._at(index)
        key = (index, shown, self._blocks[number] is self.marked, self.has_focus, self.size.width)
        strip = self._strips.get(key)
        if strip is None:
            if len(self._strips) > _STRIPS:
                self._strips.clear()
            strip = self._strips[key] = super().render_line(y)
        return strip

    def notify_style_update(self) -> None:
        """Draws everything anew: the colours may be others."""
        self._strips.clear()
        super().notify_style_update()

    def _at(self, index: int) -> tuple[int, Shown]:
        number = bisect_right(self._tops, index) - 1
        return number, self._drawn[number][index - self._tops[number]]

    def watch_greeting(self) -> None:
        """Says it anew."""
        self._resize()
        self.refresh()

    def watch_hidden(self) -> None:
        """Makes room for the line that says it."""
        self.renew()

    def on_resize(self, event: events.Resize) -> None:
        """Breaks the lines anew where the width has changed, and keeps the same block on top."""
        del event
        if self.room == self._width and self._drawn:
            if self._following:
                self.scroll_end(animate=False, immediate=True, x_axis=False)
            self.call_after_refresh(self.painted)
            return
        top = max(bisect_right(self._tops, self.scroll_offset.y) - 1, 0)
        self.draw()
        if not self._following and top < len(self._tops):
            self.scroll_to(y=self._tops[top], animate=False, immediate=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follows the end when the user goes there, and no longer when they leave it."""
        super().watch_scroll_y(old_value, new_value)
        self._following = self.is_vertical_scroll_end
        self.call_after_refresh(self.painted)

    # The marked block

    @property
    def cursor(self) -> int | None:
        """The index of the marked block."""
        return self._blocks.index(self.marked) if self.marked is not None and self.marked in self._blocks else None

    def lost(self) -> None:
        """Unmark a block that isn't shown any more."""
        self.marked = None

    def painted(self) -> None:
        """Take notice that other rows are on the screen now."""

    def watch_marked(self) -> None:
        """Show the mark."""
        self.refresh()
        self.refresh_bindings()

    def _catch_up(self) -> None:
        """Draws blocks that were added since the last frame."""
        if len(self._tops) != len(self._blocks) + 1:
            self.draw()

    def _reveal(self) -> None:
        """Scroll no further than needed to show the marked block, its beginning at least."""
        self._catch_up()
        cursor = self.cursor
        if cursor is None:
            return
        top, bottom = self._tops[cursor], self._tops[cursor + 1] - 1
        if top < self.scroll_offset.y or bottom - top > self.page:
            self.scroll_to(y=top, animate=False, immediate=True)
        elif bottom > self.scroll_offset.y + self.page:
            self.scroll_to(y=bottom - self.page, animate=False, immediate=True)
