"""Fuzzy search: the one ranking of every list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

_WORD_START = re.compile(r"(?<![^\W_])[^\W_]")


class FuzzyQuery:
    """A search text, prepared to match and rank many candidates.

    Args:
        query: The text as typed; case and spaces are ignored.
        dotted: Whether every part after a dot is a text of its own: in `fs.read`, `read` is the whole text.
    """

    def __init__(self, query: str, *, dotted: bool = False) -> None:
        self._dotted = dotted
        self.letters = "".join(query.lower().split())
        self._part = "." + self.letters
        self.matches = in_order(self.letters).match
        """Function that returns whether a lower-case text contains the letters in order, from an offset."""
        self._pairs = [(first + second, second) for first, second in pairwise(self.letters)]

    def level(self, text: str, initials: str | None = None) -> int:
        """Return the rank of a matching text, the best first.

        0: the whole text. 1: its beginning. 2: the beginning of a word. 3: any substring. 4: beginnings of words after
        the last dot, in order. 5: beginnings of any words, in order. 6: any letters in order.

        Args:
            text: A matching text in lower case.
            initials: Initials of its words, if they are known.
        """
        letters = self.letters
        at = text.rfind(letters)
        if at < 0:
            return self._level_of_beginnings(text, initials_of(text) if initials is None else initials)
        if text == letters or (self._dotted and text.endswith(self._part)):
            return 0
        if self._part in text if self._dotted else at == 0 or text.startswith(letters):
            return 1
        return 2 if at == 0 or not text[at - 1].isalnum() else 3

    def _level_of_beginnings(self, text: str, initials: str) -> int:
        """Return the rank of a text that doesn't contain the letters as a whole: 4, 5 or 6."""
        offsets = _word_beginnings(self.letters, text) if self._may_begin_words(text, initials) else []
        if not offsets:
            return 6
        if not self._dotted:
            return 5
        last = text.rfind(".") + 1
        is_last = offsets[0] >= last or (self.matches(text, last) and _word_beginnings(self.letters, text, last))
        return 4 if is_last else 5

    def _may_begin_words(self, text: str, initials: str) -> bool:
        """Return False if the letters can't be beginnings of words: each is an initial or follows the one before it.

        Takes a tenth of the time of `_word_beginnings`, and rules out most texts.
        """
        return self.letters[0] in initials and all(second in initials or pair in text for pair, second in self._pairs)


def initials_of(text: str) -> str:
    """Return the first letters of the words of a text."""
    return "".join(_WORD_START.findall(text))


def in_order(letters: str) -> re.Pattern[str]:
    """Return an expression that matches texts that contain some letters in order.

    Each character class excludes its letter, so the expression never backtracks.
    """
    return re.compile("".join(f"[^{re.escape(letter)}]*{re.escape(letter)}" for letter in letters))


def match_positions(query: str, name: str) -> Sequence[int]:
    """Return the offsets of the query's letters in a text: a substring, else word starts, else any in order.

    Args:
        query: The text as typed; case and spaces are ignored.
        name: The text to highlight.
    """
    letters, name = "".join(query.lower().split()), name.lower()
    if not letters:
        return ()
    after_dot = name.rfind("." + letters)
    start = after_dot + 1 if after_dot >= 0 else name.rfind(letters)
    if start >= 0:
        return range(start, start + len(letters))
    last_part = name.rfind(".") + 1
    return (
        _word_beginnings(letters, name, last_part)
        or _word_beginnings(letters, name)
        or _offsets(letters, name, range(len(name)))
    )


def _word_beginnings(letters: str, text: str, start: int = 0) -> list[int]:
    """Return the offsets of letters that are beginnings of words, in order, or an empty list if they aren't.

    In `create_customer`, `crcu` and `cc` are; `ru` is not.

    Args:
        letters: The letters, in lower case.
        text: The text, in lower case.
        start: Offset at which the words start.
    """
    reached: dict[int, list[int]] = {0: []}
    for word in _WORD_START.finditer(text, start):
        letter = word.group()
        for known in [count for count in reversed(reached) if letters[count] == letter]:
            at, found = word.start(), reached[known]
            for count, expected in enumerate(letters[known:], known + 1):
                if text[at : at + 1] != expected:
                    break
                found = [*found, at]
                if count == len(letters):
                    return found
                reached.setdefault(count, found)
                at += 1
    return []


def _offsets(letters: str, name: str, candidates: Iterable[int]) -> list[int]:
    """Return the candidate offsets of the letters in order, or an empty list unless all letters are found."""
    found: list[int] = []
    for offset in candidates:
        if name[offset] == letters[len(found)]:
            found.append(offset)
            if len(found) == len(letters):
                return found
    return []
