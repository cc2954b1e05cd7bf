"""The list of recorded calls, of which only the visible lines are rendered."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Final, Literal

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from pegboard.models import UNFINISHED, CallState
from pegboard.results.sizes import count, duration, short_time, size
from pegboard.tui.activity.rows import CallRow, ListedCall
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.filter_list import FilterList, navigation

SIGNS: Final[Mapping[CallState, tuple[str, str]]] = {
    "waiting": ("?", "$text-warning bold"),
    "running": ("▶", "$text-primary bold"),
    "ok": ("✓", "$text-success"),
    "failed": ("✗", "$text-error bold"),
    "cancelled": ("⊘", "$text-warning"),
    "denied": ("⊘", "$text-warning"),
    "interrupted": ("✗", "$text-warning"),
}
"""Symbol and style of each state."""

LEGEND: Final = (
    ("?", "waits for approval"),
    ("▶", "running"),
    ("✓", "succeeded"),
    ("✗", "failed, ended with an exit code other than 0, or interrupted because its process ended"),
    ("⊘", "cancelled or denied"),
    ("▸ ▾", "a turn or a call that made calls: hidden, shown"),
    ("↳", "was made by another call or in a turn"),
    ("●", "selected; commands apply to all selected calls"),
    ("◆", "pinned: the size limit never removes it"),
)
"""The symbols and their meaning, for the help screen."""

_OWN_KEYS: Final = " /?!"
_COLUMNS: Final = {"time": 12, "source": 7, "origin": 14, "tool": 24, "duration": 11, "size": 9, "outcome": 15}
"""Widths with a trailing space; the arguments get the rest."""
_RIGHT: Final = ("duration", "size")
_TOOL_NARROW: Final = 20
_LEAST_ARGUMENTS: Final = 8
"""Width below which the arguments aren't shown, so that the tools get the space."""
_NARROW, _WIDE = 90, 110
_TICK_SECONDS: Final = 0.2
_AHEAD: Final = 60
"""Lines below the viewport at which older calls are loaded."""


def sign_of(call: CallRow) -> tuple[str, str]:
    """Return the symbol and the style of a call; those of a failure for a script whose exit code isn't 0."""
    return SIGNS["failed" if call.state == "ok" and call.reason else call.state]


def columns(width: int) -> Mapping[str, int]:
    """Return the columns that fit, in order, with their widths."""
    shown = dict(_COLUMNS)
    if width < _WIDE:
        del shown["origin"]
    if width < _NARROW:
        del shown["duration"], shown["size"]
        shown["tool"] = _TOOL_NARROW
    rest = width - 2 - sum(shown.values())
    order = ("time", "source", "origin", "tool", "arguments", "duration", "size", "outcome")
    if rest < _LEAST_ARGUMENTS:
        shown["tool"] += max(rest, 0)
    else:
        shown["arguments"] = rest
    return {name: shown[name] for name in order if name in shown}


def headings(width: int) -> Content:
    """Return the line above the list."""
    titles = {"origin": "agent/session", "arguments": "arguments", "tool": "  tool"}
    cells = [_cell(titles.get(name, name), column, is_right=name in _RIGHT) for name, column in columns(width).items()]
    return Content.assemble("  ", *cells)


class Headings(Widget):
    """Titles of the columns, above the list."""

    DEFAULT_CSS = "Headings { height: 1; color: $text-muted; text-style: underline; text-wrap: nowrap; }"

    def render(self) -> Content:
        """Return the titles; the list is narrower by its scrollbar."""
        return headings(max(self.size.width - 1, 1))


class CallList(FilterList):
    """Recorded calls, one of them selected; printable keys filter, space selects several.

    While the filter is typed, every printable key is added to it; enter or a movement ends that.

    Args:
        complete: Called to complete the filter.
        vim_keys: Whether j, k, g and G move the selection; then only `/` starts filtering.
    """

    PAGE = "Calls"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        *navigation("calls"),
        Command("calls.fold", "left", "fold", "Collapse", "Hide the calls that the selected call made."),
        Command("calls.unfold", "right", "unfold", "Expand", "Show the calls that the selected call made."),
        Command("calls.open", "enter", "choose", "Open", "Open the result or the chat, or end typing.", True),
        Command("calls.tick", "space", "tick", "Select", "Select several calls, or deselect the call.", True),
        Command("calls.complete", "tab", "complete", "Complete", "Complete the last word of the filter."),
        Command("calls.filter", "slash", "filter", "Filter", "Type words, or filters such as tool: and status:."),
        Command("calls.erase", "backspace", "erase", "Erase", "Delete the last character of the filter."),
        Command("calls.erase_all", "ctrl+u", "erase_all", "Erase all", "Clear the filter."),
        Command("calls.erase_word", "ctrl+w", "erase_word", "Erase word", "Delete the last word of the filter."),
        Command("calls.clear", "escape", "clear", "Clear", "Clear the filter, then deselect all calls."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    ticked: reactive[frozenset[str]] = reactive(frozenset[str](), init=False)
    """Ids of the selected calls, if several are selected."""

    @dataclass
    class Marked(Message):
        """Another call was selected, or it has changed."""

        call: CallRow | None

    @dataclass
    class Opened(Message):
        """A call was opened."""

        call: CallRow

    @dataclass
    class Folded(Message):
        """The calls that a call made are to be shown or hidden."""

        call: CallRow
        is_unfolded: bool

    @dataclass
    class Sought(Message):
        """The filter changed."""

        text: str

    class EndNear(Message):
        """The last loaded lines are nearly visible."""

    class StartNear(Message):
        """The first loaded lines are nearly visible, and there are newer calls."""

    @dataclass
    class EndWanted(Message):
        """The newest or the oldest call is to be selected, which may not be loaded."""

        is_oldest: bool

    class Scrolled(Message):
        """The list was scrolled."""

    class Ticked(Message):
        """Other calls were selected."""

    def __init__(self, complete: Callable[[], object], *, vim_keys: bool = False) -> None:
        super().__init__(own_keys=_OWN_KEYS, vim_keys=vim_keys)
        self._complete_filter = complete
        self._listed: Sequence[ListedCall] = ()
        self._words: re.Pattern[str] | None = None
        self._has_running = self._has_newer = self._has_older = False
        self._posted: CallRow | None = None

    def on_mount(self) -> None:
        """Update the durations of running calls."""
        self.set_interval(_TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        if self._has_running:
            self.refresh()

    # Calls

    @property
    def row_count(self) -> int:
        """Number of loaded calls."""
        return len(self._listed)

    @property
    def total(self) -> int:
        """Number of loaded calls."""
        return len(self._listed)

    @property
    def line(self) -> ListedCall | None:
        """The selected line."""
        return self._listed[self.cursor] if 0 <= self.cursor < len(self._listed) else None

    @property
    def call(self) -> CallRow | None:
        """The selected call."""
        return None if self.line is None else self.line.row

    def needed(self) -> tuple[int, int]:
        """Return the first and the last line that is visible or selected."""
        top = round(self.scroll_y)
        return min(top, self.cursor), max(top + self.size.height, self.cursor)

    @property
    def is_at_top(self) -> bool:
        """Whether the newest calls are visible."""
        return round(self.scroll_y) == 0 and not self._has_newer

    def show(
        self,
        listed: Sequence[ListedCall],
        words: re.Pattern[str] | None,
        *,
        has_running: bool,
        starts: Literal["first", "last"] | None,
    ) -> None:
        """Show other calls.

        Args:
            listed: The lines.
            words: Words to highlight.
            has_running: Whether a call is running.
            starts: Line to select if the list was started again; otherwise selection and viewport stay on their calls.
        """
        before, top, cursor = self._listed, round(self.scroll_y), self.cursor
        offset = cursor - top
        is_visible = 0 <= offset < max(self.size.height, 1)
        self._listed, self._words = listed, words
        self._has_running = has_running
        self._hover = None
        if starts is not None:
            cursor = 0 if starts == "first" else max(0, len(listed) - 1)
            top = max(0, cursor - max(self.size.height - 1, 0))
        else:
            cursor = _place_of(before, cursor, listed)
            if top > 0 or self._has_newer:
                top = cursor - offset if is_visible else _place_of(before, top, listed)
            elif is_visible:
                top = max(0, cursor - max(self.size.height - 1, 0))
        self._resize()
        self.set_reactive(FilterList.cursor, max(0, min(cursor, len(listed) - 1)))
        self.scroll_to(y=max(0, top), animate=False, force=True, immediate=True)
        self.refresh()
        self.post_selected()

    def set_ends(self, *, has_newer: bool, has_older: bool) -> None:
        """Set whether there are calls before the first line and after the last line that aren't loaded."""
        self._has_newer, self._has_older = has_newer, has_older
        self._ask_for_more()

    def select(self, call_id: str) -> bool:
        """Select a call if it is listed; return whether it is."""
        for index, line in enumerate(self._listed):
            if line.row.id == call_id:
                self.cursor = index
                return True
        return False

    def post_selected(self) -> None:
        """Post the selected call, unless it is the same as before."""
        if self.call != self._posted:
            self._posted = self.call
            self.post_message(self.Marked(self.call))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Load older calls before they are visible."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(self.Scrolled())
            self._ask_for_more()

    def on_resize(self) -> None:
        """Keep the selected call visible, and fill the viewport."""
        super().on_resize()
        self._ask_for_more()

    def _ask_for_more(self) -> None:
        if round(self.scroll_y) + self.size.height + _AHEAD > len(self._listed):
            self.post_message(self.EndNear())
        if self._has_newer and round(self.scroll_y) < _AHEAD:
            self.post_message(self.StartNear())

    # Input

    def watch_sought(self) -> None:
        """Post the filter."""
        self.post_message(self.Sought(self.sought))
        self.post_filtered()

    def action_move(self, lines: int) -> None:
        """Move the selection by some lines."""
        self.typing = False
        super().action_move(lines)

    def action_move_to(self, line: int) -> None:
        """Select a line; -1 is the last."""
        self.typing = False
        is_oldest = line < 0
        if self._has_older if is_oldest else self._has_newer:
            self.post_message(self.EndWanted(is_oldest))
        else:
            super().action_move_to(line)

    def action_choose(self) -> None:
        """Open the selected call, or end typing the filter."""
        if self.typing:
            self.typing = False
        elif self.call is not None:
            self.post_message(self.Opened(self.call))

    def action_complete(self) -> None:
        """Complete the filter; without a filter, focus the next element."""
        if self.sought:
            self._complete_filter()
        else:
            self.screen.focus_next()

    def action_tick(self) -> None:
        """Select the call and move to the next one, or deselect it."""
        if self.call is not None:
            self.ticked = self.ticked ^ {self.call.id}
            super().action_move(1)

    def action_clear(self) -> None:
        """Clear the filter; without a filter, deselect all calls."""
        if self.sought or self.typing:
            super().action_clear()
        else:
            self.ticked = frozenset()

    def action_fold(self) -> None:
        """Hide the calls that the selected call made; on one of those, go to the call that made it."""
        line = self.line
        if line is None:
            return
        if line.is_unfolded:
            self.post_message(self.Folded(line.row, is_unfolded=False))
        elif line.depth:
            self.cursor = next(
                index for index in range(self.cursor, -1, -1) if self._listed[index].depth == line.depth - 1
            )

    def action_unfold(self) -> None:
        """Show the calls that the selected call made, or go to the first of them."""
        line = self.line
        if line is None or not line.row.calls:
            return
        if line.is_unfolded:
            super().action_move(1)
        else:
            self.post_message(self.Folded(line.row, is_unfolded=True))

    def watch_ticked(self) -> None:
        """Show which calls are selected."""
        self.refresh()
        self.post_message(self.Ticked())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable completion while the filter is typed, and `clear` while there is something to clear."""
        if action == "complete":
            return self.typing
        if action == "clear":
            return bool(self.sought or self.ticked) or self.typing
        if action == "tick":
            return not self.typing
        return super().check_action(action, parameters)

    def _type(self, text: str) -> None:
        self.typing = True
        super()._type(text)

    def on_blur(self) -> None:
        """End typing the filter."""
        self.typing = False

    def on_click(self, event: events.Click) -> None:
        """Select the clicked call; on its expand symbol, show or hide the calls that it made."""
        self.typing = False
        super().on_click(event)
        line = self.line
        shown = self._columns
        at = 2 + sum(shown[name] for name in ("time", "source", "origin") if name in shown)
        if line is not None and line.row.calls and 0 <= event.x - at - 2 * min(line.depth, 4) < 2:
            self.post_message(self.Folded(line.row, is_unfolded=not line.is_unfolded))

    # Rendering

    @property
    def _columns(self) -> Mapping[str, int]:
        """The columns; they are the same with and without a scrollbar."""
        return columns(max(self.outer_size.width - 1, 1))

    def draw(self, row: int, width: int, *, is_selected: bool) -> Content:
        """Return a call in columns."""
        del width
        line = self._listed[row]
        call = line.row
        muted = "" if is_selected else "$text-muted"
        sign, style = sign_of(call)
        made = ("▾ " if line.is_unfolded else "▸ ") if call.calls else "↳ " if call.parent and not line.depth else "  "
        took = call.duration_ms
        is_unfinished = call.state in UNFINISHED
        if is_unfinished:
            took = max(0.0, (datetime.now(UTC) - call.at).total_seconds() * 1000)
        shown = self._columns
        outcome = call.reason or call.state
        if call.state == "running" and "duration" not in shown:
            outcome = duration(took)
        cells = {
            "time": Content.styled(short_time(call.at), muted),
            "source": Content(call.source),
            "origin": Content.styled(call.origin, muted),
            "tool": Content.assemble("  " * min(line.depth, 4), made, self._tool(call, is_selected)),
            "arguments": self._marked_words(call.arguments, is_selected).stylize_before(muted),
            "duration": Content(_duration(took) if took or is_unfinished else ""),
            "size": Content(_size(call)),
            "outcome": Content.styled(f"{sign} {outcome}", "" if is_selected else style),
        }
        marks = ("●" if call.id in self.ticked else " ") + ("◆" if call.pinned else " ")
        parts = [_cell(cells[name], column, is_right=name in _RIGHT) for name, column in shown.items()]
        return Content.assemble(marks, *parts)

    def _tool(self, call: CallRow, is_selected: bool) -> Content:
        if call.is_turn:
            return Content.styled("turn", "" if is_selected else "$text-accent")
        return self._marked_words(call.tool, is_selected)

    def _marked_words(self, text: str, is_selected: bool) -> Content:
        shown = Content(text)
        if self._words is not None:
            style = self.get_visual_style("filter-list--match", partial=True)
            for match in self._words.finditer(text):
                shown = shown.stylize(style.without_color if is_selected else style, match.start(), match.end())
        return shown


def _place_of(before: Sequence[ListedCall], index: int, listed: Sequence[ListedCall]) -> int:
    """Return where the line with this index is now; the same index if it is gone."""
    if not 0 <= index < len(before):
        return index
    key = before[index].key
    for near in (index, index + len(listed) - len(before)):
        if 0 <= near < len(listed) and listed[near].key == key:
            return near
    return next((at for at, line in enumerate(listed) if line.key == key), index)


def _duration(milliseconds: float) -> str:
    """Return a duration, without the smaller of its two units if both don't fit into the column."""
    text = duration(milliseconds)
    return text if len(text) < _COLUMNS["duration"] else " ".join(text.split(" ")[:2])


def _size(call: CallRow) -> str:
    """Return the size of the result; of a turn, the number of calls."""
    if call.is_turn:
        return count(call.calls, "call") if call.calls else ""
    return size(call.size) if call.size else ""


def _cell(content: Content | str, width: int, *, is_right: bool = False) -> Content:
    """Fit a text into a column with a trailing space."""
    content = Content(content) if isinstance(content, str) else content
    fitted = content.truncate(max(0, width - 1), ellipsis=True)
    space = " " * max(0, width - 1 - fitted.cell_length)
    return Content.assemble(space, fitted, " ") if is_right else Content.assemble(fitted, space, " ")
