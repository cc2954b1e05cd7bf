"""Positions of the parts of a JSON file. Imports little, because it runs in a process of its own."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined] # it has no types

LARGE = 200_000
"""Size in bytes from which a list or an object is read in parts."""
SEGMENT = 400_000
"""Size of the parts of a text in bytes of its JSON, about."""
_MOST_KEYS = 10_000
_SPACE = re.compile(r"[ \t\r\n]*")
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u....|u....|.)", re.DOTALL)
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined] # it has no types


def skip_space(text: str, at: int) -> int:
    """Return the position of the next character that isn't white space."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def members(text: str, at: int) -> Iterator[tuple[int, str | None, object, int, int]]:
    """Yield the members of a list or object: their start, key, value, and the value's start and end.

    Args:
        text: JSON.
        at: Position of the opening bracket.
    """
    is_object = text[at] == "{"
    at = skip_space(text, at + 1)
    if text[at] in "]}":
        return
    while True:
        start, key = at, None
        if is_object:
            key, at = scanstring(text, at + 1)
            at = skip_space(text, skip_space(text, at) + 1)
        value, end = _scan(text, at)
        yield start, key, value, at, end
        at = end
        if text[at] != ",":
            at = skip_space(text, at)
            if text[at] != ",":
                return
        at += 1
        if text[at] in " \t\r\n":
            at = skip_space(text, at)


def containers(raw: bytes) -> tuple[list[dict[str, object]], list[array[int]]]:
    """Return the large lists and objects of a JSON document, and the positions of their members.

    Args:
        raw: The document.

    Returns:
        For each container its kind (`list` or `object`), the number of the container around it and its position
        there, the position of its end, the names of an object's members, and the keys of a list of objects. Then the
        positions of the members, in bytes.
    """
    # Every byte becomes one character, so that positions are those in the file.
    text = raw.decode("latin-1")
    heads: list[dict[str, object]] = []
    positions: list[array[int]] = []
    waiting: list[tuple[int, int, int]] = [(skip_space(text, 0), -1, 0)]
    while waiting:
        at, parent, place = waiting.pop(0)
        starts: array[int] = array("Q")
        columns = _Columns(raw)
        names: list[str] = []
        number, end = len(heads), at + 1
        for start, key, value, begin, stop in members(text, at):
            if stop - begin > LARGE and isinstance(value, list | dict):
                waiting.append((begin, number, len(starts)))
            starts.append(start)
            if key is None:
                columns.add(value, begin, stop)
            else:
                names.append(str(json.loads(raw[start:begin].rstrip().rstrip(b":"))))
            end = stop
        heads.append(
            {
                "kind": "object" if text[at] == "{" else "list",
                "parent": parent,
                "place": place,
                "end": end,
                "names": names,
                "columns": columns.keys if columns.fits and starts else None,
            }
        )
        positions.append(starts)
    return heads, positions


class _Columns:
    """Keys of the objects in a list, in the order of their first appearance."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._seen: set[tuple[str, ...]] = set()
        self._keys: dict[str, None] = {}
        self.fits = True

    @property
    def keys(self) -> list[str]:
        return list(self._keys)

    def add(self, value: object, begin: int, stop: int) -> None:
        if not self.fits:
            return
        if not isinstance(value, dict) or not value:
            self.fits = False
            return
        shape = tuple(value)
        if shape not in self._seen and len(self._keys) < _MOST_KEYS:
            self._seen.add(shape)
            self._keys.update(dict.fromkeys(json.loads(self._raw[begin:stop])))


def segments(raw: bytes) -> tuple[array[int], array[int]]:
    """Return the positions at which a JSON text can be divided, in bytes of the file and in characters of the text.

    Args:
        raw: A document that is one string. Both lists include the beginning and the end.
    """
    start, end = raw.index(b'"') + 1, raw.rindex(b'"')
    places, characters = array("Q", [start]), array("Q", [0])
    while start < end:
        cut = min(start + SEGMENT, end)
        line = raw.rfind(b"\\n", start + SEGMENT * 3 // 4, cut) if cut < end else -1
        cut = _safe_cut(raw, start, line + 2 if line > 0 else cut, end)
        text = json.loads(b'"' + raw[start:cut] + b'"')
        places.append(cut)
        characters.append(characters[-1] + len(text))
        start = cut
    return places, characters


def _safe_cut(raw: bytes, start: int, cut: int, end: int) -> int:
    """Return the first position from `cut` on that is between two characters."""
    if raw.find(b"\\", max(cut - 12, start), cut) >= 0:
        for found in _ESCAPE.finditer(raw, start, end):
            if found.start() >= cut:
                break
            if found.end() > cut:
                cut = found.end()
                break
    while cut < end and raw[cut] & 0xC0 == 0x80:
        cut += 1
    return cut
