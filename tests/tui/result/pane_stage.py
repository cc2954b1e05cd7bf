"""The result pane in an app of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from time import monotonic
from typing import Any

from headless import TIMEOUT_SECONDS, compose_frame
from pydantic import JsonValue
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input

from pegboard.models import ResultMeta, ToolCall, ToolResult
from pegboard.tui.result import ResultPane


class PaneApp(App[None]):
    """App with an input above a result pane."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.animation_level = "none"
        self.folder = folder
        self.notices: list[str] = []

    def compose(self) -> ComposeResult:
        yield Input(compact=True)
        yield ResultPane(folder=self.folder, run_key="ctrl+r", cancel_key="esc")

    def notify(self, message: str, **options: Any) -> None:
        self.notices.append(message)
        super().notify(message, **options)


class Stage:
    """Access to the running app: its screen and its keys."""

    def __init__(self, app: PaneApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.pane = app.query_one(ResultPane)
        self.call = ToolCall(name="demo.tool", source="form")

    @property
    def text(self) -> str:
        """The text on the screen."""
        return "\n".join(compose_frame(self.app))

    def state(self) -> str:
        """Return the pane's state."""
        return self.pane.state

    def is_running(self) -> bool:
        """Return whether the pane follows a call."""
        return self.pane.running

    def focused(self) -> str:
        """Return the class name of the focused widget; of every text input, that of Textual's."""
        widget = self.app.focused
        return Input.__name__ if isinstance(widget, Input) else type(widget).__name__

    async def show(self, data: JsonValue, meta: ResultMeta | None = None) -> None:
        """Show a result and focus the pane."""
        await self.show_result(ToolResult(ok=True, data=data, meta=meta or ResultMeta()))

    async def show_result(self, result: ToolResult) -> None:
        """Show a result and focus the pane."""
        self.pane.show(self.call, result)
        await self.pilot.pause()
        self.pane.focus()
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        """Press keys and wait for their effects, including workers."""
        await self.pilot.press(*keys)
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def until(self, true: Callable[[], object], what: str) -> None:
        """Wait until a condition is true."""
        end = monotonic() + TIMEOUT_SECONDS
        while not true():
            assert monotonic() < end, f"not so in time: {what}; on the screen:\n{self.text}"
            await self.pilot.pause(0.01)


OpenStage = Callable[..., AbstractAsyncContextManager[Stage]]
