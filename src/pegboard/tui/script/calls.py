"""The tree of calls of a script: live, and drawn line by line, so that ten thousand of them cost what is seen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.cells import set_cell_size as fitted
from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.timer import Timer

from pegboard.models import Progress, ToolResult
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count, duration, size
from pegboard.results.text import preview
from pegboard.tui.commands import Command, bindings
from pegboard.tui.result.markdown_lines import MarkedLines
from pegboard.tui.script.run import Node, ScriptRun
from pegboard.tui.widgets.line_view import Span

_FRAME_SECONDS: Final = 1 / 20
_TICK_SECONDS: Final = 0.1
_LOG_SHOWN: Final = 5
"""Lines of the marked call's log that are shown below it."""
_LEAST_ARGUMENTS: Final = 20
"""Cells for arguments, of which a fact that isn't the first leaves as many."""
_SAID: Final = 500
"""Characters of an error's message that are shown."""


@dataclass(frozen=True, slots=True)
class _More:
    """A line below the marked call."""

    text: str
    mark: str


class CallsTree(MarkedLines):
    """The script, and under it its calls in the order in which they began; follows them until one is marked."""

    PAGE = "Calls"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("calls.up", "up,k", "move(-1)", "Up", "Go to the call above."),
        Command("calls.down", "down,j", "move(1)", "Down", "Go to the call below."),
        Command("calls.page_up", "pageup", "page(-1)", "Page up", "Go one screenful up."),
        Command("calls.page_down", "pagedown", "page(1)", "Page down", "Go one screenful down."),
        Command("calls.first", "home,g", "edge(-1)", "First", "Go to the script itself."),
        Command("calls.last", "end,G", "edge(1)", "Last", "Go to the last call, and follow what comes."),
        Command("calls.failed", "f", "failed", "Next failed", "Go to the next call that failed.", footer=True),
        Command("calls.open", "enter", "want('open')", "Result", "Open the whole result of the marked call.", True),
        Command("calls.form", "o", "want('form')", "In the form", "Open the marked call in its tool's form.", True),
        Command("calls.talk", "a", "want('talk')", "To the chat", "Put call and result into the message.", True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = "CallsTree { padding: 0 0 0 1; }"
    ALLOW_SELECT = False

    cursor: var[Node | None] = var[Node | None](None, init=False)
    """The marked call; None as long as the end is followed."""

    @dataclass
    class Wanted(Message):
        """Something is to be done with a call."""

        node: Node
        what: str
        """`open` its result, `form`, `talk`."""

    def __init__(self) -> None:
        super().__init__()
        self._run: ScriptRun | None = None
        self._at = -1
        self._more: list[_More] = []
        self._following = True
        self._frame: asyncio.TimerHandle | None = None
        self._clock: Timer | None = None
        self.show_horizontal_scrollbar = False

    def on_mount(self) -> None:
        """Sets up the clock, which runs only while a script does."""
        self._clock = self.set_interval(_TICK_SECONDS, self._tick, pause=True)

    def on_unmount(self) -> None:
        """Draws nothing any more."""
        if self._frame is not None:
            self._frame.cancel()

    # What is shown

    def show(self, run: ScriptRun) -> None:
        """Shows another run; `renew` is told when it changes."""
        self._run = run
        self._following = True
        self.set_reactive(CallsTree.cursor, None)
        self.draw()
        if self._clock is not None:
            self._clock.resume()

    def renew(self) -> None:
        """Draws what has changed, with the next frame."""
        if self._frame is None and self.is_mounted:
            # Textual's timers are skipped for good where the machine is slower than their time for a moment.
            self._frame = asyncio.get_running_loop().call_later(_FRAME_SECONDS, self.call_next, self.draw)

    def draw(self) -> None:
        """Draws what has changed, now."""
        self._frame = None
        if not self.is_attached:  # the frame was due when the app ended
            return
        self._at = -1
        self._more = []
        if self._run is not None and self.cursor is not None:
            self._at = next(index for index, node in enumerate(self._run.rows) if node is self.cursor)
            self._more = [*_more(self.cursor)]
        if self._run is not None and self._run.calls:
            failed = f", {self._run.failed:,} failed" if self._run.failed else ""
            self.border_title = Content(f"Calls  {self._run.calls:,}{failed}")
        self._resize()
        if self.cursor is None and self._following:
            self.scroll_end(animate=False, immediate=True, x_axis=False)
        self.refresh()
        self.refresh_bindings()

    def _resize(self) -> None:
        """Takes over the number of rows as a layout would, but without laying out the whole screen."""
        size = Size(self.room, self.row_count)
        self.set_reactive(ScrollView.virtual_size, size)
        self._scroll_update(size)

    def _tick(self) -> None:
        if self._run is not None and self._run.is_over and self._clock is not None:
            self._clock.pause()
        self.renew()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follows the end when the user goes there, and no longer when they leave it."""
        super().watch_scroll_y(old_value, new_value)
        self._following = self.is_vertical_scroll_end

    def on_resize(self, event: events.Resize) -> None:
        """Fits the rows to the new width."""
        del event
        self.draw()

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return (len(self._run.rows) if self._run is not None else 0) + len(self._more)

    def row(self, index: int) -> tuple[str, Sequence[Span]]:
        """Gives a row: a call, or something about the marked one."""
        assert self._run is not None, "without a run there are no rows"
        node = self._node(index)
        if node is not None:
            return _row(node, self._run, self.room)
        more = self._more[index - self._at - 1]
        indent = "  " * min((self._run.rows[self._at].depth + 1), 8)
        text = f"{indent}│ {more.text}"
        text = text if cell_len(text) <= self.room else f"{fitted(text, self.room - 1)}…"
        return text, [(0, len(text), more.mark)]

    def row_style(self, index: int) -> str | None:
        """Lays the cursor under the marked call."""
        return "line-view--cursor" if self.cursor is not None and index == self._at else None

    def _node(self, index: int) -> Node | None:
        """Gives the call of a row, None for a row about the marked one."""
        assert self._run is not None, "without a run there are no rows"
        if self._at < 0 or index <= self._at:
            return self._run.rows[index]
        if index <= self._at + len(self._more):
            return None
        return self._run.rows[index - len(self._more)]

    # What is marked

    @property
    def _rows(self) -> list[Node]:
        return self._run.rows if self._run is not None else []

    def watch_cursor(self) -> None:
        """Shows the mark, and what there is to be said of the call."""
        self.draw()
        if self.cursor is not None:
            self.show_row(self._at + len(self._more))
            self.show_row(self._at)

    def on_focus(self) -> None:
        """Marks the last call if none is."""
        if self.cursor is None and self._rows and self._run is not None and self._run.is_over:
            self.cursor = self._rows[-1]

    def action_move(self, by: int) -> None:
        """Marks a call further up or down; down from the last one follows what comes."""
        rows = self._rows
        if not rows:
            return
        at = len(rows) if self.cursor is None else self._at
        self.cursor = rows[max(0, min(at + by, len(rows) - 1))]

    def action_page(self, by: int) -> None:
        """Marks a call a screenful further."""
        self.action_move(by * max(1, self.page - 1))

    def action_edge(self, by: int) -> None:
        """Marks the script, or follows what comes."""
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
        """Marks the next call that failed, from the marked one on, round and round."""
        rows = self._rows
        start = self._at + 1
        for node in (*rows[start:], *rows[:start]):
            if node.within is not None and node.result is not None and not node.result.ok:
                self.cursor = node
                return

    def on_click(self, event: events.Click) -> None:
        """Marks the call that was clicked; a second click opens its result."""
        offset = event.get_content_offset(self)
        index = -1 if offset is None else offset.y + self.scroll_offset.y
        if not 0 <= index < self.row_count:
            return
        node = self._node(index)
        if node is None or node is self.cursor:
            self.action_want("open")
        else:
            self.cursor = node

    # What is done with it

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers what can be done with the marked call."""
        if action == "failed":
            return self._run is not None and self._run.failed > 0
        if action != "want":
            return True
        node = self.cursor
        if node is None:
            return False
        return node.within is not None if parameters == ("form",) else node.result is not None

    def action_want(self, what: str) -> None:
        """Asks for something to be done with the marked call."""
        if self.cursor is not None and self.check_action("want", (what,)):
            self.post_message(self.Wanted(self.cursor, what))


def _row(node: Node, run: ScriptRun, room: int) -> tuple[str, Sequence[Span]]:
    """Gives a call in a row: how it is, its name, its arguments as far as there is room, and how it went."""
    sign, mark = _sign(node)
    name = "script" if node.within is None else clean_line(node.call.name)
    indent = "  " * min(node.depth, 8)
    left = f"{indent}{sign} {'∥ ' if node.is_beside else ''}"
    args = preview(node.call.args, room) if node.within is not None and node.call.args else ""
    said = [*_facts(node, run)]
    least = cell_len(left) + cell_len(name) + min(cell_len(args), _LEAST_ARGUMENTS) + 4
    while len(said) > 1 and least + cell_len(" · ".join(said)) > room:
        said.pop()
    facts = " · ".join(said)
    most = max(room - cell_len(left) - cell_len(facts) - 2, 4)
    if cell_len(name) > most:
        name = f"{fitted(name, most - 1).rstrip()}…"
    spans: list[Span] = [(len(indent), len(indent) + 1, mark), (len(indent) + 1, len(left), "muted")]
    spans.append((len(left), len(left) + len(name), "strong"))
    text = left + name
    space = room - cell_len(text) - cell_len(facts) - 4
    if args and space > 4:
        args = args if cell_len(args) <= space else f"{fitted(args, space - 1).rstrip()}…"
        spans.append((len(text), len(text) + 2 + len(args), "muted"))
        text += f"  {args}"
    text += " " * max(room - cell_len(text) - cell_len(facts), 1)
    spans.append((len(text), len(text) + len(facts), mark if mark != "ok" else "muted"))
    text += facts
    return (text if cell_len(text) <= room else fitted(text, max(room, 0))), spans


def _sign(node: Node) -> tuple[str, str]:
    if node.result is None:
        return "▶", "running"
    if node.within is None and node.result.ok and exit_code(node.result) != 0:
        return "✗", "error"
    if node.result.ok:
        return "✓", "ok"
    return ("⊘", "warning") if was_stopped(node.result) else ("✗", "error")


def _facts(node: Node, run: ScriptRun) -> Iterator[str]:
    """Says how it goes or went; the last of it is left out first."""
    result = node.result
    if result is None:
        done = f"{_progress(node.progress)} · " if node.progress is not None else ""
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
    """Gives the exit code of a script that has run; None where it hasn't."""
    code = result.data.get("exit_code") if isinstance(result.data, dict) else None
    return code if isinstance(code, int) else None


def was_stopped(result: ToolResult) -> bool:
    """Says whether somebody wanted a call not to go on."""
    return result.error is not None and result.error.detail in {"cancelled", "denied"}


def _more(node: Node) -> Iterator[_More]:
    """Gives what stands below the marked call: why it failed, how far it is, what it printed last."""
    if node.result is not None and node.result.error is not None:
        yield _More(clean_line(node.result.error.message[:_SAID]), "error")
    if node.progress is not None and node.progress.message:
        yield _More(f"{_progress(node.progress)} · {clean_line(node.progress.message[:_SAID])}", "running")
    shown = [*node.log][-_LOG_SHOWN:]
    if node.log_count > len(shown):
        yield _More(f"… {count(node.log_count - len(shown), 'earlier line')}", "muted")
    for line in shown:
        yield _More(f"{'! ' if line.stream == 'stderr' else ''}{line.text}", "muted")


def _progress(progress: Progress) -> str:
    return f"{progress.done:,g}" + (f" of {progress.total:,g}" if progress.total else "")
