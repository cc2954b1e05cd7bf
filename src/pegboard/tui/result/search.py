"""The search of the view that is shown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Protocol, runtime_checkable

from pegboard.results.search import pattern

_HITS = 10_000
_AT_ONCE = 2_000


@runtime_checkable
class Searchable(Protocol):
    """A view that can be searched; what a hit is, only the view knows."""

    def find(self, wanted: re.Pattern[str]) -> Iterator[Any]:
        """Gives the hits in order, and None for what lies between them."""
        ...

    def go(self, hit: Any) -> None:  # noqa: ANN401 - see the class
        """Shows a hit."""
        ...

    def nearest(self, hits: list[Any]) -> int:
        """Gives the index of the hit to begin with."""
        ...

    def mark(self, wanted: re.Pattern[str] | None) -> None:
        """Marks whatever `wanted` is found in."""
        ...


class Search:
    """What was searched for and found, and at which of it the view stands.

    Args:
        changed: Called when `note` has changed.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._view: Searchable | None = None
        self._hits: list[Any] = []
        self._at = 0
        self.wanted = ""
        self.note = ""

    @property
    def found(self) -> bool:
        """Whether there is anything to go to."""
        return bool(self._hits)

    def leave(self) -> None:
        """Forgets what was found, not what was searched for."""
        if self._view is not None:
            self._view.mark(None)
        self._view = None
        self._hits = []
        self.note = ""
        self._changed()

    async def run(self, view: Searchable, wanted: str) -> None:
        """Searches a view without holding up anything else, and goes to the nearest hit."""
        self.leave()
        self.wanted = wanted
        if not wanted:
            return
        rule = pattern(wanted)
        self._view = view
        view.mark(rule)
        places = view.find(rule)
        hits: list[Any] = []
        while (some := list(islice(places, _AT_ONCE))) and len(hits) < _HITS:
            hits += [hit for hit in some if hit is not None]
            await asyncio.sleep(0)
        self._hits = hits[:_HITS]
        if not self._hits:
            self.note = f"nothing found: {wanted}"
            self._changed()
            return
        self._go(view.nearest(self._hits))

    def step(self, steps: int) -> None:
        """Goes on to another hit, round and round."""
        if self._hits:
            self._go((self._at + steps) % len(self._hits))

    def _go(self, index: int) -> None:
        self._at = index
        if self._view is not None:
            self._view.go(self._hits[index])
        total = f"{len(self._hits):,}{'+' if len(self._hits) == _HITS else ''}"
        self.note = f"{index + 1:,} of {total}: {self.wanted}"
        self._changed()
