"""The bench: where the tool that was taken down is looked at, filled in and tried."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeGuard

from textual import events, work
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget

from pegboard.errors import StoreError
from pegboard.forms import Form, Pasted, pasted
from pegboard.models import Finished, JsonObject, Problem, ToolCall, ToolResult, ToolSpec, ToolUses
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count
from pegboard.tui.commands import key_in_reach, key_of
from pegboard.tui.form import FormPane
from pegboard.tui.form.editors import CallPasted, CallPastedAsText, TextBox, TextLine
from pegboard.tui.messages import Called
from pegboard.tui.result import ResultPane
from pegboard.tui.state.catalogue import Entry, Row
from pegboard.tui.tools.detail import DetailPane
from pegboard.tui.widgets.paste import may_be_call

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_ROOMY_COLUMNS, _ROOMY_LINES = 66, 30
"""The size from which on every pane can have a border of its own."""
_RESULTS_KEPT = 20
_UNTRIED, _TRIED = "2fr", "1fr"
"""The height of the form beside that of the result, before and after there is one."""
_ARGUMENT_LINES = 8
"""How many lines of the arguments stand in the question before a destructive tool."""


class Bench(Vertical):
    """Shows detail, form and result of a tool, runs it, and keeps the last results.

    The panes stand over each other, with borders where there is room and lines where there is none. The form has most
    of it until there is a result. A form without fields takes no more than its one line.

    Args:
        runtime: What calls the tools and knows what they were called with.
        key: Gives the keys of a command, by its id, as they are shown.
    """

    DEFAULT_CSS = """
    Bench {
        width: 1fr;
        DetailPane, FormPane, ResultPane {
            height: 1fr;
            border: round $border-blurred;
            border-title-color: $text-muted;
            border-subtitle-color: $text-muted;
            &:focus-within { border: round $border; border-title-color: $text-primary; border-title-style: bold; }
        }
        FormPane { height: 2fr; scrollbar-size-vertical: 1; }
        DetailPane { height: auto; max-height: 14; border-title-color: $foreground; border-title-style: bold; }
        &.-compact {
            DetailPane, FormPane, ResultPane {
                border: none;
                border-top: solid $border-blurred;
                &:focus-within { border: none; border-top: solid $border; }
            }
            DetailPane { max-height: 5; }
            DetailPane Static { max-height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
            DetailPane #about { max-height: 1; }
            ResultPane:focus-within { height: 2fr; }
        }
        DetailPane.-maximized { height: 1fr; max-height: 100%; }
        DetailPane.-maximized Static { max-height: 100%; text-wrap: wrap; }
        DetailPane.-maximized #about { height: 1fr; max-height: 100%; }
    }
    """

    subject: var[Row | None] = var(None, init=False)
    """The tool or pack that is looked at."""
    uses: var[ToolUses | None] = var(None, init=False)
    """How often the tool was used; None while that isn't known."""
    lacking: var[tuple[Problem, ...]] = var((), init=False)
    """What of the things that the tool needs is missing, or may be."""
    running: var[ToolCall | None] = var(None)
    """The call under way."""

    class Recalled(Message):
        """What was kept of a tool has been read, which may have shown something wrong."""

    class Asked(Message):
        """Another tool is asked for, with these arguments."""

        def __init__(self, tool: str, arguments: JsonObject, said: str) -> None:
            super().__init__()
            self.tool = tool
            self.arguments = arguments
            self.said = said

    def __init__(self, runtime: Runtime, key: Callable[[str], str]) -> None:
        super().__init__()
        self._runtime = runtime
        self._key = key
        self._detail = DetailPane()
        self._form = FormPane()
        self._result = ResultPane(folder=runtime.paths.state, run_key=key("tools.run"), cancel_key=key("tools.cancel"))
        self._form.border_title = "Arguments"
        self._result.border_title = "Result"
        self._shown: ToolSpec | None = None
        self._results: OrderedDict[str, tuple[ToolCall, ToolResult]] = OrderedDict()

    async def on_mount(self) -> None:
        """Mounts the panes one after the other, so that a key needn't wait for all of their styles to be read."""
        self._detail.data_bind(Bench.subject, Bench.lacking, Bench.uses)
        for pane in self.panes:
            await self.mount(pane)

    def on_resize(self, event: events.Resize) -> None:
        """Says whether there is room."""
        self.set_class(event.size.width < _ROOMY_COLUMNS or event.size.height < _ROOMY_LINES, "-compact")

    @property
    def panes(self) -> tuple[Widget, ...]:
        """Detail, form and result."""
        return (self._detail, self._form, self._result)

    @property
    def has_fields(self) -> bool:
        """Whether the tool that is shown has a form with fields."""
        return self._form.form is not None and bool(self._form.form.fields)

    def look(self, subject: Row | None) -> None:
        """Shows what a tool or pack is; its form waits until it is to stay."""
        if subject is not self.subject:
            self.uses = None
            rows = self._runtime.health.rows(subject.spec.name) if _lacks_something(subject) else ()
            problems = [row.problem for row in rows if row.problem]
            self.lacking = tuple(sorted(problems, key=lambda problem: problem.rank))
            self.subject = subject

    def show(self, subject: Row | None) -> None:
        """Shows the form of a tool, the result it gave last, and what the history says of it."""
        self.look(subject)
        self._detail.describe()
        spec = subject.spec if isinstance(subject, Entry) else None
        if spec is None:
            self._form.clear()
            self._form.display = False
        elif spec != self._shown:
            self._form.display = True
            self._form.show(spec)
        changed = (spec and spec.name) != (self._shown and self._shown.name)
        self._shown = spec
        if spec is not None:
            self._recall(spec.name)
        if changed and self.running is None:
            self._show_result(spec)

    def focus_form(self) -> None:
        """Goes to the first field as soon as it stands; a tool without fields leaves the focus where it is."""
        if self.has_fields:
            self._form.focus_field()

    def _show_result(self, spec: ToolSpec | None) -> None:
        kept = self._results.get(spec.name) if spec is not None else None
        self._form.share = _UNTRIED if kept is None else _TRIED
        if kept is None:
            self._result.clear()
        else:
            self._result.show(*kept)

    @work(exclusive=True, group="recall")
    async def _recall(self, tool: str) -> None:
        """Shows how often a tool was used, and offers its last arguments and its presets."""
        try:
            self.uses = await asyncio.to_thread(self._runtime.history.uses, tool)
        except StoreError:
            self.uses = None
        presets = len(await asyncio.to_thread(self._runtime.presets.list, tool))
        self.post_message(self.Recalled())
        offered = self.has_fields and self.uses is not None and self.uses.calls > 0
        hint = f" · {self._key('tools.last_arguments')} last arguments" if offered else ""
        hint += f" · {self._key('tools.presets')} {count(presets, 'preset')}" if presets else ""
        self._form.border_title = Content.assemble("Arguments", (hint, "$text-muted not bold"))

    # Running

    def run(self) -> None:
        """Runs the tool, unless its form has faults or a call is still under way."""
        if self.running is not None:
            self.notify(f"{clean_line(self.running.name)} is still running: esc cancels it.", markup=False)
            return
        if self._shown is None:
            self.notify("Mark a tool first.", severity="warning")
            return
        arguments = self._form.submit()
        if arguments is not None:
            self._run(self._shown, arguments)

    async def cancel(self) -> None:
        """Cancels the running call."""
        if self.running is not None:
            await self._runtime.cancel(self.running.id)

    @work(group="call")
    async def _run(self, spec: ToolSpec, arguments: JsonObject) -> None:
        """Makes a call and shows what happens; asks first whether a blocked or destructive tool shall be run."""
        if not await self._agreed(spec):
            return
        call = ToolCall(name=spec.name, args=arguments, source="form")
        self.running = call
        self._form.share = _TRIED
        self._result.start(call)
        try:
            async for event in self._runtime.call(call):
                self._result.feed(event)
                if isinstance(event, Finished) and event.call.id == call.id:
                    self._keep(event)
        finally:
            self.running = None
            if spec.requirements:
                self.post_message(Called(spec.name))
        if self._shown is not None:
            self._recall(self._shown.name)

    async def _agreed(self, spec: ToolSpec) -> bool:
        """Asks once, whatever there is to ask about."""
        rows = self._runtime.health.rows(spec.name) if spec.requirements else ()
        missing = [row.problem for row in rows if row.blocks and row.problem]
        reasons = [_why_blocked(spec, missing)] if missing else []
        if spec.hints.destructive:
            reasons.append(self._what_it_would_do(spec))
        if not reasons:
            return True
        from pegboard.tui.dialogs.confirm import Confirm

        title = f"Run {clean_line(spec.name)}{' anyway' if missing else ''}?"
        agreed: bool | None = await self.app.push_screen_wait(Confirm(title, "\n\n".join(reasons), "Run it"))
        return agreed is True

    def _what_it_would_do(self, spec: ToolSpec) -> str:
        question = f"{clean_line(spec.name)} says that it may delete or overwrite things.\n\n{clean(spec.summary)}"
        if self._form.form is None:
            return question
        lines = clean(self._form.form.text(masked=True)).splitlines()
        more = [f"… {len(lines) - _ARGUMENT_LINES} more lines"] if len(lines) > _ARGUMENT_LINES else []
        return question + "\n\n" + "\n".join([*lines[:_ARGUMENT_LINES], *more])

    def _keep(self, event: Finished) -> None:
        self._results[event.call.name] = (event.call, event.result)
        self._results.move_to_end(event.call.name)
        if len(self._results) > _RESULTS_KEPT:
            self._results.popitem(last=False)

    def watch_running(self) -> None:
        """Shows in the footer whether there is something to cancel."""
        self.screen.refresh_bindings()

    # Arguments from elsewhere, and to elsewhere

    def fill(self, arguments: JsonObject, said: str) -> None:
        """Puts arguments into the form, and says how to bring back what was there.

        Args:
            arguments: What to put in.
            said: Which they are: `those of the last call`.
        """
        form = self._form.form
        if form is None:
            return
        had = form.has_text_fault or bool(form.draft())
        self._form.load(arguments)
        undo = f" {key_of(self._form, 'form.bring_back')} brings back what was there." if had else ""
        self.notify(f"The arguments are {said}.{undo}", markup=False)
        self.focus_form()

    @work(exclusive=True, group="arguments")
    async def fill_with_last(self) -> None:
        """Fills the form with the arguments of the tool's last call."""
        spec = self._shown
        if spec is None:
            return
        try:
            arguments = await asyncio.to_thread(self._runtime.history.last_arguments, spec.name)
        except StoreError as error:
            self.notify(clean_line(str(error)), severity="error", markup=False)
            return
        if arguments is None:
            self.notify(f"{clean_line(spec.name)} was never called.", markup=False)
        elif spec is self._shown:
            self.fill(arguments, "those of the last call")

    @work(exclusive=True, group="arguments")
    async def show_presets(self) -> None:
        """Lists the presets of the tool; the one that is chosen fills the form."""
        from pegboard.tui.tools.presets import PresetsScreen

        filled = self._filled()
        if filled is None:
            return
        spec, form = filled
        preset = await self.app.push_screen_wait(PresetsScreen(self._runtime, spec, form))
        if preset is not None and self._shown is not None and self._shown.name == spec.name:
            self.fill(preset.arguments, f"those of {clean_line(preset.name)}")
        self._recall(spec.name)

    def copy_as(self) -> None:
        """Shows the call that the form makes in several ways, to be copied."""
        from pegboard.tui.dialogs.copy_as import copy_call

        filled = self._filled()
        if filled is not None:
            self.app.push_screen(copy_call(*filled, self._runtime.tools.packs_option(filled[0])))

    def _filled(self) -> tuple[ToolSpec, Form] | None:
        """Gives the tool with its form, unless there is none or it can't be told what is in it."""
        form = self._form.form
        if self._shown is None or form is None:
            self.notify("Mark a tool first.", severity="warning")
            return None
        self._form.settle()
        if form.has_text_fault:
            self.notify("The JSON text has a fault; mend it or drop it first.", severity="warning")
            return None
        return self._shown, form

    # Pasting

    def paste(self, text: str) -> None:
        """Fills the form with a call that is pasted where nothing takes text."""
        if may_be_call(text):
            self._take_paste(text, self._refuse)

    def on_call_pasted(self, event: CallPasted) -> None:
        """Fills the form with a call that was pasted into a field that can't hold it."""
        event.stop()
        self._take_paste(event.text, event.insert)

    def on_call_pasted_as_text(self, event: CallPastedAsText) -> None:
        """Offers to fill the form with a call that was pasted as text."""
        event.stop()
        self._offer_paste(event.text, event.editor)

    def _refuse(self, text: str) -> None:
        del text
        self.notify("What was pasted can't be read as a call.", severity="warning")

    @work(exclusive=True, group="paste")
    async def _take_paste(self, text: str, otherwise: Callable[[str], object]) -> None:
        found = await self._read_paste(text)
        if found is None:
            otherwise(text)
        else:
            await self._take_call(*found)

    @work(exclusive=True, group="paste")
    async def _offer_paste(self, text: str, editor: TextLine | TextBox) -> None:
        found = await self._read_paste(text)
        if found is None:
            return
        editor.offer_call(lambda: self.run_worker(self._take_call(*found), exclusive=True, group="paste"))
        key = key_in_reach(editor, ["field.offer"])
        self.notify(f"That is a call of {clean_line(found[0].name)}: {key} fills the form with it.", markup=False)
        self.screen.refresh_bindings()

    async def _read_paste(self, text: str) -> tuple[ToolSpec, Pasted] | None:
        """Reads a call, by the schema of the tool that it names, else of the tool that is shown."""
        spec = self._shown
        if spec is None:
            return None
        found = await asyncio.to_thread(pasted, text, spec)
        if found is None or found.tool in {None, spec.name}:
            return (spec, found) if found is not None else None
        other = await asyncio.to_thread(self._runtime.tools.get, str(found.tool))
        again = await asyncio.to_thread(pasted, text, other) if other is not None else None
        return (other, again) if other is not None and again is not None else None

    async def _take_call(self, spec: ToolSpec, call: Pasted) -> None:
        """Fills the form with a call; asks for another tool for it once that is confirmed."""
        said = "those that were pasted"
        if self._shown is not None and spec.name == self._shown.name:
            self.fill(call.arguments, said)
            return
        from pegboard.tui.dialogs.confirm import Confirm

        name = clean_line(spec.name)
        question = f"What was pasted is a call of {name}, which is another tool than the one that is shown."
        if await self.app.push_screen_wait(Confirm(f"Go to {name}?", question, "Go there")):
            self.post_message(self.Asked(spec.name, call.arguments, said))


def _lacks_something(subject: Row | None) -> TypeGuard[Entry]:
    return isinstance(subject, Entry) and subject.state != "ready"


def _why_blocked(spec: ToolSpec, missing: Sequence[Problem]) -> str:
    lines = "\n".join(clean_line(str(problem)) for problem in missing)
    return f"{clean_line(spec.name)} lacks what it needs:\n{lines}\n\nIt is looked for once more before the call."
