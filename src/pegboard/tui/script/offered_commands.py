"""Interfaces of the script runner that the Script page uses. The runtime provides the implementations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pegboard.models import ScriptAnalysis, ToolSpec


class OfferedCommand(Protocol):
    """A command available to scripts."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names, the main name first."""
        ...

    @property
    def summary(self) -> str:
        """One-line summary."""
        ...

    @property
    def usage(self) -> str:
        """One-line usage with arguments."""
        ...

    def help(self) -> str:
        """Return the full help text."""
        ...


class Orchestrator(Protocol):
    """Script runner with the currently available tools."""

    @property
    def commands(self) -> Sequence[OfferedCommand]:
        """Commands available to scripts."""
        ...

    def analyze(self, commands: str) -> ScriptAnalysis:
        """Analyze the calls of a script. Blocks."""
        ...


def spec_of(command: OfferedCommand) -> ToolSpec | None:
    """Return the tool of a command, or None for other commands."""
    spec = getattr(command, "spec", None)
    return spec if isinstance(spec, ToolSpec) else None


def call_to_fill_in(command: OfferedCommand) -> str:
    """Return a call of a command with a placeholder for each required argument."""
    spec = spec_of(command)
    required = spec.input_schema.get("required") if spec is not None else None
    gaps = [f"<{name}>" for name in required if isinstance(name, str)] if isinstance(required, list) else []
    return " ".join([command.names[0], *gaps])
