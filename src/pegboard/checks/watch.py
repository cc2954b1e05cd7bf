"""Watch packs, and report which ones changed."""

from __future__ import annotations

import asyncio
import os
from collections import ChainMap
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from pathlib import PurePath
from typing import Final, TypeAlias

from pegboard.built_in import is_built_in
from pegboard.discovery import watch
from pegboard.discovery.files import FileMark, mark_of
from pegboard.discovery.project_modules import imported_files
from pegboard.runtime import Runtime

_QUIET: Final = 0.3
"""Seconds without a change after which changes are reported."""
_TIMEOUT_SECONDS: Final = 2.0
"""Longest time that further changes delay the report, in seconds."""


_Marks: TypeAlias = dict[str, FileMark | None]


async def changed_packs(runtime: Runtime) -> AsyncGenerator[frozenset[str]]:
    """Scan, then yield the names of the packs whose files changed, after each rescan, until the iterator is closed.

    The first item is empty; it follows the first scan. Changes in quick succession are reported together, also those
    that happen while the caller works.

    Args:
        runtime: The runtime.
    """
    stop = asyncio.Event()
    waiting: asyncio.Queue[frozenset[str]] = asyncio.Queue()
    imports: dict[str, _Marks] = {}
    # The baseline for changes is taken here, before the scan.
    changes = await asyncio.to_thread(
        watch, runtime.folders, stop=stop, modules=lambda: dict(ChainMap(*imports.values()))
    )

    async def follow() -> None:
        async with aclosing(changes):
            async for files in changes:
                waiting.put_nowait(files)

    following: asyncio.Task[None] | None = None
    try:
        await asyncio.to_thread(runtime.tools.scan)
        imports |= await asyncio.to_thread(_imports, runtime)
        yield frozenset()
        following = asyncio.create_task(follow())
        while True:
            files = await _gathered(waiting)
            before = _packs(runtime, files, imports)
            await asyncio.to_thread(runtime.tools.scan)
            imports |= await asyncio.to_thread(_imports, runtime)
            yield before | _packs(runtime, files, imports)
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
    end = asyncio.get_running_loop().time() + _TIMEOUT_SECONDS
    with suppress(TimeoutError):
        while (left := end - asyncio.get_running_loop().time()) > 0:
            async with asyncio.timeout(min(_QUIET, left)):
                files |= await waiting.get()
    return files


def _imports(runtime: Runtime) -> dict[str, _Marks]:
    """Return the files that each pack imports from its project, by the file of the pack; block."""
    packs = {spec.file for spec in runtime.tools.all() if spec.file and not is_built_in(spec.file)}
    return {pack: {file: mark_of(file) for file in imported_files(pack)} for pack in packs}


def _packs(runtime: Runtime, files: frozenset[str], imports: Mapping[str, _Marks]) -> frozenset[str]:
    """Return the packs in these files, or that import them; a helper module belongs to every pack of its folder."""
    changed = {os.path.realpath(file) for file in files}
    helpers = {PurePath(file).parent for file in changed if PurePath(file).name.startswith("_")}
    found = set()
    for pack, file in {(spec.pack, spec.file) for spec in runtime.tools.all() if spec.file}:
        real = os.path.realpath(file)
        imported = map(os.path.realpath, imports.get(file, ()))
        if real in changed or PurePath(real).parent in helpers or not changed.isdisjoint(imported):
            found.add(pack)
    return frozenset(found)
