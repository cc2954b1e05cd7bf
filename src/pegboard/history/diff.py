"""Structural difference of two values: JSON by path, text by line; bounded in time and memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from operator import eq
from typing import Final

from pydantic import JsonValue

from pegboard.data.json_text import identical
from pegboard.models.difference import DiffLine, JsonDifference, ValueDiff

MOST_DIFFERENCES: Final = 2000
"""Maximum number of differences in one comparison."""
MOST_VISITED: Final = 500_000
"""Maximum number of values that one comparison looks at."""
_MOST_LINES: Final = 2000
"""Maximum number of lines of a text that are aligned; longer texts are compared line by line."""
_MOST_ITEMS: Final = 500
"""Maximum length of a list whose items are aligned; longer ones are compared index by index."""
_MOST_PAIRS: Final = 5_000_000
"""Maximum number of pairs of equal items or lines that one comparison looks at to align lists and texts."""
_TEXT_LIMIT: Final = 2_000_000
"""Characters of two texts beyond which they are not compared by line."""
_CONTEXT: Final = 3
"""Number of equal lines before and after a change."""


def diff(before: JsonValue, after: JsonValue, are_equal: Callable[[str, str], bool] | None = None) -> ValueDiff:
    """Compare two JSON values.

    Items of lists are aligned, so that an inserted item is one difference. Texts of several lines are compared by line.

    Args:
        before: The old value.
        after: The new value.
        are_equal: Returns whether two different texts mean the same.
    """
    comparison = _Comparison(are_equal or eq)
    found = tuple(islice(comparison.values("", before, after), MOST_DIFFERENCES + 1))
    is_whole = len(found) <= MOST_DIFFERENCES and comparison.left > 0
    return ValueDiff(differences=found[:MOST_DIFFERENCES], is_whole=is_whole)


class _Comparison:
    """One comparison, which ends when it has looked at too many values."""

    def __init__(self, are_equal: Callable[[str, str], bool]) -> None:
        self.left = MOST_VISITED
        self._pairs_left = _MOST_PAIRS
        self._are_equal = are_equal

    def values(self, path: str, before: JsonValue, after: JsonValue) -> Iterator[JsonDifference]:
        # Not by recursion: values may be nested deeper than Python's stack.
        waiting: list[Iterator[JsonDifference | tuple[str, JsonValue, JsonValue]]] = [iter([(path, before, after)])]
        while waiting and self.left > 0:
            try:
                item = next(waiting[-1])
            except StopIteration:
                waiting.pop()
                continue
            if isinstance(item, JsonDifference):
                yield item
                continue
            self.left -= 1
            path, old, new = item
            if old is new:
                continue
            if isinstance(old, dict) and isinstance(new, dict):
                waiting.append(self._objects(path, old, new))
            elif isinstance(old, list) and isinstance(new, list):
                waiting.append(self._lists(path, old, new))
            elif isinstance(old, str) and isinstance(new, str):
                if old != new and not self._are_equal(old, new):
                    yield self._texts(path, old, new)
            elif isinstance(old, dict | list) or isinstance(new, dict | list) or not identical(old, new):
                yield JsonDifference(path=path, kind="changed", before=old, after=new)

    def _objects(
        self, path: str, old: dict[str, JsonValue], new: dict[str, JsonValue]
    ) -> Iterator[JsonDifference | tuple[str, JsonValue, JsonValue]]:
        for key, value in old.items():
            if key in new:
                yield _inner(path, key), value, new[key]
            else:
                yield JsonDifference(path=_inner(path, key), kind="removed", before=value)
        for key, value in new.items():
            if key not in old:
                yield JsonDifference(path=_inner(path, key), kind="added", after=value)

    def _lists(
        self, path: str, old: list[JsonValue], new: list[JsonValue]
    ) -> Iterator[JsonDifference | tuple[str, JsonValue, JsonValue]]:
        if len(old) == len(new) or max(len(old), len(new)) > _MOST_ITEMS:
            yield from self._by_index(path, old, new, 0, 0)
            return
        keys = [_key(item) for item in old], [_key(item) for item in new]
        for tag, start, end, new_start, new_end in self._codes(*keys, is_text=False):
            if tag != "equal":
                yield from self._by_index(path, old[start:end], new[new_start:new_end], start, new_start)

    def _by_index(
        self, path: str, old: list[JsonValue], new: list[JsonValue], at: int, new_at: int
    ) -> Iterator[JsonDifference | tuple[str, JsonValue, JsonValue]]:
        common = min(len(old), len(new))
        for index in range(common):
            yield f"{path}[{at + index}]", old[index], new[index]
        for index in range(common, len(old)):
            yield JsonDifference(path=f"{path}[{at + index}]", kind="removed", before=old[index])
        for index in range(common, len(new)):
            yield JsonDifference(path=f"{path}[{new_at + index}]", kind="added", after=new[index])

    def _texts(self, path: str, old: str, new: str) -> JsonDifference:
        if ("\n" not in old and "\n" not in new) or len(old) + len(new) > _TEXT_LIMIT:
            return JsonDifference(path=path, kind="changed", before=old, after=new)
        before, after = old.split("\n"), new.split("\n")
        changed = _changed_lines(before, after, self._codes(before, after, is_text=True))
        lines = tuple(islice(changed, MOST_DIFFERENCES + 1))
        is_whole = len(lines) <= MOST_DIFFERENCES
        return JsonDifference(
            path=path, kind="text", before=old, after=new, lines=lines[:MOST_DIFFERENCES], is_whole=is_whole
        )

    def _codes(
        self, before: Sequence[str], after: Sequence[str], *, is_text: bool
    ) -> list[tuple[str, int, int, int, int]]:
        """Align lists or texts; between the equal items at their start and end, only as long as that takes little time.

        Args:
            before: The old items or lines.
            after: The new ones.
            is_text: Whether they are lines. Frequent ones, such as blank lines, don't align a text.
        """
        common = min(len(before), len(after))
        start = next((index for index in range(common) if before[index] != after[index]), common)
        left = common - start
        end = next((index for index in range(left) if before[-1 - index] != after[-1 - index]), left)
        old_end, new_end = len(before) - end, len(after) - end
        old, new = before[start:old_end], after[start:new_end]
        number_of = Counter(new)
        pairs = sum(number_of[item] for item in old)
        middle = [("replace", start, old_end, start, new_end)]
        if max(len(old), len(new)) <= _MOST_LINES and pairs <= self._pairs_left:
            self._pairs_left -= pairs
            middle = [
                (tag, first + start, last + start, new_first + start, new_last + start)
                for tag, first, last, new_first, new_last in SequenceMatcher(
                    None, old, new, autojunk=is_text
                ).get_opcodes()
            ]
        return [
            ("equal", 0, start, 0, start),
            *middle,
            ("equal", old_end, len(before), new_end, len(after)),
        ]


def _key(value: JsonValue) -> str:
    from pydantic_core import to_json

    try:
        return to_json(value).decode()
    except ValueError:
        return repr(type(value))


def _inner(path: str, key: str) -> str:
    from pydantic_core import to_json

    if key.isidentifier():
        return f"{path}.{key}"
    try:
        return f"{path}[{to_json(key).decode()}]"
    except ValueError:
        return f"{path}[{key!r}]"


def _changed_lines(
    before: Sequence[str], after: Sequence[str], codes: Sequence[tuple[str, int, int, int, int]]
) -> Iterator[DiffLine]:
    """Yield changed lines, with some equal lines around them."""
    for index, (tag, start, end, new_start, new_end) in enumerate(codes):
        if tag != "equal":
            for number in range(start, end):
                yield DiffLine(kind="removed", before=number + 1, after=None, text=before[number])
            for number in range(new_start, new_end):
                yield DiffLine(kind="added", before=None, after=number + 1, text=after[number])
            continue
        leading = 0 if index == 0 else _CONTEXT
        trailing = 0 if index == len(codes) - 1 else _CONTEXT
        for number in range(start, end):
            if number - start < leading or end - number <= trailing:
                at = number - start + new_start
                yield DiffLine(kind="equal", before=number + 1, after=at + 1, text=before[number])
