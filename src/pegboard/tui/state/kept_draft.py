"""The draft of an editor, written soon after each change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from textual.screen import Screen

from pegboard.tui.state.draft import Draft, DraftFile

_SECONDS: Final = 1.0
"""Delay before changes are written, in seconds."""


class KeptDraft:
    """A draft of a page, which the next process reads again.

    Args:
        page: Screen that runs the workers and shows notifications.
        file: The file.
        current: Returns the draft as it is now.
    """

    def __init__(self, page: Screen[None], file: DraftFile, current: Callable[[], Draft]) -> None:
        self._page = page
        self._file = file
        self._current = current
        self._is_scheduled = False
        self.restored = asyncio.Event()
        """Whether the draft of the last run is in the editor, and may be overwritten."""

    def restore(self, show: Callable[[Draft], object]) -> None:
        """Read the draft of the last run in the background, and pass it to a function that shows it."""

        async def restore() -> None:
            show(await asyncio.to_thread(self._file.read))
            self.restored.set()

        work: Callable[[], Awaitable[None]] = restore
        self._page.run_worker(work, group="draft")

    def schedule(self) -> None:
        """Write the draft soon."""
        if self.restored.is_set() and not self._is_scheduled:
            self._is_scheduled = True
            work: Callable[[], Awaitable[None]] = self._write
            self._page.run_worker(work, group="draft")

    async def _write(self) -> None:
        await asyncio.sleep(_SECONDS)
        self._is_scheduled = False
        if not self._file.keep(self._current()):
            return
        try:
            await asyncio.to_thread(self._file.write)
        except OSError as error:
            self._page.notify(f"The draft was not saved: {error.strerror}.", severity="warning", markup=False)

    async def close(self) -> None:
        """Write and unlock the draft."""
        self._file.keep(self._current())
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self.restored.is_set():
            with suppress(OSError):
                self._file.write()
        self._file.close()
