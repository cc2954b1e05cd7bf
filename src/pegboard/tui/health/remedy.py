"""What there is to know of the marked line of the report: what is wrong, how to mend it, and which tools need it."""

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

from pegboard.models import HealthRow, Thing
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count
from pegboard.tui.commands import Command, bindings
from pegboard.tui.health.health_list import GRADE_STYLES, SIGNS
from pegboard.tui.health.report import Facts, Need, ProblemLine, ReportLine, ThingLine, ToolLine
from pegboard.tui.messages import OpenTool
from pegboard.tui.widgets.pick_list import PickLine, PickList
from pegboard.tui.widgets.problem_text import place

_PLACES = {"environment": "the environment", "keyring": "the keyring"}
_LABEL = 9


class NeedyTools(PickList):
    """The tools that need something; typing filters, enter goes to one."""

    PAGE = "Tools that need it"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        *(command for command in PickList.ACTIONS if command.id != "pick.choose"),
        Command("needy.open", "enter", "choose", "Go to tool", "Go to the form of the marked tool.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    NeedyTools:blur > .pick-list--cursor { color: $foreground; background: transparent; text-style: none; }
    """

    def draw(self, index: int, width: int, *, is_marked: bool) -> Content:
        """Gives a line; no mark is shown while the focus is elsewhere."""
        return super().draw(index, width, is_marked=is_marked and self.has_focus)


class RemedyPane(Vertical):
    """A line of the report in sentences, over the tools that it is about."""

    ALLOW_MAXIMIZE = True
    PAGE = "Details"

    DEFAULT_CSS = """
    RemedyPane {
        #said { height: auto; max-height: 70%; padding: 0 1; scrollbar-size-vertical: 1; }
        #said Static { height: auto; }
        #said:focus { background-tint: $foreground 4%; }
        &.-alone #said { max-height: 100%; }
        #needy { height: auto; margin-top: 1; padding: 0 1; color: $text-muted; }
        NeedyTools { height: 1fr; min-height: 1; }
    }
    """

    line: reactive[ReportLine | None] = reactive(None, init=False)
    """What is shown."""

    _said = query_one("#text", Static)
    _heading = query_one("#needy", Static)
    _tools = query_one(NeedyTools)

    def __init__(self) -> None:
        super().__init__()
        self._needs: Sequence[Need] = ()
        self._shown = Content("")

    def compose(self) -> ComposeResult:
        """Sentences over tools."""
        with VerticalScroll(id="said"):
            yield Static(id="text")
        yield Static(id="needy")
        yield NeedyTools()

    def on_mount(self) -> None:
        """Shows that nothing is marked yet."""
        self.watch_line(None, None)

    def watch_line(self, before: ReportLine | None, line: ReportLine | None) -> None:
        """Shows another line, or the same as it is now."""
        name = line.name if line is not None else ""
        if before is None or name != before.name:
            self.border_title = Content(name)
        said = Content("\n").join(_sentences(line))
        if not said.is_same(self._shown):
            self._shown = said
            self._said.update(said)
        earlier = before.facts if isinstance(before, ThingLine) else None
        self._show_tools(earlier, line.facts if isinstance(line, ThingLine) else None)

    def _show_tools(self, earlier: Facts | None, facts: Facts | None) -> None:
        self.set_class(facts is None, "-alone")
        for part in (self._heading, self._tools):
            part.display = facts is not None
        if facts is None or (earlier and earlier.needs is facts.needs and earlier.blocked == facts.blocked):
            return
        is_same = earlier is not None and earlier.thing == facts.thing
        self._needs = sorted(facts.needs, key=lambda need: need.tool not in facts.blocked)
        self._heading.update(Content(f"Needed by {count(len(self._needs), 'tool')}, enter goes there:"))
        lines = [PickLine(clean_line(need.tool), _note(need, facts.blocked)) for need in self._needs]
        marked = self._tools.marked if is_same else None
        self._tools.show(lines, marked or 0, sought=self._tools.sought if is_same else "")

    def focus_tools(self) -> None:
        """Goes to the tools that need what is shown."""
        self._tools.focus()

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        self.post_message(OpenTool(self._needs[event.index].tool))

    @on(PickList.Marked)
    @on(PickList.Filtered)
    def _keep(self, event: PickList.Marked | PickList.Filtered) -> None:
        event.stop()


def remedy(line: ReportLine | None) -> str:
    """Gives what can be copied of a line: how to get what is missing, or the problem; empty where there is neither."""
    match line:
        case ThingLine(facts=Facts(found=HealthRow(install=install))):
            return install
        case ProblemLine(problem=problem):
            return str(problem)
        case ToolLine(things=things):
            return "\n".join(
                filter(None, map(remedy, [thing for thing in things if thing.grade in ("bad", "doubtful")]))
            )
    return ""


def _note(need: Need, blocked: frozenset[str]) -> str:
    if need.tool in blocked:
        return "blocked"
    return "does without it" if need.requirement.optional else ""


def _sentences(line: ReportLine | None) -> list[Content]:
    match line:
        case ThingLine():
            return _of_thing(line)
        case ToolLine():
            return _of_tool(line)
        case ProblemLine(problem=problem):
            said = [_state(line), Content(clean(problem.message))]
            if problem.fix:
                said.append(Content(clean(problem.fix)))
            if problem.file:
                at = f"{problem.file}:{problem.line}" if problem.line else problem.file
                said.append(_fact("Place", clean_line(at)))
                said.append(Content.styled(f"enter opens {place(problem)} in your editor.", "$text-muted"))
            return said
    return []


def _of_thing(line: ThingLine) -> list[Content]:
    said = [_state(line)]
    found, thing = line.facts.found, line.facts.thing
    if line.facts.is_looking or found is None:
        said.append(Content(f"The {line.kind} is being looked for."))
    elif found.status == "ok":
        said.append(Content(f"The {line.kind} is there."))
    if found is None:
        return said
    if found.error:
        said.append(Content(clean(found.error)))
    if found.status != "ok":
        said.append(_fact("Get it", clean(found.install), "bold"))
        said += _setting(thing, found.install)
    if found.version:
        said.append(_fact("Version", clean_line(found.version)))
    if thing.min_version:
        said.append(_fact("At least", clean_line(thing.min_version)))
    if found.path:
        label = "From" if thing.kind == "secret" else "Place"
        said.append(_fact(label, clean_line(_PLACES.get(found.path, found.path))))
    return said


def _setting(thing: Thing, install: str) -> list[Content]:
    """Says how to set a secret, unless the words of the tool's author do."""
    command = f"pegboard auth set {clean_line(thing.name)}"
    if thing.kind != "secret" or command in install:
        return []
    return [_fact("Set it", f"{command}, or write it into the environment or a .env file")]


def _of_tool(line: ToolLine) -> list[Content]:
    said = [_state(line)]
    for thing in line.things:
        sign = (f"{SIGNS[thing.grade]} ", GRADE_STYLES[thing.grade])
        said.append(Content.assemble(sign, thing.name, f", {thing.kind}"))
        if thing.grade in ("bad", "doubtful") and thing.facts.found is not None:
            said.append(Content(f"  {clean_line(thing.facts.found.error or thing.status)}"))
            said.append(Content.assemble("  ", _fact("Get it", clean_line(thing.facts.found.install), "bold")))
    said.append(Content.styled("enter goes to the tool.", "$text-muted"))
    return said


def _state(line: ReportLine) -> Content:
    """Gives the first sentence: sign, kind, and how it is with it."""
    return Content.assemble(
        (f"{SIGNS[line.grade]} ", GRADE_STYLES[line.grade]), f"{line.kind}, ", (line.status, GRADE_STYLES[line.grade])
    )


def _fact(label: str, text: str, style: str = "") -> Content:
    return Content.assemble((f"{label:<{_LABEL}}", "$text-muted"), (text, style))
