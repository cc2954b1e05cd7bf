"""Probes for the requirements of tools: programs, libraries, secrets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from pegboard.sdk.findings import ProbeResult
from pegboard.sdk.libraries import Libraries
from pegboard.sdk.programs import Programs
from pegboard.sdk.requirements import DeclaredRequirement

TIMEOUT = 5.0
"""Time limit for a program to print its version, in seconds."""

FindSecret = Callable[[str], tuple[str | None, str]]
"""Function that returns the source of a secret, or None and why it is missing; never its value."""


def probe_all(
    requirements: Iterable[DeclaredRequirement],
    *,
    find_secret: FindSecret,
    environ: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[DeclaredRequirement, ProbeResult]]:
    """Probe for several requirements concurrently, in the thread that iterates.

    Libraries are searched in this interpreter without importing them. Programs run concurrently; closing the iterator
    kills those still running. Never raises.

    Args:
        requirements: Requirements to probe for; duplicates are probed once.
        find_secret: Function that returns the source of a secret.
        environ: Environment of the programs, with the PATH to search; this process's own by default. Pass it without
            secrets: programs print their version without them.
        timeout: Time limit of each program, in seconds.
        stopped: Function that returns whether to cancel; the iterator then ends immediately.

    Yields:
        Each requirement with its result, as soon as it is available.
    """
    wanted = dict.fromkeys(requirements)
    libraries = Libraries()
    with Programs(os.environ if environ is None else environ, timeout) as programs:
        for requirement in wanted:
            if requirement.kind != "cli":
                continue
            while programs.are_enough and not stopped():
                yield from programs.answers()
            if stopped():
                return
            found = programs.ask(requirement)
            if found is not None:
                yield requirement, found
            yield from programs.answers(wait=0)
        for requirement in wanted:
            if stopped():
                return
            if requirement.kind == "lib":
                yield requirement, libraries.find(requirement.name, requirement.min_version)
            elif requirement.kind == "secret":
                yield requirement, _secret(requirement.name, find_secret)
            yield from programs.answers(wait=0)
        while programs.are_running and not stopped():
            yield from programs.answers()


def _secret(name: str, find_secret: FindSecret) -> ProbeResult:
    source, reason = find_secret(name)
    return ProbeResult("missing", error=reason) if source is None else ProbeResult("ok", path=source)
