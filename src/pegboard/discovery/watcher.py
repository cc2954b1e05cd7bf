"""File watcher for packs: combines notifications of the system with a regular comparison of stamps."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pegboard.discovery.files import FileMark, Stamp, absolute, mark_of, stamp_of

if TYPE_CHECKING:
    from watchfiles import Change

_SWEEP_AFTER = 1.0
"""Seconds without a notification after which the stamps are compared."""
_POLL_INTERVAL = 0.5
"""Seconds between comparisons if notifications are unavailable."""

Stamps = dict[str, Stamp]
"""Stamp of each existing file and folder."""

Modules = Callable[[], Mapping[str, FileMark | None]]
"""Function that returns the files that tools were read from, each with its mark when it was read."""


class Stop(Protocol):
    """Signal to stop watching, such as `asyncio.Event` or `threading.Event`."""

    def is_set(self) -> bool:
        """Return whether to stop."""
        ...


def watch(paths: Sequence[Path | str], *, stop: Stop, modules: Modules) -> AsyncGenerator[frozenset[str], None]:
    """Implement `pegboard.discovery.watch`."""
    roots = [absolute(path) for path in paths]
    return _changes(roots, _stamps(roots), stop, modules)


async def _changes(
    roots: Sequence[str], seen: Stamps, stop: Stop, modules: Modules
) -> AsyncGenerator[frozenset[str], None]:
    elsewhere: Mapping[str, FileMark | None] = {}
    while not stop.is_set():
        present = [root for root in roots if root in seen]
        async with aclosing(_notices(present, stop)) as notices:
            async for _ in notices:
                now = await asyncio.to_thread(_stamps, roots)
                changed = {path for path in seen.keys() | now.keys() if seen.get(path) != now.get(path)}
                known = {path: elsewhere.get(path, mark) for path, mark in modules().items()}
                elsewhere = await asyncio.to_thread(_marks_elsewhere, known, roots)
                changed |= {path for path, mark in elsewhere.items() if known[path] != mark}
                moved = any(_identity(seen, root) != _identity(now, root) for root in roots)
                seen = now
                # any change in a folder changes its own stamp
                files = frozenset(path for path in changed if path.endswith(".py"))
                if files or moved:
                    yield files
                if moved:
                    break


def _identity(stamps: Stamps, root: str) -> int | None:
    stamp = stamps.get(root)
    return stamp.inode if stamp else None


def _stamps(roots: Sequence[str]) -> Stamps:
    """Return the stamps of the folders and of the `.py` files directly in them, including helpers."""
    found: Stamps = {}
    for root in roots:
        _add_stamp(root, found)
        try:
            with os.scandir(root) as entries:
                names = [entry.path for entry in entries if entry.name.endswith(".py")]
        except OSError:
            continue  # missing, or a file
        for path in names:
            _add_stamp(path, found)
    return found


def _marks_elsewhere(files: Iterable[str], roots: Sequence[str]) -> dict[str, FileMark | None]:
    """Return the marks of those files that aren't directly in the folders; None for missing ones."""
    places = {*roots}
    outside = [file for file in files if file not in places and file.rpartition(os.sep)[0] not in places]
    return {file: mark_of(file) for file in outside}


def _add_stamp(path: str, found: Stamps) -> None:
    stamp = stamp_of(path)
    if stamp is not None:
        found[path] = stamp


async def _notices(present: Sequence[str], stop: Stop) -> AsyncGenerator[None, None]:
    """Yield when files may have changed, and regularly without a change, until stopped."""
    if present:
        quit_ = _Stop(stop)
        try:
            # `awatch` would import anyio on the event loop and delay key presses
            notices = await asyncio.to_thread(_open_notices, present, quit_)
            while await _next(notices, quit_):
                yield
        except OSError:
            pass  # the limit of watches is reached, or the file system has none: poll instead
        else:
            return
    await asyncio.sleep(_POLL_INTERVAL)
    if not stop.is_set():
        yield


def _open_notices(present: Sequence[str], quit_: _Stop) -> Iterator[object]:
    from watchfiles import watch

    return watch(
        *present,
        watch_filter=_is_python,
        stop_event=quit_,
        rust_timeout=int(_SWEEP_AFTER * 1000),
        yield_on_timeout=True,
        recursive=False,
        ignore_permission_denied=True,
    )


async def _next(notices: Iterator[object], quit_: _Stop) -> bool:
    """Wait in a thread for a notification; return False after the last one."""
    waiting = asyncio.create_task(asyncio.to_thread(_advance, notices))
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        quit_.set()
        await asyncio.wait([waiting])  # the iterator must not be used while the thread uses it
        raise


def _advance(notices: Iterator[object]) -> bool:
    """Wait for a notification; return False after the last one.

    Raises:
        OSError: The system provides none.
    """
    from watchfiles._rust_notify import WatchfilesRustInternalError

    try:
        return next(notices, None) is not None
    except WatchfilesRustInternalError as error:
        raise OSError(str(error)) from error


class _Stop:
    """Stop signal that is set with the caller's, and can also be set alone without affecting the caller's."""

    def __init__(self, outer: Stop) -> None:
        self._outer = outer
        self._set = False

    def is_set(self) -> bool:
        return self._set or self._outer.is_set()

    def set(self) -> None:
        self._set = True


def _is_python(_change: Change, path: str) -> bool:
    return path.endswith(".py")
