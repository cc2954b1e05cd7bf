"""The running script of the Script page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from textual.screen import Screen

from pegboard.models import ToolCall
from pegboard.tui.script.analyzer import ScriptAnalyzer
from pegboard.tui.script.calls import CallsTree, exit_code
from pegboard.tui.script.document import ScriptDocument
from pegboard.tui.script.output import OutputPane
from pegboard.tui.script.run import ScriptRun

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_TOOL: Final = "script.run"
_NAMED_CALLS: Final = 8
"""Destructive calls named in the confirmation."""


class OpenScriptRunner:
    """Runs the open script and shows its calls and output.

    Args:
        page: Screen that runs the worker and shows notifications.
        runtime: Runs the script.
        analyzer: Finds destructive calls.
        document: Asks for confirmation.
        calls: Widget that shows the calls.
        output: Widget that shows the output.
        changed: Callback for a change of `is_running`.
    """

    def __init__(
        self,
        page: Screen[None],
        runtime: Runtime,
        analyzer: ScriptAnalyzer,
        document: ScriptDocument,
        calls: CallsTree,
        output: OutputPane,
        changed: Callable[[], object],
    ) -> None:
        self.is_running = False
        self.is_starting = False
        """Whether a run was requested and has not ended, including its confirmation."""
        self._page = page
        self._runtime = runtime
        self._analyzer = analyzer
        self._document = document
        self._calls = calls
        self._output = output
        self._changed = changed
        self._text = ""
        self.call_id = ""
        """ID of the last run."""

    def start(self, text: str) -> None:
        """Run a script, after confirmation if it has errors or calls destructive tools."""
        self.is_starting = True
        self._text = text
        work: Callable[[], Awaitable[None]] = self._start
        self._page.run_worker(work, group="run")

    async def cancel(self) -> None:
        """Cancel the running script and its calls."""
        await self._runtime.cancel(self.call_id)

    async def _start(self) -> None:
        text = self._text
        try:
            if await self._confirm(text):
                await self._run(text)
        finally:
            self.is_starting = False

    async def _confirm(self, text: str) -> bool:
        found = {
            "It has errors:": await self._analyzer.errors(text),
            "It calls tools that may delete or overwrite data:": await self._analyzer.destructive_calls(text),
        }
        reasons = [f"{why}\n\n{_list(lines)}" for why, lines in found.items() if lines]
        return not reasons or await self._document.confirm("Run this script?", "\n\n".join(reasons), "Run")

    async def _run(self, text: str) -> None:
        call = ToolCall(name=_TOOL, args={"commands": text}, source="script")
        run = ScriptRun(call)
        self.call_id = call.id
        self._calls.show(run)
        self._output.start(call)
        self._page.add_class("-ran")
        self._set_running(True)
        try:
            async for event in self._runtime.scripts.run(text, source="script", call_id=call.id):
                run.feed(event)
                self._calls.renew()
                self._output.feed(event)
        finally:
            self._set_running(False)
        self._notify_end(run)

    def _set_running(self, is_running: bool) -> None:
        self.is_running = is_running
        self._changed()

    def _notify_end(self, run: ScriptRun) -> None:
        """Notify a user who is on another page or in another window."""
        app = self._page.app
        if not app.app_focus:
            app.bell()
        result = run.script.result
        if app.current_mode != "script" and result is not None:
            code = exit_code(result)
            how = f"ended with exit code {code}" if code is not None else "was stopped"
            self._page.notify(f"The script {how}.", severity="information" if code == 0 else "warning", markup=False)


def _list(lines: Sequence[str]) -> str:
    more = [f"… and {len(lines) - _NAMED_CALLS} more"] if len(lines) > _NAMED_CALLS else []
    return "\n".join([*lines[:_NAMED_CALLS], *more])
