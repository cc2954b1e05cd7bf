"""What a tool needs from the machine it runs on, and what was found of it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field

from pegboard.models.model import Model
from pegboard.models.problem import Problem


class Thing(NamedTuple):
    """What is looked for: the same for all tools that need the same, however each says to get it."""

    kind: Literal["cli", "lib", "secret", "server"]
    name: str
    version_flag: str
    min_version: str | None

    def __str__(self) -> str:
        least = f" ≥ {self.min_version}" if self.min_version else ""
        return f"{self.name}{least}"


class Requirement(Model):
    """One thing that a tool needs: a program, a library, a secret or a server."""

    kind: Literal["cli", "lib", "secret", "server"]
    name: str
    version_flag: str = "--version"
    min_version: str | None = None
    install: str | None = None
    """How to get it, in the words of the tool's author."""
    optional: bool = False
    """Whether the tool does without it, if not all that it could do with it."""

    @property
    def thing(self) -> Thing:
        """What is looked for."""
        return Thing(self.kind, self.name, self.version_flag, self.min_version)

    def __str__(self) -> str:
        return f"{self.kind} {self.thing}{' (optional)' if self.optional else ''}"


class HealthRow(Model):
    """One line of the report on health: what one tool needs, and what was found."""

    tool: str
    """The qualified name."""
    kind: Literal["cli", "lib", "secret", "server"]
    name: str
    status: Literal["ok", "missing", "outdated", "error"]
    """`error`: it is there, or may be, but it can't be told whether it will do."""
    version: str | None
    min_version: str | None
    path: str | None
    """The file of a program or library; where a secret comes from: `environment`, `keyring`, or a `.env` file."""
    install: str
    """How to get it: a command, or a sentence."""
    error: str | None
    """What is wrong, in one sentence; None where nothing is."""
    requirement: Requirement = Field(exclude=True, repr=False)
    """What the tool's file says; not in the JSON."""

    @property
    def blocks(self) -> bool:
        """Whether the tool can't work for want of it."""
        return self.status in ("missing", "outdated") and not self.requirement.optional

    @property
    def problem(self) -> Problem | None:
        """What is wrong, and how to get what is needed; None where nothing is wrong."""
        if self.status == "ok":
            return None
        fix = f"How to get it: {self.install}"
        return Problem(message=self.error or self.status, fix=fix, severity="error" if self.blocks else "warning")
