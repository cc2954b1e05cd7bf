"""Looking for many things at once, in threads, so that nobody has to wait for the slowest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, TypeAlias

from pegboard.sdk.requirements import DeclaredRequirement

if TYPE_CHECKING:
    from pegboard.sdk.findings import ProbeResult

Answer: TypeAlias = "tuple[DeclaredRequirement, ProbeResult]"
FindSecret: TypeAlias = Callable[[str], tuple[str | None, str]]
"""Takes a secret's name; gives where it comes from, or None and why it is missing. Never its value."""


class Looking:
    """One look for things; it begins at once.

    Secrets are looked for in a thread of their own: a keyring may wait to be unlocked.

    Args:
        wanted: What to look for, each once.
        tell: Takes each answer as soon as it is known, and None after the last one; called in other threads, one at a
            time, and not after `stop`.
        find_secret: Tells where a secret comes from; may block.
        environ: The environment that programs are looked for and run in.
        timeout: Seconds that each program may take.
    """

    def __init__(
        self,
        wanted: Sequence[DeclaredRequirement],
        tell: Callable[[Answer | None], object],
        *,
        find_secret: FindSecret,
        environ: Mapping[str, str],
        timeout: float,
    ) -> None:
        self._tell = tell
        self._find_secret = find_secret
        self._environ = environ
        self._timeout = timeout
        self._telling = Lock()
        self._stopped = Event()
        secrets = [requirement for requirement in wanted if requirement.kind == "secret"]
        others = [requirement for requirement in wanted if requirement.kind != "secret"]
        self._left = 2
        self._others = Thread(target=self._look, args=(others,), daemon=True, name="health")
        self._others.start()
        Thread(target=self._look, args=(secrets,), daemon=True, name="health-secrets").start()

    def stop(self) -> None:
        """Ends the look, and the programs that it runs; waits for their end, but for no keyring."""
        self._stopped.set()
        with self._telling:  # so that nothing is told any more once this has come back
            pass
        self._others.join()

    def _look(self, wanted: Sequence[DeclaredRequirement]) -> None:
        try:
            if wanted:
                self._look_for(wanted)
        finally:
            with self._telling:
                self._left -= 1
                if not self._left and not self._stopped.is_set():
                    self._tell(None)

    def _look_for(self, wanted: Sequence[DeclaredRequirement]) -> None:
        from pegboard.sdk.probes import probe_all

        answers = probe_all(
            wanted,
            find_secret=self._find_secret,
            environ=self._environ,
            timeout=self._timeout,
            stopped=self._stopped.is_set,
        )
        for answer in answers:
            with self._telling:
                if not self._stopped.is_set():
                    self._tell(answer)
