"""An app whose dialogs open on every page."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on, work
from textual.widget import Widget

from pegboard.brake import Brake
from pegboard.config import Appearance
from pegboard.config.paths import working_directory
from pegboard.results.clean import clean_line
from pegboard.tui.dialogs.server_dialogs import ServerDialogs
from pegboard.tui.messages import Copy, OpenServer
from pegboard.tui.shell.themed_app import ThemedApp
from pegboard.tui.state.app_state import AppState
from pegboard.tui.state.recent_commands import RecentCommands
from pegboard.tui.state.remembered import Remembered
from pegboard.tui.state.rule_undo import RuleUndo

if TYPE_CHECKING:
    from pegboard.brake import Question
    from pegboard.models import Problem
    from pegboard.runtime import Runtime


_CHECK_SECONDS = 1.0
"""Interval at which the files of the configuration are checked for changes."""
_MOST_NAMED = 4
"""Changed settings that a message names."""
_LONGEST_NAME = 30
"""Characters of a setting's name in a message."""
_SERVERS = "mcp.servers."


class DialogApp(ThemedApp, AppState):
    """The actions that open dialogs and work on every page.

    Args:
        theme_folders: See `ThemedApp`.
        runtime: The headless core.
        appearance: The configured theme and keys.
    """

    def __init__(self, theme_folders: Sequence[Path], runtime: Runtime, appearance: Appearance) -> None:
        self.runtime = runtime
        self.appearance = appearance
        self.settings_problems: tuple[Problem, ...] = ()
        """Why a changed configuration was not applied."""
        self._seen_settings: Sequence[tuple[int, int] | None] = ()
        """State of the files of the configuration when it was last read."""
        self.remembered = Remembered.read(runtime.paths.interface)
        super().__init__(theme_folders, runtime.paths.state / "theme", appearance.theme)
        self.recent_commands = RecentCommands(runtime.paths.state / "recent-commands")
        self.rule_undo = RuleUndo(self, runtime)
        self._answers_servers = False
        self.wants_reload = False
        """Whether to start the app again after it ends, with the new configuration."""

    @on(Copy)
    def _copy(self, request: Copy) -> None:
        from pegboard.tui.widgets.clipboard import copy

        self.run_worker(copy(self.app, request.text, self.runtime.paths.state), group="copy")

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text with the terminal; if it doesn't copy the text, also by other means, which a toast names."""
        from pegboard.tui.widgets.clipboard import terminal_accepts

        super().copy_to_clipboard(text)
        if not terminal_accepts(len(text.encode(errors="backslashreplace")), os.environ):
            self.post_message(Copy(text))

    def action_command_palette(self) -> None:
        """Open the palette of commands and tools."""
        from pegboard.tui.shell.palette import open_palette

        open_palette(self.app)

    @work(exclusive=True, group="problems")
    async def action_show_problems(self) -> None:
        """List the problems; open the file of the chosen one."""
        from pegboard.tui.dialogs.problems import show_problems

        await show_problems(self.app, self.problems)

    # Settings

    def missing_theme(self, name: str, *, is_configured: bool) -> Problem:
        """Return the problem of a theme that was not found, with the place that sets it."""
        if not is_configured:
            return super().missing_theme(name, is_configured=False)
        return self.runtime.settings.warning("ui.theme", f"The theme `{name}` was not found.")

    @work(group="settings")
    async def follow_settings(self) -> None:
        """Apply the configuration, or read the problems of the rules, whenever their files change; never return."""
        files, rules = self._settings_files, (self.runtime.paths.approvals,)
        self._seen_settings, seen_rules = await asyncio.to_thread(lambda: (_fingerprint(files), _fingerprint(rules)))
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            found, found_rules = await asyncio.to_thread(lambda: (_fingerprint(files), _fingerprint(rules)))
            if found != self._seen_settings:
                await self.reload_settings()
            if found_rules != seen_rules:
                seen_rules = found_rules
                self.rules_version += 1
                await self.read_problems()

    @property
    def _settings_files(self) -> Sequence[Path]:
        return (self.runtime.paths.config_file, working_directory() / "pegboard.toml")

    async def read_problems(self) -> None:
        """Read the problems again; does nothing by default."""

    async def reload_settings(self) -> None:
        """Read the configuration again, apply what can change now, and name what can't."""
        self._seen_settings = await asyncio.to_thread(_fingerprint, self._settings_files)
        change = await self.runtime.reload()
        self.appearance = self.runtime.settings.appearance
        self.settings_problems = () if change.blocked is None else (change.blocked,)
        self.settings_version += 1
        self.show_problems()
        if change.blocked is not None:
            message = f"The configuration was not applied: {clean_line(str(change.blocked))}"
            self.notify(message, severity="error", markup=False)
            return
        if any(key.startswith("keys.") for key in change.applied):
            self.set_keymap(self.appearance.keys)
        if "ui.theme" in change.applied:
            self.apply_configured_theme(self.appearance.theme)
        if "ui.animations" in change.applied and "TEXTUAL_ANIMATIONS" not in os.environ:
            self.animation_level = "full" if self.appearance.animations else "none"
        if change.applied:
            self.notify(f"Applied {_in_short(change.applied)}.", markup=False)
        if change.servers:
            names = _in_short([f"{_SERVERS}{name}." for name in change.servers])
            text = f"{names} changed. Choose “Apply MCP servers” in the palette to use the new configuration."
            self.notify(text, markup=False)
        if change.restart:
            text = f"Restart Pegboard to apply {_in_short(change.restart)}."
            self.notify(text, severity="warning", markup=False)

    # MCP servers

    async def list_servers(self) -> None:
        """List the MCP servers with their present states."""

    def answer_servers(self) -> None:
        """Show from now on what MCP servers ask."""
        if not self._answers_servers:
            self._answers_servers = True
            self.runtime.servers.ask_with(ServerDialogs(self))

    @work(exclusive=True, group="configured servers")
    async def action_add_server(self) -> None:
        """Add an MCP server, and show its page."""
        from pegboard.tui.dialogs.configured_servers import AddServerScreen

        self.answer_servers()
        name = await self.push_screen_wait(AddServerScreen(self.runtime))
        if name is not None:
            await self.list_servers()
            self.post_message(OpenServer(name))

    @work(exclusive=True, group="configured servers")
    async def action_import_servers(self) -> None:
        """Add MCP servers of other clients, and show the page of the last one."""
        from pegboard.tui.dialogs.import_servers import import_servers

        self.answer_servers()
        name = await import_servers(self, self.runtime)
        if name is not None:
            await self.list_servers()
            self.post_message(OpenServer(name))

    @work(exclusive=True, group="configured servers")
    async def action_apply_servers(self) -> None:
        """Apply what has changed in the configuration of the MCP servers."""
        from pegboard.tui.dialogs.configured_servers import apply_changes

        self.answer_servers()
        await apply_changes(self, self.runtime)

    def action_settings(self) -> None:
        """Open the settings."""
        from pegboard.tui.dialogs.settings import SettingsScreen

        self.push_screen(SettingsScreen(self.runtime, self.reload_settings))

    def action_help_quit(self) -> None:
        """Copy the selected text and show a toast; without a selection, show how to quit."""
        # The palette may still be the topmost screen.
        text = next(filter(None, (screen.get_selected_text() for screen in reversed(self.screen_stack))), None)
        if text is None:
            super().action_help_quit()
        else:
            self.post_message(Copy(text))

    def action_help(self) -> None:
        """Show the keys of the focused pane."""
        from pegboard.tui.shell.help import HelpScreen

        self.push_screen(HelpScreen.of(self.screen, self.appearance.keys))

    def action_guide(self) -> None:
        """Read the guide."""
        from pegboard.tui.dialogs.guide import GuideScreen

        self.push_screen(GuideScreen())

    @work(group="undo rule")
    async def action_undo_rule(self) -> None:
        """Remove the rule that the last approval added."""
        await self.rule_undo.undo()

    # Agents

    async def show_agent_call(self, question: Question | None = None) -> None:
        """Show a waiting call of an agent: by default the first one, or the one after the call that is shown."""
        from pegboard.brake import Questions
        from pegboard.tui.dialogs.agent_call import AgentCall, AgentCallScreen

        shown = self.screen if isinstance(self.screen, AgentCallScreen) else None
        if question is None:
            ids = [one.id for one in self.agent_calls]
            if not ids:  # The call of the card was just answered elsewhere.
                return
            at = ids.index(shown.question.id) + 1 if shown is not None and shown.question.id in ids else 0
            question = self.agent_calls[at % len(ids)]
        if shown is not None and question.id == shown.question.id:
            return
        call = await asyncio.to_thread(AgentCall.read, self.runtime, question)
        if shown is not None and shown.is_current:
            shown.show(call)
        elif not self.screen.is_modal:
            self.push_screen(AgentCallScreen(self.runtime, Questions(self.runtime.paths.state), call))

    async def action_pause_agents(self) -> None:
        """Hold all calls from agents."""
        await self._set_brake(Brake.pause, "Calls from agents are held until you resume them.")

    async def action_stop_agents(self) -> None:
        """Reject all calls from agents."""
        await self._set_brake(Brake.stop, "Calls from agents are rejected until you resume them.")

    async def action_resume_agents(self) -> None:
        """Let calls from agents through."""
        await self._set_brake(Brake.resume, "Agents are resumed.")

    @work(exclusive=True, group="brake")
    async def action_ask_to_resume_agents(self) -> None:
        """Resume agents if the user confirms it."""
        from pegboard.tui.dialogs.confirm import Confirm

        question = "Calls that wait because of the pause run. Calls that need approval still wait for it."
        if await self.push_screen_wait(Confirm("Resume agents?", question, "Resume")):
            await self.action_resume_agents()

    async def _set_brake(self, change: Callable[[Brake], None], text: str) -> None:
        brake = Brake(self.runtime.paths.brake)
        try:
            await asyncio.to_thread(change, brake)
        except OSError as error:
            message = f"Calls from agents are unchanged because {brake.file} can't be changed: {error.strerror}."
            self.notify(message, severity="error", markup=False)
        else:
            self.notify(text, markup=False)

    def action_rules(self) -> None:
        """Open the approval rules."""
        from pegboard.tui.dialogs.rules import RulesScreen

        self.push_screen(RulesScreen(self.runtime))

    @work(exclusive=True, group="trust")
    async def action_trust(self) -> None:
        """Review this folder's files; restart if the user trusts them."""
        from pegboard.tui.dialogs.trust import review_folder

        if await review_folder(self, self.runtime.paths):
            self.wants_reload = True
            self.exit()

    @work(exclusive=True, group="jump")
    async def action_jump(self) -> None:
        """Label every focusable element, and focus the one whose label is typed."""
        from pegboard.tui.shell.jump import JumpScreen

        target = await self.push_screen_wait(JumpScreen(self.screen))
        if isinstance(target, Widget):
            target.focus()


def _fingerprint(files: Sequence[Path]) -> Sequence[tuple[int, int] | None]:
    """Return the time and size of files; None for a file that can't be read."""
    found: list[tuple[int, int] | None] = []
    for file in files:
        try:
            status = file.stat()
        except (OSError, ValueError):
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_size))
    return found


def _in_short(keys: Sequence[str]) -> str:
    """Return changed settings as a message names them, each MCP server once.

    Args:
        keys: Dotted keys.
    """
    servers = dict.fromkeys(key.removeprefix(_SERVERS).partition(".")[0] for key in keys if key.startswith(_SERVERS))
    names = [key for key in keys if not key.startswith(_SERVERS) and f"{key}." != _SERVERS]
    if servers or len(names) < len(keys):
        title = "MCP server" if len(servers) == 1 else "MCP servers"
        names += [" ".join((title, *list(servers)[:1])), *list(servers)[1:]]
    cleaned = [clean_line(name) for name in names[:_MOST_NAMED]]
    shown = [name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…" for name in cleaned]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(shown) + more
