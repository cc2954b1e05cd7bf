"""Line numbers of the keys in a TOML file, which `tomllib` doesn't report.

No library does it better: tomlkit keeps no positions either, and takes ten times as long as this scanner.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections import Counter
from typing import Final

LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
"""A line with its end. `str.splitlines` also splits at characters that end no line in TOML."""

_BLANK: Final = re.compile(r"(?:\s|#[^\n]*)*")
_KEY: Final = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'""")
_DOT: Final = re.compile(r"[ \t]*\.[ \t]*")
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")' r"|'''.*?'{3,5}(?!')" r"""|"(?:[^"\\]|\\.)*"|'[^']*'""", re.DOTALL
)
_BARE: Final = re.compile(r"[^,\]}\n#]*")


def key_lines(text: str) -> dict[str, int]:
    """Return the line of every table, key and list item.

    Args:
        text: TOML that `tomllib` has parsed without an error.

    Returns:
        Dotted path → line, from 1. List items count from 0: `servers.0.name`. Dots within a quoted key look like any
        other; of two equal paths, the first counts.
    """
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._lines: dict[str, int] = {}
        self._tables: Counter[str] = Counter()

    def scan(self) -> dict[str, int]:
        table = ""
        self._skip_blank()
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._value(self._key(table, note=True), after_equals=True)
            self._skip_blank()
        return self._lines

    def _skip_blank(self) -> None:
        match = _BLANK.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _note(self, path: str) -> None:
        self._lines.setdefault(path, bisect_right(self._breaks, self._at - 1) + 1)

    def _header(self) -> str:
        is_list = self._text.startswith("[[", self._at)
        start = self._at
        self._at += 2 if is_list else 1
        self._skip_blank()
        path = self._within_last_item(self._key(""))
        end, self._at = self._at, start
        self._note(path)
        if is_list:
            self._tables[path] += 1
            path = f"{path}.{self._tables[path] - 1}"
            self._note(path)
        self._at = self._text.index("]", end) + (2 if is_list else 1)
        return path

    def _within_last_item(self, path: str) -> str:
        """Return the path of a header within lists of tables: `[a.b]` after `[[a]]` is `a.0.b`."""
        head, *rest = path.split(".")
        for part in rest:
            if count := self._tables[head]:
                head = f"{head}.{count - 1}"
            head = f"{head}.{part}"
        return head

    def _key(self, path: str, *, note: bool = False) -> str:
        while match := _KEY.match(self._text, self._at):
            part = match[0]
            if part[0] in "\"'":
                part = str(tomllib.loads(f"key = {part}")["key"])
            path = f"{path}.{part}" if path else part
            if note:
                self._note(path)
            self._at = match.end()
            dot = _DOT.match(self._text, self._at)
            if dot is None:
                break
            self._at = dot.end()
        return path

    def _value(self, path: str, *, after_equals: bool = False) -> None:
        if after_equals:
            self._at = self._text.index("=", self._at) + 1
        self._skip_blank()
        opening = self._text[self._at : self._at + 1]
        if opening not in {"[", "{"}:
            match = _STRING.match(self._text, self._at) or _BARE.match(self._text, self._at)
            self._at = match.end() if match else len(self._text)
            return
        closing = "]" if opening == "[" else "}"
        self._at += 1
        self._skip_blank()
        item = 0
        while self._at < len(self._text) and self._text[self._at] != closing:
            if opening == "{":
                inner = self._key(path, note=True)
            else:
                inner = f"{path}.{item}"
                self._note(inner)
            self._value(inner, after_equals=opening == "{")
            item += 1
            self._skip_blank()
            if self._text[self._at : self._at + 1] == ",":
                self._at += 1
            self._skip_blank()
        self._at += 1
