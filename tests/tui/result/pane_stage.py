"""The result pane in an app of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input

from pegboard.models import ResultMeta, ToolCall, ToolResult
from pegboard.tui.result import ResultPane


class PaneApp(App[None]):
    """A line to type in above a result pane."""

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
    """A running app, what is on its screen, and its keys."""

    def __init__(self, app: PaneApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.pane = app.query_one(ResultPane)
        self.call = ToolCall(name="demo.tool", source="form")

    @property
    def text(self) -> str:
        """The screen as it is painted, without its colours."""
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    def state(self) -> str:
        """The pane's state."""
        return self.pane.state

    def is_running(self) -> bool:
        """Whether the pane follows a call."""
        return self.pane.running

    def focused(self) -> str:
        """The kind of widget that has the focus."""
        return type(self.app.focused).__name__

    async def show(self, data: JsonValue, meta: ResultMeta | None = None) -> None:
        """Shows a result and gives the pane the focus."""
        await self.show_result(ToolResult(ok=True, data=data, meta=meta or ResultMeta()))

    async def show_result(self, result: ToolResult) -> None:
        """Shows a result and gives the pane the focus."""
        self.pane.show(self.call, result)
        await self.pilot.pause()
        self.pane.focus()
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        """Presses keys and waits for what they do, the work they start included."""
        await self.pilot.press(*keys)
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def until(self, true: Callable[[], object], what: str) -> None:
        """Waits until something is so, at most ten seconds."""
        for _ in range(1000):
            if true():
                return
            await self.pilot.pause(0.01)
        raise AssertionError(f"not so within ten seconds: {what}; on the screen:\n{self.text}")


OpenStage = Callable[..., AbstractAsyncContextManager[Stage]]
