"""Separation of a model's reasoning between tags from its text, however a server cuts them into pieces."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Literal


class ThinkingTags:
    """Splitter that returns each tag as a piece of its own, as the library recognizes it.

    The opening tag counts only at the start of the text, because an answer may quote it.

    Args:
        start: The opening tag.
        end: The closing tag.
    """

    def __init__(self, start: str, end: str) -> None:
        self._start = start
        self._end = end
        self._stage: Literal["before", "thinking", "after", "text"] = "before"
        self._held = ""

    def split(self, piece: str, *, is_last: bool) -> Iterator[str]:
        """Yield the pieces of the text as far as they are certain.

        Args:
            piece: Text as it arrived.
            is_last: Whether the text, or this part of it, ends here, so that nothing is held back.
        """
        if piece == self._start and not self._held and self._stage != "thinking":
            self._stage = "thinking"
            yield piece
            return
        text, self._held = self._held + piece, ""
        if self._stage == "before":
            text = yield from self._before(text, is_last=is_last)
        if self._stage == "thinking":
            text = yield from self._thinking(text, is_last=is_last)
        if self._stage == "after":
            text = text.lstrip()
            self._stage = "text" if text else "after"
        if self._stage == "text" and text:
            yield text

    def _before(self, text: str, *, is_last: bool) -> Generator[str, None, str]:
        """Yield the opening tag if the text starts with it; return the rest."""
        start = text.lstrip()
        if start.startswith(self._start):
            self._stage = "thinking"
            yield self._start
            return start.removeprefix(self._start)
        if self._start.startswith(start) and not is_last:
            self._held = text
            return ""
        self._stage = "text"
        return text

    def _thinking(self, text: str, *, is_last: bool) -> Generator[str, None, str]:
        """Yield the reasoning, and the closing tag if it has arrived; return the rest."""
        thought, tag, rest = text.partition(self._end)
        if not tag and not is_last:
            sizes = range(min(len(self._end) - 1, len(text)), 0, -1)
            held = next((size for size in sizes if text.endswith(self._end[:size])), 0)
            thought, self._held = text[: len(text) - held], text[len(text) - held :]
        if thought:
            yield thought
        if tag:
            self._stage = "after"
            yield tag
        return rest
