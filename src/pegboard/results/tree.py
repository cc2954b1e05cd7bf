"""Values as trees with lazily created rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from pydantic import JsonValue

from pegboard.results.clean import clean_line
from pegboard.results.paths import JsonPath, Step
from pegboard.results.sizes import count
from pegboard.results.stored.values import StoredObject
from pegboard.results.text import TokenKind, preview, quoted, shown_key

PAGE = 200
"""Number of children that a container shows at first. Every `more` doubles it."""
LINE = 100
"""Maximum length of the lines of an opened string. Longer strings can be opened."""
_OPEN_AT_FIRST = 40
_OPEN_ALL_LIMIT = 20_000


@dataclass(slots=True, eq=False)
class TreeRow:
    """Row of a tree.

    Attributes:
        kind: A value, a line of the opened string above it, or a placeholder for hidden rows.
        depth: Levels below the root.
        step: Key or index of a value; None for the root and other kinds of row.
        value: The value, the text of a line, or the container of hidden rows.
        parent: Row of the container.
        open: Whether its children are visible.
        shown: Number of visible children of an open row.
        hidden: Positions of the children that a placeholder represents.
    """

    kind: Literal["value", "line", "more"]
    depth: int
    step: Step | None
    value: JsonValue
    parent: TreeRow | None
    open: bool = False
    shown: int = 0
    hidden: range = range(0)

    @property
    def path(self) -> JsonPath:
        """Path of the value, or of the value that a line or placeholder belongs to."""
        steps: list[Step] = []
        row: TreeRow | None = self
        while row is not None:
            if row.step is not None:
                steps.append(row.step)
            row = row.parent
        return tuple(reversed(steps))

    @property
    def can_open(self) -> bool:
        """True if it has children."""
        if self.kind != "value":
            return False
        match self.value:
            case dict() | list():
                return bool(self.value)
            case str():
                return len(self.value) > LINE or "\n" in self.value
            case _:
                return False

    def label(self, width: int = LINE) -> list[tuple[str, TokenKind]]:
        """Return the sanitized text of the row in pieces, without indentation.

        Args:
            width: Approximate length in characters.
        """
        if self.kind == "line":
            return [(clean_line(self.value) if isinstance(self.value, str) else "", "string")]
        if self.kind == "more":
            return [(f"… {len(self.hidden):,} more", "muted")]
        parts: list[tuple[str, TokenKind]] = []
        if isinstance(self.step, str):
            parts = [(shown_key(self.step, LINE), "key"), (": ", "muted")]
        elif self.step is not None:
            parts = [(f"[{self.step}]", "key"), (" ", "muted")]
        available = max(width - sum(len(text) for text, _ in parts), 12)
        return [*parts, self._shown_value(available)]

    def _shown_value(self, available: int) -> tuple[str, TokenKind]:
        match self.value:
            case str() as text:
                return (count(len(text), "character") if self.open else quoted(text, available)), (
                    "muted" if self.open else "string"
                )
            case dict() as found:
                return (count(len(found), "key") if self.open else preview(found, available)), "muted"
            case list() as items:
                return (count(len(items), "item") if self.open else preview(items, available)), "muted"
            case bool() | None:
                return preview(self.value), "constant"
            case _:
                digits = preview(self.value)
                return (digits if len(digits) <= available else f"{digits[: available - 1]}…"), "number"


class Tree:
    """Value with a state for each container: open or closed. `rows` contains the visible rows, top to bottom."""

    def __init__(self, value: JsonValue) -> None:
        root = TreeRow("value", 0, None, value, None)
        self.rows: list[TreeRow] = [root]
        self.open(0)
        self._open_levels()

    def open(self, index: int) -> int:
        """Open the row at `index`, or show more rows if it is a placeholder; return the number of added rows."""
        row = self.rows[index]
        if row.kind == "more":
            return self._more(index)
        if row.open or not row.can_open:
            return 0
        row.open = True
        row.shown = 0
        rows = _page(row, range(_child_count(row.value)), PAGE)
        self.rows[index + 1 : index + 1] = rows
        return len(rows)

    def close(self, index: int) -> int:
        """Close the row at `index` and return the number of removed rows."""
        row = self.rows[index]
        if not row.open:
            return 0
        end = self._end(index)
        del self.rows[index + 1 : end]
        row.open = False
        return end - index - 1

    def open_all(self, index: int) -> bool:
        """Open all containers below the row at `index`, breadth first; return True if the limit left some closed."""
        self.open(index)
        while True:
            opened, left = self._open_below(index)
            if left:
                return True
            if not opened:
                return False

    def parent(self, index: int) -> int:
        """Return the index of the container of the row at `index`; for the root, its own."""
        depth = self.rows[index].depth
        while index > 0 and self.rows[index].depth >= depth:
            index -= 1
        return index

    def reveal(self, path: JsonPath) -> int:
        """Open the containers of the value at `path` and return the value's index.

        Raises:
            LookupError: The path does not exist.
        """
        index = 0
        for step in path:
            self.open(index)
            index = self._child(index, step)
        return index

    def reveal_line(self, index: int, character: int) -> int:
        """Open the long string at `index`, and return the index of the row with one of its characters."""
        value = self.rows[index].value
        assert isinstance(value, str), "only strings have lines"
        self.open(index)
        return self._reveal(index, _line_number(value, character))

    def _child(self, index: int, step: Step) -> int:
        position = _position(self.rows[index].value, step)
        if position is None:
            raise LookupError(step)
        return self._reveal(index, position)

    def _reveal(self, index: int, position: int) -> int:
        """Return the index of the child at a position of the open row at `index`; show it and those around it."""
        parent = self.rows[index]
        at, passed = index + 1, 0
        while at < len(self.rows) and self.rows[at].depth > parent.depth:
            row = self.rows[at]
            if row.parent is not parent:
                at += 1
            elif position in row.hidden:
                self._show_around(at, position)
            elif row.kind == "more":
                passed += len(row.hidden)
                at += 1
            elif passed == position:
                return at
            else:
                passed += 1
                at += 1
        raise LookupError(position)

    def _show_around(self, index: int, position: int) -> None:
        """Show a page of the children of a placeholder around a position, with placeholders for the others."""
        hidden, parent = self.rows[index].hidden, self.rows[index].parent
        assert parent is not None, "a placeholder is in a container"
        start = max(position - PAGE // 2, hidden.start)
        if start - hidden.start <= PAGE:
            start = hidden.start
        before = [TreeRow("more", parent.depth + 1, None, None, parent, hidden=range(hidden.start, start))]
        page = _page(parent, range(start, hidden.stop), PAGE if start else position - start + PAGE // 2)
        self.rows[index : index + 1] = [*before[: start > hidden.start], *page]

    def _more(self, index: int) -> int:
        row = self.rows[index]
        if row.parent is None:
            return 0
        rows = _page(row.parent, row.hidden, row.parent.shown)
        self.rows[index : index + 1] = rows
        return len(rows) - 1

    def _open_levels(self) -> None:
        """Open whole levels, and texts of several lines at last, as long as all rows fit a screen."""
        for is_closed in (_is_closed_container, _is_closed_text):
            while below := [index for index, row in enumerate(self.rows) if is_closed(row)]:
                size = sum(_child_count(self.rows[index].value) for index in below)
                if len(self.rows) + size > _OPEN_AT_FIRST:
                    return
                for index in reversed(below):
                    self.open(index)

    def _open_below(self, index: int) -> tuple[bool, bool]:
        """Open the closed containers one level below `index`; return whether any was opened, and any left closed."""
        end = self._end(index)
        available = _OPEN_ALL_LIMIT - len(self.rows)
        rows: list[TreeRow] = []
        opened = left = False
        for row in self.rows[index + 1 : end]:
            rows.append(row)
            if not _is_closed_container(row):
                continue
            if available <= 0:
                left = True
                continue
            row.open = opened = True
            row.shown = 0
            children = _page(row, range(_child_count(row.value)), PAGE)
            rows += children
            available -= len(children)
        self.rows[index + 1 : end] = rows
        return opened, left

    def _end(self, index: int) -> int:
        depth = self.rows[index].depth
        end = index + 1
        while end < len(self.rows) and self.rows[end].depth > depth:
            end += 1
        return end


def _is_closed_container(row: TreeRow) -> bool:
    return row.can_open and not row.open and not isinstance(row.value, str)


def _is_closed_text(row: TreeRow) -> bool:
    return row.kind == "value" and not row.open and isinstance(row.value, str) and "\n" in row.value.strip("\n")


def _child_count(value: JsonValue) -> int:
    match value:
        case dict() | list():
            return len(value)
        case str():
            return sum(map(_rows_of, value.split("\n")))
        case _:
            return 0


def _page(row: TreeRow, hidden: range, size: int) -> list[TreeRow]:
    """Return the first `size` of the hidden children of `row`, with a placeholder if there are others."""
    shown = hidden[:size]
    rows = list(_children(row, shown))
    row.shown += len(rows)
    if len(hidden) > size:
        rows.append(TreeRow("more", row.depth + 1, None, None, row, hidden=hidden[size:]))
    return rows


def _children(row: TreeRow, shown: range) -> Iterator[TreeRow]:
    depth, value = row.depth + 1, row.value
    match value:
        case StoredObject():
            yield from (TreeRow("value", depth, key, item, row) for key, item in value.slice(shown.start, shown.stop))
        case dict():
            for key, item in islice(value.items(), shown.start, shown.stop):
                yield TreeRow("value", depth, key, item, row)
        case list():
            for number, item in zip(shown, value[shown.start : shown.stop], strict=True):
                yield TreeRow("value", depth, number, item, row)
        case str():
            for line in islice(_lines(value), shown.start, shown.stop):
                yield TreeRow("line", depth, None, line, row)
        case _:
            pass


def _position(value: JsonValue, step: Step) -> int | None:
    """Return the position of a member among the children of a container, or None if it doesn't exist."""
    match value, step:
        case dict(), str() if step in value:
            return next(number for number, key in enumerate(value) if key == step)
        case list(), int() if 0 <= step < len(value):
            return step
        case _:
            return None


def _rows_of(line: str) -> int:
    return max(-(-len(line) // LINE), 1)


def _line_number(text: str, character: int) -> int:
    """Return the number of the row, of those that `_lines` yields, with a character of a text."""
    *before, last = text[: character + 1].split("\n")
    return sum(map(_rows_of, before)) + _rows_of(last) - 1


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield line[:LINE]
        for start in range(LINE, len(line), LINE):
            yield line[start : start + LINE]
