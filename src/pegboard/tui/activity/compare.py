"""A dialog that compares two calls: arguments and results, by path and by line."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from pegboard.errors import StoreError, explained
from pegboard.models import HistoryQuery, RecordedCall
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count, duration, local_time, size
from pegboard.tui.activity.call_list import sign_of
from pegboard.tui.activity.differences import DifferenceLayout, DifferenceSection, laid_out, sections_of
from pegboard.tui.activity.rows import CallRow
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.line_view import LineSpan, LineView

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_TWO_COLUMNS: Final = 120
"""Columns of the terminal from which both calls are side by side."""
_LOOKED_AT: Final = 20


async def compare(page: Screen[None], runtime: Runtime, calls: Sequence[RecordedCall]) -> None:
    """Compare two selected calls, or one and the call before of the same tool.

    Args:
        page: Screen that shows the comparison.
        runtime: Runtime with the history.
        calls: The selected calls, the oldest first.
    """
    try:
        found = await _calls_to_compare(runtime, calls)
    except StoreError as error:
        page.notify(clean_line(explained(error, "The history can't be read")), severity="error", markup=False)
        return
    if isinstance(found, str):
        page.notify(found, severity="warning", markup=False)
    else:
        await page.app.push_screen_wait(CompareScreen(runtime, *found))


async def _calls_to_compare(runtime: Runtime, calls: Sequence[RecordedCall]) -> tuple[RecordedCall, RecordedCall] | str:
    """Return the two calls, or why there aren't two."""
    if any(call.is_turn for call in calls):
        return "Turns can't be compared. Select calls."
    if len(calls) == 2:
        return calls[0], calls[1]
    if len(calls) > 2:
        return f"{count(len(calls), 'call')} are selected. Select two to compare them."
    after = calls[0]
    query = HistoryQuery(tools=(after.tool,))
    page = await asyncio.to_thread(runtime.activity.page, query, before=after.position, limit=_LOOKED_AT)
    before = next((call for call in page.calls if call.tool == after.tool), None)
    if before is None:
        return f"{clean_line(after.tool)} has no earlier call. Select two calls with space to compare them."
    return before, after


class DifferenceView(LineView):
    """The rows of a comparison."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "line-view--removed",
        "line-view--added",
        "line-view--removed-part",
        "line-view--added-part",
        "line-view--path",
        "line-view--section",
    }
    DEFAULT_CSS = """
    DifferenceView {
        padding: 0 1;
        & > .line-view--removed { color: $text-error; }
        & > .line-view--added { color: $text-success; }
        & > .line-view--removed-part { color: $text-error; text-style: bold underline; }
        & > .line-view--added-part { color: $text-success; text-style: bold underline; }
        & > .line-view--path { color: $text-primary; }
        & > .line-view--section { color: $foreground; background: $panel; text-style: bold; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.layout_of_rows = DifferenceLayout()
        """The rows."""
        self.current = -1
        """Index of the current difference; -1 before the first."""

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return len(self.layout_of_rows.rows)

    def row(self, index: int) -> tuple[str, Sequence[LineSpan]]:
        """Return the text of a row and its spans."""
        row = self.layout_of_rows.rows[index]
        return row.text, row.spans

    def row_style(self, index: int) -> str | None:
        """Return the style of titles, and of the current difference."""
        starts = self.layout_of_rows.starts
        if 0 <= self.current < len(starts) and starts[self.current] == index:
            return "line-view--cursor"
        return "line-view--section" if self.layout_of_rows.rows[index].kind == "section" else None

    def show(self, layout: DifferenceLayout) -> None:
        """Show other rows, from the current difference."""
        self.layout_of_rows = layout
        self.rows_changed()
        if self.current >= 0:
            self._scroll_to_current()

    def step(self, steps: int) -> bool:
        """Go to the next or previous difference; return whether there is one."""
        index = self.current + steps
        if not 0 <= index < len(self.layout_of_rows.starts):
            return False
        self.current = index
        self._scroll_to_current()
        self.refresh()
        return True

    def _scroll_to_current(self) -> None:
        self.scroll_to(y=self.layout_of_rows.starts[self.current], animate=False, immediate=True)


class CompareScreen(Dialog[None]):
    """Arguments and results of two calls, in two columns if the terminal is wide enough.

    Args:
        runtime: Runtime with the history.
        before: The older call.
        after: The newer call.
    """

    PAGE = "Compare"
    AUTO_FOCUS = "DifferenceView"

    DEFAULT_CSS = """
    CompareScreen {
        & > #box {
            width: 100%; height: 100%; max-width: 100%; max-height: 100%;
            #calls { height: 2; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
        }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("compare.next", "n", "step(1)", "Next", "Go to the next difference.", footer=True),
        Command("compare.previous", "N,p", "step(-1)", "Previous", "Go to the previous difference.", footer=True),
        Command("compare.close", "escape,q", "close", "Close", "Close the comparison.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, before: RecordedCall, after: RecordedCall) -> None:
        same = before.tool == after.tool
        tools = clean_line(before.tool if same else f"{before.tool} with {after.tool}")
        super().__init__(f"Compare {'two calls of ' if same else ''}{tools}"[:200])
        self._runtime, self._before, self._after = runtime, before, after
        self._view = DifferenceView()
        self._sections: Sequence[DifferenceSection] | None = None

    def compose_body(self) -> ComposeResult:
        """Compose the two calls and their differences."""
        yield Static(Content("\n").join([_described("-", self._before), _described("+", self._after)]), id="calls")
        yield self._view

    def on_mount(self) -> None:
        """Start to compare."""
        self._show_state("comparing…")

    def on_resize(self) -> None:
        """Arrange the differences for the new size."""
        self.call_after_refresh(self._lay_out)

    @work(exclusive=True, group="layout")
    async def _lay_out(self) -> None:
        """Compare the calls if that isn't done yet, and arrange the differences, both in a thread."""
        if self._sections is None:
            try:
                self._sections = await asyncio.to_thread(self._compare)
            except StoreError as error:
                self._show_state(clean_line(explained(error, "The history can't be read")))
                return
        is_first = not self._view.row_count
        has_two_columns = self.size.width >= _TWO_COLUMNS
        width = max(self._view.row_width, 20)
        layout = await asyncio.to_thread(laid_out, self._sections, width, has_two_columns=has_two_columns)
        self._view.show(layout)
        if is_first and layout.starts:
            self._view.current = 0
            self._view.refresh()
        self._show_state()

    def _compare(self) -> Sequence[DifferenceSection]:
        return sections_of(self._runtime.activity.diff(self._before, self._after))

    @property
    def settled(self) -> bool:
        """Whether the differences are shown."""
        return self._view.row_count > 0

    def action_step(self, steps: int) -> None:
        """Go to another difference."""
        if not self._view.step(steps):
            self.notify("No difference follows." if steps > 0 else "This is the first difference.")
        self._show_state()

    def _show_state(self, text: str = "") -> None:
        total = len(self._view.layout_of_rows.starts)
        if not text:
            text = f"difference {self._view.current + 1:,} of {total:,}" if total else "no difference"
        self.query_one("#box").border_subtitle = Content(text)


def _described(sign: str, call: RecordedCall) -> Content:
    row = CallRow.of(call)
    symbol, style = sign_of(row)
    took = f"{duration(call.duration_ms)} · " if call.duration_ms else ""
    facts = f"{local_time(call.at)} · {call.source} · {took}"
    color = "$text-error" if sign == "-" else "$text-success"
    return Content.assemble(
        (f"{sign} ", color),
        (f"{symbol} {row.reason or row.state}", style),
        f"  {facts}{size(call.size)} · {clean_line(call.id)[:12]}",
    )
