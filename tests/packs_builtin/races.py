"""Links that another process swaps in, as fast as it can, while a tool runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = float(os.environ.get("PEGBOARD_RACE_SECONDS", "0.3"))
"""How long one race lasts."""
TIMEOUT_SECONDS = 30.0

_SWAP = """
import os, sys
here, link, spare = sys.argv[1:]
print("ready", flush=True)
while True:
    os.rename(here, spare)
    os.rename(link, here)
    os.rename(here, link)
    os.rename(spare, here)
"""


@contextmanager
def swapping(here: Path, target: Path) -> Iterator[None]:
    """Have another process replace a path by a link and back, repeatedly.

    Args:
        here: The path.
        target: The target of the link.
    """
    folder = here.parent
    link, spare = folder / f"{here.name}.link", folder / f"{here.name}.spare"
    link.symlink_to(target)
    process = subprocess.Popen([sys.executable, "-c", _SWAP, here, link, spare], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.communicate()


def race(attempt: Callable[[], object], is_enough: Callable[[], object] = lambda: True) -> int:
    """Try as often as the time allows, and longer on a busy machine; return the number of attempts.

    Args:
        attempt: One attempt.
        is_enough: Returns whether the attempts so far suffice; without it, one does.
    """
    tries, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end or (not is_enough() and time.monotonic() < end + TIMEOUT_SECONDS):
        attempt()
        tries += 1
    print(f"{tries} tries")
    return tries
