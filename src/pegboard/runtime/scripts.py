"""Bash scripts over the tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from pegboard.models import CallEvent, CallRecord, CallSource, ToolCall

if TYPE_CHECKING:
    from pegboard.presets import SavedScripts
    from pegboard.runtime.parts import Parts
    from pegboard.scripts import OrchestratorTool


class Scripts:
    """Bash scripts whose commands are the tools that may be used.

    Args:
        parts: The parts of the runtime.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def run(
        self, commands: str, *, source: CallSource = "cli", call_id: str | None = None, timeout: float | None = None
    ) -> AsyncGenerator[CallEvent]:
        """Runs a bash script whose commands are the tools that may be used; the user stands behind it.

        It is a call of `script.run`, whatever the allow list says of that name, with what is printed as `Log`s of it,
        and its events contain those of the calls within, which have it as their parent.

        Args:
            commands: The script.
            source: Who runs it.
            call_id: The id that the call gets, to cancel it by.
            timeout: Seconds that it may take; as the configuration says if left out.
        """
        from pegboard.scripts import NAME

        call = ToolCall(name=NAME, args={"commands": commands}, source=source, timeout=timeout)
        return self._parts.script_gateway.call(call if call_id is None else call.model_copy(update={"id": call_id}))

    def orchestrator(self) -> OrchestratorTool:
        """Gives what runs scripts over the tools that may be used now: its commands, its help, what a script calls."""
        return self._parts.script_runner.orchestrator()

    def from_records(self, records: Iterable[CallRecord]) -> str:
        """Writes calls of the record as a script that makes them again, the oldest first; blocks for a moment."""
        from pegboard.scripts import script_of

        return script_of(records, self._parts.usable_tool)

    @cached_property
    def saved(self) -> SavedScripts:
        """The scripts that are kept; all that they do reads or writes the disk."""
        from pegboard.presets import SavedScripts

        return SavedScripts(self._parts.paths.scripts)
