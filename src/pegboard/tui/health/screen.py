"""The place that says what the tools need, what of it is missing, and how to get it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.getters import query_one
from textual.reactive import reactive
from textual.widget import Widget

from pegboard.models import Location, Problem, Thing, ToolSpec
from pegboard.results.sizes import count
from pegboard.tui.commands import Command, bindings
from pegboard.tui.health.health_list import LEGEND, HealthList
from pegboard.tui.health.remedy import RemedyPane, remedy
from pegboard.tui.health.report import Key, Needs, ProblemLine, Report, ThingLine, ToolLine, by_requirement, by_tool
from pegboard.tui.messages import Copy, OpenTool
from pegboard.tui.shell.footer import KeysLine
from pegboard.tui.shell.header import HeaderLine
from pegboard.tui.shell.page import PageScreen
from pegboard.tui.shell.too_small import TooSmall
from pegboard.tui.state.health_checks import HealthChecks, HealthState
from pegboard.tui.state.tool_scan import ToolScan
from pegboard.tui.widgets.filter_line import FilterLine

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_NOTHING_NEEDED = "No tool needs anything: no program, no library, no secret."


class HealthScreen(PageScreen):
    """A report over everything that the tools need, beside the details of the marked line.

    Args:
        runtime: For the settings.
        checks: What looks for things.
    """

    PAGE = "Health"
    LEGEND = LEGEND
    AUTO_FOCUS = "HealthList"
    ALLOW_IN_MAXIMIZED_VIEW = "HeaderLine, KeysLine"

    DEFAULT_CSS = """
    HealthScreen {
        #body { height: 1fr; }
        #report, RemedyPane {
            border: round $border-blurred;
            border-title-color: $text-muted;
            &:focus-within { border: round $border; border-title-color: $text-primary; border-title-style: bold; }
        }
        #report { width: 3fr; }
        RemedyPane { width: 2fr; }
        &.-narrow #body, &.-tiny #body { layout: vertical; }
        &.-narrow #report, &.-narrow RemedyPane {
            width: 1fr;
            border: none;
            border-top: solid $border-blurred;
            &:focus-within { border: none; border-top: solid $border; }
        }
        &.-narrow #report { height: 1fr; }
        &.-narrow RemedyPane { height: 1fr; }
        &.-narrow #needy { margin-top: 0; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("health.recheck", "ctrl+r", "recheck", "Recheck", "Look for the marked thing again.", footer=True),
        Command("health.recheck_all", "ctrl+a", "recheck_all", "Recheck all", "Look for everything again.", True),
        Command("health.view", "ctrl+t", "view", "Other view", "List by tool, or by what is needed.", footer=True),
        Command("health.open", "enter", "open", "Open", "Go to what is marked: tool, tools, or file."),
        Command("health.copy", "ctrl+y", "copy", "Copy fix", "Copy how to get what is missing.", footer=True),
        Command("health.source", "f4", "source", "Source", "Open the file of the marked pack in your editor."),
        Command("health.back", "escape", "back", "Back", "Go back to the report."),
        Command(
            "health.maximise", "f10", "maximise", "Maximise", "Give the focused pane the whole screen; esc restores."
        ),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    view_by_tool: reactive[bool] = reactive(False, init=False)
    """Whether the report lists tools, rather than each thing once."""

    _list = query_one(HealthList)
    _filter = query_one(FilterLine)
    _report = query_one("#report", Vertical)
    _remedy = query_one(RemedyPane)

    def __init__(self, runtime: Runtime, checks: HealthChecks) -> None:
        super().__init__()
        self._runtime = runtime
        self._checks = checks
        self._needs = Needs.of(ToolScan().catalogue)
        self._wall = ToolScan()
        self._known = HealthState()
        self._ranks: dict[Key, int] = {}
        """Where lines stand, as long as the report isn't ordered anew."""
        self._title = Content("")
        self._is_old = False
        self._is_writing = False

    def compose(self) -> ComposeResult:
        """The report and the details."""
        vim_keys = self._runtime.settings.ui.vim_keys
        yield HeaderLine("health")
        with Horizontal(id="body"):
            with Vertical(id="report"):
                yield FilterLine("/ to filter" if vim_keys else "type to filter")
                yield HealthList(vim_keys=vim_keys)
            yield RemedyPane()
        yield TooSmall()
        yield KeysLine()

    def on_mount(self) -> None:
        """Follows what is found."""
        self.watch(self.app, "tool_scan", self._take_wall)
        self.watch(self.app, "health", self._take_known)

    def on_screen_resume(self) -> None:
        """Orders the report anew: what isn't well comes first. The mark stays where it was left."""
        self._order_anew()

    # What is known

    def _take_wall(self, wall: ToolScan) -> None:
        self._wall = wall
        # A worker that were given the wall would be named after it: Textual would write ten thousand tools down.
        self._read_needs()

    @work(exclusive=True, group="needs")
    async def _read_needs(self) -> None:
        """Takes over what the last scan found."""
        self._needs = await asyncio.to_thread(Needs.of, self._wall.catalogue)
        self._renew()

    def _take_known(self, known: HealthState) -> None:
        self._known = known
        self._renew()

    def _renew(self) -> None:
        """Shows the report as it is now, as soon as it is written."""
        self._is_old = True
        if not self._is_writing:
            self._write()

    @work(group="write")
    async def _write(self) -> None:
        """Writes the report beside the loop, since thousands of tools may need something, until none is newer."""
        self._is_writing = True
        try:
            while self._is_old:
                self._is_old = False
                write = by_tool if self.view_by_tool else by_requirement
                self._show(await asyncio.to_thread(write, self._needs, self._known, self._ranks))
        finally:
            self._is_writing = False

    def _show(self, report: Report) -> None:
        self._list.empty = self._why_empty()
        self._list.renew(report)
        title = "By tool" if self.view_by_tool else "Requirements"
        shown = Content.assemble(title, self._summary())
        if not shown.is_same(self._title):
            self._title = shown
            self._report.border_title = shown

    def _order_anew(self) -> None:
        self._ranks = {}
        self._renew()

    def _why_empty(self) -> str:
        if self._list.sought.strip() and (self._needs.tools or self._needs.problems):
            return "Nothing fits."
        if self._wall.scanning or not self._wall.catalogue.entries:
            return self._wall.empty
        return _NOTHING_NEEDED

    def _summary(self) -> Content:
        """Says how many things there are and how many aren't well."""
        total = len(self._needs.things)
        if not total:
            return Content("")
        if self._known.looking or not self._known.is_complete:
            return Content.styled(f" · checking… {total - len(self._known.looking):,} of {total:,}", "not bold")
        if not self._known.unwell:
            return Content.styled(f" · ✓ all there: {count(total, 'thing')}", "$text-success not bold")
        return Content.styled(f" · {self._known.unwell:,} of {count(total, 'thing')} not ok", "$text-warning not bold")

    # What the user does

    @on(HealthList.Marked)
    def _marked(self, event: HealthList.Marked) -> None:
        event.stop()
        self._remedy.line = self._list.line
        self.refresh_bindings()

    @on(HealthList.Filtered)
    def _filtered(self, event: HealthList.Filtered) -> None:
        event.stop()
        self._list.empty = self._why_empty()
        self._filter.show(event.query, f"{event.found:,} of {event.total:,}", typing=self._list.typing)

    @on(HealthList.Chosen)
    def _chosen(self, event: HealthList.Chosen) -> None:
        event.stop()
        self.action_open()

    def action_open(self) -> None:
        """Goes to the tool or the file that is marked, or to the tools that need what is marked."""
        match self._list.line:
            case ThingLine(tool=""):
                self._remedy.focus_tools()
            case ThingLine(tool=tool):
                self.post_message(OpenTool(tool))
            case ToolLine(spec=spec):
                self.post_message(OpenTool(spec.name))
            case ProblemLine():
                self.action_source()

    def action_view(self) -> None:
        """Lists by tool, or by what is needed."""
        self.view_by_tool = not self.view_by_tool

    def watch_view_by_tool(self) -> None:
        """Lists the other way, from the top."""
        self._list.start_over()
        self._order_anew()

    def action_recheck(self) -> None:
        """Looks for the marked thing again, or for all that the marked tool needs."""
        match self._list.line:
            case ThingLine(facts=facts):
                self._look_again([facts.thing])
            case ToolLine(things=things):
                self._look_again([line.facts.thing for line in things])
            case _:
                self.notify("Nothing is marked that could be looked for.", severity="warning")

    def action_recheck_all(self) -> None:
        """Looks for everything again."""
        self._look_again(None)

    def _look_again(self, things: Collection[Thing] | None) -> None:
        # The app's own worker: it goes on whatever becomes of this screen.
        self.app.run_worker(self._checks.look_again(things), group="checks")

    def action_copy(self) -> None:
        """Copies how to get what is missing."""
        text = remedy(self._list.line)
        if text:
            self.post_message(Copy(text))
        else:
            self.notify("There is nothing to mend here.")

    @work(exclusive=True, group="editor")
    async def action_source(self) -> None:
        """Opens the file of the marked pack or tool, at the line."""
        from pegboard.tui.widgets.external_editor import open_in_editor

        match self._list.line:
            case ProblemLine(problem=Problem(file=str(file), line=line)):
                await open_in_editor(self.app, file, line)
            case ToolLine(spec=ToolSpec(location=Location(file=str(file), line=line))):
                await open_in_editor(self.app, file, line)
            case _:
                self.notify("It has no file.", severity="warning")

    def action_back(self) -> None:
        """Goes back to the report."""
        self._list.focus()

    @property
    def panes(self) -> Sequence[Widget]:
        """What may have the whole screen."""
        return (self._report, self._remedy)
