"""Details of the selected line of the report: problem, remedy and tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.reactive import reactive
from textual.widgets import Static

from pegboard.models import HealthRow, RequirementKey
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count
from pegboard.tui.commands import Command, bindings
from pegboard.tui.health.health_list import GRADE_STYLES, SIGNS
from pegboard.tui.health.report import (
    ProblemLine,
    ReportLine,
    RequirementLine,
    RequirementState,
    ServerLine,
    ToolLine,
    ToolRequirement,
)
from pegboard.tui.messages import OpenTool
from pegboard.tui.widgets.pick_list import PickLine, PickList
from pegboard.tui.widgets.problem_text import place
from pegboard.tui.widgets.server_text import server_lines

_PLACES = {"environment": "the environment", "keyring": "the keyring"}
_LABEL = 9


class RequiringTools(PickList):
    """Tools that have a requirement. Typing filters; enter opens a tool."""

    PAGE = "Tools that require it"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        *(command for command in PickList.ACTIONS if command.id != "pick.choose"),
        Command("needy.open", "enter", "choose", "Go to tool", "Go to the form of the selected tool.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    RequiringTools:blur > .filter-list--cursor { color: $foreground; background: transparent; text-style: none; }
    """

    def draw(self, row: int, width: int, *, is_selected: bool) -> Content:
        """Return a line; the selection is hidden without focus."""
        return super().draw(row, width, is_selected=is_selected and self.has_focus)


class RemedyPane(Vertical):
    """Details of a line, above the tools it concerns."""

    ALLOW_MAXIMIZE = True
    PAGE = "Details"

    DEFAULT_CSS = """
    RemedyPane {
        #details { height: auto; max-height: 70%; padding: 0 1; scrollbar-size-vertical: 1; }
        #details Static { height: auto; }
        #details:focus { background-tint: $foreground 4%; }
        &.-alone #details { max-height: 100%; }
        #requiring { height: auto; margin-top: 1; padding: 0 1; color: $text-muted; }
        RequiringTools { height: 1fr; min-height: 1; }
    }
    """

    line: reactive[ReportLine | None] = reactive(None, init=False)
    """The line to show."""

    _details = query_one("#text", Static)
    _heading = query_one("#requiring", Static)
    _tools = query_one(RequiringTools)

    def __init__(self) -> None:
        super().__init__()
        self._requirements: Sequence[ToolRequirement] = ()
        self._shown = Content("")

    def compose(self) -> ComposeResult:
        """Yield the details and the tools."""
        with VerticalScroll(id="details"):
            yield Static(id="text")
        yield Static(id="requiring")
        yield RequiringTools()

    def on_mount(self) -> None:
        """Show that nothing is selected yet."""
        self.watch_line(None, None)

    def watch_line(self, before: ReportLine | None, line: ReportLine | None) -> None:
        """Show another line, or a new state of the same one."""
        name = line.name if line is not None else ""
        if before is None or name != before.name:
            self.border_title = Content(name)
        lines = Content("\n").join(_describe(line))
        if not lines.is_same(self._shown):
            self._shown = lines
            self._details.update(lines)
        earlier = before.state if isinstance(before, RequirementLine) else None
        self._show_tools(earlier, line.state if isinstance(line, RequirementLine) else None)

    def _show_tools(self, earlier: RequirementState | None, state: RequirementState | None) -> None:
        self.set_class(state is None, "-alone")
        for part in (self._heading, self._tools):
            part.display = state is not None
        if state is None or (earlier and earlier.tools is state.tools and earlier.blocked == state.blocked):
            return
        is_same = earlier is not None and earlier.key == state.key
        self._requirements = sorted(state.tools, key=lambda one: one.tool not in state.blocked)
        self._heading.update(Content(f"Required by {count(len(self._requirements), 'tool')} (enter opens one):"))
        lines = [PickLine(clean_line(one.tool), _note(one, state.blocked)) for one in self._requirements]
        if is_same:
            self._tools.renew(lines, self._tools.marked or 0)
        else:
            self._tools.show(lines)

    def focus_tools(self) -> None:
        """Focus the tools."""
        self._tools.focus()

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        if event.index < len(self._requirements):  # the list may have changed meanwhile
            self.post_message(OpenTool(self._requirements[event.index].tool))

    @on(PickList.Marked)
    @on(PickList.Filtered)
    def _keep(self, event: PickList.Marked | PickList.Filtered) -> None:
        event.stop()


def remedy(line: ReportLine | None) -> str:
    """Return the text to copy for a line: the remedy or the problem; empty if there is neither."""
    match line:
        case RequirementLine(state=RequirementState(found=HealthRow(install=install))):
            return install
        case ProblemLine(problem=problem):
            return str(problem)
        case ServerLine(server=server):
            return server.fix or server.reason
        case ToolLine(requirements=requirements):
            return "\n".join(
                filter(None, map(remedy, [one for one in requirements if one.grade in ("bad", "doubtful")]))
            )
    return ""


def _note(one: ToolRequirement, blocked: frozenset[str]) -> str:
    if one.tool in blocked:
        return "blocked"
    return "optional" if one.requirement.optional else ""


def _describe(line: ReportLine | None) -> list[Content]:
    match line:
        case RequirementLine():
            return _describe_requirement(line)
        case ToolLine():
            return _describe_tool(line)
        case ServerLine(server=server):
            hint = Content.styled("Press enter to open the page of the server.", "$text-muted")
            return [*server_lines(server), hint]
        case ProblemLine(problem=problem):
            lines = [_state(line), Content(clean(problem.message))]
            if problem.fix:
                lines.append(Content(clean(problem.fix)))
            if problem.file:
                at = f"{problem.file}:{problem.line}" if problem.line else problem.file
                lines.append(_fact("File", clean_line(at)))
                lines.append(Content.styled(f"Press enter to open {place(problem)} in your editor.", "$text-muted"))
            return lines
    return []


def _describe_requirement(line: RequirementLine) -> list[Content]:
    lines = [_state(line)]
    found, key = line.state.found, line.state.key
    if line.state.is_looking or found is None:
        lines.append(Content(f"The {line.kind} is being checked."))
    elif found.status == "ok":
        lines.append(Content(f"The {line.kind} is available."))
    if found is None:
        return lines
    if found.error:
        lines.append(Content(clean(found.error)))
    if found.status != "ok":
        lines.append(_fact("Get it", clean(found.install), "bold"))
        lines += _setting(key, found)
    if found.version:
        lines.append(_fact("Version", clean_line(found.version)))
    if key.min_version:
        lines.append(_fact("At least", clean_line(key.min_version)))
    if found.path:
        label = "From" if key.kind == "secret" else "Path"
        lines.append(_fact(label, clean_line(_PLACES.get(found.path, found.path))))
    return lines


def _setting(key: RequirementKey, found: HealthRow) -> list[Content]:
    """Return how to set a secret, unless that is in `install` already; without a keyring, it can't be stored there."""
    command = f"pegboard auth set {clean_line(key.name)}"
    if key.kind != "secret" or command in found.install or f"Set {key.name} in the environment" in found.install:
        return []
    if "keyring" in (found.error or ""):
        return [_fact("Set it", "in the environment or a .env file")]
    return [_fact("Set it", f"{command}, or add it to the environment or a .env file")]


def _describe_tool(line: ToolLine) -> list[Content]:
    lines = [_state(line)]
    for own in line.requirements:
        sign = (f"{SIGNS[own.grade]} ", GRADE_STYLES[own.grade])
        lines.append(Content.assemble(sign, own.name, f", {own.kind}"))
        if own.grade in ("bad", "doubtful") and own.state.found is not None:
            lines.append(Content(f"  {clean_line(own.state.found.error or own.status)}"))
            lines.append(Content.assemble("  ", _fact("Get it", clean_line(own.state.found.install), "bold")))
    lines.append(Content.styled("Press enter to open the tool.", "$text-muted"))
    return lines


def _state(line: ReportLine) -> Content:
    """Return the first line: symbol, kind and status."""
    return Content.assemble(
        (f"{SIGNS[line.grade]} ", GRADE_STYLES[line.grade]), f"{line.kind}, ", (line.status, GRADE_STYLES[line.grade])
    )


def _fact(label: str, text: str, style: str = "") -> Content:
    return Content.assemble((f"{label:<{_LABEL}}", "$text-muted"), (text, style))
