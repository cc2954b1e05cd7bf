"""The Health page: requirements of the tools, their states and remedies."""

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

from pegboard.models import Location, Problem, RequirementKey, ToolSpec
from pegboard.tui.commands import Command, bindings
from pegboard.tui.health.health_list import LEGEND, HealthList
from pegboard.tui.health.remedy import RemedyPane, remedy
from pegboard.tui.health.report import (
    HealthReport,
    Key,
    ProblemLine,
    RequirementLine,
    Requirements,
    ServerLine,
    ToolLine,
    by_requirement,
    by_tool,
)
from pegboard.tui.messages import Copy, OpenServer, OpenTool
from pegboard.tui.shell.header import HeaderLine
from pegboard.tui.shell.page import PageScreen
from pegboard.tui.shell.too_small import TooSmall
from pegboard.tui.state.health_checks import HealthChecks, HealthState
from pegboard.tui.state.tool_scan import ToolScan
from pegboard.tui.widgets.filter_line import FilterLine
from pegboard.tui.widgets.keys_line import KeysLine

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_NOTHING_NEEDED = "No tool requires a program, a library, a secret or a server."


class HealthScreen(PageScreen):
    """Report on all requirements, beside the details of the selected line.

    Args:
        runtime: Runtime with the settings.
        checks: The checks of the requirements.
    """

    PAGE = "Health"
    LEGEND = LEGEND
    AUTO_FOCUS = "HealthList"

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
        &.-narrow #requiring { margin-top: 0; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "health.recheck",
            "ctrl+r",
            "recheck",
            "Recheck",
            "Check the selected requirement again.",
            footer=True,
            meaning="Run",
        ),
        Command(
            "health.recheck_all",
            "alt+r",
            "recheck_all",
            "Recheck all",
            "Check every requirement again.",
            footer=True,
            meaning="Refresh",
        ),
        Command("health.view", "ctrl+t", "view", "Switch view", "List by tool or by requirement.", footer=True),
        Command("health.open", "enter", "open", "Open", "Go to the selected tool, tools or file."),
        Command(
            "health.copy",
            "ctrl+right_square_bracket",
            "copy",
            "Copy fix",
            "Copy the command that fixes the problem.",
            footer=True,
            meaning="Copy as",
        ),
        Command("health.source", "f4", "source", "Source", "Open the selected pack in your editor.", meaning="Editor"),
        Command("health.back", "escape", "back", "Back", "Return to the report."),
        Command("health.maximise", "f10", "maximise", "Maximize", "Maximize the focused pane; esc restores it."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    view_by_tool: reactive[bool] = reactive(False, init=False)
    """Whether the report is by tool rather than by requirement."""

    _list = query_one(HealthList)
    _filter = query_one(FilterLine)
    _report = query_one("#report", Vertical)
    _remedy = query_one(RemedyPane)

    def __init__(self, runtime: Runtime, checks: HealthChecks) -> None:
        super().__init__()
        self._runtime = runtime
        self._checks = checks
        self._requirements = Requirements.of(ToolScan().catalogue)
        self._scan = ToolScan()
        self._known = HealthState()
        self._ranks: dict[Key, int] = {}
        """Ranks of the lines, kept until the report is sorted again."""
        self._title = Content("")
        self._is_old = False
        self._is_writing = False

    def compose(self) -> ComposeResult:
        """Yield the report and the details."""
        vim_keys = self._runtime.settings.ui.vim_keys
        yield HeaderLine("health")
        with Horizontal(id="body"):
            with Vertical(id="report"):
                report = HealthList(vim_keys=vim_keys)
                yield FilterLine(report.filter_hint("report.filter"))
                yield report
            yield RemedyPane()
        yield TooSmall()
        yield KeysLine()

    def on_mount(self) -> None:
        """Watch the tool scan and the checks."""
        self.watch(self.app, "tool_scan", self._update_tools)
        self.watch(self.app, "health", self._update_results)

    def on_screen_resume(self) -> None:
        """Sort the report again, worst first, keeping the selection."""
        self._sort_again()

    # State

    def _update_tools(self, scan: ToolScan) -> None:
        self._scan = scan
        # No arguments: Textual would include ten thousand tools in the worker's description.
        self._read_requirements()

    @work(exclusive=True, group="requirements")
    async def _read_requirements(self) -> None:
        """Read the requirements of the last scan."""
        self._requirements = await asyncio.to_thread(Requirements.of, self._scan.catalogue)
        self._refresh()

    def _update_results(self, known: HealthState) -> None:
        self._known = known
        self._refresh()

    def _refresh(self) -> None:
        """Rebuild the report soon."""
        self._is_old = True
        if not self._is_writing:
            self._write()

    @work(group="write")
    async def _write(self) -> None:
        """Rebuild the report in a thread, because thousands of tools may have requirements, until it is current."""
        self._is_writing = True
        try:
            while self._is_old:
                self._is_old = False
                write = by_tool if self.view_by_tool else by_requirement
                self._show(await asyncio.to_thread(write, self._requirements, self._known, self._ranks))
        finally:
            self._is_writing = False

    def _show(self, report: HealthReport) -> None:
        self._list.empty = self._why_empty()
        self._list.show_report(report)
        title = "Requirements by tool" if self.view_by_tool else "Requirements"
        shown = Content.assemble(title, self._summary())
        if not shown.is_same(self._title):
            self._title = shown
            self._report.border_title = shown

    def _sort_again(self) -> None:
        self._ranks = {}
        self._refresh()

    def _why_empty(self) -> str:
        if self._list.sought.strip() and (self._requirements.tools or self._requirements.problems):
            return "No line matches."
        if self._scan.scanning or not self._scan.catalogue.entries:
            return self._scan.empty
        return _NOTHING_NEEDED

    def _summary(self) -> Content:
        """Return the number of requirements and of those that are not met."""
        total = self._requirements.total
        failing = self._known.failing + self._requirements.unusable
        if not total:
            return Content("")
        if self._known.checking or not self._known.is_complete:
            return Content.styled(f" · checking… {total - len(self._known.checking):,} of {total:,}", "not bold")
        if not failing:
            return Content.styled(f" · ✓ all {total:,} met", "$text-success not bold")
        return Content.styled(f" · {failing:,} of {total:,} not met", "$text-warning not bold")

    # Actions

    @on(HealthList.Marked)
    def _marked(self, event: HealthList.Marked) -> None:
        event.stop()
        self._remedy.line = self._list.line
        self.refresh_bindings()

    @on(HealthList.Filtered)
    def _filtered(self, event: HealthList.Filtered) -> None:
        event.stop()
        self._list.empty = self._why_empty()
        count = f"{event.found:,} of {event.total:,}"
        self._filter.show(event.query, count, typing=event.typing, renews=event.renews)

    @on(HealthList.Chosen)
    def _chosen(self, event: HealthList.Chosen) -> None:
        event.stop()
        self.action_open()

    def action_open(self) -> None:
        """Open the selected tool or file, or focus the tools that have the selected requirement."""
        match self._list.line:
            case RequirementLine(tool=""):
                self._remedy.focus_tools()
            case RequirementLine(tool=tool):
                self.post_message(OpenTool(tool))
            case ToolLine(spec=spec):
                self.post_message(OpenTool(spec.name))
            case ProblemLine():
                self.action_source()
            case ServerLine(server=server):
                self.post_message(OpenServer(server.name))

    def action_view(self) -> None:
        """Switch between tools and requirements."""
        self.view_by_tool = not self.view_by_tool

    def watch_view_by_tool(self) -> None:
        """Show the other list from the top."""
        self._list.start_over()
        self._sort_again()

    def action_recheck(self) -> None:
        """Check the selected requirement again, or all requirements of the selected tool."""
        match self._list.line:
            case RequirementLine(state=state):
                self._recheck([state.key])
            case ToolLine(requirements=requirements):
                self._recheck([line.state.key for line in requirements])
            case ServerLine(server=server):
                self.app.run_worker(self._runtime.servers.reconnect(server.name), group="servers")
            case _:
                self.notify("Select a requirement or a tool to recheck it.", severity="warning")

    def action_recheck_all(self) -> None:
        """Check every requirement again."""
        self._recheck(None)

    def _recheck(self, requirements: Collection[RequirementKey] | None) -> None:
        # A worker of the app, so that the check continues when this screen is left.
        self.app.run_worker(self._checks.recheck(requirements), group="checks")

    def action_copy(self) -> None:
        """Copy the remedy."""
        text = remedy(self._list.line)
        if text:
            self.post_message(Copy(text))
        else:
            self.notify("The selection has no problem to fix.")

    @work(exclusive=True, group="editor")
    async def action_source(self) -> None:
        """Open the file of the selected pack or tool at its line."""
        from pegboard.tui.widgets.external_editor import open_in_editor

        match self._list.line:
            case ProblemLine(problem=Problem(file=str(file), line=line)):
                await open_in_editor(self.app, file, line)
            case ToolLine(spec=ToolSpec(location=Location(file=str(file), line=line))):
                await open_in_editor(self.app, file, line)
            case _:
                self.notify("The selection has no source file.", severity="warning")

    def focus_work(self) -> None:
        """Focus the report."""
        self._list.focus()

    @property
    def panes(self) -> Sequence[Widget]:
        """Panes that can be maximized."""
        return (self._report, self._remedy)
