"""Finds tools without running them: packs folders are read with `ast`, kept in an index, and watched.

`scan` gives all tools and everything wrong, `read` those of one source, `watch` says when to scan again; `sweep` clears
the index of what nobody needs any more.
Importing this room loads neither pydantic nor asyncio: the processes that read files have no use for them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from pegboard.discovery.watcher import Stop
    from pegboard.models import Problem, ToolSpec

__all__ = ["read", "scan", "sweep", "watch"]


def scan(paths: Sequence[Path | str], *, index: Path | None = None) -> tuple[tuple[ToolSpec, ...], tuple[Problem, ...]]:
    """Reads every pack in `paths`; imports and runs nothing of them.

    Args:
        paths: Packs folders (or single `.py` files); of two packs with one name the earlier wins.
        index: The folder that keeps what was read, so that an unchanged file isn't parsed again; made where it isn't
            there, and never trusted further than its checksum. None for no index.

    Returns:
        The tools in the order of the folders, files and lines, and everything wrong with files, packs and tools
        (the tools' own problems too). No file makes it raise.
    """
    from pegboard.discovery.scanner import scan as run

    return run(paths, index=index)


def read(source: str | bytes, file: str) -> tuple[tuple[ToolSpec, ...], tuple[Problem, ...]]:
    """Reads the tools of one source, as `scan` reads a file; imports and runs nothing of it.

    Args:
        source: The text, or the bytes in the encoding that they declare.
        file: The path it goes by in handlers and problems; its name names the pack.

    Returns:
        The tools, and everything wrong (the tools' own problems too).
    """
    from pegboard.discovery.scanner import read as run

    return run(source, file)


def watch(paths: Sequence[Path | str], *, stop: Stop) -> AsyncGenerator[frozenset[str], None]:
    """Yields whenever a `.py` file directly in one of the paths is new, changed or gone, helpers (`_x.py`) included.

    What changes after the call isn't missed, even if the iteration begins later: call it before the scan that it is
    to keep up to date. A folder may come later, go and come back.

    Args:
        paths: Packs folders, or single files.
        stop: Ends the watching within about a second of its `is_set()`; cancelling ends it at once.

    Yields:
        The files that changed; none where a folder came or went empty.
    """
    from pegboard.discovery.watcher import watch as run

    return run(paths, stop=stop)


def sweep(index: Path) -> None:
    """Deletes what nobody has used for two weeks from an index; blocks, never raises.

    Args:
        index: The folder that keeps what was read, as `scan` takes it; it needn't exist.
    """
    from pegboard.discovery.index import sweep as run

    run(index)
