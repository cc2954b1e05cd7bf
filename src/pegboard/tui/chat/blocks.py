"""Blocks of a conversation: messages, thoughts and notes, each drawn as rows of text. Independent of Textual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pegboard.results.clean import clean
from pegboard.results.markdown_lines import MarkdownLine, MarkdownRow, Marked, rows_of
from pegboard.results.marks import Mark
from pegboard.results.sizes import count

Background = Literal["", "user", "card", "asking", "code"]
"""Background of a row."""

_MESSAGE_LINES: Final = 200
_MESSAGE_CHARACTERS: Final = 20_000
"""Characters of a collapsed user message."""


@dataclass(frozen=True, slots=True)
class BlockRow:
    """A row of a block, with its background and clickable answers."""

    row: MarkdownRow
    under: Background = ""
    answers: tuple[tuple[int, int, str], ...] = ()
    """Clickable spans: start, end, answer."""


@dataclass(eq=False)
class Block:
    """A part of the conversation. Its rows are cached until `changed` is called."""

    def __post_init__(self) -> None:
        """Start without cached rows."""
        self._drawn: tuple[int, list[BlockRow]] | None = None

    def changed(self) -> None:
        """Discard the cached rows."""
        self._drawn = None

    @property
    def is_drawn(self) -> bool:
        """Whether the cached rows are current."""
        return self._drawn is not None

    def rows(self, width: int) -> list[BlockRow]:
        """Return the rows, followed by an empty one.

        Args:
            width: Width of a row in cells.
        """
        if self._drawn is None or self._drawn[0] != width:
            self._drawn = width, [*self.draw(width), BlockRow(MarkdownRow(""))]
        return self._drawn[1]

    def draw(self, width: int) -> Iterator[BlockRow]:
        """Yield the current rows."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """Text for the clipboard."""
        raise NotImplementedError


@dataclass(eq=False)
class UserBlock(Block):
    """A user message, shown as typed."""

    message: str
    unfolded: bool = False
    """Whether a very long message is shown in full."""

    @property
    def text(self) -> str:
        """Text for the clipboard."""
        return self.message

    def draw(self, width: int) -> Iterator[BlockRow]:
        """Yield the message without reading it as Markdown."""
        message = self.message.rstrip("\n")
        head = message[:_MESSAGE_CHARACTERS].split("\n", _MESSAGE_LINES)[:_MESSAGE_LINES]
        shown = message if self.unfolded else "\n".join(head)
        for line in clean(shown).split("\n"):
            for row in rows_of(MarkdownLine(line, ((0, len(line), "strong"),), "❯ " if line else "", "  "), width):
                yield BlockRow(row, "user")
        if len(shown) < len(message):
            left = f"  … {count(len(message) - len(shown), 'more character')}"
            yield BlockRow(MarkdownRow(left, ((0, len(left), "muted"),)), "user")


@dataclass(eq=False)
class TextBlock(Block):
    """Text of the model between two calls, in Markdown."""

    marked: Marked = field(default_factory=Marked)

    def __post_init__(self) -> None:
        """Start without rendered lines."""
        super().__post_init__()
        self._settled: list[BlockRow] = []
        self._settled_lines = 0
        self._settled_width = 0

    @property
    def text(self) -> str:
        """Markdown source."""
        return self.marked.text

    def draw(self, width: int) -> Iterator[BlockRow]:
        """Yield the rows; wrap lines that can no longer change only once per width."""
        settled, last = self.marked.read()
        if width != self._settled_width:
            self._settled, self._settled_lines, self._settled_width = [], 0, width
        self._settled += _block_rows(settled[self._settled_lines :], width)
        self._settled_lines = len(settled)
        yield from self._settled
        yield from _block_rows(last, width)


@dataclass(eq=False)
class ThoughtBlock(Block):
    """Reasoning of the model, collapsed to one line by default."""

    pieces: list[str] = field(default_factory=list)
    unfolded: bool = False

    @property
    def text(self) -> str:
        """Text for the clipboard."""
        return "".join(self.pieces)

    def draw(self, width: int) -> Iterator[BlockRow]:
        """Yield the length, and all of the text when expanded."""
        text = self.text
        head = f"{fold_sign(self.unfolded)} Thought: {count(len(text), 'character')}"
        yield BlockRow(MarkdownRow(head, ((0, len(head), "muted"),)))
        if self.unfolded:
            for line in clean(text).split("\n"):
                yield from map(BlockRow, rows_of(MarkdownLine(line, ((0, len(line), "muted"),), "  ", "  "), width))


@dataclass(eq=False)
class NoteBlock(Block):
    """A notice of Pegboard: why a turn ended, or what failed."""

    message: str
    kind: Literal["note", "warning", "error"] = "note"
    fix: str = ""
    """What the user can do."""

    @property
    def text(self) -> str:
        """Text for the clipboard."""
        return f"{self.message}\n{self.fix}".strip()

    def draw(self, width: int) -> Iterator[BlockRow]:
        """Yield the message, marked by its kind, and the fix."""
        signs: dict[str, tuple[str, Mark]] = {"note": ("· ", "muted"), "warning": ("! ", "warning")}
        sign, mark = signs.get(self.kind, ("✗ ", "error"))
        for number, line in enumerate(clean(self.message).split("\n")):
            for row in rows_of(MarkdownLine(line, (), "  " if number else sign, "  "), width):
                yield BlockRow(MarkdownRow(row.text, ((0, len(row.text), mark),)))
        for line in clean(self.fix).split("\n") if self.fix else ():
            yield from map(BlockRow, rows_of(MarkdownLine(line, ((0, len(line), "muted"),), "  ", "  "), width))


def fold_sign(unfolded: bool) -> str:
    """Return the sign of an expanded or collapsed block."""
    return "▾" if unfolded else "▸"


def _block_rows(lines: Sequence[MarkdownLine], width: int) -> Iterator[BlockRow]:
    for line in lines:
        for row in rows_of(line, width):
            yield BlockRow(row, "code" if row.is_code else "")
