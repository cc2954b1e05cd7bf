"""Search in the current view."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pegboard.results.search import pattern

if TYPE_CHECKING:
    from pegboard.tui.result.text import TextView

_HITS = 10_000
_SLICE = 0.01
"""Seconds of work between two pauses."""


@runtime_checkable
class Searchable(Protocol):
    """View that can be searched. Only the view knows what a hit is."""

    content: object
    """Rows of the view. It is another object when hits that were found before no longer apply."""

    def find(self, wanted: re.Pattern[str]) -> Iterator[Any]:
        """Yield hits in order, and None in between so that the caller can pause."""
        ...

    def go(self, hit: Any) -> None:  # noqa: ANN401 - see the class
        """Show a hit."""
        ...

    def nearest(self, hits: list[Any]) -> int:
        """Return the index of the hit to show first."""
        ...

    def mark(self, wanted: re.Pattern[str] | None) -> None:
        """Highlight the matches of `wanted`, or nothing."""
        ...


class Search:
    """State of a search: pattern, hits and current hit.

    Args:
        changed: Called when `note` has changed.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._view: Searchable | None = None
        self._hits: list[Any] = []
        self._at = 0
        self._is_between = False
        """Whether no hit is shown yet, and `_at` is the next one."""
        self._content: object = None
        """Content of the view when it was searched."""
        self._where, self._is_cut = "", False
        self._part = ""
        self.wanted = ""
        self.note = ""
        self.rest = ""
        """What else could be searched, and how; empty if the view covers the whole result."""

    @property
    def found(self) -> bool:
        """Whether there are hits."""
        return bool(self._hits)

    @property
    def is_outdated(self) -> bool:
        """Whether the view has got other rows since it was searched."""
        return self._view is not None and self._view.content != self._content

    def leave(self) -> None:
        """Clear the hits, but keep the pattern."""
        if self._view is not None:
            self._view.mark(None)
        self._view = None
        self._hits = []
        self._where, self._is_cut = "", False
        self.note = ""
        self._changed()

    async def run(self, view: Searchable, wanted: str, part: str = "", *, moves: bool = True) -> None:
        """Search a view without blocking the event loop, and show the nearest hit.

        Args:
            view: The view.
            wanted: Text to search for.
            part: What the view searches if that isn't the whole value, such as `50 of 80 columns`.
            moves: Whether to show the nearest hit; otherwise, `step` shows it.
        """
        self.leave()
        self.wanted, self._part = wanted, part or ("the part shown" if self.rest else "")
        if not wanted:
            return
        rule = pattern(wanted)
        self._view, self._content = view, view.content
        view.mark(rule)
        places = view.find(rule)
        hits: list[Any] = []
        paused = monotonic()
        for hit in places:
            if hit is not None:
                hits.append(hit)
                if len(hits) == _HITS:
                    break
            if monotonic() - paused > _SLICE:
                await asyncio.sleep(0)
                if self._view is not view:  # the search was left meanwhile
                    return
                paused = monotonic()
        self._hits = hits
        if hits and moves:
            self._go(view.nearest(hits))
        else:
            self._at, self._is_between = view.nearest(hits) if hits else 0, True
            self._show_note()

    def extend(self, view: TextView, first: int) -> None:
        """Search lines that were appended to a text, without showing another hit.

        Args:
            view: View of the text; nothing happens if it isn't the searched one.
            first: Number of the first of these lines.
        """
        if self._view is not view:
            return
        shown = None if self._is_between or not self._hits else self._hits[self._at]
        kept = [hit for hit in self._hits if view.first_line <= hit.line < first]
        new = filter(None, view.find(pattern(self.wanted), first))
        self._hits = [*kept, *islice(new, _HITS - len(kept))]
        self._is_between = shown not in self._hits
        if self._hits:
            self._at = view.nearest(self._hits) if self._is_between else self._hits.index(shown)
        self._show_note()

    def announce(self, note: str) -> None:
        """Show a note instead of hits."""
        self.note = note
        self._changed()

    def show_hits(self, view: Searchable, wanted: str, hits: list[Any], where: str, *, is_cut: bool) -> None:
        """Show hits that were found elsewhere than in the view.

        Args:
            view: View that shows them.
            wanted: Text that was searched for.
            hits: The hits.
            where: The searched part, such as `all 48 MB`.
            is_cut: Whether there are more.
        """
        self.leave()
        self.wanted = wanted
        self._view, self._hits, self._where, self._is_cut = view, hits, where, is_cut
        self._content = view.content
        view.mark(pattern(wanted))
        if hits:
            self._go(0)
        else:
            self.announce(f"no match in {where}: {wanted}")

    @property
    def _more(self) -> str:
        return f" · {self.rest}" if self.rest else ""

    def step(self, steps: int) -> None:
        """Show another hit, wrapping around at the ends."""
        if self._hits:
            at = self._at - (self._is_between and steps > 0)
            self._go((at + steps) % len(self._hits))

    def _go(self, index: int) -> None:
        self._at, self._is_between = index, False
        if self._view is not None:
            self._view.go(self._hits[index])
        self._show_note()

    def _show_note(self) -> None:
        before, self.note = self.note, self._note()
        if self.note != before:
            self._changed()

    def _note(self) -> str:
        where = self._where or self._part
        more = "" if self._where or not where else self._more
        place = f" in {where}" if where else ""
        if not self._hits:
            return f"no match{place}: {self.wanted}{more}"
        is_cut = self._is_cut or len(self._hits) == _HITS
        total = f"{len(self._hits):,}{'+' if is_cut else ''}"
        if self._is_between:
            shown = f"{total} {'match' if total == '1' else 'matches'}"
        else:
            shown = f"{self._at + 1:,} of {total}"
        return f"{shown}{place}: {self.wanted}{more}"
