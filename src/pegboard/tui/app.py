"""The app: the runtime it shows, its themes and its keys; everything else is the screens'."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ScreenStackError
from textual.binding import BindingType
from textual.errors import NoWidget
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

from pegboard.models import Problem
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.messages import Asking, Called, Copy, OpenCall, OpenTool, Scripting, TalkAbout
from pegboard.tui.shell import themes
from pegboard.tui.shell.idle_collector import IdleCollector
from pegboard.tui.shell.keymap import key_problems, places
from pegboard.tui.shell.themed_app import ThemedApp
from pegboard.tui.state.health_checks import HealthChecks, HealthState
from pegboard.tui.state.rule_undo import RuleUndo
from pegboard.tui.state.tool_scan import ToolScan
from pegboard.tui.tools.screen import ToolsScreen

if TYPE_CHECKING:
    from pegboard.runtime import Runtime
    from pegboard.tui.state.approvals import Request

_SWEEP_AFTER_SECONDS = 5.0


class PegboardApp(ThemedApp, inherit_bindings=False):
    """Pegboard on the screen.

    Args:
        runtime: The headless side; it is closed when the app ends.
    """

    TITLE = "Pegboard"
    DEFAULT_MODE = "tools"
    # mypy takes what Textual declares as `ClassVar[…] | None` for instance variables.
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]  # noqa: RUF012 - see above
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (16, "-high-enough")]  # noqa: RUF012 - see above

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("mode.tools", "f5", "mode('tools')", "Tools", "Go to the tools; from among them, to their list."),
        Command("mode.chat", "f6", "mode('chat')", "Chat", "Go to the conversation with a model that uses the tools."),
        Command(
            "mode.script", "f7", "mode('script')", "Script", "Go to the bash scripts whose commands are the tools."
        ),
        Command("mode.health", "f8", "mode('health')", "Health", "Go to what the tools need, and what is missing."),
        Command("tools.problems", "ctrl+g,exclamation_mark", "show_problems", "Problems", "List all that is wrong."),
        Command("app.help", "f1,question_mark", "help", "Help", "Show the keys of the focused place.", footer=True),
        Command(
            "app.palette",
            "ctrl+p,alt+p",
            "command_palette",
            "Commands",
            "Find any command and any tool.",
            footer=True,
            priority=True,
        ),
        Command("app.jump", "ctrl+o", "jump", "Jump", "Put a letter on everything that can be focused; type one."),
        Command("app.next", "tab", "focus_next", "Next", "Focus what comes next."),
        Command("app.previous", "shift+tab", "focus_previous", "Previous", "Focus what comes before."),
        Command(
            "chat.asking",
            "f12,alt+a",
            "to_asking",
            "Approval",
            "Go to the call awaiting approval; again, to the next one.",
            priority=True,
        ),
        Command(
            "app.undo_rule",
            "alt+z",
            "undo_rule",
            "Undo the last rule",
            "Remove the rule that the last approval added.",
            priority=True,
        ),
        Command("app.rules", "", "rules", "Rules", "Say which calls of models run, ask first or are refused."),
        Command("app.trust", "", "trust", "Trust this folder…", "Review what this folder's files set, and trust them."),
        Command("app.theme", "", "change_theme", "Theme", "Choose another theme; the choice is kept."),
        Command("app.quit", "ctrl+q", "quit", "Quit", "End Pegboard; a running call ends with it.", priority=True),
        Command("app.interrupt", "ctrl+c", "help_quit", "Interrupt", "Copy what is selected; it doesn't quit."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    tool_scan: reactive[ToolScan] = reactive(ToolScan, init=False)
    """What the last scan found."""
    health: reactive[HealthState] = reactive(HealthState, init=False)
    """What is known of the things that the tools need."""
    requests: reactive[tuple[Request, ...]] = reactive((), init=False)
    """The calls awaiting approval."""
    asking: reactive[bool] = reactive(False, init=False)
    """Whether a model is being asked."""
    unrecorded: reactive[Problem | None] = reactive(None, init=False)
    """Which calls aren't recorded, and why."""
    scripting: reactive[bool] = reactive(False, init=False)
    """Whether a script runs."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._checks = HealthChecks(runtime, self._know)
        self._key_problems: tuple[Problem, ...] = ()
        self._is_entitled = False
        self.wants_reload = False
        """Whether to start the app again, with the configuration as it is then."""
        super().__init__((themes.shipped(), runtime.paths.themes), runtime.paths.state / "theme", runtime.settings)
        if "TEXTUAL_ANIMATIONS" not in os.environ:
            self.animation_level = "full" if runtime.settings.ui.animations else "none"
        self.set_keymap(runtime.settings.keys)
        self._collector = IdleCollector()
        self._rule_undo = RuleUndo(self, runtime)
        self.add_mode("tools", lambda: ToolsScreen(runtime))
        self.add_mode("chat", self._chat_screen)
        self.add_mode("script", self._script_screen)
        self.add_mode("health", self._health_screen)

    def on_mount(self) -> None:
        """Checks the keys and follows the theme files from the first frame on; sweeps when all is there."""
        self.call_after_refresh(self._check_keys)
        self.call_after_refresh(self.follow_themes)
        self.call_after_refresh(self._watch_record)
        self.call_after_refresh(self._notify_about_configuration)
        self.set_timer(_SWEEP_AFTER_SECONDS, self._sweep)

    async def on_unmount(self) -> None:
        """Ends what runs."""
        self._collector.stop()
        if self._is_entitled:
            from pegboard.tui.shell.window_title import bring_back_title

            bring_back_title(self)
        await self.runtime.close()

    async def on_event(self, event: events.Event) -> None:
        """Note when the user does something; drop input on what is not yet visible or already being removed."""
        if isinstance(event, events.InputEvent):
            self._collector.touch()
            ignores = getattr(self.screen, "ignores", None)
            if ignores is not None and ignores(event):
                return
        if isinstance(event, events.MouseDown) and self._is_on_removed(event):
            return
        await super().on_event(event)

    def _is_on_removed(self, event: events.MouseDown) -> bool:
        """Return whether the widget at the mouse was removed and is only still painted, such as an expired toast.

        Textual raises an AttributeError when it begins a selection there.
        """
        try:
            widget, _ = self.get_widget_at(event.x, event.y)
        except (NoWidget, ScreenStackError):
            return False
        return not widget.is_attached and widget is not self.screen

    def _notify_about_configuration(self) -> None:
        """Say in toasts that no tool runs, or that the folder's settings have no effect; the problems say more."""
        loaded = self.runtime.settings.loaded
        if loaded.blocked is not None:
            message = clean_line(f"No tool runs: {loaded.blocked}")
            self.notify(message, title="Configuration error", severity="error", timeout=20, markup=False)
        if loaded.trust in {"untrusted", "changed"}:
            change = "is not trusted" if loaded.trust == "untrusted" else "changed after you trusted it"
            message = f'This folder {change}. Its settings have no effect. Run "Trust this folder…" to review them.'
            self.notify(message, title="Folder not trusted", severity="warning", timeout=10, markup=False)

    @work
    async def _sweep(self) -> None:
        await asyncio.to_thread(self.runtime.sweep)

    def _watch_record(self) -> None:
        self.runtime.watch_record(lambda: self.call_later(self._show_record))

    def _show_record(self) -> None:
        self.unrecorded = self.runtime.unrecorded()
        self._tools_screen.read_problems()

    @work
    async def _check_keys(self) -> None:
        settings = self.runtime.settings
        if settings.keys:
            self._key_problems = await asyncio.to_thread(lambda: tuple(key_problems(settings, places())))
            self.tell_problems()

    def tell_problems(self) -> None:
        """Shows what is wrong with themes and keys beside what is wrong with packs."""
        self._tools_screen.own_problems = (*self.theme_problems, *self._key_problems)

    # The places

    @property
    def _tools_screen(self) -> ToolsScreen:
        screen = self.get_screen_stack("tools")[0]
        assert isinstance(screen, ToolsScreen)
        return screen

    def _chat_screen(self) -> Screen[None]:
        from pegboard.tui.chat.screen import ChatScreen
        from pegboard.tui.state.approvals import Approvals

        approvals = Approvals(self._ask_user)
        self.runtime.rules.approve_with(approvals, self._rule_undo.added)
        return ChatScreen(self.runtime, approvals)

    def _ask_user(self, requests: tuple[Request, ...]) -> None:
        self.requests = requests

    def watch_requests(self) -> None:
        """Says from afar that the user is waited for."""
        self._entitle()

    def watch_asking(self) -> None:
        """Says from afar that a model is at work."""
        self._entitle()

    def watch_scripting(self) -> None:
        """Says from afar that a script runs."""
        self._entitle()

    def _entitle(self) -> None:
        from pegboard.tui.shell.window_title import keep_title, set_title

        if not self._is_entitled:
            self._is_entitled = True
            keep_title(self)
        sign = "? " if self.requests else "▶ " if self.asking or self.scripting else ""
        set_title(self, f"{sign}{self.TITLE}")

    def _script_screen(self) -> Screen[None]:
        from pegboard.tui.script.screen import ScriptScreen

        return ScriptScreen(self.runtime)

    def _health_screen(self) -> Screen[None]:
        from pegboard.tui.health.screen import HealthScreen

        return HealthScreen(self.runtime, self._checks)

    def action_mode(self, mode: str) -> None:
        """Goes to a place, which is as it was left; from among the tools to their list."""
        if mode == self.current_mode == "tools":
            self._tools_screen.action_show_tools()
        self.switch_mode(mode)

    @on(OpenTool)
    def _open_tool(self, request: OpenTool) -> None:
        self.switch_mode("tools")
        self._tools_screen.open_tool(request.tool)

    @on(OpenCall)
    def _open_call(self, request: OpenCall) -> None:
        self.switch_mode("tools")
        self._tools_screen.open_call(request.tool, request.arguments)

    @on(TalkAbout)
    async def _talk_about(self, request: TalkAbout) -> None:
        from pegboard.tui.chat.screen import ChatScreen

        await self.switch_mode("chat")
        if isinstance(self.screen, ChatScreen):
            self.screen.put(request.text)

    # What every place shows something of

    @on(ToolsScreen.Listed)
    def _listed(self, event: ToolsScreen.Listed) -> None:
        has_other_tools = event.scan.catalogue is not self.tool_scan.catalogue
        self.tool_scan = event.scan
        if has_other_tools:
            self.run_worker(self._checks.look(), group="checks")

    @on(Asking)
    def _asking(self, event: Asking) -> None:
        self.asking = event.running

    @on(Scripting)
    def _scripting(self, event: Scripting) -> None:
        self.scripting = event.running

    @on(Called)
    async def _called(self, event: Called) -> None:
        await self._checks.take_over(event.tool)

    def _know(self, known: HealthState) -> None:
        self.health = known

    # What works everywhere

    @on(Copy)
    async def _copy(self, request: Copy) -> None:
        from pegboard.tui.widgets.clipboard import copy

        await copy(self.app, request.text, self.runtime.paths.state)

    def action_command_palette(self) -> None:
        """Opens the palette of commands and tools."""
        from pegboard.tui.shell.palette import CommandProvider, Palette, ToolProvider

        if not Palette.is_open(self.app):
            self.push_screen(Palette([CommandProvider, ToolProvider], "Find a command or a tool…"))

    @work(exclusive=True, group="problems")
    async def action_show_problems(self) -> None:
        """Lists the problems; opens the file of the one that is chosen."""
        from pegboard.tui.dialogs.problems import ProblemsScreen
        from pegboard.tui.widgets.external_editor import open_in_editor

        problem = await self.push_screen_wait(ProblemsScreen(self.tool_scan.problems))
        if problem is not None and problem.file is not None:
            await open_in_editor(self.app, problem.file, problem.line)

    def action_help(self) -> None:
        """Shows the keys of the focused place."""
        from pegboard.tui.shell.help import HelpScreen

        node = self.focused or self.screen
        self.push_screen(HelpScreen.of(node, self.runtime.settings.keys, getattr(self.screen, "LEGEND", ())))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys of approvals to the focused widget while no call awaits one."""
        return bool(self.requests) if action == "to_asking" else True

    async def action_to_asking(self) -> None:
        """Select the call awaiting approval on its page."""
        from pegboard.tui.chat.screen import ChatScreen

        if not self.requests:
            self.notify("No call awaits approval.")
            return
        if self.screen.is_modal:
            self.notify("Close this dialog first, then go to the call awaiting approval.", severity="warning")
            return
        await self.switch_mode("chat")
        if isinstance(self.screen, ChatScreen):
            self.screen.select_asking()

    async def action_undo_rule(self) -> None:
        """Remove the rule that the last approval added."""
        await self._rule_undo.undo()

    def action_rules(self) -> None:
        """Opens the rules of approval."""
        from pegboard.tui.dialogs.rules import RulesScreen

        self.push_screen(RulesScreen(self.runtime))

    @work(exclusive=True, group="trust")
    async def action_trust(self) -> None:
        """Review the working directory's files; trust them if the user says so, and start again."""
        from pegboard.config import TrustError, review_folder, trust_folder
        from pegboard.tui.dialogs.trust import TrustScreen

        request = await asyncio.to_thread(review_folder, self.runtime.paths)
        if request.trust.state in {"trusted", "nothing"}:
            is_trusted = request.trust.state == "trusted"
            self.notify("This folder is already trusted." if is_trusted else request.obstacle, markup=False)
        elif await self.push_screen_wait(TrustScreen(request)):
            try:
                await asyncio.to_thread(trust_folder, self.runtime.paths, request)
            except TrustError as error:
                self.notify(clean_line(str(error)), severity="error", markup=False)
            else:
                self.wants_reload = True
                self.exit()

    @work(exclusive=True, group="jump")
    async def action_jump(self) -> None:
        """Puts letters on what can have the focus, and goes where the user says."""
        from pegboard.tui.shell.jump import JumpScreen

        target = await self.push_screen_wait(JumpScreen(self.screen.focus_chain))
        if isinstance(target, Widget):
            target.focus()
