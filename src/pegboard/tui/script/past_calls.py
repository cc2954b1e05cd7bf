"""Calls of the record, to become lines of a script."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from pegboard.errors import StoreError
from pegboard.models import CallRecord
from pegboard.results.clean import clean_line
from pegboard.results.sizes import age, count, duration
from pegboard.results.text import preview
from pegboard.tui.commands import Command, bindings
from pegboard.tui.shell.footer import KeysLine
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.filter_line import FilterLine
from pegboard.tui.widgets.pick_list import PickLine, PickList

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_MOST: Final = 1_000
"""Calls that are listed."""
_ARGUMENTS, _ALL_ARGUMENTS = 60, 300
"""Characters of arguments in the list, and of the marked call."""


class PastCallsScreen(Dialog[str | None]):
    """Lists the last calls, newest first; closes with those that are ticked, or the marked one, as lines of a script.

    Args:
        runtime: Who keeps the record.
    """

    PAGE = "Past calls"
    AUTO_FOCUS = "PickList"

    DEFAULT_CSS = """
    PastCallsScreen {
        align: center middle;
        background: $background 60%;
        #box {
            width: 104; max-width: 94%; height: 28; max-height: 90%; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            border-subtitle-color: $text-muted;
            #about { height: 3; padding: 0 1; background: $panel; }
        }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("past_calls.tick", "space", "tick", "Tick", "Take the marked call into the script, or not.", True),
        Command("past_calls.close", "escape", "close", "Close", "Go back to the editor.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self._runtime = runtime
        self._records: Sequence[CallRecord] = ()
        self._ticked: set[int] = set()
        self._list = PickList(sign=lambda index: "☑ " if index in self._ticked else "☐ ", own_keys=" ")
        self._about = Static(id="about")

    def compose(self) -> ComposeResult:
        """The list over the arguments of the marked call."""
        with Vertical(id="box") as box:
            box.border_title = "Past calls as lines of the script"
            yield FilterLine("type to filter; space ticks several")
            yield self._list
            yield self._about
            yield KeysLine()

    def on_mount(self) -> None:
        """Reads the record."""
        self._list.empty = "Reading…"
        self._read()

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        try:
            self._records = await asyncio.to_thread(self._runtime.history.records, limit=_MOST)
        except StoreError as error:
            self.notify(clean_line(str(error)), severity="error", markup=False)
        self._list.empty = "No call fits." if self._records else "No tool was called yet."
        now = datetime.now(UTC)
        self._list.show([_line(now, record) for record in self._records])

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        """Closes with the calls that are ticked; without any, with the chosen one."""
        event.stop()
        self._take(sorted(self._ticked) or [event.index])

    @work(exclusive=True, group="take")
    async def _take(self, chosen: list[int]) -> None:
        records = [self._records[index] for index in chosen]
        self.dismiss(await asyncio.to_thread(self._runtime.scripts.from_records, records))

    def action_tick(self) -> None:
        """Takes the marked call into the script, or no longer, and goes on to the next one."""
        if self._list.marked is not None:
            self._ticked ^= {self._list.marked}
            self._list.action_move(1)
            self._list.refresh()
            self.query_one("#box").border_subtitle = Content(f"{len(self._ticked):,} ticked" if self._ticked else "")

    def action_close(self) -> None:
        """Closes without a call."""
        self.dismiss(None)

    @on(PickList.Filtered)
    def _filtered(self, event: PickList.Filtered) -> None:
        event.stop()
        self.query_one(FilterLine).show(event.query, f"{event.found:,} of {event.total:,}")

    @on(PickList.Marked)
    def _marked(self, event: PickList.Marked) -> None:
        event.stop()
        if event.index is None:
            self._about.update("")
            return
        record = self._records[event.index]
        at = f"{record.at.astimezone():%Y-%m-%d %H:%M:%S} · {record.source} · {duration(record.duration_ms)}"
        why = f"  ✗ {clean_line(record.error.message)}" if record.error is not None else ""
        said = Content.assemble((at, "$text-muted"), (why, "$text-error"), "\n", preview(record.args, _ALL_ARGUMENTS))
        self._about.update(said)


def _line(now: datetime, record: CallRecord) -> PickLine:
    name = clean_line(record.tool)
    if isinstance(commands := record.args.get("commands"), str) and record.tool == "script.run":
        said = f"{name}  {count(len(commands.splitlines()), 'line')}: {clean_line(commands[:_ARGUMENTS])}"
    else:
        said = f"{name}  {preview(record.args, _ARGUMENTS)}" if record.args else name
    return PickLine(said, f"{'' if record.ok else '✗ '}{age(now, record.at)}")
