"""The app: it owns the state that every page shows."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.binding import BindingType

from pegboard.config import Appearance
from pegboard.tui.commands import Command, bindings
from pegboard.tui.messages import Called, HistoryRead, SchemaAccepted
from pegboard.tui.pages import PagesApp
from pegboard.tui.result.preload import load_parsers
from pegboard.tui.shell import memory, themes
from pegboard.tui.shell.app_commands import APP_COMMANDS
from pegboard.tui.shell.keymap import command_groups, key_problems
from pegboard.tui.shell.notices import notify_about_configuration, notify_about_questions
from pegboard.tui.shell.window_title import WindowTitle
from pegboard.tui.state.agent_calls import AgentCalls
from pegboard.tui.state.health_checks import HealthChecks, HealthState
from pegboard.tui.state.tool_scan import ToolScan
from pegboard.tui.state.tool_scanner import ToolScanner
from pegboard.tui.tools.screen import ToolsScreen

if TYPE_CHECKING:
    from pegboard.brake import BrakeState, Question
    from pegboard.models import Problem
    from pegboard.runtime import Runtime

_SWEEP_AFTER_SECONDS = 5.0


class PegboardApp(PagesApp, inherit_bindings=False):
    """The terminal interface.

    Args:
        runtime: The headless core; it is closed when the app ends.
        appearance: The configured theme and keys; those of the runtime's settings by default.
    """

    TITLE = "Pegboard"
    DEFAULT_MODE = "tools"
    ACTIONS: ClassVar[tuple[Command, ...]] = APP_COMMANDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, appearance: Appearance | None = None) -> None:
        appearance = appearance or runtime.settings.appearance
        checks = HealthChecks(runtime, self._show_health)
        self._scanner = ToolScanner(runtime, self.show_scan)
        self._key_problems: tuple[Problem, ...] = ()
        super().__init__((themes.shipped(), runtime.paths.themes), runtime, appearance, checks)
        if self.remembered.page != self.DEFAULT_MODE:
            # That page needs the settings: read them first. No other page is shown before it, not even for a moment,
            # because text that users type there would go to this page.
            self.appearance = runtime.settings.appearance
            self._screen_stacks, self._current_mode = {self.remembered.page: []}, self.remembered.page
        if "TEXTUAL_ANIMATIONS" not in os.environ:
            self.animation_level = "full" if appearance.animations else "none"
        self.set_keymap(appearance.keys)
        self._window_title = WindowTitle(self)
        self._has_input = False
        self.agents = AgentCalls(runtime.paths.state, self._agent_calls_changed)

    def on_mount(self) -> None:
        """Start after the first frame what the first frame doesn't need."""
        self.call_after_refresh(memory.share_heap)
        self.call_after_refresh(self._start)
        self.set_timer(_SWEEP_AFTER_SECONDS, self._sweep)

    @work(group="start")
    async def _start(self) -> None:
        """Start everything that needs the settings."""
        await self.read_settings()
        # In a thread as well, because it imports the history; before anything else uses the history.
        await asyncio.to_thread(self.runtime.watch_record, lambda: self.call_later(self._show_record))
        memory.enable_collector()
        self._scan()
        self._open_agent_calls()
        self._check_keys()
        self.follow_themes()
        self.follow_settings()
        notify_about_configuration(self, self.runtime.settings)

    async def on_event(self, event: events.Event) -> None:
        """Handle an event; input waits for the settings, because it may open anything."""
        if isinstance(event, events.InputEvent | events.Paste):
            await self.read_settings()
            if not self._has_input:
                self._has_input = True
                # An idle app does without them.
                self.run_worker(load_parsers, thread=True, group="parsers")
        await super().on_event(event)

    async def on_unmount(self) -> None:
        """Restore the window title and close the runtime."""
        self._window_title.restore()
        self.remember()
        await asyncio.to_thread(self.agents.close)
        await self.runtime.close()

    @work(thread=True)
    def _sweep(self) -> None:
        self.runtime.sweep()

    @work(group="scan")
    async def _scan(self) -> None:
        if self.runtime.servers.all():
            self.answer_servers()
        self.run_worker(self._scanner.follow_servers(), group="servers")
        await self._scanner.follow()

    async def list_servers(self) -> None:
        """List the MCP servers with their present states."""
        await self._scanner.update_servers()

    @on(HistoryRead)
    @work(exclusive=True, group="problems read")
    async def _show_record(self) -> None:
        self.unrecorded = self.runtime.unrecorded()
        await self._scanner.read_problems()

    async def reload_settings(self) -> None:
        """Apply the changed configuration, and list its problems."""
        await super().reload_settings()
        self._check_keys()
        await self._scanner.read_problems()

    async def read_problems(self) -> None:
        """Read the problems of packs, settings and rules again."""
        await self._scanner.read_problems()

    @work(exclusive=True, group="keys")
    async def _check_keys(self) -> None:
        settings = self.runtime.settings
        groups = await asyncio.to_thread(command_groups, PegboardApp, ToolsScreen) if settings.keys else ()
        if (found := tuple(key_problems(settings, groups))) != self._key_problems:
            self._key_problems = found
            self.show_problems()

    def show_problems(self) -> None:
        """List the problems of a changed configuration, of themes and keys together with those of packs."""
        self._scanner.set_own_problems((*self.settings_problems, *self.theme_problems, *self._key_problems))

    def watch_tool_scan(self, before: ToolScan, scan: ToolScan) -> None:
        """Check the requirements of new tools, and compare their schemas with earlier ones."""
        if scan.catalogue is not before.catalogue:
            self.run_worker(self.checks.check_new(), group="checks")
            self._compare_schemas()

    @on(SchemaAccepted)
    @work(exclusive=True, group="schemas")
    async def _compare_schemas(self) -> None:
        await self._scanner.compare_schemas()

    def _show_health(self, health: HealthState) -> None:
        if self.is_running:  # a check that ends with the app has nothing left to update
            self.health = health

    @work(exclusive=True, group="states")
    async def watch_health(self) -> None:
        """Update the states of the tools."""
        await self._scanner.update_states()

    @work(exclusive=True, group="rescan")
    async def action_rescan(self) -> None:
        """Scan for tools again."""
        self.notify(f"{await self._scanner.rescan():,} tools.", markup=False)

    @work(thread=True, group="agents")
    def _open_agent_calls(self) -> None:
        try:
            self.agents.open()
        except OSError as error:
            self.call_later(notify_about_questions, self, self.runtime.paths.questions, error)

    def _agent_calls_changed(self, questions: tuple[Question, ...], brake: BrakeState) -> None:
        self.call_later(self._show_agent_calls, questions, brake)

    def _show_agent_calls(self, questions: tuple[Question, ...], brake: BrakeState) -> None:
        if not self.is_running:
            return
        known = {question.id for question in self.agent_calls}
        self.brake = brake
        self.agent_calls = tuple(sorted(questions, key=lambda question: question.kind != "ask"))
        if any(question.kind == "ask" and question.id not in known for question in questions):
            self.bell()

    @on(Called)
    async def _called(self, event: Called) -> None:
        await self.checks.read_results(event.tool)

    def _show_title(self) -> None:
        sign = "? " if self.awaiting else "▶ " if self.asking or self.scripting else ""
        self._window_title.set(f"{sign}{self.TITLE}")

    watch_requests = watch_agent_calls = watch_asking = watch_scripting = _show_title
