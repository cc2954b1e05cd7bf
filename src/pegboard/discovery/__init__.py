"""Discovery of tools in packs folders: parses files without running them, caches the results, and watches for changes.

Importing this package loads neither pydantic nor asyncio, which the processes that read files don't need.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from pegboard.discovery.files import FileMark
    from pegboard.discovery.watcher import Stop
    from pegboard.models import Problem, ToolSpec

__all__ = ["read", "scan", "sweep", "watch"]


def scan(paths: Sequence[Path | str], *, index: Path | None = None) -> tuple[tuple[ToolSpec, ...], tuple[Problem, ...]]:
    """Parse all packs in `paths` without importing or running them. Never raises because of a file.

    Args:
        paths: Packs folders or single `.py` files. If two packs have the same name, the first is used.
        index: Folder of the cache that makes it unnecessary to parse unchanged files again; created if missing. None
            disables the cache.

    Returns:
        The tools in the order of folders, files and lines, and all problems with files, packs and tools (including
        `problems` of each tool).
    """
    from pegboard.discovery.scanner import scan as run

    return run(paths, index=index)


def read(source: str | bytes, file: str) -> tuple[tuple[ToolSpec, ...], tuple[Problem, ...]]:
    """Parse one source like a file, without importing or running it.

    Args:
        source: Text, or bytes in the encoding that they declare.
        file: Path to use in handlers and problems. Its name is the name of the pack.

    Returns:
        The tools, and all problems (including `problems` of each tool).
    """
    from pegboard.discovery.scanner import read as run

    return run(source, file)


def watch(
    paths: Sequence[Path | str], *, stop: Stop, modules: Callable[[], Mapping[str, FileMark | None]] = dict
) -> AsyncGenerator[frozenset[str], None]:
    """Watch for added, changed and removed `.py` files directly in the paths, and for changes of certain other files.

    Changes after the call are reported even if the iteration starts later. Therefore call it before the scan that it
    keeps up to date. Folders may be created, removed and replaced.

    Args:
        paths: Packs folders or single files.
        stop: Signal that ends the iteration within about a second. Cancelling ends it immediately.
        modules: Function that returns the other files by their absolute paths, such as modules of the project that
            types come from, each with its mark when it was read. Changes are noticed about a second later.

    Yields:
        The changed files; an empty set if an empty folder was created or removed.
    """
    from pegboard.discovery.watcher import watch as run

    return run(paths, stop=stop, modules=modules)


def sweep(index: Path) -> None:
    """Delete cached data unused for two weeks. Blocks; never raises.

    Args:
        index: Folder of the cache, as passed to `scan`; it may be missing.
    """
    from pegboard.discovery.index import sweep as run

    run(index)
