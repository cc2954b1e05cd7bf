"""What a script will call, as far as can be known without running it."""

from __future__ import annotations

from dataclasses import dataclass

from pegboard.models.model import JsonObject


@dataclass(frozen=True)
class ExpectedCall:
    """A call that stands in a script: made once, not at all, or over and over."""

    tool: str
    words: tuple[str | None, ...]
    """The words after the command's name as they stand there; None where one is only known when the script runs."""
    args: JsonObject | None
    """The arguments, where all words are known; what comes in through a pipe isn't among them."""
    faults: tuple[str, ...] = ()
    """What is wrong with the words."""


@dataclass(frozen=True)
class MissingCommand:
    """A command of a script that doesn't exist, and which looks like a tool."""

    name: str
    near: tuple[str, ...] = ()
    """Tools with a similar name, the nearest first."""

    def __str__(self) -> str:
        return f"There is no command {self.name}." + (f" Did you mean {' or '.join(self.near)}?" if self.near else "")


@dataclass(frozen=True)
class ScriptAnalysis:
    """What a script will call; advice, not a guard: every call is looked at when it is made."""

    calls: tuple[ExpectedCall, ...] = ()
    unknown: tuple[str, ...] = ()
    """What can't be known before it runs, a sentence each; with any, it may call any tool."""
    error: str | None = None
    """Why it can't be read to its end."""
    missing: tuple[MissingCommand, ...] = ()
    """Commands that look like tools, but are neither tools nor anything else that the script can call."""
