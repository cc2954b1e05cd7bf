"""Expected calls of a script, found without running it."""

from __future__ import annotations

from dataclasses import dataclass

from pegboard.models.model import JsonObject


@dataclass(frozen=True)
class ExpectedCall:
    """A call in the text of a script: made once, never, or many times."""

    tool: str
    words: tuple[str | None, ...]
    """The words after the command's name; None for a word that is only known when the script runs."""
    args: JsonObject | None
    """The arguments if all words are known, without those from a pipe."""
    faults: tuple[str, ...] = ()
    """Validation errors of the words."""


@dataclass(frozen=True)
class MissingCommand:
    """A command of a script that looks like a tool and doesn't exist."""

    name: str
    near: tuple[str, ...] = ()
    """Tools with a similar name, the nearest first."""

    def __str__(self) -> str:
        return f"Unknown command {self.name}." + (f" Did you mean {' or '.join(self.near)}?" if self.near else "")


@dataclass(frozen=True)
class ScriptAnalysis:
    """Expected calls of a script. This is advice, not a guard: every call is checked when it is made."""

    calls: tuple[ExpectedCall, ...] = ()
    unknown: tuple[str, ...] = ()
    """What can't be known before the script runs, a sentence each; if there are any, it may call any tool."""
    error: str | None = None
    """Why the script can't be parsed to its end, or isn't run."""
    missing: tuple[MissingCommand, ...] = ()
    """Commands that look like tools, but are neither tools nor other commands of the script."""
    named: tuple[str, ...] = ()
    """Tools that the script names but has no analyzed call of; it may call them."""
