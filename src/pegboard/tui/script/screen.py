"""The place where bash scripts over the tools are written and watched."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.reactive import reactive, var
from textual.widget import Widget
from textual.widgets import Static, TextArea

from pegboard.errors import SavedScriptError, StoreError
from pegboard.models import ExpectedCall, ToolCall
from pegboard.results.clean import clean_line
from pegboard.results.quotation import quoted
from pegboard.results.text import preview
from pegboard.tui.commands import Command, bindings, key_of
from pegboard.tui.messages import OpenCall, Scripting, TalkAbout
from pegboard.tui.script.api import Orchestrator, ScriptCommand, call_to_fill_in, spec_of
from pegboard.tui.script.calls import CallsTree, exit_code
from pegboard.tui.script.commands import CommandsPane
from pegboard.tui.script.draft import Draft, DraftFile
from pegboard.tui.script.editor import ScriptEditor
from pegboard.tui.script.findings import Finding, findings
from pegboard.tui.script.open_script import InEditor
from pegboard.tui.script.output import OutputPane
from pegboard.tui.script.run import Node, ScriptRun
from pegboard.tui.shell.footer import KeysLine
from pegboard.tui.shell.header import HeaderLine
from pegboard.tui.shell.page import PageScreen
from pegboard.tui.shell.too_small import TooSmall
from pegboard.tui.state.tool_scan import ToolScan

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

EXAMPLE: Final = """\
fs.list_dir | jq -r '.[] | "\\(.size // 0) \\(.name)"' | sort -rn | head -3
time.now & text.count --text 'one two' & wait
fs.read_file nothing.txt || echo "There is no such file."
"""
_NAME: Final = "script.run"
_PAUSE_SECONDS: Final = 0.3
"""How long typing rests before the script is looked at."""
_DRAFT_SECONDS: Final = 1.0
"""What of the typing a killed process loses at most."""
_FINDINGS, _FINDINGS_NARROW = 3, 2
"""Lines in which things are said of the script."""
_MOST_ASKED: Final = 8
"""Calls that are named in the question before destructive ones."""
_ASKED_CELLS: Final = 40
"""Characters of the arguments of each."""
_SIGNS: Final = {"fault": ("✗", "$text-error"), "unknown": ("?", "$text-warning"), "calls": ("→", "$text-muted")}


class ScriptScreen(PageScreen):
    """The editor beside its commands; below, once it ran, the calls and what was printed.

    Args:
        runtime: What runs scripts.
    """

    PAGE = "Script"
    LEGEND = (
        ("▶ ✓ ✗ ⊘", "a call runs, is done, failed, was stopped"),
        ("∥", "began while another call still ran"),
        ("→ ? ✗", "what the script will call, what can't be known, what is wrong"),
        ("!", "printed to stderr"),
    )
    AUTO_FOCUS = "ScriptEditor"
    ALLOW_IN_MAXIMIZED_VIEW = "HeaderLine, KeysLine"

    DEFAULT_CSS = """
    ScriptScreen {
        #body { height: 1fr; }
        #desk { width: 1fr; height: 1fr; }
        #writing, CallsTree, OutputPane, CommandsPane {
            border: round $border-blurred;
            border-title-color: $text-muted;
            border-subtitle-color: $text-muted;
            &:focus-within { border: round $border; border-title-color: $text-primary; border-title-style: bold; }
        }
        CommandsPane { width: 30; height: 1fr; }
        #writing { height: 1fr; }
        #findings { height: auto; max-height: 3; padding: 0 1; background: $panel; }
        #results { height: 1fr; layout: horizontal; display: none; }
        CallsTree { width: 1fr; height: 1fr; }
        OutputPane { width: 1fr; height: 1fr; }
        &.-ran #results { display: block; }
        &.-folded CommandsPane { display: none; }
        &.-narrow {
            #writing, CallsTree, OutputPane, CommandsPane {
                border: none;
                border-top: solid $border-blurred;
                &:focus-within { border: none; border-top: solid $border; }
            }
            CommandsPane { width: 30; display: none; }
            &.-asked CommandsPane { display: block; }
            #results { layout: vertical; height: 3fr; }
            #writing { height: 2fr; }
            CallsTree, OutputPane { width: 1fr; height: 1fr; }
            CallsTree:focus-within, OutputPane:focus-within { height: 2fr; }
            #writing:focus-within { height: 3fr; }
            #findings { max-height: 2; }
        }
        &.-maximized-view CommandsPane.-maximized { width: 1fr; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("script.run", "ctrl+r,ctrl+j", "run", "Run", "Run the script.", footer=True, priority=True),
        Command("script.cancel", "escape", "cancel", "Cancel", "End the running script.", True, priority=True),
        Command("script.back", "escape", "back", "Editor", "Go to the editor."),
        Command("script.save", "ctrl+s", "save", "Save", "Save the script under its name, or a new one.", footer=True),
        Command("script.saved", "ctrl+l", "saved", "Scripts", "Open, rename or delete a saved script.", footer=True),
        Command("script.save_as", "", "save_as", "Save as", "Save the script under another name."),
        Command("script.new", "ctrl+n", "new", "New", "Begin a new script."),
        Command("script.past", "ctrl+t", "past", "From history", "Make lines of the script of past calls."),
        Command(
            "script.copy_as",
            "ctrl+right_square_bracket",
            "copy_as",
            "Copy as",
            "Copy it as command line, JSON, Python.",
        ),
        Command("script.about", "f2", "about", "About", "Show all of the marked command, or of the cursor's.", True),
        Command("script.commands", "ctrl+b,ctrl+backslash", "commands", "Sidebar", "Show or fold the commands.", True),
        Command("script.fault", "", "fault", "Go to fault", "Go to the first line that something is wrong with."),
        Command(
            "script.maximise", "f10", "maximise", "Maximise", "Give the focused pane the whole screen; esc restores."
        ),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    running: reactive[bool] = reactive(False, init=False)
    """Whether a script runs."""
    script_name: var[str] = var("", init=False)
    """The name of the saved script that is in the editor; empty for a new one."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self._runtime = runtime
        self._editor = ScriptEditor()
        self._commands = CommandsPane()
        self._findings = Static(id="findings")
        self._calls = CallsTree()
        self._output = OutputPane(folder=runtime.paths.state)
        self._orchestrator: Orchestrator | None = None
        self._names: dict[str, str] = {}
        """The commands' own names by all of their names."""
        self._by_name: dict[str, ScriptCommand] = {}
        """The commands by their own names."""
        self._file = DraftFile(runtime.paths.state)
        self._is_restored = False
        """Whether the draft in the file was read, and may be replaced."""
        self._saved = ""
        """The text of the saved script when it was last read or written."""
        self._is_keeping = False
        self._found: Sequence[Finding] = ()
        self._looked_at: str | None = None
        """The script that something is said of."""
        self._call_id = ""
        self._is_starting = False

    def compose(self) -> ComposeResult:
        """Commands and editor over what came of the last run."""
        yield HeaderLine("script")
        with Horizontal(id="body"):
            yield self._commands
            with Vertical(id="desk"):
                with Vertical(id="writing"):
                    yield self._editor
                    yield self._findings
                with Container(id="results"):
                    yield self._calls
                    yield self._output
        yield TooSmall()
        yield KeysLine()

    def on_mount(self) -> None:
        """Brings back what was being written, and follows what the wall has."""
        self._commands.border_title = "Commands"
        self._calls.border_title = "Calls"
        self._output.border_title = "Output"
        self._output.run_key = key_of(self, "script.run")
        self._output.cancel_key = key_of(self, "script.cancel")
        self._findings.display = False
        self._editor.show_example(EXAMPLE, key_of(self._editor, "script.indent"))
        self._paint_title()
        self._restore()
        self.watch(self.app, "tool_scan", self._take_wall)

    async def on_unmount(self) -> None:
        """Keeps what is being written."""
        self._file.keep(self._draft)
        await asyncio.to_thread(self._leave_draft)

    # What may be called

    def _take_wall(self, wall: ToolScan) -> None:
        # A worker that were given it would be named after it: Textual would write ten thousand tools down.
        self._learn()

    @work(exclusive=True, group="learn")
    async def _learn(self) -> None:
        """Lists the commands that there are now."""
        orchestrator: Orchestrator = await asyncio.to_thread(self._runtime.scripts.orchestrator)
        commands = orchestrator.commands
        self._orchestrator = orchestrator
        self._names = {name: command.names[0] for command in commands for name in command.names}
        self._by_name = {command.names[0]: command for command in commands}
        wall: ToolScan = getattr(self.app, "tool_scan", ToolScan())
        self._commands.show(commands, wall.empty)
        self._editor.know(frozenset(self._names))
        self._look()

    @on(CommandsPane.Taken)
    def _taken(self, event: CommandsPane.Taken) -> None:
        """Puts a command into the script."""
        event.stop()
        self._put(call_to_fill_in(event.command))

    def _put(self, text: str) -> None:
        if self.has_class("-narrow"):
            self.remove_class("-asked")
        self._editor.focus()
        self._editor.put(text)

    @work(exclusive=True, group="dialog")
    async def action_about(self) -> None:
        """Shows all that is to be known of a command; enter puts it into the script."""
        from pegboard.tui.script.command_help import CommandHelp

        command = self._command_meant()
        if command is None:
            self.notify("Mark a command, or go to one in the script.")
        elif await self.app.push_screen_wait(CommandHelp(command)):
            self._put(call_to_fill_in(command))

    def _command_meant(self) -> ScriptCommand | None:
        if self._commands.has_focus_within:
            return self._commands.marked
        return self._by_name.get(self._names.get(self._editor.command_here(), ""))

    def action_commands(self) -> None:
        """Shows or folds the commands, and takes the focus along."""
        name = "-asked" if self.has_class("-narrow") else "-folded"
        self.toggle_class(name)
        if self.has_class("-narrow") == self.has_class(name):
            self._commands.list.focus()
        elif self._commands.has_focus_within:
            self._editor.focus()

    # What is written

    @on(TextArea.Changed)
    def _changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._paint_title()
        self._look()
        self._keep_soon()

    @property
    def _draft(self) -> Draft:
        return Draft(self._editor.text, self.script_name, self._saved)

    @property
    def is_changed(self) -> bool:
        """Whether something would be lost if another script came into the editor."""
        return self._editor.text != self._saved

    def _paint_title(self) -> None:
        name = clean_line(self.script_name) if self.script_name else "Script"
        changed = [("  ● changed", "$text-warning")] if self.script_name and self.is_changed else []
        self.query_one("#writing").border_title = Content.assemble(name, *changed)

    @work(group="draft")
    async def _restore(self) -> None:
        """Brings back what was being written when the app ended; what was typed meanwhile comes behind it."""
        draft = await asyncio.to_thread(self._file.read)
        typed = self._editor.text
        self.script_name, self._saved = draft.name, draft.saved
        if not typed:
            self._editor.load_text(draft.text)
        elif draft.text:
            self._editor.insert(f"{draft.text.rstrip(chr(10))}\n", (0, 0))
        self._is_restored = True
        self._paint_title()

    def _keep_soon(self) -> None:
        if self._is_restored and not self._is_keeping:
            self._is_keeping = True
            self._keep()

    @work(group="draft")
    async def _keep(self) -> None:
        """Writes the draft a little later than the first of some changes."""
        await asyncio.sleep(_DRAFT_SECONDS)
        self._is_keeping = False
        if not self._file.keep(self._draft):
            return
        try:
            await asyncio.to_thread(self._file.write)
        except OSError as error:
            self.notify(f"The draft can't be kept: {error.strerror}.", severity="warning", markup=False)

    def _leave_draft(self) -> None:
        if self._is_restored:
            with suppress(OSError):
                self._file.write()
        self._file.close()

    # Saved scripts, past calls, copies

    @property
    def _in_editor(self) -> InEditor:
        return InEditor(self._editor.text, self.script_name, self._saved)

    def _wear(self, script: InEditor) -> None:
        """Takes over what became of the script's name."""
        self.script_name, self._saved = script.name, script.saved
        self._paint_title()
        self._keep_soon()

    @work(exclusive=True, group="dialog")
    async def action_save(self) -> None:
        """Saves the script under its name; a new one under one that is asked for."""
        script = self._in_editor
        if not script.name:
            await self._save_as(script)
            return
        saved = self._runtime.scripts.saved
        try:
            if await self._is_foreign(script) and not await self._confirmed(
                f"Overwrite {clean_line(script.name)}?",
                "It was changed elsewhere since it was opened here.",
                "Overwrite",
            ):
                return
            await asyncio.to_thread(saved.write, script.name, script.text)
        except SavedScriptError as error:
            self.notify(clean_line(str(error)), severity="error", markup=False)
            return
        script.saved = script.text
        self._wear(script)
        self.notify(f"Saved as {clean_line(script.name)}.", markup=False)

    async def _is_foreign(self, script: InEditor) -> bool:
        """Says whether what is kept under the script's name isn't what was read or written here."""
        try:
            return await asyncio.to_thread(self._runtime.scripts.saved.read, script.name) != script.saved
        except SavedScriptError:  # nothing is there that could be lost
            return False

    @work(exclusive=True, group="dialog")
    async def action_save_as(self) -> None:
        """Saves the script under another name."""
        await self._save_as(self._in_editor)

    async def _save_as(self, script: InEditor) -> None:
        from pegboard.tui.script.saved_scripts import save_as

        if await save_as(self, self._runtime, script, script.name):
            self._wear(script)

    @work(exclusive=True, group="dialog")
    async def action_saved(self) -> None:
        """Lists the saved scripts; opens the one that is chosen."""
        from pegboard.tui.script.saved_scripts import SavedScriptsScreen

        script = self._in_editor
        chosen = await self.app.push_screen_wait(SavedScriptsScreen(self._runtime, script))
        self._wear(script)
        if chosen is None or not await self._may_go():
            return
        try:
            text = await asyncio.to_thread(self._runtime.scripts.saved.read, chosen)
        except SavedScriptError as error:
            self.notify(clean_line(str(error)), severity="error", markup=False)
        else:
            self._open(text, chosen)

    @work(exclusive=True, group="dialog")
    async def action_new(self) -> None:
        """Begins a new script."""
        if await self._may_go():
            self._open("", "")

    def _open(self, text: str, name: str) -> None:
        self._editor.load_text(text)
        # what is taken for a change is measured by this: an editor of lines knows no other line ends than its own
        self.script_name, self._saved = name, self._editor.text
        self._paint_title()
        self._keep_soon()
        self._editor.focus()

    async def _may_go(self) -> bool:
        """Asks whether what was written may be lost, if anything would be."""
        if not self.is_changed or not self._editor.text.strip():
            return True
        of = f"What was changed in {clean_line(self.script_name)}" if self.script_name else "The script in the editor"
        key = key_of(self, "script.save")
        return await self._confirmed("Drop the changes?", f"{of} isn't saved. {key} in the editor saves it.", "Drop")

    async def _confirmed(self, title: str, question: str, yes: str) -> bool:
        from pegboard.tui.dialogs.confirm import Confirm

        return await self.app.push_screen_wait(Confirm(title, question, yes)) is True

    @work(exclusive=True, group="dialog")
    async def action_past(self) -> None:
        """Puts past calls into the script."""
        from pegboard.tui.script.past_calls import PastCallsScreen

        lines = await self.app.push_screen_wait(PastCallsScreen(self._runtime))
        if lines:
            self._editor.focus()
            self._editor.put_lines(lines)

    @work(exclusive=True, group="dialog")
    async def action_copy_as(self) -> None:
        """Shows the script in several ways, to be copied."""
        from pegboard.tui.dialogs.copy_as import copy_script

        text = self._editor.text
        if not text.strip():
            self.notify("There is nothing to copy yet: type a script.", severity="warning")
            return
        specs = filter(None, map(spec_of, self._by_name.values()))
        packs = await asyncio.to_thread(
            lambda: [*dict.fromkeys(filter(None, map(self._runtime.tools.packs_option, specs)))]
        )
        await self.app.push_screen_wait(copy_script(text, packs))

    # What is said before it runs

    @work(exclusive=True, group="look")
    async def _look(self) -> None:
        """Says what the script will call, once typing rests."""
        await asyncio.sleep(_PAUSE_SECONDS)
        self._editor.settle()
        text, orchestrator = self._editor.text, self._orchestrator
        found: Sequence[Finding] = ()
        if orchestrator is not None and text.strip():
            analysis = await asyncio.to_thread(orchestrator.analyze, text)
            found = findings(analysis, self._editor.scanned(), self._names, text)
        self._show_findings(found)
        self._looked_at = text

    def _show_findings(self, found: Sequence[Finding]) -> None:
        self._found = found
        most = _FINDINGS_NARROW if self.has_class("-narrow") else _FINDINGS
        lines = []
        for number, finding in enumerate(found[:most], 1):
            sign, style = _SIGNS[finding.kind]
            more = f"  and {len(found) - most} more" if number == most < len(found) else ""
            room = max(self._editor.size.width - len(more) - 5, 20)
            text = Content(finding.text).truncate(room, ellipsis=True)
            lines.append(Content.assemble((f"{sign} ", f"bold {style}"), (text.plain, style), (more, "$text-muted")))
        self._findings.display = bool(lines)
        self._findings.update(Content("\n").join(lines))

    def action_fault(self) -> None:
        """Goes to the first line that something is wrong with."""
        line = next((finding.line for finding in self._found if finding.line is not None), None)
        if line is not None:
            self._editor.focus()
            self._editor.move_cursor((line - 1, 0), center=True)

    @on(events.Click, "#findings")
    def _findings_clicked(self) -> None:
        self.action_fault()

    def on_resize(self) -> None:
        """Cuts what is said to the new width, and has the focus where it can be seen."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        self._show_findings(self._found)
        if self.focused is None:
            self._editor.focus()

    @property
    def settled(self) -> bool:
        """Whether all is known of what is in the editor, and nothing runs."""
        is_known = self._is_restored and self._orchestrator is not None and self._looked_at == self._editor.text
        return is_known and not self.running and not self._is_starting

    # Running

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers only what can be done now."""
        match action:
            case "cancel":
                return self.running and self.app.screen is self
            case "fault":
                return any(finding.line is not None for finding in self._found)
            case _:
                return True

    def action_run(self) -> None:
        """Runs the script, unless one is still running."""
        if self.running or self._is_starting:
            self.notify(f"The script is still running: {key_of(self, 'script.cancel')} ends it.", markup=False)
        elif not self._editor.text.strip():
            self.notify("There is nothing to run yet: type a script.", severity="warning")
            self._editor.focus()
        else:
            self._is_starting = True
            self._start()

    @work(group="run")
    async def _start(self) -> None:
        """Runs the script and shows what happens; asks first whether destructive tools shall be called."""
        text = self._editor.text
        try:
            if await self._agreed(text):
                await self._follow(text)
        finally:
            self._is_starting = False

    async def _agreed(self, text: str) -> bool:
        """Asks once where tools would be called that may delete or overwrite something."""
        orchestrator = self._orchestrator
        if orchestrator is None:
            orchestrator = await asyncio.to_thread(self._runtime.scripts.orchestrator)
        analysis = await asyncio.to_thread(orchestrator.analyze, text)
        calls = [
            f"{clean_line(call.tool)}  {_said(call)}" for call in analysis.calls if self._is_destructive(call.tool)
        ]
        if not calls:
            return True
        more = [f"… and {len(calls) - _MOST_ASKED} more"] if len(calls) > _MOST_ASKED else []
        question = "It calls tools that say that they may delete or overwrite things:\n\n"
        question += "\n".join([*calls[:_MOST_ASKED], *more])
        return await self._confirmed("Run this script?", question, "Run it")

    def _is_destructive(self, tool: str) -> bool:
        command = self._by_name.get(tool)
        spec = spec_of(command) if command is not None else None
        return spec is not None and bool(spec.hints.destructive)

    async def _follow(self, text: str) -> None:
        """Runs a script and shows what happens."""
        call = ToolCall(name=_NAME, args={"commands": text}, source="script")
        run = ScriptRun(call)
        self._call_id = call.id
        self._calls.show(run)
        self._output.start(call)
        self.add_class("-ran")
        self.running = True
        try:
            async for event in self._runtime.scripts.run(text, source="script", call_id=call.id):
                run.feed(event)
                self._calls.renew()
                self._output.feed(event)
        finally:
            self.running = False
        self._tell_end(run)

    def _tell_end(self, run: ScriptRun) -> None:
        """Says that the script has ended to a user who is elsewhere."""
        if not self.app.app_focus:
            self.app.bell()
        result = run.script.result
        if self.app.current_mode != "script" and result is not None:
            code = exit_code(result)
            how = f"ended with exit code {code}" if code is not None else "was ended"
            self.notify(f"The script {how}.", severity="information" if code == 0 else "warning", markup=False)

    def watch_running(self, running: bool) -> None:
        """Shows in header and footer whether a script runs."""
        self.post_message(Scripting(running))
        self.refresh_bindings()

    async def action_cancel(self) -> None:
        """Ends the running script and its calls."""
        await self._runtime.cancel(self._call_id)

    # What is done with a call

    @on(CallsTree.Wanted)
    def _wanted(self, event: CallsTree.Wanted) -> None:
        event.stop()
        if event.what == "form":
            self.post_message(OpenCall(event.node.call.name, event.node.call.args))
        else:
            self._use(event.node, event.what)

    @work(exclusive=True, group="dialog")
    async def _use(self, node: Node, what: str) -> None:
        """Opens a call's result, or takes it to the chat."""
        result = node.result
        if result is not None and not node.is_whole:
            try:
                result = await asyncio.to_thread(self._runtime.history.result, node.call.id) or result
            except StoreError as error:
                self.notify(clean_line(str(error)), severity="error", markup=False)
        if result is None:
            return
        if what == "talk":
            self.post_message(TalkAbout(quoted(node.call, result)))
            return
        from pegboard.tui.dialogs.result import ResultScreen

        await self.app.push_screen_wait(ResultScreen(node.call, result, self._runtime.paths.state))

    # Looking around

    def action_back(self) -> None:
        """Gives back the whole screen where a pane has it, else goes to the editor."""
        if self.maximized is not None:
            self.minimize()
            return
        self.remove_class("-asked")
        self._editor.focus()

    @property
    def panes(self) -> Sequence[Widget]:
        """What may have the whole screen."""
        return (self._commands, self.query_one("#writing"), self._calls, self._output)


def _said(call: ExpectedCall) -> str:
    """Gives the arguments of a call that stands in a script, as far as they are known."""
    if call.args is not None:
        return preview(call.args, _ASKED_CELLS)
    return clean_line(" ".join("…" if word is None else word for word in call.words))[:_ASKED_CELLS]
