"""What the Script place uses of the scripts' side; it gets all of it from the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pegboard.models import ScriptAnalysis, ToolSpec


class ScriptCommand(Protocol):
    """A command that a script may call."""

    @property
    def names(self) -> tuple[str, ...]:
        """What it is called, its own name first."""
        ...

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        ...

    @property
    def usage(self) -> str:
        """The command with its arguments, in one line."""
        ...

    def help(self) -> str:
        """Gives all that is to be known of it."""
        ...


class Orchestrator(Protocol):
    """What runs scripts over the tools that may be used now."""

    @property
    def commands(self) -> Sequence[ScriptCommand]:
        """What scripts may call."""
        ...

    def analyze(self, commands: str) -> ScriptAnalysis:
        """Says what a script will call; blocks for a moment."""
        ...


def spec_of(command: ScriptCommand) -> ToolSpec | None:
    """Gives the tool of the registry that a command is, if it is one."""
    spec = getattr(command, "spec", None)
    return spec if isinstance(spec, ToolSpec) else None


def call_to_fill_in(command: ScriptCommand) -> str:
    """Gives a command with a gap for each argument that it requires, as it is put into a script."""
    spec = spec_of(command)
    required = spec.input_schema.get("required") if spec is not None else None
    gaps = [f"<{name}>" for name in required if isinstance(name, str)] if isinstance(required, list) else []
    return " ".join([command.names[0], *gaps])
