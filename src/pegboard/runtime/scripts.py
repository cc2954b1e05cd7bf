"""Bash scripts over the tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from pegboard import models
from pegboard.data.unicode import encodable

if TYPE_CHECKING:
    from pegboard.models import CallEvent, CallRecord, CallSource, JsonObject
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
        """Run a bash script whose commands are the tools that can be used, on behalf of the user.

        It is a call of `script.run`, even if the allow list excludes that name. Its output arrives as `Log` events, and
        the events of nested calls are included, with this call as their parent.

        Args:
            commands: The script.
            source: The source of the call.
            call_id: The id of the call, to cancel it by.
            timeout: Timeout in seconds; the configured one by default.
        """
        from pegboard.scripts import NAME

        call = models.ToolCall(name=NAME, args={"commands": commands}, source=source, timeout=timeout)
        return self._parts.script_gateway.call(call if call_id is None else call.model_copy(update={"id": call_id}))

    def orchestrator(self) -> OrchestratorTool:
        """Return the object that runs scripts over the tools that can be used now, with their commands and help."""
        return self._parts.script_runner.orchestrator()

    def destructive_tools(self, calls: Iterable[JsonObject]) -> tuple[str, ...]:
        """Return the destructive tools that scripts call, as far as that can be known; block for a moment.

        Args:
            calls: Arguments of calls of `script.run`.
        """
        found: dict[str, None] = {}
        for arguments in calls:
            if isinstance(text := arguments.get("commands"), str):
                made = self.orchestrator().destructive_calls(encodable(text))
                found.update(dict.fromkeys(call.tool for call in made))
        return tuple(found)

    def from_records(self, records: Iterable[CallRecord]) -> str:
        """Return a script that repeats recorded calls, the oldest first; block for a moment."""
        from pegboard.scripts import script_of

        return script_of(records, self._parts.usable_tool)

    @cached_property
    def saved(self) -> SavedScripts:
        """Saved scripts; every operation reads or writes the disk."""
        from pegboard.presets import SavedScripts

        return SavedScripts(self._parts.paths.scripts)
