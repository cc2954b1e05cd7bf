"""Values that read their parts from a file on demand."""

from __future__ import annotations

import json
import os
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any, SupportsIndex, overload

from pydantic import JsonValue
from pydantic_core import from_json

_PAGE = 500
_CACHED = 2_000


class _File:
    """Open file with the JSON of a result. It stays readable if it is deleted."""

    def __init__(self, file: FilePath) -> None:
        self._descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)

    def read(self, start: int, end: int) -> bytes:
        return os.pread(self._descriptor, end - start, start)


class _Members:
    """Members of a list or object: their positions in the file, and those that are indexed themselves."""

    def __init__(self, file: _File, starts: array[int], end: int, *, brackets: str) -> None:
        self._file = file
        self._starts = starts
        self._end = end
        self._brackets = brackets.encode()
        self.inner: dict[int, JsonValue] = {}
        self._cache: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def size(self) -> int:
        """Size in the file in bytes."""
        return self._end - self._starts[0] if self._starts else 0

    def values(self, first: int, stop: int) -> list[Any]:
        """Return consecutive members; those that are indexed themselves are not read."""
        stop = min(stop, len(self))
        found: list[Any] = []
        while first < stop:
            if first in self.inner:
                found.append(self.inner[first])
                first += 1
                continue
            end = next((number for number in range(first, stop) if number in self.inner), stop) if self.inner else stop
            found += self._read(first, end)
            first = end
        return found

    def value(self, number: int) -> Any:  # noqa: ANN401 - any JSON
        """Return one member."""
        if number in self.inner:
            return self.inner[number]
        cache = self._cache
        if number in cache:
            return cache[number]
        value = self._read(number, number + 1)[0]
        if len(cache) > _CACHED:
            cache = self._cache = {}  # a new one, because another thread may read the old one
        cache[number] = value
        return value

    def _read(self, first: int, stop: int) -> list[Any]:
        end = self._starts[stop] if stop < len(self) else self._end
        raw = self._file.read(self._starts[first], end).rstrip(b", \t\r\n")
        whole = self._brackets[:1] + raw + self._brackets[1:]
        try:
            read = from_json(whole)
        except ValueError:  # nested too deeply for this parser
            read = json.loads(whole)
        return list(read.values()) if isinstance(read, dict) else list(read)


class StoredList(list[JsonValue]):
    """List whose items are in a file.

    It is a list for everything that iterates, counts or indexes. Functions written in C that read a list's memory
    directly, such as JSON encoders, see an empty one; see `in_memory`.

    Attributes:
        columns: Keys of its items if all of them are objects.
    """

    def __init__(self, members: _Members, columns: list[str] | None) -> None:
        super().__init__()
        self.members = members
        self.columns = columns

    def __len__(self) -> int:
        return len(self.members)

    def __bool__(self) -> bool:
        return len(self) > 0

    @overload
    def __getitem__(self, at: SupportsIndex) -> JsonValue: ...
    @overload
    def __getitem__(self, at: slice) -> list[JsonValue]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> JsonValue | list[JsonValue]:
        if isinstance(at, slice):
            first, stop, step = at.indices(len(self))
            return self.members.values(first, stop)[::step] if step > 0 else [self[i] for i in range(first, stop, step)]
        number = at.__index__()
        if not -len(self) <= number < len(self):
            raise IndexError("list index out of range")
        found: JsonValue = self.members.value(number % len(self))
        return found

    def __iter__(self) -> Iterator[JsonValue]:
        for first in range(0, len(self), _PAGE):
            yield from self.members.values(first, first + _PAGE)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None


class StoredObject(dict[str, JsonValue]):
    """Object whose members are in a file; see `StoredList`."""

    def __init__(self, members: _Members, names: list[str]) -> None:
        super().__init__()
        self.members = members
        self.names = names
        self._numbers = {name: number for number, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self.names)

    def __bool__(self) -> bool:
        return bool(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def __getitem__(self, key: str) -> JsonValue:
        found: JsonValue = self.members.value(self._numbers[key])
        return found

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401 - as in dict
        """Return a member, or the default."""
        return self[key] if key in self._numbers else default

    def items(self) -> Any:  # noqa: ANN401 - an iterator instead of a view
        """Yield names and values."""
        for first in range(0, len(self), _PAGE):
            yield from self.slice(first, first + _PAGE)

    def values(self) -> Any:  # noqa: ANN401 - as above
        """Yield values."""
        return (value for _, value in self.items())

    def keys(self) -> Any:  # noqa: ANN401 - as above
        """Return the names."""
        return dict.fromkeys(self.names).keys()

    def slice(self, first: int, stop: int) -> list[tuple[str, JsonValue]]:
        """Return consecutive members with their names."""
        return list(zip(self.names[first:stop], self.members.values(first, stop), strict=True))

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None


class StoredText:
    """Text in a file, in segments of a few hundred thousand characters.

    Args:
        file: The file with the text as JSON.
        places: Positions of the segments in the file, and the end.
        characters: Their positions in the text, and the end.
    """

    def __init__(self, file: _File, places: array[int], characters: array[int]) -> None:
        self._file = file
        self._places = places
        self._characters = characters

    def __len__(self) -> int:
        """Return the number of characters."""
        return self._characters[-1]

    @property
    def count(self) -> int:
        """Number of segments."""
        return len(self._places) - 1

    def segment(self, number: int) -> str:
        """Return a segment, counted from 0."""
        raw = self._file.read(self._places[number], self._places[number + 1])
        text: str = json.loads(b'"' + raw + b'"', strict=False)
        return text

    def start(self, number: int) -> int:
        """Return the position of a segment's first character."""
        return self._characters[number]

    def segment_at(self, character: int) -> int:
        """Return the number of the segment that contains a character."""
        return min(bisect_right(self._characters, character), self.count) - 1


def size_in_file(value: JsonValue) -> int:
    """Return the size in bytes of a value that reads its parts from a file; 0 for any other value."""
    return value.members.size if isinstance(value, StoredList | StoredObject) else 0


def in_memory(value: JsonValue) -> JsonValue:
    """Return a value with all parts that it reads from a file, for encoders; any other value is returned itself."""
    match value:
        case StoredObject():
            return {key: in_memory(item) for key, item in value.items()}
        case StoredList():
            return [in_memory(item) for item in value]
        case _:
            return value


def stored_value(file: FilePath, head: dict[str, Any], data: bytes) -> JsonValue | StoredText:
    """Return the value that an index describes; see `offsets`.

    Args:
        file: The file with the whole result.
        head: The kind of the value and its containers.
        data: The positions.
    """
    source = _File(file)
    numbers: array[int] = array("Q")
    numbers.frombytes(data)
    if head["kind"] == "text":
        count = head["counts"][0]
        return StoredText(source, numbers[:count], numbers[count:])
    made: list[StoredList | StoredObject] = []
    at = 0
    for container, count in zip(head["containers"], head["counts"], strict=True):
        starts, at = numbers[at : at + count], at + count
        is_object = container["kind"] == "object"
        members = _Members(source, starts, container["end"], brackets="{}" if is_object else "[]")
        value = StoredObject(members, container["names"]) if is_object else StoredList(members, container["columns"])
        made.append(value)
        if container["parent"] >= 0:
            made[container["parent"]].members.inner[container["place"]] = value
    return made[0]
