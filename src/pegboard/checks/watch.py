"""Watch packs, and report which ones changed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from pathlib import PurePath
from typing import Final

from pegboard.discovery import watch
from pegboard.runtime import Runtime

_QUIET: Final = 0.3
"""Seconds without a change after which changes are reported."""
_PATIENCE: Final = 2.0
"""Longest time that further changes delay the report, in seconds."""


async def changed_packs(runtime: Runtime) -> AsyncGenerator[frozenset[str]]:
    """Scan, then yield the names of the packs whose files changed, after each rescan, until the iterator is closed.

    The first item is empty; it follows the first scan. Changes in quick succession are reported together, also those
    that happen while the caller works.

    Args:
        runtime: The runtime.
    """
    stop = asyncio.Event()
    waiting: asyncio.Queue[frozenset[str]] = asyncio.Queue()
    # The baseline for changes is taken here, before the scan.
    changes = await asyncio.to_thread(watch, runtime.folders, stop=stop)

    async def follow() -> None:
        async with aclosing(changes):
            async for files in changes:
                waiting.put_nowait(files)

    following: asyncio.Task[None] | None = None
    try:
        await asyncio.to_thread(runtime.tools.scan)
        yield frozenset()
        following = asyncio.create_task(follow())
        while True:
            files = await _gathered(waiting)
            before = _packs(runtime, files)
            await asyncio.to_thread(runtime.tools.scan)
            yield before | _packs(runtime, files)
    finally:
        stop.set()
        if following is None:
            await changes.aclose()
        else:
            following.cancel()
            await asyncio.wait({following})


async def _gathered(waiting: asyncio.Queue[frozenset[str]]) -> frozenset[str]:
    """Return the next changed files, with those that follow quickly."""
    files = await waiting.get()
    end = asyncio.get_running_loop().time() + _PATIENCE
    with suppress(TimeoutError):
        while (left := end - asyncio.get_running_loop().time()) > 0:
            async with asyncio.timeout(min(_QUIET, left)):
                files |= await waiting.get()
    return files


def _packs(runtime: Runtime, files: frozenset[str]) -> frozenset[str]:
    """Return the packs in these files; a helper module belongs to every pack of its folder."""
    changed = {os.path.realpath(file) for file in files}
    helpers = {PurePath(file).parent for file in changed if PurePath(file).name.startswith("_")}
    found = set()
    for spec in runtime.tools.all():
        file = os.path.realpath(spec.file or "")
        if file in changed or PurePath(file).parent in helpers:
            found.add(spec.pack)
    return frozenset(found)
