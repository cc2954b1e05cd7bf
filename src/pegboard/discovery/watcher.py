"""Tells when packs change: the system's notices make it quick, a sweep over the files' times makes it sure."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pegboard.discovery.files import Stamp, absolute

if TYPE_CHECKING:
    from watchfiles import Change

_SWEEP_AFTER = 1.0
"""Seconds without a notice after which the files are looked at all the same."""
_LOOK_AGAIN_AFTER = 0.5
"""Seconds between two looks where the system gives no notices."""

Sweep = dict[str, Stamp]
"""What a file or folder looked like, for each that there is."""


class Stop(Protocol):
    """What says that watching may end, such as `asyncio.Event` or `threading.Event`."""

    def is_set(self) -> bool:
        """Tells whether it has been said."""
        ...


def watch(paths: Sequence[Path | str], *, stop: Stop) -> AsyncGenerator[frozenset[str], None]:
    """Does what `pegboard.discovery.watch` says."""
    places = [absolute(path) for path in paths]
    return _changes(places, _sweep(places), stop)


async def _changes(places: Sequence[str], seen: Sweep, stop: Stop) -> AsyncGenerator[frozenset[str], None]:
    while not stop.is_set():
        present = [place for place in places if place in seen]
        async with aclosing(_notices(present, stop)) as notices:
            async for _ in notices:
                now = await asyncio.to_thread(_sweep, places)
                changed = {path for path in seen.keys() | now.keys() if seen.get(path) != now.get(path)}
                moved = any(_identity(seen, place) != _identity(now, place) for place in places)
                seen = now
                # A folder's own times change with whatever is in it.
                files = frozenset(path for path in changed if path.endswith(".py"))
                if files or moved:
                    yield files
                if moved:
                    break


def _identity(sweep: Sweep, place: str) -> int | None:
    stamp = sweep.get(place)
    return stamp.inode if stamp else None


def _sweep(places: Sequence[str]) -> Sweep:
    """Looks at the folders, and at every `.py` file directly in them, helpers too."""
    found: Sweep = {}
    for place in places:
        _look(place, found)
        try:
            with os.scandir(place) as entries:
                names = [entry.path for entry in entries if entry.name.endswith(".py")]
        except OSError:
            continue  # it isn't there now, or it is a file
        for path in names:
            _look(path, found)
    return found


def _look(path: str, found: Sweep) -> None:
    try:
        status = os.stat(path)  # noqa: PTH116 - called for every file again and again, and `Path` doubles its time
    except OSError:
        return
    found[path] = Stamp.of(status)


async def _notices(present: Sequence[str], stop: Stop) -> AsyncGenerator[None, None]:
    """Yields when something may have changed, and now and then when nothing did; ends when it is stopped."""
    if present:
        quit_ = _Stop(stop)
        try:
            # `awatch` would import anyio's half of asyncio on the event loop, and keep a key waiting for it
            notices = await asyncio.to_thread(_open_notices, present, quit_)
            while await _next(notices, quit_):
                yield
        except OSError:
            pass  # no more watches to be had, or a file system without: the look below stands in
        else:
            return
    await asyncio.sleep(_LOOK_AGAIN_AFTER)
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
    """Waits for a notice beside the event loop; False at their end."""
    waiting = asyncio.create_task(asyncio.to_thread(_advance, notices))
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        quit_.set()
        await asyncio.wait([waiting])  # nobody else may touch them while the thread does
        raise


def _advance(notices: Iterator[object]) -> bool:
    """Takes a notice.

    Raises:
        OSError: The system gives none.
    """
    from watchfiles._rust_notify import WatchfilesRustInternalError

    try:
        return next(notices, None) is not None
    except WatchfilesRustInternalError as error:
        raise OSError(str(error)) from error


class _Stop:
    """Passes on the caller's stop, and can be set without it: whoever goes on watching mustn't be stopped."""

    def __init__(self, outer: Stop) -> None:
        self._outer = outer
        self._set = False

    def is_set(self) -> bool:
        return self._set or self._outer.is_set()

    def set(self) -> None:
        self._set = True


def _is_python(_change: Change, path: str) -> bool:
    return path.endswith(".py")
