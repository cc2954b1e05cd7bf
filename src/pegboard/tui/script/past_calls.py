"""Dialog to insert recorded calls into a script."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.binding import BindingType
from textual.content import Content

from pegboard.models import CallRecord
from pegboard.results.clean import clean_line
from pegboard.results.sizes import age, count, duration, local_time
from pegboard.results.text import preview
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.dialog import ListDialog
from pegboard.tui.widgets.pick_list import PickLine, PickList

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_MOST: Final = 1_000
"""Limit of listed calls."""
_ARGUMENTS, _ALL_ARGUMENTS = 60, 300
"""Characters of arguments in the list and for the highlighted call."""


class PastCallsScreen(ListDialog[str | None]):
    """Dialog that lists recorded calls, newest first, and returns the selected ones as lines of a script.

    Args:
        runtime: Provides the history.
    """

    PAGE = "Past calls"
    FILTER_HINT = "type to filter; space selects several"
    HAS_PREVIEW = False

    DEFAULT_CSS = """
    PastCallsScreen > #box {
        width: 104; height: 28;
        #about { height: 3; text-wrap: wrap; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("past_calls.tick", "space", "tick", "Select", "Select or deselect the highlighted call.", True),
        Command("past_calls.close", "escape", "close", "Close", "Close and return to the editor.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime) -> None:
        tick_list = PickList(sign=lambda index: "☑ " if index in self._ticked else "☐ ", own_keys=" ")
        super().__init__("Insert past calls", pick_list=tick_list)
        self._runtime = runtime
        self._records: Sequence[CallRecord] = ()
        self._ticked: set[int] = set()

    def on_mount(self) -> None:
        """Load the history."""
        self.list.empty = "Loading…"
        self._read()

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        self._records = await asyncio.to_thread(self._runtime.history.records, limit=_MOST)
        self.list.empty = "No matching calls." if self._records else "No calls recorded yet."
        now = datetime.now(UTC)
        self.list.show([_line(now, record) for record in self._records])

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        """Return the selected calls, or the chosen one if none is selected."""
        event.stop()
        self._choose(sorted(self._ticked) or [event.index])

    @work(exclusive=True, group="choose")
    async def _choose(self, chosen: list[int]) -> None:
        records = [self._records[index] for index in chosen]
        self.dismiss(await asyncio.to_thread(self._runtime.scripts.from_records, records))

    def action_tick(self) -> None:
        """Select or deselect the highlighted call and move to the next one."""
        if self.list.marked is not None:
            self._ticked ^= {self.list.marked}
            self.list.action_move(1)
            self.list.refresh()
            self.query_one("#box").border_subtitle = Content(f"{len(self._ticked):,} selected" if self._ticked else "")

    @on(PickList.Marked)
    def _marked(self, event: PickList.Marked) -> None:
        event.stop()
        if event.index is None:
            self._about.update("")
            return
        record = self._records[event.index]
        at = f"{local_time(record.at)} · {record.source} · {duration(record.duration_ms)}"
        why = f"  ✗ {clean_line(record.error.message)}" if record.error is not None else ""
        text = Content.assemble((at, "$text-muted"), (why, "$text-error"), "\n", preview(record.args, _ALL_ARGUMENTS))
        self._about.update(text)


def _line(now: datetime, record: CallRecord) -> PickLine:
    name = clean_line(record.tool)
    if isinstance(commands := record.args.get("commands"), str) and record.tool == "script.run":
        text = f"{name}  {count(len(commands.splitlines()), 'line')}: {clean_line(commands[:_ARGUMENTS])}"
    else:
        text = f"{name}  {preview(record.args, _ARGUMENTS)}" if record.args else name
    return PickLine(text, f"{'' if record.ok else '✗ '}{age(now, record.at)}")
