"""Requirements of tools, and their status on this machine."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field

from pegboard.models.model import DataModel
from pegboard.models.problem import Problem


class RequirementKey(NamedTuple):
    """Identity of a requirement, shared by tools that word it differently."""

    kind: Literal["cli", "lib", "secret", "server"]
    name: str
    version_flag: str
    min_version: str | None

    def __str__(self) -> str:
        least = f" ≥ {self.min_version}" if self.min_version else ""
        return f"{self.name}{least}"


class Requirement(DataModel):
    """A program, library, secret or server that a tool needs."""

    kind: Literal["cli", "lib", "secret", "server"]
    name: str
    version_flag: str = "--version"
    min_version: str | None = None
    install: str | None = None
    """How to install it, in the words of the tool's author."""
    optional: bool = False
    """Whether the tool works without it, in part."""

    @property
    def key(self) -> RequirementKey:
        """Identity of the requirement."""
        return RequirementKey(self.kind, self.name, self.version_flag, self.min_version)

    @property
    def precedence(self) -> tuple[bool, bool]:
        """Sort key among the declarations of one requirement: required ones first, then those with `install`."""
        return self.optional, self.install is None

    def __str__(self) -> str:
        return f"{self.kind} {self.key}{' (optional)' if self.optional else ''}"


class HealthRow(DataModel):
    """One line of the health report: a requirement of one tool, and its status."""

    tool: str
    """The qualified name."""
    kind: Literal["cli", "lib", "secret", "server"]
    name: str
    status: Literal["ok", "missing", "outdated", "error"]
    """`error`: installed, or perhaps, but whether its version fits can't be determined."""
    version: str | None
    min_version: str | None
    path: str | None
    """The file of a program or library; where a secret comes from: `environment`, `keyring`, or a `.env` file."""
    install: str
    """How to get it: a command, or a sentence."""
    error: str | None
    """The problem in one sentence, or None."""
    requirement: Requirement = Field(exclude=True, repr=False)
    """The requirement as the tool declares it; not in the JSON."""

    @property
    def blocks(self) -> bool:
        """Whether the tool can't work because of this row."""
        return self.status in ("missing", "outdated") and not self.requirement.optional

    @property
    def problem(self) -> Problem | None:
        """The problem and how to fix it, or None."""
        if self.status == "ok":
            return None
        # model_construct: the idle app builds no validator, which would load pydantic's plugins and cost 4 MB
        return Problem.model_construct(
            message=self.error or self.status,
            fix=f"How to get it: {self.install}",
            severity="error" if self.blocks else "warning",
        )
