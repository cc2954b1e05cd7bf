"""Looking for what tools need: programs, libraries, secrets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from pegboard.sdk.findings import Found
from pegboard.sdk.libraries import Libraries
from pegboard.sdk.programs import Programs
from pegboard.sdk.requirements import Requirement

TIMEOUT = 5.0
"""Seconds that a program may take to tell its version."""

FindSecret = Callable[[str], tuple[str | None, str]]
"""Takes a secret's name; gives where it comes from, or None and why it is missing. Never its value."""


def probe(
    requirement: Requirement,
    *,
    find_secret: FindSecret,
    environ: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
) -> Found:
    """Looks for one thing; see `probe_all`."""
    [(_, found)] = probe_all([requirement], find_secret=find_secret, environ=environ, timeout=timeout)
    return found


def probe_all(
    requirements: Iterable[Requirement],
    *,
    find_secret: FindSecret,
    environ: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[Requirement, Found]]:
    """Looks for many things at once, in the thread that iterates.

    Libraries are looked for in this interpreter, and nothing of them is imported. Programs are run, all together;
    those that still run when the iterator is closed are killed.

    Args:
        requirements: What to look for; what is named twice is looked for once.
        find_secret: Tells where a secret comes from.
        environ: The environment that programs are looked for and run in; this process's own by default. Programs
            need no secrets to tell their version: give them none.
        timeout: Seconds that each program may take.
        stopped: Tells, whenever it is asked, whether nobody wants to know any more; the iterator then ends at once.

    Yields:
        Each requirement with what was found, as soon as that is known. Nothing makes it raise.
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


def _secret(name: str, find_secret: FindSecret) -> Found:
    source, reason = find_secret(name)
    return Found("missing", error=reason) if source is None else Found("ok", path=source)
