"""Live tree of a script's calls. Rows outside the viewport are not rendered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.cells import cell_len, set_cell_size
from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.timer import Timer

from pegboard.models import ToolResult
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count, duration, share, size
from pegboard.results.text import preview
from pegboard.results.wrap import truncate
from pegboard.tui.commands import Command, bindings
from pegboard.tui.result.markdown_lines import MarkedLines
from pegboard.tui.script.run import CallNode, ScriptRun
from pegboard.tui.widgets.line_view import LineSpan

_FRAME_SECONDS: Final = 1 / 20
_TICK_SECONDS: Final = 0.1
_LOG_SHOWN: Final = 5
"""Log lines shown below the selected call."""
_LEAST_ARGUMENTS: Final = 20
"""Minimum width of the arguments, in cells; secondary facts are omitted first."""
_ERROR_CHARACTERS: Final = 500
"""Characters of an error message that are shown."""


@dataclass(frozen=True, slots=True)
class _DetailRow:
    """A row below the selected call."""

    text: str
    mark: str


class CallsTree(MarkedLines):
    """The script and its calls in starting order. Follows new calls until the user selects one."""

    PAGE = "Calls"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("script_calls.up", "up,k", "move(-1)", "Up", "Move to the call above."),
        Command("script_calls.down", "down,j", "move(1)", "Down", "Move to the call below."),
        Command("script_calls.page_up", "pageup", "page(-1)", "Page up", "Move up one page."),
        Command("script_calls.page_down", "pagedown", "page(1)", "Page down", "Move down one page."),
        Command("script_calls.first", "home,g", "edge(-1)", "First", "Move to the script."),
        Command("script_calls.last", "end,G", "edge(1)", "Last", "Move to the last call and follow new ones."),
        Command("script_calls.failed", "f", "failed", "Next failed", "Move to the next failed call.", footer=True),
        Command("script_calls.open", "enter", "request('open')", "Result", "Open the full result of the call.", True),
        Command("script_calls.form", "o", "request('form')", "Open in form", "Open the call in its tool's form.", True),
        Command(
            "script_calls.talk", "a", "request('talk')", "Add to chat", "Insert the call into the chat prompt.", True
        ),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = "CallsTree { padding: 0 0 0 1; }"
    ALLOW_SELECT = False

    cursor: var[CallNode | None] = var[CallNode | None](None, init=False)
    """The selected call; None while following new calls."""

    @dataclass
    class Requested(Message):
        """Request to act on a call."""

        node: CallNode
        action: str
        """`open`, `form` or `talk`."""

    def __init__(self) -> None:
        super().__init__()
        self._run: ScriptRun | None = None
        self._at = -1
        self._detail_rows: list[_DetailRow] = []
        self._following = True
        self._frame: asyncio.TimerHandle | None = None
        self._clock: Timer | None = None
        self.show_horizontal_scrollbar = False

    def on_mount(self) -> None:
        """Create the timer, paused until a script runs."""
        self._clock = self.set_interval(_TICK_SECONDS, self._tick, pause=True)

    def on_unmount(self) -> None:
        """Cancel the scheduled frame."""
        if self._frame is not None:
            self._frame.cancel()

    # Drawing

    def show(self, run: ScriptRun) -> None:
        """Show another run. Call `renew` when it changes."""
        self._run = run
        self._following = True
        self.set_reactive(CallsTree.cursor, None)
        self.draw()
        if self._clock is not None:
            self._clock.resume()

    def renew(self) -> None:
        """Schedule drawing for the next frame."""
        if self._frame is None and self.is_mounted:
            # a Textual timer is dropped if the machine is too slow for one interval
            self._frame = asyncio.get_running_loop().call_later(_FRAME_SECONDS, self.call_next, self.draw)

    def draw(self) -> None:
        """Draw now."""
        self._frame = None
        if not self.is_attached:  # the frame was due when the app ended
            return
        self._at = -1
        self._detail_rows = []
        if self._run is not None and self.cursor is not None:
            self._at = next(index for index, node in enumerate(self._run.rows) if node is self.cursor)
            self._detail_rows = [*_details(self.cursor)]
        title = "Calls"
        if self._run is not None and self._run.calls:
            title += f"  {self._run.calls:,}" + (f", {self._run.failed:,} failed" if self._run.failed else "")
        self.border_title = Content(title)
        self.resize_rows()
        if self.cursor is None and self._following:
            self.scroll_end(animate=False, immediate=True, x_axis=False)
        self.refresh()
        self.refresh_bindings()

    def _tick(self) -> None:
        if self._run is not None and self._run.is_over and self._clock is not None:
            self._clock.pause()
        self.renew()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the end while it is in the viewport."""
        super().watch_scroll_y(old_value, new_value)
        self._following = self.is_vertical_scroll_end

    def on_resize(self, event: events.Resize) -> None:
        """Fit the rows to the new width."""
        del event
        self.draw()

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return (len(self._run.rows) if self._run is not None else 0) + len(self._detail_rows)

    def row(self, index: int) -> tuple[str, Sequence[LineSpan]]:
        """Return the text and spans of a row: a call, or a detail of the selected one."""
        assert self._run is not None, "rows require a run"
        node = self._node(index)
        if node is not None:
            return _row(node, self._run, self.row_width)
        more = self._detail_rows[index - self._at - 1]
        indent = "  " * min((self._run.rows[self._at].depth + 1), 8)
        text = f"{indent}│ {more.text}"
        text = truncate(text, self.row_width)
        return text, [(0, len(text), more.mark)]

    def row_style(self, index: int) -> str | None:
        """Return the component class of the selected call's row."""
        return "line-view--cursor" if self.cursor is not None and index == self._at else None

    def _node(self, index: int) -> CallNode | None:
        """Return the call of a row, or None for a detail row."""
        assert self._run is not None, "rows require a run"
        if self._at < 0 or index <= self._at:
            return self._run.rows[index]
        if index <= self._at + len(self._detail_rows):
            return None
        return self._run.rows[index - len(self._detail_rows)]

    # Selection

    @property
    def _rows(self) -> list[CallNode]:
        return self._run.rows if self._run is not None else []

    def watch_cursor(self) -> None:
        """Show the selection and the details of the call."""
        self.draw()
        if self.cursor is not None:
            self.show_row(self._at + len(self._detail_rows))
            self.show_row(self._at)

    def on_focus(self) -> None:
        """Select the last call of a finished run if none is selected."""
        if self.cursor is None and self._rows and self._run is not None and self._run.is_over:
            self.cursor = self._rows[-1]

    def action_move(self, by: int) -> None:
        """Move the selection up or down by a number of calls."""
        rows = self._rows
        if not rows:
            return
        at = len(rows) if self.cursor is None else self._at
        self.cursor = rows[max(0, min(at + by, len(rows) - 1))]

    def action_page(self, by: int) -> None:
        """Move the selection by a page."""
        self.action_move(by * max(1, self.page - 1))

    def action_edge(self, by: int) -> None:
        """Select the script; at the end, follow new calls or select the last one."""
        if not self._rows:
            return
        if by < 0:
            self.cursor = self._rows[0]
        elif self._run is not None and not self._run.is_over:
            self._following = True
            self.cursor = None
        else:
            self.cursor = self._rows[-1]

    def action_failed(self) -> None:
        """Select the next failed call, wrapping around at the end."""
        rows = self._rows
        start = self._at + 1
        for node in (*rows[start:], *rows[:start]):
            if node.has_failed:
                self.cursor = node
                return

    def on_click(self, event: events.Click) -> None:
        """Select the clicked call; open its result if it is already selected."""
        offset = event.get_content_offset(self)
        index = -1 if offset is None else offset.y + self.scroll_offset.y
        if not 0 <= index < self.row_count:
            return
        node = self._node(index)
        if node is None or node is self.cursor:
            self.action_request("open")
        else:
            self.cursor = node

    # Actions on the selected call

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the actions that apply to the selected call."""
        if action == "failed":
            return self._run is not None and self._run.failed > 0
        if action != "request":
            return True
        node = self.cursor
        if node is None:
            return False
        return node.within is not None if parameters == ("form",) else node.result is not None

    def action_request(self, action: str) -> None:
        """Request an action on the selected call."""
        if self.cursor is not None and self.check_action("request", (action,)):
            self.post_message(self.Requested(self.cursor, action))


def _row(node: CallNode, run: ScriptRun, width: int) -> tuple[str, Sequence[LineSpan]]:
    """Return the row of a call: sign, name, arguments that fit, and status at the right."""
    sign, mark = _sign(node)
    name = "script" if node.within is None else clean_line(node.call.name)
    indent = "  " * min(node.depth, 8)
    left = f"{indent}{sign} {'∥ ' if node.is_beside else ''}"
    args = preview(node.call.args, width) if node.within is not None and node.call.args else ""
    texts = [*_facts(node, run)]
    least = cell_len(left) + cell_len(name) + min(cell_len(args), _LEAST_ARGUMENTS) + 4
    while len(texts) > 1 and least + cell_len(" · ".join(texts)) > width:
        texts.pop()
    facts = " · ".join(texts)
    most = max(width - cell_len(left) - cell_len(facts) - 2, 4)
    name = truncate(name, most)
    spans: list[LineSpan] = [(len(indent), len(indent) + 1, mark), (len(indent) + 1, len(left), "muted")]
    spans.append((len(left), len(left) + len(name), "strong"))
    text = left + name
    space = width - cell_len(text) - cell_len(facts) - 4
    if args and space > 4:
        args = truncate(args, space)
        spans.append((len(text), len(text) + 2 + len(args), "muted"))
        text += f"  {args}"
    text += " " * max(width - cell_len(text) - cell_len(facts), 1)
    spans.append((len(text), len(text) + len(facts), mark if mark != "ok" else "muted"))
    text += facts
    return (text if cell_len(text) <= width else set_cell_size(text, max(width, 0))), spans


def _sign(node: CallNode) -> tuple[str, str]:
    if node.result is None:
        return "▶", "running"
    if node.within is None and node.result.ok and exit_code(node.result) != 0:
        return "✗", "error"
    if node.result.ok:
        return "✓", "ok"
    return ("⊘", "warning") if node.was_stopped else ("✗", "error")


def _facts(node: CallNode, run: ScriptRun) -> Iterator[str]:
    """Yield status texts of a call, most important first."""
    result = node.result
    if result is None:
        done = f"{share(node.progress.done, node.progress.total)} · " if node.progress is not None else ""
        yield f"{done}{node.seconds:.1f} s"
    else:
        if node.within is None and result.ok:
            yield f"exit {exit_code(result)}"
        if result.error is not None:
            yield clean_line(result.error.detail or result.error.code)
        if result.meta.cached:
            yield "cached"
        elif result.meta.duration_ms:
            yield duration(result.meta.duration_ms)
        if result.meta.truncated is not None:
            yield "truncated"
        if result.meta.size and node.within is not None and result.ok:
            yield size(result.meta.size)
    if node.within is None and run.calls:
        yield count(run.calls, "call") + (f", {run.failed:,} failed" if run.failed else "")


def exit_code(result: ToolResult) -> int | None:
    """Return the exit code of a script's result, or None if it didn't run to its end."""
    code = result.data.get("exit_code") if isinstance(result.data, dict) else None
    return code if isinstance(code, int) else None


def _details(node: CallNode) -> Iterator[_DetailRow]:
    """Yield the rows below the selected call: error, progress, last log lines."""
    if node.result is not None and node.result.error is not None:
        yield _DetailRow(clean_line(node.result.error.message[:_ERROR_CHARACTERS]), "error")
    if node.progress is not None and node.progress.message:
        message = clean_line(node.progress.message[:_ERROR_CHARACTERS])
        yield _DetailRow(f"{share(node.progress.done, node.progress.total)} · {message}", "running")
    shown = [*node.log][-_LOG_SHOWN:]
    if node.log_count > len(shown):
        yield _DetailRow(f"… {count(node.log_count - len(shown), 'earlier line')}", "muted")
    for line in shown:
        yield _DetailRow(f"{'! ' if line.stream == 'stderr' else ''}{line.text}", "muted")
