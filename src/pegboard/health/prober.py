"""Checks of many requirements in background threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pegboard.sdk.findings import ProbeResult
    from pegboard.sdk.probes import FindSecret
    from pegboard.sdk.requirements import DeclaredRequirement

Probed: TypeAlias = "tuple[DeclaredRequirement, ProbeResult]"
"""A requirement and the result of its check."""


class Prober:
    """One run of checks, started on construction.

    Secrets are checked in a thread of their own, because a keyring may wait to be unlocked.

    Args:
        wanted: Requirements to check, without duplicates.
        report: Called with each result as soon as it is known, and with None after the last one. It is called from
            other threads, one call at a time, and never after `stop`.
        find_secret: Returns the source of a secret; may block.
        environ: Environment to find and run programs in.
        timeout: Seconds that each program may take.
    """

    def __init__(
        self,
        wanted: Sequence[DeclaredRequirement],
        report: Callable[[Probed | None], object],
        *,
        find_secret: FindSecret,
        environ: Mapping[str, str],
        timeout: float,
    ) -> None:
        self._report = report
        self._find_secret = find_secret
        self._environ = environ
        self._timeout = timeout
        self._reporting = Lock()
        self._stopped = Event()
        secrets = [requirement for requirement in wanted if requirement.kind == "secret"]
        others = [requirement for requirement in wanted if requirement.kind != "secret"]
        self._left = 2
        self._others = Thread(target=self._run, args=(others,), daemon=True, name="health")
        self._others.start()
        Thread(target=self._run, args=(secrets,), daemon=True, name="health-secrets").start()

    def stop(self) -> None:
        """End the checks and the programs they run. Wait for the programs, but not for a keyring."""
        self._stopped.set()
        with self._reporting:  # so that nothing is reported after this method returns
            pass
        self._others.join()

    def _run(self, wanted: Sequence[DeclaredRequirement]) -> None:
        try:
            if wanted:
                self._probe(wanted)
        finally:
            with self._reporting:
                self._left -= 1
                if not self._left and not self._stopped.is_set():
                    self._report(None)

    def _probe(self, wanted: Sequence[DeclaredRequirement]) -> None:
        from pegboard.sdk.probes import probe_all

        results = probe_all(
            wanted,
            find_secret=self._find_secret,
            environ=self._environ,
            timeout=self._timeout,
            stopped=self._stopped.is_set,
        )
        for result in results:
            with self._reporting:
                if not self._stopped.is_set():
                    self._report(result)
