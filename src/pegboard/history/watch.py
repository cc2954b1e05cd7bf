"""Changes of the history made by any process, as they happen."""

from __future__ import annotations

import asyncio
import json
import select
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pegboard.errors import StoreError
from pegboard.history.history import History
from pegboard.history.notify import Bell
from pegboard.history.reader import Reader
from pegboard.history.schema import RUNNING

if TYPE_CHECKING:
    from pegboard.history.rows import Column

_POLL_SECONDS: Final = 0.2
_ALIVE_SECONDS: Final = 2.0
"""Pause between two looks for processes that ended during a call."""
_MOST_IDS: Final = 1000
_SEEN: Final = "n, id, status, error IS NOT NULL"


@dataclass(frozen=True)
class HistoryChange:
    """Calls that were added or changed.

    Attributes:
        ids: Ids of new calls, and of calls that finished.
        everything: Whether other calls may have changed too: calls were deleted, pinned or redacted, or too many are
            new to list them.
    """

    ids: frozenset[str]
    everything: bool = False


class Watcher:
    """Thread that notices changes: through a socket, and by polling if a notification is lost.

    Args:
        history: The history to watch.
        changed: Called on the thread with each change. It must not block.
    """

    def __init__(self, history: History, changed: Callable[[HistoryChange], object]) -> None:
        self._history = history
        self._changed = changed
        self._reader = Reader(history)
        self._ending = threading.Event()
        self._bell: Bell | None = None
        self._thread = threading.Thread(target=self._watch, name="pegboard-watch", daemon=True)
        self._last = 0
        self._running: dict[int, tuple[str, bool]] = {}
        """The ids of unfinished calls, and whether they wait for approval, by position."""
        self._edits = 0
        self._is_ready = False

    def start(self) -> None:
        """Start the thread; changes made from now on are reported."""
        with suppress(StoreError):
            self._look()
        self._bell = Bell(self._history.bells)
        self._thread.start()

    def end(self) -> None:
        """Ask the thread to end, also one that has not started yet."""
        self._ending.set()

    def close(self) -> None:
        """End the thread; wait, within a limit, until it has ended."""
        self.end()
        if self._thread.ident is not None:
            self._thread.join(_POLL_SECONDS * 10)

    def _watch(self) -> None:
        bell = self._bell
        version: int | None = None
        looked_at = time.monotonic()
        try:
            while not self._ending.is_set():
                is_rung = self._wait(bell)
                if self._ending.is_set():
                    break
                if time.monotonic() - looked_at > _ALIVE_SECONDS:
                    looked_at = time.monotonic()
                    if self._running:
                        self._history.mark_interrupted()
                try:
                    now = self._reader.data_version()
                    if is_rung or now != version:
                        version = now
                        change = self._look()
                        if change.ids or change.everything:
                            self._changed(change)
                except StoreError:  # the history reports it; try again with the next poll
                    version = None
        finally:
            if bell is not None:
                bell.close()
            self._reader.close()

    def _wait(self, bell: Bell | None) -> bool:
        descriptor = None if bell is None else bell.fileno()
        if bell is None or descriptor is None:
            self._ending.wait(_POLL_SECONDS)
            return False
        poll = select.poll()  # `select` can't wait for a descriptor above 1,023
        poll.register(descriptor, select.POLLIN)
        ready = poll.poll(_POLL_SECONDS * 1000)
        if ready:
            bell.clear()
        return bool(ready)

    def _look(self) -> HistoryChange:
        ids: set[str] = set()
        [(last, edits)] = self._reader.select(
            "SELECT coalesce((SELECT max(n) FROM calls), 0),"
            " coalesce((SELECT value FROM facts WHERE name = 'edits'), 0)"
        )
        is_replaced = int(last or 0) < self._last
        everything = int(edits or 0) != self._edits or is_replaced
        self._edits = int(edits or 0)
        if self._running:
            for position, call, status, waits in self._reader.select(
                f"SELECT {_SEEN} FROM calls WHERE n IN (SELECT value FROM json_each(?))",  # noqa: S608 - our own names
                [json.dumps(list(self._running))],
            ):
                if status != RUNNING:
                    ids.add(self._running.pop(int(position or 0))[0])
                elif self._note(position, call, waits):
                    ids.add(str(call))
        if is_replaced:
            self._running.clear()
        if not self._is_ready or is_replaced:
            self._is_ready = True
            self._last = int(last or 0)
            for position, call, _, waits in self._reader.select(f"SELECT {_SEEN} FROM calls WHERE status = {RUNNING}"):  # noqa: S608 - our own names
                self._note(position, call, waits)
            return HistoryChange(frozenset(ids), everything and is_replaced)
        new = self._reader.select(
            f"SELECT {_SEEN} FROM calls WHERE n > ? ORDER BY n DESC LIMIT ?",  # noqa: S608 - our own names
            [min(self._last, int(last or 0)), _MOST_IDS],
        )
        everything = everything or len(new) == _MOST_IDS
        for position, call, status, waits in new:
            ids.add(str(call))
            if status == RUNNING:
                self._note(position, call, waits)
        self._last = max([int(last or 0), *(int(position or 0) for position, *_ in new)])
        return HistoryChange(frozenset(ids), everything)

    def _note(self, position: Column, call: Column, waits: Column) -> bool:
        """Note an unfinished call; return whether that is new."""
        seen = (str(call), bool(waits))
        before, self._running[int(position or 0)] = self._running.get(int(position or 0)), seen
        return before != seen


async def changes(history: History) -> AsyncGenerator[HistoryChange]:
    """Yield changes of the history by any process, within a moment after they are made.

    The first one is empty: earlier reads may lack changes, and all later changes are noticed.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[HistoryChange] = asyncio.Queue()

    def put(change: HistoryChange) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(queue.put_nowait, change)

    watcher = Watcher(history, put)
    starting = asyncio.ensure_future(asyncio.to_thread(watcher.start))
    try:
        await asyncio.shield(starting)
        yield HistoryChange(frozenset())
        while True:
            change = await queue.get()
            while not queue.empty():
                more = queue.get_nowait()
                change = HistoryChange(change.ids | more.ids, change.everything or more.everything)
            yield change
    finally:
        watcher.end()  # before anything that can be cancelled, so that no thread outlives this iterator
        await starting
        await asyncio.to_thread(watcher.close)
