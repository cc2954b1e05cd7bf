"""The Script page: an editor for bash scripts whose commands are tools, with calls and output."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import TextArea

from pegboard.results.quotation import quoted
from pegboard.tui.commands import Command, bindings, key_of
from pegboard.tui.messages import OpenCall, Scripting, TalkAbout
from pegboard.tui.script.analyzer import ScriptAnalyzer
from pegboard.tui.script.calls import CallsTree
from pegboard.tui.script.commands import CommandsPane
from pegboard.tui.script.completion import complete
from pegboard.tui.script.completion_popup import CompletionPopup
from pegboard.tui.script.document import EXAMPLE, ScriptDocument
from pegboard.tui.script.editor import ScriptEditor
from pegboard.tui.script.findings_line import FindingsLine
from pegboard.tui.script.offered_commands import OfferedCommand, call_to_fill_in
from pegboard.tui.script.output import OutputPane
from pegboard.tui.script.run import CallNode
from pegboard.tui.script.runner import OpenScriptRunner
from pegboard.tui.shell.header import HeaderLine
from pegboard.tui.shell.page import PageScreen
from pegboard.tui.shell.too_small import TooSmall
from pegboard.tui.state.tool_scan import ToolScan
from pegboard.tui.widgets.keys_line import KeysLine

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_PAUSE_SECONDS: Final = 0.3
"""Delay after typing before the script is analyzed, in seconds."""


class ScriptScreen(PageScreen):
    """Editor beside the commands; below, after a run, calls and output.

    Args:
        runtime: Runs and analyzes scripts.
    """

    PAGE = "Script"
    LEGEND = (
        ("▶ ✓ ✗ ⊘", "call running, succeeded, failed, stopped"),
        ("∥", "started while another call was running"),
        ("→ ? ✗", "calls of the script, unknown calls, errors"),
        ("!", "printed to stderr"),
    )
    AUTO_FOCUS = "ScriptEditor"

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
        CommandsPane { width: 20%; min-width: 30; max-width: 48; height: 1fr; }
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
        &.-maximized-view CommandsPane.-maximized { width: 1fr; max-width: 100%; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("script.run", "ctrl+r", "run", "Run", "Run the script.", footer=True, priority=True),
        Command("script.cancel", "escape", "cancel", "Cancel", "Cancel the running script.", True, priority=True),
        Command("script.back", "escape", "back", "Editor", "Focus the editor."),
        Command("script.save", "ctrl+s", "save", "Save", "Save the script.", footer=True),
        Command(
            "script.saved",
            "ctrl+l",
            "saved",
            "Scripts",
            "Open, rename or delete a saved script.",
            footer=True,
            meaning="Open saved",
            words="open load",
        ),
        Command(
            "script.result",
            "ctrl+d",
            "result",
            "Result",
            "Go to the output, or back.",
            footer=True,
            priority=True,
            words="output calls log",
        ),
        Command("script.save_as", "", "save_as", "Save as", "Save the script under another name."),
        Command("script.new", "ctrl+n", "new", "New", "Start a new script."),
        Command(
            "script.past",
            "ctrl+up",
            "past",
            "Insert past calls",
            "Insert past calls into the script.",
            meaning="Reuse",
            words="recent calls",
        ),
        Command(
            "script.copy_as",
            "ctrl+right_square_bracket",
            "copy_as",
            "Copy as",
            "Copy the script as command line, JSON or Python.",
        ),
        Command(
            "script.about",
            "f2",
            "about",
            "About",
            "Show the help of the selected command.",
            footer=True,
            meaning="Details",
            words="help usage",
        ),
        Command(
            "script.commands",
            "ctrl+b,ctrl+backslash",
            "commands",
            "Sidebar",
            "Show or hide the commands.",
            meaning="Tool list",
        ),
        Command("script.fault", "alt+x", "fault", "Next error", "Move to the next error and show it in full."),
        Command("script.maximise", "f10", "maximise", "Maximize", "Maximize the focused pane; esc restores it."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    running: reactive[bool] = reactive(False, init=False)
    """Whether a script is running."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self._runtime = runtime
        self._editor = ScriptEditor()
        self._commands = CommandsPane()
        self._findings = FindingsLine(self._editor)
        self._calls = CallsTree()
        self._output = OutputPane(folder=runtime.paths.state)
        self.analyzer = ScriptAnalyzer(runtime, self._editor)
        """Analysis of the open script."""
        self.document = ScriptDocument(self, runtime, self._editor, self._update_title)
        """The open script."""
        self.runner = OpenScriptRunner(
            self, runtime, self.analyzer, self.document, self._calls, self._output, self._runner_changed
        )
        """The running script."""

    def compose(self) -> ComposeResult:
        """Yield commands and editor, and below calls and output."""
        yield HeaderLine("script")
        with Horizontal(id="body"):
            yield self._commands
            with Vertical(id="desk"):
                with Vertical(id="writing"):
                    yield self._editor
                    yield self._editor.popup
                    yield self._findings
                with Container(id="results"):
                    yield self._calls
                    yield self._output
        yield TooSmall()
        yield KeysLine()

    def on_mount(self) -> None:
        """Restore the draft and watch the tools."""
        self._commands.border_title = "Commands"
        self._calls.border_title = "Calls"
        self._output.border_title = "Output"
        self._output.run_key = key_of(self, "script.run")
        self._output.cancel_key = key_of(self, "script.cancel")
        self._findings.display = False
        self._editor.show_example(EXAMPLE, key_of(self._editor, "script.indent"))
        self._update_title()
        self.document.restore()
        self.watch(self.app, "tool_scan", self._tools_changed)

    async def on_unmount(self) -> None:
        """Save the draft."""
        await self.document.close()

    # Commands

    def _tools_changed(self, scan: ToolScan) -> None:
        # the worker has no arguments: Textual would format all tools for its description
        del scan
        self._load_commands()

    @work(exclusive=True, group="commands")
    async def _load_commands(self) -> None:
        """List the available commands."""
        commands = await self.analyzer.load_commands()
        scan: ToolScan = getattr(self.app, "tool_scan", ToolScan())
        self._commands.show(commands, scan.empty)
        self._analyze()

    @on(CommandsPane.Inserted)
    def _inserted(self, event: CommandsPane.Inserted) -> None:
        event.stop()
        self._insert(event.command)

    def _insert(self, command: OfferedCommand) -> None:
        """Insert a call of a command into the script."""
        if self.has_class("-narrow"):
            self.remove_class("-asked")
        self._editor.focus()
        self._editor.put(call_to_fill_in(command))

    @work(exclusive=True, group="dialog")
    async def action_about(self) -> None:
        """Show the help of the selected command, or of the one at the cursor."""
        from pegboard.tui.script.command_help import CommandHelp

        is_listed = self._commands.has_focus_within
        command = self._commands.marked if is_listed else self.analyzer.command_at_cursor
        if command is None:
            self.notify("Select a command in the list, or move the cursor to a command.")
        elif await self.app.push_screen_wait(CommandHelp(command)):
            self._insert(command)

    def action_commands(self) -> None:
        """Show or hide the commands and move the focus with them."""
        name = "-asked" if self.has_class("-narrow") else "-folded"
        self.toggle_class(name)
        if self.has_class("-narrow") == self.has_class(name):
            self._commands.list.focus()
        elif self._commands.has_focus_within:
            self._editor.focus()

    # The open script

    @on(TextArea.Changed)
    def _text_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._update_title()
        self._analyze()
        self.document.schedule_draft()

    def _update_title(self) -> None:
        self.query_one("#writing").border_title = self.document.title

    @work(group="save")
    async def action_save(self) -> None:
        """Save the script under its name; ask for a name if it is new."""
        await self.document.save()

    @work(exclusive=True, group="dialog")
    async def action_save_as(self) -> None:
        """Save the script under another name."""
        await self.document.save_as()

    @work(exclusive=True, group="dialog")
    async def action_saved(self) -> None:
        """Show the saved scripts and open the chosen one."""
        from pegboard.tui.script.saved_scripts import SavedScriptsScreen

        script = self.document.state
        chosen = await self.app.push_screen_wait(SavedScriptsScreen(self._runtime, script))
        self.document.follow(script)
        if chosen is not None:
            await self.document.open(chosen)

    @work(exclusive=True, group="dialog")
    async def action_new(self) -> None:
        """Start a new script."""
        await self.document.new()

    @work(exclusive=True, group="dialog")
    async def open_text(self, text: str, go_back: Callable[[], Awaitable[None]]) -> None:
        """Open a text as a new script, after confirmation if changes would be lost; if they are kept, go back."""
        if not await self.document.open_text(text) and self.is_current:
            await go_back()

    @work(exclusive=True, group="dialog")
    async def action_past(self) -> None:
        """Insert past calls into the script."""
        from pegboard.tui.script.past_calls import PastCallsScreen

        lines = await self.app.push_screen_wait(PastCallsScreen(self._runtime))
        if lines:
            self._editor.focus()
            self._editor.put_lines(lines)

    @work(exclusive=True, group="dialog")
    async def action_copy_as(self) -> None:
        """Show the script in several formats to copy."""
        from pegboard.tui.dialogs.copy_as import copy_script

        text = self._editor.text
        if not text.strip():
            self.notify("The editor is empty. Type a script to copy.", severity="warning")
            return
        specs = self.analyzer.specs
        packs = await asyncio.to_thread(
            lambda: [*dict.fromkeys(filter(None, map(self._runtime.tools.packs_option, specs)))]
        )
        await self.app.push_screen_wait(copy_script(text, packs))

    # Result

    @property
    def has_result_focus(self) -> bool:
        """Whether the focus is in the calls or the output."""
        return self._calls.has_focus_within or self._output.has_focus_within

    def focus_result(self) -> bool:
        """Focus the output of the last run; return False and say so if the script was not run."""
        if not self.has_class("-ran"):
            key = key_of(self, "script.run")
            self.notify(f"The script has no output yet. Press {key} to run it.", markup=False)
            return False
        self._output.focus()
        return True

    def focus_work(self) -> None:
        """Focus the editor."""
        self._editor.focus()

    # Analysis

    @work(exclusive=True, group="analyze")
    async def _analyze(self) -> None:
        """Show the findings of the script once typing stops."""
        await asyncio.sleep(_PAUSE_SECONDS)
        self._findings.show(await self.analyzer.analyze())
        self._editor.mark_findings(self._findings.marks)

    def action_fault(self, row: int = -1) -> None:
        """Move to a finding.

        Args:
            row: Its row below the editor; -1 for the next one after the cursor.
        """
        found = self._findings
        place = found.reach_next(self._editor.cursor_location) if row < 0 else found.place_at(row)
        if place is not None:
            self._editor.focus()
            self._editor.move_cursor(place, center=True)

    @on(FindingsLine.Clicked)
    def _findings_clicked(self, event: FindingsLine.Clicked) -> None:
        event.stop()
        self.action_fault(event.row)

    # Completion

    @on(ScriptEditor.Typed)
    def _typed(self, event: ScriptEditor.Typed) -> None:
        event.stop()
        self._complete(is_request=event.is_request)

    @work(exclusive=True, group="complete")
    async def _complete(self, *, is_request: bool) -> None:
        """Show what can complete the word at the cursor; without a word only on request or for a flag's value."""
        editor = self._editor
        text, cursor = editor.text, editor.cursor_location
        if not (is_request or editor.selection.is_empty):
            return
        found = await asyncio.to_thread(complete, *editor.before_cursor(), self.analyzer.known(text))
        if (text, cursor) != (editor.text, editor.cursor_location) or not editor.has_focus:
            return
        if found is not None and (is_request or found.word or found.is_value_of_flag):
            editor.popup.open(found, editor.cursor_screen_offset)
        else:
            editor.popup.close()
            if is_request:
                self.notify("No completions here.")

    @on(CompletionPopup.Accepted)
    def _accepted(self, event: CompletionPopup.Accepted) -> None:
        event.stop()
        self._editor.accept_completion()

    def on_resize(self, event: events.Resize) -> None:
        """Keep the focus visible."""
        del event
        self.call_after_refresh(self._focus_editor)

    def _focus_editor(self) -> None:
        if self.focused is None and self._before_small is None:
            self._editor.focus()

    @property
    def settled(self) -> bool:
        """Whether the script is restored and analyzed, and nothing is running."""
        return self.document.is_restored and self.analyzer.is_ready and not self.runner.is_starting

    # Runs

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable only the actions that are possible now."""
        match action:
            case "cancel":
                return self.running and self.app.screen is self
            case "fault":
                return self._findings.has_places
            case _:
                return True

    def action_run(self) -> None:
        """Run the script unless one is running."""
        if self.runner.is_starting:
            key = key_of(self, "script.cancel")
            self.notify(f"A script is still running. Press {key} to cancel it.", markup=False)
        elif not self._editor.text.strip():
            self.notify("The editor is empty. Type a script to run.", severity="warning")
            self._editor.focus()
        else:
            self.runner.start(self._editor.text)

    async def action_cancel(self) -> None:
        """Cancel the running script and its calls."""
        await self.runner.cancel()

    def _runner_changed(self) -> None:
        self.running = self.runner.is_running

    def watch_running(self, running: bool) -> None:
        """Report the change to the app and update the footer."""
        self.post_message(Scripting(running))
        self.refresh_bindings()

    @on(CallsTree.Requested)
    def _requested(self, event: CallsTree.Requested) -> None:
        event.stop()
        if event.action == "form":
            self.post_message(OpenCall(event.node.call.name, event.node.call.args))
        else:
            self._use_result(event.node, event.action)

    @work(exclusive=True, group="dialog")
    async def _use_result(self, node: CallNode, action: str) -> None:
        """Open a call's result, or insert it into the chat prompt."""
        result = node.result
        if result is not None and not node.is_whole:
            result = await asyncio.to_thread(self._runtime.history.result, node.call.id) or result
        if result is None:
            return
        if action == "talk":
            self.post_message(TalkAbout(quoted(node.call, result)))
            return
        from pegboard.tui.dialogs.result import ResultScreen

        await self.app.push_screen_wait(ResultScreen(node.call, result, self._runtime.paths.state))

    # Panes

    def action_back(self) -> None:
        """Restore a maximized pane, or focus the editor."""
        if self.maximized is not None:
            self.minimize()
            return
        self.remove_class("-asked")
        self._editor.focus()

    @property
    def panes(self) -> Sequence[Widget]:
        """Panes that can be maximized."""
        return (self._commands, self.query_one("#writing"), self._calls, self._output)
