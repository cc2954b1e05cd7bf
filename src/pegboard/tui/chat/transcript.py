"""The conversation on the screen: a line costs nothing before it is seen, however much was said."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from time import monotonic, perf_counter
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive, var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from pegboard.models.approval import ApprovalAnswer
from pegboard.tui.chat.blocks import ANSWERS, Block, CallBlock, Shown, ThoughtBlock, UserBlock
from pegboard.tui.commands import Command, bindings
from pegboard.tui.messages import Copy
from pegboard.tui.result.lines import Span
from pegboard.tui.result.marked import MarkedLines

_FRAME_SECONDS = 1 / 30
_SHARE = 4
"""How many times as long as a frame took is waited for the next one, so that keys are answered in between."""
_GUTTER, _MARGIN = 2, 1
_LINES_AT_ONCE = 3
_MID_WORD_SECONDS = 0.5
"""How long after a question has taken the focus a key is taken for part of a message: nobody reads it sooner."""
_STRIPS = 1_000
"""Rows that are kept as they were drawn."""


class Transcript(MarkedLines):
    """Blocks one under the other, one of them marked; follows the end as long as the user doesn't leave it."""

    PLACE = "Conversation"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("talk.up", "up,k", "move(-1)", "Up", "Go to what is above; through a long one, line by line."),
        Command("talk.down", "down,j", "move(1)", "Down", "Go to what is below; through a long one, line by line."),
        Command("talk.page_up", "pageup", "page_up", "Page up", "Scroll one screenful up."),
        Command("talk.page_down", "pagedown", "page_down", "Page down", "Scroll one screenful down."),
        Command("talk.first", "home,g", "move_to(0)", "First", "Go to the first of what is shown."),
        Command("talk.last", "end,G", "move_to(-1)", "Last", "Go to the end, and follow it."),
        Command("talk.approve_once", "a", "answer('once')", "Once", "Let the call run, this time.", True),
        Command("talk.approve_session", "s", "answer('session')", "Session", "Let the tool run in this session.", True),
        Command("talk.approve_always", "A", "answer('always')", "Always", "Let the tool run from now on.", True),
        Command("talk.reject", "r", "answer('reject')", "Reject", "Don't let the call run.", True),
        Command("talk.reject_why", "R", "answer('reject_why')", "Reject, say why", "Refuse it and say why.", True),
        Command("talk.edit_call", "e", "answer('edit')", "Edit", "Change the arguments in the form, then run.", True),
        Command("talk.unfold", "space", "unfold", "Unfold", "Show all of the marked call, or a line of it.", True),
        Command("talk.unfold_all", "z", "unfold_all", "Unfold all", "Show all of every call, or a line of each.", True),
        Command("talk.open", "enter", "open", "Result", "Open the whole result of the marked call.", True),
        Command("talk.form", "o", "form", "In the form", "Open the marked call in the form of its tool.", True),
        Command("talk.copy", "c", "copy", "Copy", "Copy what is marked: words as typed, a call with its result.", True),
        Command("talk.edit", "e", "edit", "Edit", "Edit your marked message and ask again from there.", True),
        Command("talk.branch", "b", "branch", "Branch", "Go on from here in a new session; this one stays.", True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "line-view--gutter",
        "line-view--under-user",
        "line-view--under-card",
        "line-view--under-asking",
    }
    DEFAULT_CSS = """
    Transcript {
        & > .line-view--gutter { color: $border-blurred; }
        &:focus > .line-view--gutter { color: $border; }
        & > .line-view--under-user { background: $panel; }
        & > .line-view--under-card { background: $foreground 4%; }
        & > .line-view--under-asking { background: $warning 12%; }
    }
    """

    cursor: var[int | None] = var(None, init=False)
    """Which block is marked."""
    hidden: reactive[int] = reactive(0, init=False)
    """How many messages of the session come before the first block."""
    greeting: reactive[Sequence[str]] = reactive[Sequence[str]]((), init=False)
    """What is said while nothing was said yet."""

    @dataclass
    class Answered(Message):
        """The user has said what is to become of a call that asks."""

        block: CallBlock
        answer: str
        """One of `ANSWERS`."""

    @dataclass
    class Wanted(Message):
        """Something is to be done with a block."""

        block: Block
        what: str
        """`open` its result, `form`, `edit` it, `branch` from it."""

    @dataclass
    class Typed(Message):
        """Somebody was typing a message when a question took the focus."""

        text: str

    class EarlierWanted(Message):
        """More of what was said before is to be shown."""

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
        self._all_unfolded = False
        self._focus_taken = -_MID_WORD_SECONDS
        self._strips: dict[tuple[int, Shown, bool, bool, int], Strip] = {}
        self.show_horizontal_scrollbar = False

    # What is shown

    def show(self, blocks: list[Block]) -> None:
        """Shows a conversation from its end; the list may grow, and `renew` is told when it or a block changes."""
        self._blocks = blocks
        self._following = True
        self.set_reactive(Transcript.cursor, None)
        self.draw()

    def follow(self) -> None:
        """Goes to the end and follows it; nothing is marked."""
        self._following = True
        self.cursor = None
        self.renew()

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
        room = self.room - _GUTTER - _MARGIN
        if room < 1:
            return
        self._width = self.room
        if self.cursor is not None and self.cursor >= len(self._blocks):
            self.cursor = len(self._blocks) - 1 if self._blocks else None
        self._drawn = [block.rows(room) for block in self._blocks]
        self._tops = list(accumulate(map(len, self._drawn), initial=int(bool(self.hidden))))
        self._resize()
        if self._following:
            self.scroll_end(animate=False, immediate=True, x_axis=False)
        self.refresh()
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
            return f"  {line}", [(0, len(line) + _GUTTER, "plain" if index == 0 else "muted")]
        if index < self._tops[0]:
            said = f"  … {self.hidden:,} earlier messages: home, then up, or a click"
            return said, [(0, len(said), "muted")]
        number, shown = self._at(index)
        mark = "▌ " if number == self.cursor and shown.row.text else "  "
        pieces = [(start + _GUTTER, end + _GUTTER, str(kind)) for start, end, kind in shown.row.pieces]
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
        key = (index, shown, number == self.cursor, self.has_focus, self.size.width)
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
            return
        top = max(bisect_right(self._tops, self.scroll_offset.y) - 1, 0)
        self.draw()
        if not self._following and top < len(self._tops):
            self.scroll_to(y=self._tops[top], animate=False, immediate=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follows the end when the user goes there, and no longer when they leave it."""
        super().watch_scroll_y(old_value, new_value)
        self._following = self.is_vertical_scroll_end

    # What is marked

    @property
    def block(self) -> Block | None:
        """The marked block."""
        return self._blocks[self.cursor] if self.cursor is not None and self.cursor < len(self._blocks) else None

    def mark_block(self, block: Block) -> None:
        """Marks a block and brings it into sight."""
        if block in self._blocks:
            self.draw()
            self.cursor = self._blocks.index(block)
            self._reveal()

    def take_focus(self) -> None:
        """Takes the focus for a question that the user may not have seen yet."""
        if not self.has_focus:
            self._focus_taken = monotonic()
            self.focus()

    def on_blur(self) -> None:
        """Whoever comes back by themselves means it."""
        self._focus_taken = -_MID_WORD_SECONDS

    def on_key(self, event: events.Key) -> None:
        """Gives a letter back to the line where it was meant to go."""
        if event.character and event.is_printable and monotonic() - self._focus_taken < _MID_WORD_SECONDS:
            event.stop()
            event.prevent_default()
            self.post_message(self.Typed(event.character))

    def watch_cursor(self) -> None:
        """Shows the mark."""
        self.refresh()
        self.refresh_bindings()

    def on_focus(self) -> None:
        """Marks the last block if none is."""
        if self.cursor is None and self._blocks:
            self.cursor = len(self._blocks) - 1

    def _catch_up(self) -> None:
        """Draws blocks that were added since the last frame."""
        if len(self._tops) != len(self._blocks) + 1:
            self.draw()

    def _reveal(self) -> None:
        """Scrolls no further than needed to have the marked block in sight, its beginning at least."""
        self._catch_up()
        if self.cursor is None:
            return
        top, bottom = self._tops[self.cursor], self._tops[self.cursor + 1] - 1
        if top < self.scroll_offset.y or bottom - top > self.page:
            self.scroll_to(y=top, animate=False, immediate=True)
        elif bottom > self.scroll_offset.y + self.page:
            self.scroll_to(y=bottom - self.page, animate=False, immediate=True)

    def action_move(self, by: int) -> None:
        """Marks the block above or below, unless more of the marked one is to be seen that way."""
        if not self._blocks:
            return
        self._catch_up()
        if self.cursor is None:
            self.cursor = len(self._blocks) - 1
            self._reveal()
            return
        top, bottom = self._tops[self.cursor], self._tops[self.cursor + 1] - 1
        seen = self.scroll_offset.y
        if by > 0 and bottom > seen + self.page and top <= seen:
            self.scroll_to(y=min(seen + _LINES_AT_ONCE, bottom - self.page), animate=False, immediate=True)
        elif by < 0 and top < seen < bottom:
            self.scroll_to(y=max(seen - _LINES_AT_ONCE, top), animate=False, immediate=True)
        elif by < 0 and self.cursor == 0:
            if self.hidden:
                self.post_message(self.EarlierWanted())
        else:
            self.cursor = max(0, min(self.cursor + by, len(self._blocks) - 1))
            self._reveal()
            if by < 0 and bottom - self._tops[self.cursor] > self.page:
                self._show_end()

    def _show_end(self) -> None:
        """Coming from below, shows the end of a long block first."""
        assert self.cursor is not None, "it was moved"
        bottom = self._tops[self.cursor + 1] - 1
        if bottom - self._tops[self.cursor] > self.page:
            self.scroll_to(y=bottom - self.page, animate=False, immediate=True)

    def action_move_to(self, place: int) -> None:
        """Marks a block and has it at the top, or the last one (-1) and follows the end."""
        if self._blocks:
            self._catch_up()
            self.cursor = len(self._blocks) - 1 if place < 0 else place
            if place < 0:
                self.scroll_end(animate=False, immediate=True, x_axis=False)
            else:
                self.scroll_to(y=self._tops[place] if place else 0, animate=False, immediate=True)

    def on_click(self, event: events.Click) -> None:
        """Marks what was clicked; a call's head folds, and the words of a question answer it."""
        offset = event.get_content_offset(self)
        index = -1 if offset is None else offset.y + self.scroll_offset.y
        if offset is None or not self._blocks or not 0 <= index < self.row_count:
            return
        if index < self._tops[0]:
            self.post_message(self.EarlierWanted())
            return
        number, shown = self._at(index)
        block = self._blocks[number]
        self.cursor = number
        for start, end, answer in shown.answers:
            if start <= offset.x - _GUTTER < end and isinstance(block, CallBlock):
                self.post_message(self.Answered(block, answer))
                return
        if index == self._tops[number] and isinstance(block, CallBlock | ThoughtBlock):
            self.action_unfold()

    # What is done with it

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers what can be done with the marked block."""
        block = self.block
        match action:
            case "answer":
                return isinstance(block, CallBlock) and block.state == "asking"
            case "unfold":
                return isinstance(block, ThoughtBlock | UserBlock) or (
                    isinstance(block, CallBlock) and block.state != "asking"
                )
            case "open":
                return isinstance(block, CallBlock) and block.state == "done"
            case "form":
                return isinstance(block, CallBlock) and block.call is not None
            case "edit" | "branch":
                return isinstance(block, UserBlock) if action == "edit" else block is not None
            case "copy":
                return block is not None
            case "unfold_all":
                return any(isinstance(one, CallBlock) for one in self._blocks)
            case _:
                return True

    def action_answer(self, answer: str) -> None:
        """Says what is to become of the call."""
        block = self.block
        if isinstance(block, CallBlock) and answer in {known for known, _, _ in ANSWERS}:
            self.post_message(self.Answered(block, answer))

    def action_unfold(self) -> None:
        """Shows all of the marked call or thought, or a line of it."""
        match self.block:
            case CallBlock() as block:
                block.unfolded = not block.is_unfolded
            case ThoughtBlock() | UserBlock() as block:
                block.unfolded = not block.unfolded
            case _:
                return
        self._redraw(block)

    def action_unfold_all(self) -> None:
        """Shows all of every call, or a line of each."""
        self._all_unfolded = not self._all_unfolded
        for block in self._blocks:
            if isinstance(block, CallBlock):
                block.unfolded = self._all_unfolded
                block.changed()
        self._following = False
        self.draw()
        self._reveal()

    def _redraw(self, block: Block) -> None:
        block.changed()
        self._following = False
        self.draw()
        self._reveal()

    def action_open(self) -> None:
        """Opens the whole result."""
        self._want("open")

    def action_form(self) -> None:
        """Opens the call in the form of its tool."""
        self._want("form")

    def action_edit(self) -> None:
        """Edits the user's message."""
        self._want("edit")

    def action_branch(self) -> None:
        """Goes on from here in a new session."""
        self._want("branch")

    def _want(self, what: str) -> None:
        if self.block is not None:
            self.post_message(self.Wanted(self.block, what))

    def action_copy(self) -> None:
        """Copies the marked block's text."""
        if self.block is not None:
            self.post_message(Copy(self.block.text))


def answer_of(chosen: str) -> ApprovalAnswer | None:
    """Gives what a choice means for a call; None where more must be said first."""
    match chosen:
        case "once" | "session" | "always" | "reject":
            return chosen
        case _:
            return None
