"""The conversation widget: actions on blocks, and answers to calls awaiting approval."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from pegboard.tui.chat.block_lines import GUTTER, BlockLines
from pegboard.tui.chat.blocks import Block, ThoughtBlock, UserBlock
from pegboard.tui.chat.call_block import ANSWERS, CallBlock, CardKeys
from pegboard.tui.commands import Command, bindings, bindings_of, key_of
from pegboard.tui.messages import Copy, KeepCall, TalkAbout
from pegboard.tui.shell.app_commands import APPROVAL_COMMANDS
from pegboard.tui.widgets import answer_guard
from pegboard.tui.widgets.answer_guard import AnswerGuard

_LINES_AT_ONCE = 3


class Transcript(BlockLines):
    """Conversation with one marked block.

    A card awaiting approval accepts an answer only if the user selected it, and only after it has been visible
    for a moment.
    """

    PAGE = "Conversation"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("talk.up", "up,k", "move(-1)", "Up", "Move to the block above; scroll a long block by lines."),
        Command("talk.down", "down,j", "move(1)", "Down", "Move to the block below; scroll a long block by lines."),
        Command("talk.page_up", "pageup", "page_up", "Page up", "Scroll up one page."),
        Command("talk.page_down", "pagedown", "page_down", "Page down", "Scroll down one page."),
        Command("talk.first", "home,g", "move_to(0)", "First", "Move to the first block."),
        Command("talk.last", "end,G", "move_to(-1)", "Last", "Move to the end and follow it."),
        *APPROVAL_COMMANDS,
        Command("talk.unfold", "space", "unfold", "Expand", "Expand or collapse the selected block.", True),
        Command("talk.unfold_all", "z", "unfold_all", "Expand all", "Expand or collapse all calls.", True),
        Command("talk.open", "enter", "open", "Result", "Open the full result of the selected call.", True),
        Command("talk.form", "o", "form", "Open in form", "Open the selected call in its tool's form.", True),
        Command(
            "talk.copy", "c", "copy", "Copy", "Copy the selected block: a message, or a call with its result.", True
        ),
        Command("talk.keep", "alt+k", "keep", "Keep as check", "Keep the selected call with its result as a check."),
        Command("talk.edit", "e", "edit", "Edit", "Edit the selected message and resend it.", True),
        Command("talk.branch", "b", "branch", "Branch", "Continue from the selected block in a new session.", True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    @dataclass
    class Answered(Message):
        """The user answered the selected card."""

        block: CallBlock
        call_id: str
        """ID of the call awaiting approval when the user answered."""
        answer: str
        """One of `ANSWERS`."""

    @dataclass
    class Requested(Message):
        """Request to act on a block."""

        block: Block
        action: str
        """`open`, `form`, `edit` or `branch`."""

    class Selected(Message):
        """The selected card changed."""

    class EarlierRequested(Message):
        """Request to show earlier messages."""

    def __init__(self) -> None:
        super().__init__()
        self._all_unfolded = False
        self.guard = AnswerGuard()
        self._pressed: tuple[float, str] = (0.0, "")
        """Time and answer of the last mouse press."""

    def on_mount(self) -> None:
        """Watch whether the terminal has the focus."""
        self.watch(self.app, "app_focus", self._restart_delay, init=False)

    def on_resize(self, event: events.Resize) -> None:
        """Restart the delay: the cards move under the mouse."""
        del event
        self._restart_delay()

    def _restart_delay(self) -> None:
        """Restart the delay: a click may be meant for something else, such as to bring the terminal to the front."""
        self.guard.typed()

    # Mark and selection

    def show(self, blocks: list[Block]) -> None:
        """Show a conversation from its end without a mark."""
        self.guard = AnswerGuard()
        super().show(blocks)

    def follow(self) -> None:
        """Remove mark and selection, and follow the end."""
        self._following = True
        self._mark(None)
        self.renew()

    def forget_marked(self) -> None:
        """Unmark a block that was removed."""
        self._mark(None)

    def note_painted(self) -> None:
        """Update the guard with the visible cards."""
        self.note_visible()

    @property
    def selected(self) -> CallBlock | None:
        """The selected card; None unless the user selected it for the call that it shows now."""
        block = self.marked
        if not isinstance(block, CallBlock) or not block.asks_about or block.asks_about != self.guard.selected:
            return None
        return block

    def select_card(self, block: CallBlock) -> None:
        """Mark a card and scroll to it; select it if it awaits approval."""
        self._mark(block, select=True)
        self.draw()
        self._reveal()

    def deselect(self) -> None:
        """Clear the selection; keep the mark."""
        self._select(None)

    def enter(self) -> None:
        """Mark a block when focus arrives by tab: a card awaiting approval, the previous mark, or the last block."""
        block = self.marked
        if not (isinstance(block, CallBlock) and block.asks_about):
            block = next((one for one in self._blocks if isinstance(one, CallBlock) and one.asks_about), block)
        if block is None and self._blocks:
            block = self._blocks[-1]
        self._mark(block, select=True)
        if isinstance(block, CallBlock) and block.asks_about:
            self.draw()
            self._reveal()

    def _mark(self, block: Block | None, *, select: bool = False) -> None:
        """Mark a block; select it if `select`, and keep a selection while its block stays marked."""
        if select or block is not self.marked:
            self._select(block if select else None)
        self.marked = block

    def _select(self, block: Block | None) -> None:
        if isinstance(self.marked, CallBlock):
            self.marked.select("")
        call_id = block.asks_about if isinstance(block, CallBlock) else ""
        self.guard.select(call_id or None)
        if isinstance(block, CallBlock):
            block.select(call_id)
        self.renew()
        self.refresh_bindings()
        self.post_message(self.Selected())

    def note_visible(self) -> None:
        """Update the guard with the visible cards awaiting approval and the rows of their answers."""
        if not self.is_attached:
            return
        rows: dict[str, int | None] = {}
        if self.app.screen is self.screen and self.screen.classes.isdisjoint({"-tiny", "-flat"}):
            self._catch_up()
            first, end = self.scroll_offset.y, self.scroll_offset.y + self.scrollable_content_region.height
            for number in range(max(bisect_right(self._tops, first) - 1, 0), len(self._blocks)):
                top, bottom = self._tops[number], self._tops[number + 1] - 1
                if top >= end:
                    break
                block = self._blocks[number]
                if isinstance(block, CallBlock) and block.asks_about and bottom > first:
                    rows[block.asks_about] = bottom - 1 - first if bottom <= end else None
        self.guard.show(rows)

    def on_blur(self) -> None:
        """Deselect, unless the whole app lost focus."""
        if self.app.app_focus:
            self.deselect()

    def on_key(self, event: events.Key) -> None:
        """Answer the selected card, unless the guard rejects the key as accidental."""
        block = self.selected
        if block is None:
            return
        answer = next((answer for key, answer in self._answer_keys() if key == event.key), None)
        if answer is not None:
            event.stop()
            event.prevent_default()
            if block.accepts(answer) and self.guard.accepts(block.asks_about, answer_guard.clock.of(event)):
                self._answer(block, answer)
                return
        if event.is_printable:
            self.guard.typed()

    @property
    def card_keys(self) -> CardKeys:
        """The keys that the cards show."""
        answers = {answer: key_of(self, command) for answer, command, _ in ANSWERS}
        return CardKeys(key_of(self.app, "chat.asking"), answers)

    def _answer_keys(self) -> Iterator[tuple[str, str]]:
        actions = {f"answer('{answer}')": answer for answer, _, _ in ANSWERS}
        for key, binding in bindings_of(self):
            if binding.action in actions:
                yield key, actions[binding.action]

    def action_move(self, by: int) -> None:
        """Mark the block above or below, or scroll if more of the marked block is that way."""
        if not self._blocks:
            return
        self._catch_up()
        cursor = self.cursor
        if cursor is None:
            self._mark(self._blocks[-1])
            self._reveal()
            return
        top, bottom = self._tops[cursor], self._tops[cursor + 1] - 1
        seen = self.scroll_offset.y
        if by > 0 and bottom > seen + self.page and top <= seen:
            self.scroll_to(y=min(seen + _LINES_AT_ONCE, bottom - self.page), animate=False, immediate=True)
        elif by < 0 and top < seen < bottom:
            self.scroll_to(y=max(seen - _LINES_AT_ONCE, top), animate=False, immediate=True)
        elif by < 0 and cursor == 0:
            if self.hidden:
                self.post_message(self.EarlierRequested())
        else:
            self._mark(self._blocks[max(0, min(cursor + by, len(self._blocks) - 1))])
            self._reveal()
            if by < 0 and bottom - self._tops[max(cursor - 1, 0)] > self.page:
                self._show_end()

    def _show_end(self) -> None:
        """Show the end of a long block that was entered from below."""
        cursor = self.cursor
        assert cursor is not None, "a block was marked"
        bottom = self._tops[cursor + 1] - 1
        if bottom - self._tops[cursor] > self.page:
            self.scroll_to(y=bottom - self.page, animate=False, immediate=True)

    def action_move_to(self, index: int) -> None:
        """Mark a block and scroll it to the top; with -1, mark the last block and follow the end."""
        if self._blocks:
            self._catch_up()
            self._mark(self._blocks[index])
            if index < 0:
                self.scroll_end(animate=False, immediate=True, x_axis=False)
            else:
                self.scroll_to(y=self._tops[index] if index else 0, animate=False, immediate=True)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Record time and answer of the press: a click counts from then."""
        self._pressed = answer_guard.clock.of(event), self._answer_at(event)

    def _answer_at(self, event: events.MouseEvent) -> str:
        """Return the answer under the pointer, or an empty string."""
        offset = event.get_content_offset(self)
        index = -1 if offset is None else offset.y + self.scroll_offset.y
        if offset is None or not self._blocks or not self._tops[0] <= index < self._tops[-1]:
            return ""
        answers = self._at(index)[1].answers
        return next((answer for start, end, answer in answers if start <= offset.x - GUTTER < end), "")

    def on_click(self, event: events.Click) -> None:
        """Mark the clicked block; on a selected card, choose the answer; on a title row, expand or collapse."""
        offset = event.get_content_offset(self)
        index = -1 if offset is None else offset.y + self.scroll_offset.y
        if not self._blocks:
            self.post_message(TalkAbout(self.example_at(index) if event.chain == 1 else ""))
            return
        if offset is None or not 0 <= index < self.row_count:
            return
        if index < self._tops[0]:
            self.post_message(self.EarlierRequested())
            return
        number, _ = self._at(index)
        block, selected = self._drawn_blocks[number], self.selected
        if block not in self._blocks:  # it is gone in the next frame
            return
        answer = self._answer_at(event)
        if not answer or selected is not block:
            self._mark(block, select=True)
        if answer and isinstance(block, CallBlock):
            at, pressed = self._pressed
            is_one = event.chain == 1 and event.button == 1 and pressed == answer
            if selected is block and is_one and self.guard.accepts_click(block.asks_about, at):
                self._answer(block, answer)
        elif index == self._tops[number] and isinstance(block, CallBlock | ThoughtBlock):
            self.action_unfold()

    # Actions on the marked block

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the actions that apply to the marked block; answers only for a selected card."""
        block = self.marked
        match action:
            case "answer":
                return self.selected is not None and self.selected.accepts(str(parameters[0]))
            case "unfold":
                return isinstance(block, ThoughtBlock | UserBlock) or (
                    isinstance(block, CallBlock) and block.state != "asking"
                )
            case "open" | "keep":
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
        """Answer the selected card from the command palette. Keys are handled by `on_key`."""
        block = self.selected
        if block is not None and block.accepts(answer):
            self._answer(block, answer)

    def _answer(self, block: CallBlock, answer: str) -> None:
        self.post_message(self.Answered(block, block.asks_about, answer))

    def action_unfold(self) -> None:
        """Expand or collapse the marked block."""
        match self.marked:
            case CallBlock() as block:
                block.unfolded = not block.is_unfolded
            case ThoughtBlock() | UserBlock() as block:
                block.unfolded = not block.unfolded
            case _:
                return
        self._redraw(block)

    def action_unfold_all(self) -> None:
        """Expand or collapse all calls."""
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
        """Open the full result of the marked call."""
        self._request("open")

    def action_keep(self) -> None:
        """Keep the marked call as a check."""
        if isinstance(self.marked, CallBlock) and self.marked.call is not None:
            self.post_message(KeepCall(self.marked.call.id))

    def action_form(self) -> None:
        """Open the marked call in its tool's form."""
        self._request("form")

    def action_edit(self) -> None:
        """Edit the marked message."""
        self._request("edit")

    def action_branch(self) -> None:
        """Continue from the marked block in a new session."""
        self._request("branch")

    def _request(self, action: str) -> None:
        if self.marked is not None:
            self.post_message(self.Requested(self.marked, action))

    def action_copy(self) -> None:
        """Copy the marked block's text."""
        if self.marked is not None:
            self.post_message(Copy(self.marked.text))
