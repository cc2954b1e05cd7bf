"""The tool page: description, form and result of one tool."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeGuard

from textual import events, work
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget

from pegboard.data.mask import unrecorded_secret
from pegboard.errors import StoreError
from pegboard.forms import Form
from pegboard.models import Finished, JsonObject, Problem, ToolCall, ToolResult, ToolSpec
from pegboard.models.statistics import ToolStatistics
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count
from pegboard.tui.commands import key_in_reach, key_or_title
from pegboard.tui.form import FormPane
from pegboard.tui.form.editors import CallPasted, CallPastedAsText, TextBox, TextLine
from pegboard.tui.messages import Called, HistoryRead
from pegboard.tui.result import ResultPane
from pegboard.tui.state.app_state import AppState
from pegboard.tui.state.catalogue import CatalogueRow, ToolEntry
from pegboard.tui.state.remembered import Remembered
from pegboard.tui.state.tool_scanner import schema_problem
from pegboard.tui.tools.confirmation import may_run
from pegboard.tui.tools.detail import DetailPane
from pegboard.tui.tools.pasted_call import read_paste
from pegboard.tui.tools.usage import never_called
from pegboard.tui.tools.work_area import WorkArea
from pegboard.tui.widgets.paste import may_be_call

if TYPE_CHECKING:
    from pegboard.forms import Pasted
    from pegboard.results.log import LogLine
    from pegboard.runtime import Runtime

_ROOMY_COLUMNS, _ROOMY_LINES = 66, 30
"""Minimum size at which every pane has a border."""
_RESULTS_KEPT = 20


class ToolPage(Vertical):
    """Details, form and result of a tool. Runs the tool and keeps the last results.

    The panes have borders if the size permits and lines otherwise; see `WorkArea` for form and result.

    Args:
        runtime: Runtime that calls the tools and knows their history.
        remembered: State that is kept between starts.
        key: Returns the keys of a command id, as shown to the user.
    """

    DEFAULT_CSS = """
    ToolPage {
        width: 1fr;
        DetailPane, FormPane, ResultPane {
            height: 1fr;
            border: round $border-blurred;
            border-title-color: $text-muted;
            border-subtitle-color: $text-muted;
            &:focus-within { border: round $border; border-title-color: $text-primary; border-title-style: bold; }
        }
        FormPane { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
        DetailPane { height: auto; max-height: 14; border-title-color: $foreground; border-title-style: bold; }
        &.-compact {
            DetailPane, FormPane, ResultPane {
                border: none;
                border-top: solid $border-blurred;
                &:focus-within { border: none; border-top: solid $border; }
            }
            DetailPane { max-height: 5; }
            DetailPane #signature { max-height: 1; }
            DetailPane Static { max-height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
            DetailPane #about { max-height: 1; }
        }
        DetailPane.-maximized { height: 1fr; max-height: 100%; }
        DetailPane.-maximized Static, DetailPane.-maximized #signature { max-height: 100%; text-wrap: wrap; }
        DetailPane.-maximized #about { height: 1fr; max-height: 100%; }
    }
    """

    subject: var[CatalogueRow | None] = var(None, init=False)
    """The selected tool or pack."""
    statistics: var[ToolStatistics | None] = var(None, init=False)
    """Use of the tool; None while unknown."""
    unmet: var[tuple[Problem, ...]] = var((), init=False)
    """Problems of the tool's requirements, and of a change of its schema."""
    running: var[ToolCall | None] = var(None)
    """The running call."""

    class OtherToolPasted(Message):
        """A pasted call belongs to another tool, which should be opened."""

        def __init__(self, tool: str, arguments: JsonObject, source: str) -> None:
            super().__init__()
            self.tool = tool
            self.arguments = arguments
            self.source = source

    def __init__(self, runtime: Runtime, remembered: Remembered, key: Callable[[str], str]) -> None:
        super().__init__()
        self._runtime = runtime
        self._remembered = remembered
        self._key = key
        self._detail = DetailPane()
        self._form = FormPane()
        self._result = ResultPane(folder=runtime.paths.state, run_key=key("tools.run"), cancel_key=key("tools.cancel"))
        self._work_area = WorkArea(self._form, self._result, remembered)
        self._hints = Content()
        """Keys that fill the form, in its title."""
        self._shown: ToolSpec | None = None
        self._is_starting = False
        """Whether a call was requested and may still need a confirmation."""
        self._results: OrderedDict[str, tuple[ToolCall, ToolResult, list[LogLine]]] = OrderedDict()

    async def on_mount(self) -> None:
        """Mount the panes one by one, so that keys are processed in between."""
        self._detail.data_bind(ToolPage.subject, ToolPage.unmet, ToolPage.statistics)
        await self.mount(self._detail)
        await self.mount(self._work_area)
        self.watch(self.app, "tool_scan", lambda: self._read_problems(self.subject), init=False)
        self.show_titles()
        if not self._remembered.has_run:
            self._result.hint = self._welcome()

    def on_resize(self, event: events.Resize) -> None:
        """Choose the borders for the new size."""
        self.choose_borders(event.size)

    def choose_borders(self, size: Size) -> None:
        """Choose between borders and lines."""
        self.set_class(size.width < _ROOMY_COLUMNS or size.height < _ROOMY_LINES, "-compact")

    def _welcome(self) -> str:
        return (
            f"Press {self._key('tools.run')} to run this tool.\n"
            "Write your own tools: `pegboard new NAME`.\n"
            f"Connect a model: {key_or_title(self.app, 'mode.chat')}, {self._key('chat.model')}.\n"
            f"Add an MCP server: {key_or_title(self.app, 'app.palette')}, add mcp."
        )

    def show_titles(self) -> None:
        """Show the titles of the panes; that of the maximized one names the tool, its state and how to leave."""
        name = clean_line(self._shown.name) if self._shown is not None else ""
        state = self.subject.state if isinstance(self.subject, ToolEntry) else ""
        leave = f"{self._key('tools.maximise')} restores"
        for pane, title, hints in (
            (self._detail, self._detail.title, Content()),
            (self._form, Content("Arguments"), self._hints),
            (self._result, Content("Result"), Content()),
        ):
            facts = [state, leave] if pane is self._detail else [name, state, leave]
            is_maximised = self.screen.maximized is pane
            parts: list[str | Content] = [title, hints]
            if is_maximised:
                parts = [title, *(f" · {fact}" for fact in facts if fact)]
            pane.border_title = Content.assemble(*parts)

    def update_panes(self) -> None:
        """Arrange the panes again, because one was maximized or restored."""
        self._work_area.place_panes()
        self.show_titles()

    def move_divider(self, steps: int) -> None:
        """Make the form larger or smaller; see `WorkArea`."""
        self._work_area.move_divider(steps)

    def fit(self) -> None:
        """Fit form and result to their content."""
        self._work_area.fit()

    @property
    def panes(self) -> tuple[Widget, ...]:
        """Details, form and result."""
        return (self._detail, self._form, self._result)

    @property
    def has_fields(self) -> bool:
        """Whether the current tool has a form with fields."""
        return self._form.form is not None and bool(self._form.form.fields)

    def look(self, subject: CatalogueRow | None) -> None:
        """Show the details of a tool or pack; its form follows with `show`."""
        if subject is not self.subject:
            self.statistics = None
            self._read_problems(subject)
            self.subject = subject
        self._detail.display = subject is not None

    def _read_problems(self, subject: CatalogueRow | None) -> None:
        """Show the problems of a tool's requirements and of a change of its schema."""
        rows = self._runtime.health.rows(subject.spec.name) if _is_not_ready(subject) else ()
        problems = [row.problem for row in rows if row.problem]
        if isinstance(subject, ToolEntry) and isinstance(self.app, AppState):
            changed = self.app.tool_scan.schema_changes.get(subject.spec.name)
            problems += [schema_problem(subject.spec, changed)] if changed is not None else []
        self.unmet = tuple(sorted(problems, key=lambda problem: problem.rank))

    def show(self, subject: CatalogueRow | None) -> None:
        """Show the form, the last result and the use of a tool."""
        self.look(subject)
        self._detail.describe()
        spec = subject.spec if isinstance(subject, ToolEntry) else None
        if spec is None:
            self._form.clear()
            self._form.display = False
        elif spec != self._shown:
            self._form.display = True
            self._form.show(spec)
        changed = (spec and spec.name) != (self._shown and self._shown.name)
        self._shown = spec
        if spec is not None:
            self.read_history()
            self._result.hint = "" if self._remembered.has_run else self._welcome()
        else:
            self._result.hint = "Select a tool to run it."
        self._work_area.has_fields = self.has_fields
        self.show_titles()
        if changed and self.running is None:
            self._show_result(spec)

    def focus_form(self) -> None:
        """Focus the first field once it is mounted. Without fields, keep the focus."""
        if self.has_fields:
            self._form.focus_field()

    @property
    def has_result_focus(self) -> bool:
        """Whether the focus is in the result."""
        return self._result.has_focus_within

    def focus_result(self) -> bool:
        """Focus the result; return False and say so if there is none."""
        if self._result.state == "empty":
            if self._shown is None:
                self._say_that_no_tool_is_selected()
            else:
                self.notify(f"This tool has no result yet. Press {self._key('tools.run')} to run it.", markup=False)
            return False
        self._result.focus()
        return True

    def _show_result(self, spec: ToolSpec | None) -> None:
        kept = self._results.get(spec.name) if spec is not None else None
        self._work_area.was_tried = kept is not None
        if kept is None:
            self._result.clear()
        else:
            self._result.show(*kept)

    @work(exclusive=True, group="recall")
    async def read_history(self) -> None:
        """Show how often the tool was used, and offer its last arguments and presets."""
        if self._shown is None:
            return
        tool = self._shown.name
        statistics: ToolStatistics | None = None
        with suppress(StoreError):
            found = await asyncio.to_thread(self._runtime.activity.statistics, (tool,))
            statistics = found[0] if found else never_called(tool)
        recent = await asyncio.to_thread(self._runtime.history.recent_arguments, tool)
        presets = len(await asyncio.to_thread(self._runtime.presets.list, tool))
        if not isinstance(self.subject, ToolEntry) or self.subject.spec.name != tool:
            return  # Another row was selected meanwhile.
        self.statistics, self._form.recent = statistics, recent
        self.post_message(HistoryRead())
        offered = self.has_fields and self.statistics is not None and self.statistics.calls > 0
        hint = f" · {self._key('tools.last_arguments')} last arguments" if offered else ""
        hint += f" · {self._key('tools.presets')} {count(presets, 'preset')}" if presets else ""
        self._hints = Content.styled(hint, "$text-muted not bold")
        self.show_titles()

    @property
    def finished_call(self) -> ToolCall | None:
        """The call whose result is shown."""
        return self._result.call if self._result.result is not None else None

    # Running

    def run(self) -> None:
        """Run the tool, unless its form has validation errors or a call is running."""
        if self.running is not None:
            stop = self._key("tools.cancel")
            self.notify(f"{clean_line(self.running.name)} is still running. Press {stop} to cancel it.", markup=False)
            return
        if self._shown is None:
            self._say_that_no_tool_is_selected()
            return
        arguments = self._form.submit()
        if arguments is not None and not self._is_starting:  # The key may be repeated.
            self._is_starting = True
            form = self._form.form
            self._run(self._shown, arguments, "" if form is None else form.text(masked=True))

    def _say_that_no_tool_is_selected(self) -> None:
        self.notify("Select a tool first.", severity="warning")

    async def cancel(self) -> None:
        """Cancel the running call."""
        if self.running is not None:
            await self._runtime.cancel(self.running.id)

    @work(group="call")
    async def _run(self, spec: ToolSpec, arguments: JsonObject, shown: str) -> None:
        """Call the tool and show its events, after confirmation if it is blocked or destructive."""
        try:
            rows = self._runtime.health.rows(spec.name) if spec.requirements else ()
            if not await may_run(self.app, self._runtime, spec, arguments, shown, rows):
                return
        finally:
            self._is_starting = False
        call = ToolCall(name=spec.name, args=arguments, source="form")
        self.running = call
        self._work_area.was_tried = True
        self._remembered.has_run = True
        self._result.hint = ""
        if self.screen.maximized not in {None, self._result}:
            self.screen.minimize()
        self._result.start(call)
        focused = self.screen.focused
        try:
            async for event in self._runtime.call(call):
                self._result.feed(event)
                if isinstance(event, Finished) and event.call.id == call.id:
                    self._remember_result(event)
                    moves = self._runtime.settings.ui.focus == "result"
                    if moves and self.app.screen is self.screen and self.screen.focused is focused:
                        self._result.focus()
        finally:
            self.running = None
            if spec.requirements:
                self.post_message(Called(spec.name))
        self.read_history()

    def _remember_result(self, event: Finished) -> None:
        self._results[event.call.name] = (event.call, event.result, self._result.call_log.lines)
        self._results.move_to_end(event.call.name)
        if len(self._results) > _RESULTS_KEPT:
            self._results.popitem(last=False)

    def watch_running(self) -> None:
        """Update the footer, unless a call ends because the app ends."""
        if self.is_attached:
            self.screen.refresh_bindings()

    # Arguments

    def fill(self, arguments: JsonObject, source: str) -> None:
        """Load arguments into the form, and report their source, such as `from the last call`."""
        form = self._form.form
        if form is None or self._shown is None:
            return
        had = form.has_text_fault or bool(form.draft())
        self._form.load(arguments)
        undo = f" {key_or_title(self._form, 'form.bring_back')} undoes it." if had else ""
        self.notify(f"Form filled {source}.{undo}", markup=False)
        if hidden := unrecorded_secret(arguments):
            text = f"{hidden} Enter it before you run {self._shown.name}."
            self.notify(clean_line(text), severity="warning", markup=False)
        self.focus_form()

    @work(exclusive=True, group="arguments")
    async def fill_with_last(self) -> None:
        """Load the arguments of the tool's last call."""
        spec = self._shown
        if spec is None:
            self._say_that_no_tool_is_selected()
            return
        arguments = await asyncio.to_thread(self._last_arguments, spec)
        if arguments is None:
            self.notify(f"{clean_line(spec.name)} has not been called yet.", markup=False)
        elif spec is self._shown:
            self.fill(arguments, "from the last call")

    def _last_arguments(self, spec: ToolSpec) -> JsonObject | None:
        """Return the arguments of the tool's last call, even by a name that is an alias now."""
        found = map(self._runtime.history.last_arguments, (spec.name, *spec.aliases))
        return next((arguments for arguments in found if arguments is not None), None)

    @work(exclusive=True, group="arguments")
    async def show_presets(self) -> None:
        """Open the presets of the tool and load the chosen one."""
        from pegboard.tui.tools.presets import PresetsScreen

        if (filled := self._tool_and_form()) is None:
            return
        spec, form = filled
        preset = await self.app.push_screen_wait(PresetsScreen(self._runtime, spec, form))
        if preset is not None and self._shown is not None and self._shown.name == spec.name:
            self.fill(preset.arguments, f"from the preset {clean_line(preset.name)}")

    @work(exclusive=True, group="arguments")
    async def save_preset(self) -> None:
        """Save the arguments of the form as a preset."""
        from pegboard.tui.tools.presets import save_preset

        filled = self._tool_and_form()
        if filled is not None and await save_preset(self.app, self._runtime, *filled) is not None:
            self.read_history()

    def copy_as(self) -> None:
        """Open the dialog that copies the call in several formats."""
        from pegboard.tui.dialogs.copy_as import copy_call

        if (filled := self._tool_and_form()) is not None:
            self.app.push_screen(copy_call(*filled, self._runtime.tools.options(filled[0])))

    def run_over_file(self) -> None:
        """Open the dialog that calls the tool with every row of a file."""
        from pegboard.tui.tools.batch import BatchScreen

        if self._shown is None:
            self._say_that_no_tool_is_selected()
        else:
            self.app.push_screen(BatchScreen(self._runtime, self._shown))

    def _tool_and_form(self) -> tuple[ToolSpec, Form] | None:
        """Return the tool and its form, or None after reporting why the arguments are unknown."""
        form = self._form.form
        if self._shown is None or form is None:
            self._say_that_no_tool_is_selected()
            return None
        self._form.settle()
        if form.has_text_fault:
            self.notify("The JSON text is invalid. Fix or discard it first.", severity="warning")
            return None
        return self._shown, form

    # Pasting

    def paste(self, text: str) -> None:
        """Load a call that was pasted outside an editor."""
        if may_be_call(text):
            self._load_paste(text, self._report_no_call)

    def on_call_pasted(self, event: CallPasted) -> None:
        """Load a call that was pasted into a field that can't hold it."""
        event.stop()
        self._load_paste(event.text, event.insert)

    def on_call_pasted_as_text(self, event: CallPastedAsText) -> None:
        """Offer to load a call that was pasted as text."""
        event.stop()
        self._offer_paste(event.text, event.editor)

    def _report_no_call(self, text: str) -> None:
        del text
        self.notify("The pasted text is not a tool call.", severity="warning")

    @work(exclusive=True, group="paste")
    async def _load_paste(self, text: str, otherwise: Callable[[str], object]) -> None:
        found = await read_paste(self._runtime, self._shown, text)
        if found is None:
            otherwise(text)
        else:
            await self._load_call(*found)

    @work(exclusive=True, group="paste")
    async def _offer_paste(self, text: str, editor: TextLine | TextBox) -> None:
        found = await read_paste(self._runtime, self._shown, text)
        if found is None:
            return
        editor.offer_call(lambda: self.run_worker(self._load_call(*found), exclusive=True, group="paste"))
        key = key_in_reach(editor, ["field.offer"])
        self.notify(
            f"You pasted a call to {clean_line(found[0].name)}. Press {key} to fill the form with it.", markup=False
        )
        self.screen.refresh_bindings()

    async def _load_call(self, spec: ToolSpec, call: Pasted) -> None:
        """Load a call; open its tool after confirmation if it is another one."""
        source = "from the clipboard"
        if self._shown is not None and spec.name == self._shown.name:
            self.fill(call.arguments, source)
            return
        from pegboard.tui.dialogs.confirm import Confirm

        name = clean_line(spec.name)
        question = f"The pasted text is a call of another tool: {name}."
        if await self.app.push_screen_wait(Confirm(f"Go to {name}?", question, "Go there")):
            self.post_message(self.OtherToolPasted(spec.name, call.arguments, source))


def _is_not_ready(subject: CatalogueRow | None) -> TypeGuard[ToolEntry]:
    return isinstance(subject, ToolEntry) and subject.state != "ready"
