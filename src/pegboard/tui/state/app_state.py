"""The state of the app that more than one page shows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from textual import on
from textual.app import App
from textual.reactive import reactive
from textual.widget import AwaitMount

from pegboard.brake import BrakeState, Question
from pegboard.tui.messages import Asking, Scripting
from pegboard.tui.state.health_checks import HealthState
from pegboard.tui.state.recent_commands import RecentCommands
from pegboard.tui.state.remembered import Remembered
from pegboard.tui.state.tool_scan import ToolScan

if TYPE_CHECKING:
    from pegboard.config import Appearance
    from pegboard.models import Problem
    from pegboard.runtime import Runtime
    from pegboard.tui.state.approvals import ApprovalRequest


class AppState(App[None]):
    """An app with the state that pages, header and palette watch."""

    runtime: Runtime
    """The headless core."""
    appearance: Appearance
    """The configured theme and keys."""
    remembered: Remembered
    """State that is kept between starts."""

    recent_commands: RecentCommands
    """Commands that were run last from the palette."""

    tool_scan: reactive[ToolScan] = reactive(ToolScan, init=False)
    """Result of the last scan."""
    health: reactive[HealthState] = reactive(HealthState, init=False)
    """State of the tools' requirements."""
    requests: reactive[tuple[ApprovalRequest, ...]] = reactive((), init=False)
    """Calls awaiting approval, the oldest first."""
    agent_calls: reactive[tuple[Question, ...]] = reactive((), init=False)
    """Calls of other processes that wait for a person, the oldest first; those that only wait for the end of a pause
    are last."""
    brake: reactive[BrakeState] = reactive("running", init=False)
    """Whether calls from agents are paused or stopped."""
    asking: reactive[bool] = reactive(False, init=False)
    """Whether a model turn is running."""
    scripting: reactive[bool] = reactive(False, init=False)
    """Whether a script is running."""
    is_choosing: bool = False
    """Whether a command was chosen in the palette and hasn't run yet."""
    session: str = ""
    """ID of the chat session of the last model turn of this run."""
    settings_version: reactive[int] = reactive(0, init=False)
    """Number of times that the configuration was read again."""
    rules_version: reactive[int] = reactive(0, init=False)
    """Number of times that the file of rules has changed."""
    unrecorded: reactive[Problem | None] = reactive(None, init=False)
    """The problem that prevents calls from being recorded, if there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.has_settings = asyncio.Event()
        """Set when the settings have been read, after the first frame."""
        self._holds = 0
        self._held: ToolScan | None = None
        """The scan to show once the tools on the screen may change again."""

    def show_scan(self, scan: ToolScan) -> None:
        """Show a scan, after `hold_scans` if that is active."""
        if self._holds:
            self._held = scan
        else:
            self.tool_scan = scan

    @contextmanager
    def hold_scans(self) -> Iterator[None]:
        """Keep the tools and forms on the screen as they are, then show the last scan."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            # The caller first writes the edited text into its form.
            self.call_later(self._show_held)

    def _show_held(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self.show_scan(held)

    async def read_settings(self) -> None:
        """Read the settings in a thread, unless they have been read.

        Before that, the event loop imports nothing that needs pydantic: two threads that import its modules in
        different orders could each wait for the other.
        """
        if not self.has_settings.is_set():
            await asyncio.to_thread(getattr, self.runtime, "settings")
            self.has_settings.set()

    @property
    def awaiting(self) -> int:
        """Number of calls that await approval, in the chat and of agents."""
        return len(self.requests) + sum(question.kind == "ask" for question in self.agent_calls)

    def switch_mode(self, mode: str) -> AwaitMount:
        """Switch to a page and remember it."""
        self.remembered.page = mode
        return super().switch_mode(mode)

    def remember(self) -> None:
        """Store the state of the interface for the next start."""
        try:
            self.remembered.write(self.runtime.paths.interface)
        except OSError as error:
            self.log.warning(f"The state of the interface was not stored: {error.strerror}")

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every problem: of packs, themes, settings and requirements."""
        return (*self.tool_scan.problems, *self.health.problems)

    @on(Asking)
    def _asking(self, event: Asking) -> None:
        self.asking = event.running

    @on(Scripting)
    def _scripting(self, event: Scripting) -> None:
        self.scripting = event.running
