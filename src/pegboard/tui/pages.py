"""Switching pages, and opening tools, servers, files and calls on the page that shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events, on
from textual.screen import Screen

from pegboard.results.clean import clean_line
from pegboard.tui.chat.chat_commands import CHAT_COMMANDS
from pegboard.tui.commands import assigned_key, key_or_title
from pegboard.tui.dialogs.app import DialogApp
from pegboard.tui.messages import (
    Asking,
    KeepCall,
    OpenCall,
    OpenFile,
    OpenResource,
    OpenScript,
    OpenServer,
    OpenTool,
    OpenTurn,
    OpenWaitingCall,
    ShowChecks,
    TalkAbout,
)
from pegboard.tui.state.health_checks import HealthChecks
from pegboard.tui.tools.screen import ToolsScreen
from pegboard.tui.tools.tool_list import ToolList

if TYPE_CHECKING:
    from pegboard.brake import Question
    from pegboard.config import Appearance
    from pegboard.models.approval import AddedRule
    from pegboard.runtime import Runtime


class PagesApp(DialogApp, inherit_bindings=False):
    """An app with a page for tools, chat, scripts, health and activity; pages are built when they are first shown.

    Args:
        theme_folders: See `ThemedApp`.
        runtime: The headless core.
        appearance: The configured theme and keys.
        checks: The checks of requirements, which the Health page shows.
    """

    def __init__(
        self, theme_folders: Sequence[Path], runtime: Runtime, appearance: Appearance, checks: HealthChecks
    ) -> None:
        super().__init__(theme_folders, runtime, appearance)
        self.checks = checks
        self._opening = 0
        """Number of tools, servers and calls that are about to be shown on the Tools page."""
        self.add_mode("tools", lambda: ToolsScreen(runtime, self.remembered, vim_keys=appearance.vim_keys))
        self.add_mode("chat", self._chat_screen)
        self.add_mode("script", self._script_screen)
        self.add_mode("health", self._health_screen)
        self.add_mode("activity", self._activity_screen)

    @property
    def _tools_screen(self) -> ToolsScreen:
        screen = self.get_screen_stack("tools")[0]
        assert isinstance(screen, ToolsScreen)
        return screen

    def is_early(self, event: events.Event) -> bool:
        """Return whether a key or text is for something that is still opening.

        That is what a command of the palette opens, a tool, or the best match of enter in the tool list before the
        tools are found and their page is built; and a form that is about to be filled in.
        """
        if self.is_choosing or self._opening or (isinstance(self.screen, ToolsScreen) and self.screen.is_filling):
            return isinstance(event, events.Key | events.Paste)
        return (
            isinstance(event, events.Key)
            and event.key == "enter"
            and isinstance(self.focused, ToolList)
            and (self.tool_scan.scanning or not self._tools_screen.built.is_set())
        )

    def _chat_screen(self) -> Screen[None]:
        from pegboard.tui.chat.screen import ChatScreen
        from pegboard.tui.state.approvals import Approvals

        approvals = Approvals(lambda requests: setattr(self, "requests", requests))

        def added(rule: AddedRule) -> None:
            self.rule_undo.added(rule)
            if not rule.problem:
                self.run_worker(approvals.release(self.runtime.rules.allow), group="release")

        self.runtime.rules.approve_with(approvals, added)
        return ChatScreen(self.runtime, approvals)

    def _script_screen(self) -> Screen[None]:
        from pegboard.tui.script.screen import ScriptScreen

        return ScriptScreen(self.runtime)

    def _health_screen(self) -> Screen[None]:
        from pegboard.tui.health.screen import HealthScreen

        return HealthScreen(self.runtime, self.checks)

    def _activity_screen(self) -> Screen[None]:
        from pegboard.tui.activity.screen import ActivityScreen

        return ActivityScreen(self.runtime, self.remembered)

    def action_mode(self, mode: str) -> None:
        """Switch to a page; on the Tools page, focus the tool list."""
        if mode == self.current_mode == "tools":
            self._tools_screen.action_show_tools()
        self.switch_mode(mode)

    def _on_tools(self, show: Callable[[ToolsScreen], None]) -> None:
        """Switch to the Tools page and show something there, once it has its panes."""
        self._opening += 1
        self.run_worker(self._show_on_tools(show), group="open")

    async def _show_on_tools(self, show: Callable[[ToolsScreen], None]) -> None:
        try:
            await self.switch_mode("tools")
            await self._tools_screen.built.wait()
            show(self._tools_screen)
        finally:
            self._opening -= 1

    @on(OpenTool)
    def _open_tool(self, request: OpenTool) -> None:
        self._on_tools(lambda screen: screen.open_tool(request.tool))

    @on(OpenServer)
    def _open_server(self, request: OpenServer) -> None:
        self._on_tools(lambda screen: screen.open_server(request.server))

    @on(OpenFile)
    def _open_file(self, request: OpenFile) -> None:
        from pegboard.tui.dialogs.saved_file import open_file

        self.run_worker(open_file(self, self.runtime.paths.results, request.file), group="resources")

    @on(OpenResource)
    def _open_resource(self, request: OpenResource) -> None:
        from pegboard.tui.dialogs.server_resource import open_resource

        self.run_worker(open_resource(self, self.runtime, request.server, request.uri), group="resources")

    @on(OpenCall)
    def _open_call(self, request: OpenCall) -> None:
        self._on_tools(lambda screen: screen.open_call(request.tool, request.arguments))

    @on(KeepCall)
    def _keep_call(self, request: KeepCall) -> None:
        from pegboard.tui.dialogs.keep_check import keep_call

        self.run_worker(keep_call(self, self.runtime, request.call), group="keep")

    @on(ShowChecks)
    def _show_checks(self, request: ShowChecks) -> None:
        spec = self.runtime.tools.get(request.tool)
        if spec is None:
            why = f"The checks were not opened. {self.runtime.tools.why_missing(request.tool)}"
            self.notify(clean_line(why), severity="warning", markup=False)
            return
        from pegboard.tui.tools.checks import ChecksScreen

        self.push_screen(ChecksScreen(self.runtime, spec, self.tool_scan.schema_changes.get(spec.name)))

    @on(OpenScript)
    async def _open_script(self, request: OpenScript) -> None:
        from pegboard.tui.script.screen import ScriptScreen

        before = self.current_mode
        await self.switch_mode("script")
        if isinstance(self.screen, ScriptScreen):
            self.screen.open_text(request.text, lambda: self.switch_mode(before))

    @on(TalkAbout)
    async def _talk_about(self, request: TalkAbout) -> None:
        from pegboard.tui.chat.screen import ChatScreen

        await self.switch_mode("chat")
        if isinstance(self.screen, ChatScreen):
            self.screen.put(request.text)

    @on(OpenTurn)
    async def _open_turn(self, request: OpenTurn) -> None:
        from pegboard.tui.chat.screen import ChatScreen

        await self.switch_mode("chat")
        if isinstance(self.screen, ChatScreen):
            self.screen.show_turn(request.session, request.message)

    @on(OpenWaitingCall)
    async def _open_waiting_call(self, request: OpenWaitingCall) -> None:
        question = next((one for one in self.agent_calls if one.call == request.call), None)
        if question is not None:
            self._open_agent_call(question)
        elif any(one.call.id == request.call for one in self.requests):
            await self.action_to_asking()
        else:
            self.notify("The call waits for an answer in another process, or was just answered.")

    @property
    def keys_of_sessions(self) -> str:
        """The keys that open the list of chat sessions: `f6, then ctrl+l`."""
        command = next(one for one in CHAT_COMMANDS if one.id == "chat.sessions")
        key = assigned_key(self, command) or f"“{command.title}”"
        return f"{key_or_title(self, 'mode.chat')}, then {key}"

    def _open_agent_call(self, question: Question | None = None) -> None:
        """Show a waiting call in a worker: large arguments take a while to read. The last request counts."""
        self.run_worker(self.show_agent_call(question), exclusive=True, group="agent call")

    async def action_to_asking(self) -> None:
        """Select the call awaiting approval on its page, or show the one of another agent."""
        from pegboard.tui.chat.screen import ChatScreen
        from pegboard.tui.dialogs.agent_call import AgentCallScreen

        if not self.requests and not self.agent_calls:
            self.notify("No call awaits approval.")
        elif isinstance(self.screen, AgentCallScreen):
            self._open_agent_call()
        elif self.screen.is_modal:
            self.notify("Close this dialog first, then go to the call awaiting approval.", severity="warning")
        elif not self.requests or (
            self.agent_calls and isinstance(self.screen, ChatScreen) and self.screen.leave_last_asking()
        ):
            self._open_agent_call()
        else:
            await self.switch_mode("chat")
            if isinstance(self.screen, ChatScreen):
                self.screen.select_asking()

    @on(Asking)
    def _note_session(self) -> None:
        pages = self.get_screen_stack("chat")  # none while the app ends
        self.session = getattr(pages[0], "session", "") if pages else self.session

    async def action_connect_model(self) -> None:
        """Choose and set up the model on the Chat page."""
        from pegboard.tui.chat.screen import ChatScreen

        await self.switch_mode("chat")
        if isinstance(self.screen, ChatScreen):
            self.screen.action_model()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys of approvals to the focused widget while no call awaits one."""
        return bool(self.requests or self.agent_calls) if action == "to_asking" else True
