"""Positions of values in JSON text, so that a part can be replaced and the rest stays as it is written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from pegboard.data.json_text import JsonTextError

_SPACE: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_PLAIN_SPACE: Final = re.compile(r"[ \t\r\n]*")
_TEXT: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD: Final = re.compile(r"[-+.\w]+")
_DEEPEST: Final = 200


@dataclass
class JsonSpan:
    """A value and its position in a text."""

    start: int
    end: int
    value: JsonValue = None
    """The value of a text, number, boolean or null."""
    members: list[Member] | None = None
    """The members of an object."""
    items: list[JsonSpan] | None = None
    """The items of a list."""

    def member(self, name: str) -> Member | None:
        """Return the member of an object with this name; None if it has none. Of several, programs use the last."""
        found = [one for one in self.members or () if one.name == name]
        return found[-1] if found else None

    def at(self, *names: str) -> JsonSpan | None:
        """Return the value below this one at a path of names; None if there is none."""
        span: JsonSpan | None = self
        for name in names:
            member = span.member(name) if span is not None else None
            span = member.value if member is not None else None
        return span

    def json(self) -> JsonValue:
        """Return the whole value."""
        if self.members is not None:
            return {member.name: member.value.json() for member in self.members}
        if self.items is not None:
            return [item.json() for item in self.items]
        return self.value


@dataclass
class Member:
    """A member of an object."""

    name: str
    start: int
    """Position of its name."""
    value: JsonSpan = field(repr=False)


def spans(text: str, *, comments: bool = False) -> JsonSpan:
    """Return the positions of all values of a JSON text.

    Args:
        text: The text.
        comments: Whether comments, and commas before a closing bracket, are accepted.

    Raises:
        JsonTextError: The text is not such JSON.
    """
    reader = _Reader(text, comments=comments)
    span = reader.value(reader.skip(0), 0)
    if reader.skip(span.end) != len(text):
        raise JsonTextError(f"is not JSON: unexpected text {reader.place(span.end)}")
    return span


class _Reader:
    def __init__(self, text: str, *, comments: bool) -> None:
        self._text = text
        self._comments = comments
        self._space = _SPACE if comments else _PLAIN_SPACE

    def skip(self, at: int) -> int:
        found = self._space.match(self._text, at)
        return found.end() if found else at

    def place(self, at: int) -> str:
        line = self._text.count("\n", 0, at) + 1
        return f"(line {line}, column {at - (self._text.rfind(chr(10), 0, at) + 1) + 1})"

    def value(self, at: int, depth: int) -> JsonSpan:
        if depth > _DEEPEST:
            raise JsonTextError("is nested too deeply")
        sign = self._text[at : at + 1]
        if sign == "{":
            return self._object(at, depth)
        if sign == "[":
            return self._list(at, depth)
        found = (_TEXT if sign == '"' else _WORD).match(self._text, at)
        if found is None:
            raise JsonTextError(f"is not JSON: expected a value {self.place(at)}")
        try:
            return JsonSpan(at, found.end(), json.loads(found[0]))
        except ValueError:
            raise JsonTextError(f"is not JSON: expected a value {self.place(at)}") from None

    def _object(self, start: int, depth: int) -> JsonSpan:
        members: list[Member] = []
        at = self.skip(start + 1)
        while self._text[at : at + 1] != "}":
            name = self.value(at, depth + 1)
            if not isinstance(name.value, str) or name.members is not None or name.items is not None:
                raise JsonTextError(f"is not JSON: expected a name {self.place(at)}")
            colon = self.skip(name.end)
            self._expect(colon, ":")
            value = self.value(self.skip(colon + 1), depth + 1)
            members.append(Member(name.value, name.start, value))
            at = self._next(value.end, "}")
        return JsonSpan(start, at + 1, members=members)

    def _list(self, start: int, depth: int) -> JsonSpan:
        items: list[JsonSpan] = []
        at = self.skip(start + 1)
        while self._text[at : at + 1] != "]":
            items.append(self.value(at, depth + 1))
            at = self._next(items[-1].end, "]")
        return JsonSpan(start, at + 1, items=items)

    def _next(self, end: int, closing: str) -> int:
        """Return the position of the next item, or of the closing bracket."""
        at = self.skip(end)
        if self._text[at : at + 1] == closing:
            return at
        self._expect(at, ",")
        at = self.skip(at + 1)
        if self._text[at : at + 1] == closing and not self._comments:
            raise JsonTextError(f"is not JSON: expected a value {self.place(at)}")
        return at

    def _expect(self, at: int, sign: str) -> None:
        if self._text[at : at + 1] != sign:
            raise JsonTextError(f"is not JSON: expected {sign!r} {self.place(at)}")
