"""Results of probing a requirement, and the rows of the report about them."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypedDict

from pegboard.sdk.distributions import advice_on_module, install_command
from pegboard.sdk.requirements import DeclaredRequirement
from pegboard.sdk.versions import is_older

ProbeStatus = Literal["ok", "missing", "outdated", "error"]
"""`error` means that the requirement is installed but unusable, or that its version can't be determined."""


class ProbeResult(NamedTuple):
    """Result of probing one requirement."""

    status: ProbeStatus
    version: str | None = None
    path: str | None = None
    """File of a program or library; source of a secret, such as `environment`."""
    error: str | None = None
    """Problem, in one sentence; None if the status is `ok`."""


class RequirementRow(TypedDict):
    """Row of the report: one requirement of one tool and its status. The keys are those of the JSON output."""

    tool: str
    kind: Literal["cli", "lib", "secret"]
    name: str
    status: ProbeStatus
    version: str | None
    minVersion: str | None
    path: str | None
    install: str
    error: str | None


def report_row(tool: str, requirement: DeclaredRequirement, result: ProbeResult) -> RequirementRow:
    """Build the report row of one requirement of a tool.

    Args:
        tool: Qualified name of the tool.
        requirement: A requirement of the tool.
        result: Result of probing it.
    """
    return {
        "tool": tool,
        "kind": requirement.kind,
        "name": requirement.name,
        "status": result.status,
        "version": result.version,
        "minVersion": requirement.min_version,
        "path": result.path,
        "install": requirement.install or _install_hint(requirement, result),
        "error": result.error,
    }


def check_version(name: str, version: str | None, path: str | None, min_version: str | None) -> ProbeResult:
    """Return the result for an installed program or library, by its version.

    Args:
        name: Name of the program or library.
        version: Installed version; None if unknown.
        path: File of the program or library.
        min_version: Lowest version that works; None if every version does.
    """
    if min_version is None:
        return ProbeResult("ok", version, path)
    if version is None:
        return ProbeResult(
            "error",
            None,
            path,
            f"`{name}` is installed, but its version can't be determined; {min_version} or later is required.",
        )
    try:
        older = is_older(version, min_version)
    except ValueError as error:
        return ProbeResult("error", version, path, f"The version of `{name}` can't be compared: {error}")
    if older:
        return ProbeResult("outdated", version, path, f"`{name}` is {version}; {min_version} or later is required.")
    return ProbeResult("ok", version, path)


def names_keyring(error: str) -> bool:
    """Return whether a secret is missing because the keyring can't be used, so that advice must not name it."""
    return "keyring" in error


def _install_hint(requirement: DeclaredRequirement, result: ProbeResult) -> str:
    match requirement.kind, result.status:
        case "cli", "outdated":
            return f"Install {requirement.name} {requirement.min_version} or later."
        case "cli", "error":
            return f"Install a {requirement.name} that works, or correct its requirement in the pack."
        case "cli", _:
            return f"Install {requirement.name} and add it to the PATH."
        case "lib", _:
            advice = advice_on_module(requirement.name, requirement.min_version)
            return f"{advice}." if advice else install_command(requirement.name, requirement.min_version)
        case "secret", _:
            here = f"Set {requirement.name} in the environment or a .env file"
            has_keyring = not names_keyring(result.error or "")
            return f"{here}, or: pegboard auth set {requirement.name}" if has_keyring else f"{here}."
