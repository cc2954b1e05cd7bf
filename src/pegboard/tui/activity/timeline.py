"""A dialog with the timeline of a session: model turns, calls and gaps, and totals per tool."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.screen import Screen
from textual.widgets import Static

from pegboard.errors import StoreError, explained
from pegboard.models import Agent, CallState, RecordedCall
from pegboard.models.timeline import SessionTimeline, SessionTool, TimelineBar, TimelineGap
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count, duration, thousands, tokens
from pegboard.results.wrap import fit
from pegboard.tui.activity.call_list import SIGNS
from pegboard.tui.activity.calls import CallActions
from pegboard.tui.activity.rows import CallRow
from pegboard.tui.activity.timeline_rows import TimelineItem, TimelineRow, TimeScale, rows_of
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.line_view import LineSpan, LineView

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_LABEL, _LABEL_WIDE, _WIDE = 24, 36, 110
_OFFSET, _DURATION = 9, 11
_TITLE, _FILE_NAME = 100, 40
_PAUSE_SECONDS: Final = 0.5
"""Minimum time between two readings of a running session."""
_KINDS: Final = {"ok": "ok", "waiting": "running", "running": "running", "failed": "failed", "interrupted": "failed"}
"""Style of each state; the others are `stopped`."""


async def show_timeline(page: Screen[None], runtime: Runtime, actions: CallActions, call: RecordedCall) -> None:
    """Show the session of a call, or say that it has none."""
    if call.session is None:
        page.notify("The selected call belongs to no session.", severity="warning")
        return
    await page.app.push_screen_wait(TimelineScreen(runtime, actions, call.session))


class TimelineView(LineView):
    """One row per model turn, call and gap of a session, on a common time axis, with a cursor."""

    PAGE = "Timeline"
    ALLOW_SELECT = False
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("timeline.open", "enter", "open", "Open", "Open the result of the selected call.", footer=True),
        Command("timeline.up", "up", "move(-1)", "Up", "Move up a row."),
        Command("timeline.down", "down", "move(1)", "Down", "Move down a row."),
        Command("timeline.page_up", "pageup", "page(-1)", "Page up", "Move up a page."),
        Command("timeline.page_down", "pagedown", "page(1)", "Page down", "Move down a page."),
        Command("timeline.home", "home", "edge(-1)", "Top", "Move to the first row."),
        Command("timeline.end", "end", "edge(1)", "Bottom", "Move to the last row."),
        Command("timeline.next_failure", "n", "failure(1)", "Next failure", "Go to the next failed call.", footer=True),
        Command(
            "timeline.previous_failure", "N,p", "failure(-1)", "Previous failure", "Go to the previous failed call."
        ),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "line-view--ok",
        "line-view--failed",
        "line-view--stopped",
        "line-view--running",
        "line-view--turn",
    }
    DEFAULT_CSS = """
    TimelineView {
        padding: 0 1;
        & > .line-view--ok { color: $text-success; }
        & > .line-view--failed { color: $text-error; }
        & > .line-view--stopped { color: $text-warning; }
        & > .line-view--running { color: $text-primary; }
        & > .line-view--turn { color: $text-accent; }
    }
    """

    cursor: var[int] = var(0)
    """Index of the selected row."""

    class Moved(Message):
        """Another row was selected."""

    class Opened(Message):
        """The selected call should be opened."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: Sequence[TimelineRow] = ()
        """The rows."""
        self._scale = TimeScale(SessionTimeline(session="", bars=(), gaps=(), is_whole=True))
        self._follows_end = False
        """Whether the end is selected and visible, so that it stays so when calls come."""

    def show(self, rows: Sequence[TimelineRow], scale: TimeScale) -> None:
        """Show a session. What the user reads stays where it is; a selected end is followed while it is visible."""
        top = self.scroll_offset.y
        now = {_identity(row.item): at for at, row in enumerate(rows) if isinstance(row.item, TimelineBar)}
        moved, cursor = _moved(self.rows, now, top), self.cursor + _moved(self.rows, now, self.cursor)
        self.rows, self._scale = rows, scale
        self.rows_changed()
        if self._follows_end:
            self.cursor = len(rows) - 1
        else:
            self.set_reactive(TimelineView.cursor, max(0, min(cursor, len(rows) - 1)))
            if moved:
                self.scroll_to(y=top + moved, animate=False, immediate=True, force=True)
        self._note_end()
        self.post_message(self.Moved())

    def _note_end(self) -> None:
        """Note whether the end is selected and visible."""
        self._follows_end = 0 <= len(self.rows) - 1 == self.cursor < self.scroll_offset.y + self.page

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Note whether the end is still visible."""
        super().watch_scroll_y(old_value, new_value)
        self._note_end()

    def on_resize(self) -> None:
        """Keep a selected end visible: the totals below, or the terminal, have another height."""
        if self._follows_end:
            self.show_row(self.cursor)

    @property
    def item(self) -> TimelineItem | None:
        """The selected bar or gap."""
        return self.rows[self.cursor].item if 0 <= self.cursor < len(self.rows) else None

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def _columns(self) -> tuple[int, int]:
        """Width of the labels and of the bars."""
        label = max(_LABEL_WIDE, self.row_width // 4) if self.row_width >= _WIDE else _LABEL
        return label, max(self.row_width - _OFFSET - label - _DURATION, 0)

    def header(self) -> str | None:
        """Return the headings and the ends of the time axis."""
        label, width = self._columns
        if self._scale.start is None or self._scale.end is None:
            return None
        total = _lasted((self._scale.end - self._scale.start).total_seconds())
        axis = f"0{total:─>{max(width - 1, 0)}}" if len(total) < width - 2 else " " * width
        return f"{'start':>{_OFFSET - 1}} {'  call':<{label}}{axis}{'duration':>{_DURATION}}"

    def row(self, index: int) -> tuple[str, Sequence[LineSpan]]:
        """Return a row with its offset, label, bar and duration."""
        row = self.rows[index]
        item = row.item
        label_width, width = self._columns
        start = self._scale.start or item.start
        offset = _offset((item.start - start).total_seconds())
        lasted = _lasted((item.end - item.start).total_seconds())
        first, last = self._scale.cells(item, width)
        if isinstance(item, TimelineGap):
            sign, label, kind, block = "┄", "no activity", "muted", "┄"
        elif item.kind == "turn":
            sign, label, kind, block = "◇", clean_line(item.label) or "model turn", "turn", "▒"
        else:
            state = _shown_state(item)
            sign, label, block = SIGNS[state][0], clean_line(item.label), "█"
            kind = _KINDS.get(state, "stopped")
        indent = "  " * (row.depth - 1) + "↳ " if row.depth else ""
        named = fit(f"{indent}{sign} {label}", label_width - 1)
        text = f"{offset:>{_OFFSET - 1}} {named} "
        at = len(text)
        text += " " * first + block * (last - first) + " " * (width - last) + f"{lasted:>{_DURATION}}"
        spans: list[LineSpan] = [(0, _OFFSET, "muted"), (at + first, at + last, kind)]
        spans.append((_OFFSET, at, "plain" if kind not in {"failed", "muted"} else kind))
        spans.append((_OFFSET + len(indent), _OFFSET + len(indent) + 1, kind))
        return text, spans

    def row_style(self, index: int) -> str | None:
        """Return the style of the selected row."""
        return "line-view--cursor" if index == self.cursor else None

    def watch_cursor(self) -> None:
        """Keep the selected row visible."""
        self.show_row(self.cursor)
        self._note_end()
        self.refresh()
        self.post_message(self.Moved())

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self.cursor = max(0, min(self.cursor + rows, len(self.rows) - 1))

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self.action_move(pages * max(self.page - 1, 1))

    def action_edge(self, direction: int) -> None:
        """Move the cursor to the first or last row."""
        self.action_move(direction * len(self.rows))

    def action_failure(self, step: int) -> None:
        """Go to the next or previous failed call."""
        index = self.cursor + step
        while 0 <= index < len(self.rows):
            item = self.rows[index].item
            if isinstance(item, TimelineBar) and _shown_state(item) in {"failed", "interrupted"}:
                self.cursor = index
                return
            index += step
        self.notify("No failed call follows." if step > 0 else "No failed call precedes this one.")

    def action_open(self) -> None:
        """Open the selected call."""
        self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        """Select the row; a double click opens it."""
        event.prevent_default()  # a double click selects no text
        index = event.get_content_offset_capture(self).y - self._header_height + self.scroll_offset.y
        if 0 <= index < len(self.rows):
            self.cursor = index
            if event.chain > 1:
                self.action_open()


class ToolTotals(LineView):
    """Calls, failures, duration and tokens of each tool of a session."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "ToolTotals { padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self.tools: Sequence[SessionTool] = ()
        """The totals, the most used tool first."""

    def show(self, tools: Sequence[SessionTool]) -> None:
        """Show the totals of a session."""
        self.tools = tools
        self.rows_changed()

    @property
    def row_count(self) -> int:
        """Number of tools."""
        return len(self.tools)

    def header(self) -> str | None:
        """Return the headings."""
        return self._line("tool", "calls", "failed", "duration", "≈ tokens")

    def row(self, index: int) -> tuple[str, Sequence[LineSpan]]:
        """Return the totals of one tool."""
        tool = self.tools[index]
        text = self._line(
            clean_line(tool.tool),
            f"{tool.calls:,}",
            failure_rate(tool.failures, tool.calls),
            duration(tool.duration_ms),
            thousands(tokens(tool.size)),
        )
        if not tool.failures:
            return text, ()
        start = text.rindex(failure_rate(tool.failures, tool.calls))
        return text, [(start, start + len(failure_rate(tool.failures, tool.calls)), "warning")]

    def _line(self, tool: str, calls: str, failed: str, lasted: str, estimate: str) -> str:
        width = max(min(self.row_width - 49, 48), 8)
        return f"{fit(tool, width)}{calls:>9}{failed:>16}{lasted:>13}{estimate:>11}"


class TimelineScreen(Dialog[None]):
    """Timeline of a session, which follows it while it runs.

    Args:
        runtime: Runtime with the history.
        actions: Opens calls.
        session: Id of the session.
    """

    PAGE = "Timeline"
    AUTO_FOCUS = "TimelineView"

    DEFAULT_CSS = """
    TimelineScreen {
        & > #box {
            width: 100%; height: 100%; max-width: 100%; max-height: 100%;
            #selected { height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
            ToolTotals { height: auto; max-height: 30%; }
        }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("session.export", "ctrl+s", "export", "Export", "Save the session as JSON Lines.", footer=True),
        Command("session.totals", "tab", "totals", "Totals", "Go to the totals per tool, or back."),
        Command("session.close", "escape,q", "close", "Close", "Close the timeline.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, actions: CallActions, session: str) -> None:
        super().__init__(f"Timeline · {_title(session)}", "reading…")
        self._activity = runtime.activity
        self._actions = actions
        self._session = session
        self._view = TimelineView()
        self._selected = Static(id="selected")
        self._arguments = "", ""
        """Id of the call whose arguments were read last, and these in one line."""
        self._totals = ToolTotals()
        self.is_loaded = False
        """Whether the session is shown."""

    def compose_body(self) -> ComposeResult:
        """Compose bars, the selected one and the totals."""
        yield self._view
        yield self._selected
        yield self._totals

    def on_mount(self) -> None:
        """Start reading."""
        self._follow()

    @work(group="follow")
    async def _follow(self) -> None:
        """Read the session when its changes are noticed, and again at each of them."""
        try:
            async with aclosing(self._activity.changes()) as changes:
                async for _ in changes:
                    await self._read()
                    await asyncio.sleep(_PAUSE_SECONDS)
        except StoreError as error:
            self.query_one("#box").border_subtitle = Content(clean_line(explained(error, "The history can't be read")))

    async def _read(self) -> None:
        timeline, rows, scale, tools = await asyncio.to_thread(self._load)
        self._view.show(rows, scale)
        self._totals.show(tools)
        calls, failures = sum(tool.calls for tool in tools), sum(tool.failures for tool in tools)
        parts = [count(calls, "call"), f"{failure_rate(failures, calls)} failed" if failures else "none failed"]
        turns = sum(bar.kind == "turn" for bar in timeline.bars)
        parts += [count(turns, "model turn")] if turns else []
        parts.append(f"≈ {thousands(tokens(sum(tool.size for tool in tools)))} tokens of results")
        parts += [] if timeline.is_whole else [f"only the last {len(timeline.bars):,} shown"]
        self.query_one("#box").border_subtitle = Content(" · ".join(parts))
        self.is_loaded = True

    def _load(self) -> tuple[SessionTimeline, Sequence[TimelineRow], TimeScale, Sequence[SessionTool]]:
        timeline = self._activity.timeline(self._session)
        return timeline, rows_of(timeline), TimeScale(timeline), self._activity.session_tools(self._session)

    @on(TimelineView.Moved)
    def _show_selected(self, event: TimelineView.Moved) -> None:
        event.stop()
        match self._view.item:
            case TimelineBar(kind="turn") as bar:
                text = f"◇ {bar.start.astimezone():%H:%M:%S} · model: {clean_line(bar.label)}"
            case TimelineBar() as bar:
                text = f"{SIGNS[_shown_state(bar)][0]} {bar.start.astimezone():%H:%M:%S} · {clean_line(bar.label)}"
                text += f" · {bar.outcome} · id {clean_line(bar.id)[:12]}"
                call_id, arguments = self._arguments
                if call_id != bar.id:
                    self._read_arguments(bar.id)
                elif arguments:
                    text += f" · {arguments}"
            case TimelineGap() as gap:
                text = f"┄ {gap.start.astimezone():%H:%M:%S} · neither the model nor a tool worked"
            case _:
                text = "The session has no calls." if self.is_loaded else ""
        self._selected.update(Content(text), layout=False)

    @work(group="arguments", exclusive=True)
    async def _read_arguments(self, call_id: str) -> None:
        with suppress(StoreError):  # reading the timeline reports it
            call = await asyncio.to_thread(self._activity.get, call_id)
            self._arguments = call_id, "" if call is None else CallRow.of(call).arguments
            self._view.post_message(TimelineView.Moved())

    @on(TimelineView.Opened)
    def _open(self, event: TimelineView.Opened) -> None:
        event.stop()
        item = self._view.item
        if isinstance(item, TimelineBar) and item.kind == "call":
            self._open_call(item.id)
        elif item is not None:
            self.notify("Only calls have a result. Select a call.")

    @work(group="open", exclusive=True)
    async def _open_call(self, call_id: str) -> None:
        calls = await self._actions.find([call_id])
        if calls:
            await self._actions.open_result(calls[0])

    @work(group="export", exclusive=True)
    async def action_export(self) -> None:
        """Export the session."""
        await self._actions.export_lines(
            f"the session {_title(self._session)}",
            f"session-{re.sub(r'[^A-Za-z0-9.]+', '-', self._session)[:_FILE_NAME].strip('-.')}",
            partial(self._activity.export_session, self._session),
        )

    def action_totals(self) -> None:
        """Move the focus between bars and totals."""
        (self._view if self._totals.has_focus else self._totals).focus()


def failure_rate(failures: int, calls: int) -> str:
    """Return a number of failures with its share: `2 (17 %)`."""
    return f"{failures:,} ({100 * failures / calls:.0f} %)" if failures and calls else f"{failures:,}"


def _shown_state(bar: TimelineBar) -> CallState:
    return "failed" if bar.exit_code else bar.state


def _identity(bar: TimelineBar) -> tuple[str, str]:
    return bar.kind, bar.id


def _moved(rows: Sequence[TimelineRow], now: Mapping[tuple[str, str], int], index: int) -> int:
    """Return by how many lines the first bar at or below a row has moved; 0 if all of them were dropped.

    Args:
        rows: The rows before.
        now: The index of each bar now, by its identity.
        index: The row.
    """
    for at in range(index, len(rows)):
        item = rows[at].item
        if isinstance(item, TimelineBar) and _identity(item) in now:
            return now[_identity(item)] - at
    return 0


def _offset(seconds: float) -> str:
    """Return the time since the start of a session, short enough for its column."""
    shown = f"{seconds:.1f} s", duration(seconds * 1000).replace(" ", ""), f"{seconds / 60:.1f}min"
    return next((f"+{text}" for text in shown if len(text) < _OFFSET - 1), f"+{seconds / 3600:.0f} h")


def _lasted(seconds: float) -> str:
    """Return a duration, from 100 hours without its minutes, so that it fits into its column."""
    text = duration(seconds * 1000)
    return text if len(text) <= _DURATION else f"{seconds / 3600:,.0f} h"


def _title(session: str) -> str:
    """Return the agent of a session, or the session's id."""
    agent = Agent.of_session(session)
    return clean_line((session if agent is None else str(agent))[:_TITLE])
