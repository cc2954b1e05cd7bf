"""Static analysis of the open script: available commands, findings, destructive calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pegboard.config.paths import working_directory
from pegboard.models import ExpectedCall, ToolSpec
from pegboard.results.clean import clean_line
from pegboard.results.text import preview
from pegboard.tui.script.completion import Known
from pegboard.tui.script.editor import ScriptEditor
from pegboard.tui.script.findings import ScriptFinding, findings
from pegboard.tui.script.offered_commands import OfferedCommand, Orchestrator, spec_of

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_ARGUMENT_CELLS: Final = 40
"""Width of a call's arguments in the confirmation, in cells."""


class ScriptAnalyzer:
    """Knows the commands that scripts can call, and analyzes scripts.

    Args:
        runtime: Provides the script runner.
        editor: Editor with the open script.
    """

    def __init__(self, runtime: Runtime, editor: ScriptEditor) -> None:
        self.names: dict[str, str] = {}
        """Main names of commands by all their names."""
        self.analyzed: str | None = None
        """The script that was analyzed last."""
        self._runtime = runtime
        self._editor = editor
        self._orchestrator: Orchestrator | None = None
        self._commands: dict[str, OfferedCommand] = {}

    @property
    def is_ready(self) -> bool:
        """Whether the commands are loaded and the open script is analyzed."""
        return self._orchestrator is not None and self.analyzed == self._editor.text

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """Tools among the commands."""
        return [*filter(None, map(spec_of, self._commands.values()))]

    @property
    def command_at_cursor(self) -> OfferedCommand | None:
        """The command at the editor's cursor, or None."""
        return self._commands.get(self.names.get(self._editor.command_here(), ""))

    def known(self, script: str) -> Known:
        """Return what the open script can name."""
        tools = {name: spec_of(self._commands[command]) for name, command in self.names.items()}
        return Known(tools, self._editor.functions, script, working_directory())

    async def load_commands(self) -> Sequence[OfferedCommand]:
        """Load and return the available commands."""
        orchestrator: Orchestrator = await asyncio.to_thread(self._runtime.scripts.orchestrator)
        commands = orchestrator.commands
        self._orchestrator = orchestrator
        self.names = {name: command.names[0] for command in commands for name in command.names}
        self._commands = {command.names[0]: command for command in commands}
        self._editor.set_tools(frozenset(self.names))
        return commands

    async def analyze(self) -> Sequence[ScriptFinding]:
        """Return the findings of the open script."""
        self._editor.update_functions()
        text = self._editor.text
        found: Sequence[ScriptFinding] = ()
        if self._orchestrator is not None and text.strip():
            analysis = await asyncio.to_thread(self._orchestrator.analyze, text)
            found = findings(analysis, self._editor.scanned(), self.names, text)
        self.analyzed = text
        return found

    async def errors(self, text: str) -> Sequence[str]:
        """Return a line for each unknown command and each error in a call of a script."""
        found = await asyncio.to_thread(lambda: self._runtime.scripts.orchestrator().analyze(text))
        faults = [f"{call.tool}: {fault}" for call in found.calls for fault in call.faults]
        return [clean_line(error) for error in (*map(str, found.missing), *faults)]

    async def destructive_calls(self, text: str) -> Sequence[str]:
        """Return a line for each call of a destructive tool in a script."""
        calls = await asyncio.to_thread(lambda: self._runtime.scripts.orchestrator().destructive_calls(text))
        return [f"{clean_line(call.tool)}  {_arguments(call)}" for call in calls]


def _arguments(call: ExpectedCall) -> str:
    """Return the arguments of a call as far as the analysis knows them."""
    if call.args is not None:
        return preview(call.args, _ARGUMENT_CELLS)
    return clean_line(" ".join("…" if word is None else word for word in call.words))[:_ARGUMENT_CELLS]
