"""Structural difference of two values: JSON by path, text by line; bounded in time and memory."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice
from typing import Final

from pydantic import JsonValue

from pegboard.data.json_text import identical
from pegboard.models.difference import Difference, DiffLine, ValueDiff

MOST_DIFFERENCES: Final = 2000
"""Maximum number of differences in one comparison."""
MOST_VISITED: Final = 500_000
"""Maximum number of values that one comparison looks at."""
_MOST_LINES: Final = 2000
"""Maximum number of lines of a text that are aligned; longer texts are compared line by line."""
_MOST_ITEMS: Final = 500
"""Maximum length of a list whose items are aligned; longer ones are compared index by index."""
_TEXT_LIMIT: Final = 2_000_000


def diff(before: JsonValue, after: JsonValue) -> ValueDiff:
    """Compare two JSON values.

    Items of lists are aligned, so that an inserted item is one difference. Texts of several lines are compared by line.
    """
    comparison = _Comparison()
    found = tuple(islice(comparison.values("", before, after), MOST_DIFFERENCES + 1))
    is_whole = len(found) <= MOST_DIFFERENCES and comparison.left > 0
    return ValueDiff(differences=found[:MOST_DIFFERENCES], is_whole=is_whole)


class _Comparison:
    """One comparison, which ends when it has looked at too many values."""

    def __init__(self) -> None:
        self.left = MOST_VISITED

    def values(self, path: str, before: JsonValue, after: JsonValue) -> Iterator[Difference]:
        # Not by recursion: values may be nested deeper than Python's stack.
        waiting: list[Iterator[Difference | tuple[str, JsonValue, JsonValue]]] = [iter([(path, before, after)])]
        while waiting and self.left > 0:
            try:
                item = next(waiting[-1])
            except StopIteration:
                waiting.pop()
                continue
            if isinstance(item, Difference):
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
                if old != new:
                    yield _texts(path, old, new)
            elif isinstance(old, dict | list) or isinstance(new, dict | list) or not identical(old, new):
                yield Difference(path=path, kind="changed", before=old, after=new)

    def _objects(
        self, path: str, old: dict[str, JsonValue], new: dict[str, JsonValue]
    ) -> Iterator[Difference | tuple[str, JsonValue, JsonValue]]:
        for key, value in old.items():
            if key in new:
                yield _inner(path, key), value, new[key]
            else:
                yield Difference(path=_inner(path, key), kind="removed", before=value)
        for key, value in new.items():
            if key not in old:
                yield Difference(path=_inner(path, key), kind="added", after=value)

    def _lists(
        self, path: str, old: list[JsonValue], new: list[JsonValue]
    ) -> Iterator[Difference | tuple[str, JsonValue, JsonValue]]:
        if len(old) == len(new) or max(len(old), len(new)) > _MOST_ITEMS:
            yield from self._by_index(path, old, new, 0, 0)
            return
        keys = [_key(item) for item in old], [_key(item) for item in new]
        for tag, start, end, new_start, new_end in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
            if tag != "equal":
                yield from self._by_index(path, old[start:end], new[new_start:new_end], start, new_start)

    def _by_index(
        self, path: str, old: list[JsonValue], new: list[JsonValue], at: int, new_at: int
    ) -> Iterator[Difference | tuple[str, JsonValue, JsonValue]]:
        common = min(len(old), len(new))
        for index in range(common):
            yield f"{path}[{at + index}]", old[index], new[index]
        for index in range(common, len(old)):
            yield Difference(path=f"{path}[{at + index}]", kind="removed", before=old[index])
        for index in range(common, len(new)):
            yield Difference(path=f"{path}[{new_at + index}]", kind="added", after=new[index])


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


def _texts(path: str, old: str, new: str) -> Difference:
    if ("\n" not in old and "\n" not in new) or len(old) + len(new) > _TEXT_LIMIT:
        return Difference(path=path, kind="changed", before=old, after=new)
    return Difference(path=path, kind="text", before=old, after=new, lines=tuple(diff_lines(old, new)))


def diff_lines(old: str, new: str, context: int = 3) -> Iterator[DiffLine]:
    """Compare two texts line by line; yield changed lines with some equal lines around them."""
    before, after = old.split("\n"), new.split("\n")
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    middle, new_middle = before[start : len(before) - end], after[start : len(after) - end]
    for number in range(max(0, start - context), start):
        yield DiffLine(kind="equal", before=number + 1, after=number + 1, text=before[number])
    if max(len(middle), len(new_middle)) <= _MOST_LINES:
        codes = SequenceMatcher(None, middle, new_middle, autojunk=True).get_opcodes()
    else:
        codes = [("replace", 0, len(middle), 0, len(new_middle))]
    count = 0
    for tag, first, last, new_first, new_last in codes:
        if tag == "equal":
            shown = range(last - first)
            for offset in shown:
                if offset < context or offset >= len(shown) - context:
                    numbers = start + first + offset + 1, start + new_first + offset + 1
                    yield DiffLine(kind="equal", before=numbers[0], after=numbers[1], text=middle[first + offset])
            continue
        for number in range(first, last):
            count += 1
            yield DiffLine(kind="removed", before=start + number + 1, after=None, text=middle[number])
            if count > MOST_DIFFERENCES:
                return
        for number in range(new_first, new_last):
            count += 1
            yield DiffLine(kind="added", before=None, after=start + number + 1, text=new_middle[number])
            if count > 2 * MOST_DIFFERENCES:
                return
    tail, new_tail = len(before) - end, len(after) - end
    for offset in range(min(context, end)):
        yield DiffLine(kind="equal", before=tail + offset + 1, after=new_tail + offset + 1, text=before[tail + offset])
