"""What was found when a requirement was looked for."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypedDict

from pegboard.sdk.distributions import install_command
from pegboard.sdk.requirements import Requirement
from pegboard.sdk.versions import is_older

Status = Literal["ok", "missing", "outdated", "error"]
"""`error`: it is there, or may be, but it can't be told whether it will do."""


class Found(NamedTuple):
    """What was found."""

    status: Status
    version: str | None = None
    path: str | None = None
    """The file of a program or library; where a secret comes from, such as `environment`."""
    error: str | None = None
    """What is wrong, in one sentence; None where nothing is."""


class Row(TypedDict):
    """One line of the report: what one tool needs, and what was found. Its keys are those of the JSON."""

    tool: str
    kind: Literal["cli", "lib", "secret"]
    name: str
    status: Status
    version: str | None
    minVersion: str | None
    path: str | None
    install: str
    error: str | None


def row(tool: str, requirement: Requirement, found: Found) -> Row:
    """Builds the line of the report.

    Args:
        tool: The qualified name.
        requirement: What it needs.
        found: What was found.
    """
    return {
        "tool": tool,
        "kind": requirement.kind,
        "name": requirement.name,
        "status": found.status,
        "version": found.version,
        "minVersion": requirement.min_version,
        "path": found.path,
        "install": requirement.install or _how_to_get(requirement),
        "error": found.error,
    }


def judged(name: str, version: str | None, path: str | None, min_version: str | None) -> Found:
    """Judges something that is there by its version.

    Args:
        name: What it is called.
        version: What was found; None where it doesn't tell.
        path: Where it is.
        min_version: The least version that will do; None if any will.
    """
    if min_version is None:
        return Found("ok", version, path)
    if version is None:
        return Found("error", None, path, f"`{name}` is there, but its version can't be told; {min_version} is needed.")
    try:
        older = is_older(version, min_version)
    except ValueError as error:
        return Found("error", version, path, f"The version of `{name}` can't be compared: {error}")
    if older:
        return Found("outdated", version, path, f"`{name}` is {version}; at least {min_version} is needed.")
    return Found("ok", version, path)


def _how_to_get(requirement: Requirement) -> str:
    match requirement.kind:
        case "cli":
            return f"Install {requirement.name} so that it is on the PATH."
        case "lib":
            return install_command(requirement.name)
        case "secret":
            return f"Set {requirement.name} in the environment or a .env file, or: pegboard auth set {requirement.name}"
