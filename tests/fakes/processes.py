"""Waits for processes, and what Linux reports about them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path


async def until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Wait until a condition is true."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - processes and files raise no event here
            await asyncio.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Return whether a process runs."""
    return bool(_ids(Path(f"/proc/{pid}")))


def in_group(group: int) -> list[int]:
    """Return the running processes of a process group."""
    return [pid for pid, (_, its_group) in _running().items() if its_group == group]


def workers() -> frozenset[int]:
    """Return the running worker processes that this process has started."""
    children = (pid for pid, (parent, _) in _running().items() if parent == os.getpid())
    return frozenset(pid for pid in children if b"pegboard.worker" in command_of(pid))


def command_of(pid: int) -> bytes:
    """Return the arguments that started a process, separated by zero bytes; empty if it has ended.

    Processes of other tests have arguments in any encoding, or in none.
    """
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def descendants(pid: int) -> list[int]:
    """Return the running processes that descend from a process, its children first."""
    running = _running()
    found = [pid]
    for each in found:
        found += [child for child, (parent, _) in running.items() if parent == each]
    return found[1:]


def _running() -> dict[int, tuple[int, int]]:
    """Return the parent and the process group of each running process."""
    found = {int(folder.name): _ids(folder) for folder in Path("/proc").glob("[0-9]*")}
    return {pid: ids for pid, ids in found.items() if ids}


def _ids(folder: Path) -> tuple[int, int] | None:
    """Return the parent and the process group of a process; None if it has ended."""
    try:
        state, parent, group = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:3]
    except OSError:
        return None
    return None if state in {b"Z", b"X"} else (int(parent), int(group))
