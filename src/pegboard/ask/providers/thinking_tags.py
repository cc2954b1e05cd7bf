"""Separation of a model's reasoning between tags from its text, however a server cuts them into pieces."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Final, Literal

from pydantic_ai.profiles import DEFAULT_THINKING_TAGS

_START, _END = DEFAULT_THINKING_TAGS
_LINE_BEGINNING: Final = 100
"""Characters in which a line that is a tag, or the fence of a code block, can be recognized."""
_CLOSING: Final = re.compile(rf"^[ \t]*{re.escape(_END)}")


class ThinkingTags:
    """Splitter that returns each tag as a piece of its own, as the library recognizes it.

    The opening tag counts only at the start of the text, because an answer may quote it.
    """

    def __init__(self) -> None:
        self._stage: Literal["before", "thinking", "after", "text"] = "before"
        self._held = ""

    def split(self, piece: str, *, is_last: bool) -> Iterator[str]:
        """Yield the pieces of the text as far as they are certain.

        Args:
            piece: Text as it arrived.
            is_last: Whether the text, or this part of it, ends here, so that nothing is held back.
        """
        if piece == _START and not self._held and self._stage != "thinking":
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
        if start.startswith(_START):
            self._stage = "thinking"
            yield _START
            return start.removeprefix(_START)
        if _START.startswith(start) and not is_last:
            self._held = text
            return ""
        self._stage = "text"
        return text

    def _thinking(self, text: str, *, is_last: bool) -> Generator[str, None, str]:
        """Yield the reasoning, and the closing tag if it has arrived; return the rest."""
        thought, tag, rest = text.partition(_END)
        if not tag and not is_last:
            sizes = range(min(len(_END) - 1, len(text)), 0, -1)
            held = next((size for size in sizes if text.endswith(_END[:size])), 0)
            thought, self._held = text[: len(text) - held], text[len(text) - held :]
        if thought:
            yield thought
        if tag:
            self._stage = "after"
            yield tag
        return rest


class UnopenedThinking:
    """Detector of reasoning that only a closing tag ends, because the model's template contains the opening one.

    The closing tag counts only at the start of a line outside a code block, because an answer may quote it.
    """

    def __init__(self) -> None:
        self._line = ""
        self._returned = 0
        """Characters of the line that were returned."""
        self._fences = 0
        self._is_over = False
        self._is_before_answer = False

    def split(self, piece: str) -> tuple[str | None, str]:
        """Return the rest of the reasoning if it ends in this piece, else None, and text as far as it is certain."""
        if self._is_over:
            return None, self._answer(piece)
        text, returned = self._line + piece, self._returned
        position = 0
        for line in re.split(r"(?<=\n)", text):
            if self._fences % 2 == 0 and (tag := _CLOSING.match(line)):
                self._is_over = self._is_before_answer = True
                return text[returned:position], self._answer(text[position + tag.end() :])
            if _START in line:
                self._is_over = True
                break
            if line.endswith("\n"):
                self._fences += line.lstrip().startswith("```")
                position += len(line)
        self._line = text[position:]
        is_held = not self._is_over and self._line.strip() and _END.startswith(self._line.strip())
        certain = max(position if is_held else len(text), returned)
        if len(self._line) > 2 * _LINE_BEGINNING:  # each piece searches it again
            self._line = self._line[:_LINE_BEGINNING] + self._line[-len(_START) :]
        self._returned = min(certain - position, len(self._line))
        return None, text[returned:certain]

    def rest(self) -> str:
        """Return the text that was held back."""
        text = "" if self._is_over else self._line[self._returned :]
        self._is_over = True
        return text

    def _answer(self, text: str) -> str:
        """Return text after the tag, without the space between both."""
        if self._is_before_answer:
            text = text.lstrip()
            self._is_before_answer = not text
        return text
