"""Markdown as styled lines of text, also while it is being streamed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, set_cell_size

from pegboard.results.clean import clean, clean_line
from pegboard.results.markdown_code import code_styles
from pegboard.results.markdown_reopen import reopened
from pegboard.results.marks import Mark, Piece
from pegboard.results.wrap import wrap

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_LONGEST_TAIL: Final = 2_000
"""Maximum length of the part that is parsed again after each addition. Longer blocks are split."""
_KEPT_TAIL: Final = 500
_DECIDED: Final = 40
"""Length after which a line no longer changes the block above it, as a dash can."""
_LONGEST_CELL: Final = 40
_PLAIN_PARAGRAPH: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9 ,;:'()./-]*[A-Za-z0-9.)])?")
"""One line without characters that have a meaning in Markdown."""
_LINE_START: Final = re.compile(r"\n(?=\S)")
_DEEPEST: Final = 80
_TOO_DEEP: Final = re.compile(
    rf"^(?: {{{_DEEPEST},}}|(?: {{0,3}}(?:>|[*+-] |\d{{1,9}}[.)] )){{{_DEEPEST // 2},}})", re.MULTILINE
)
"""Maximum prefix of a line. The parser omits content that is nested too deeply in lists and quotations."""
_JOINERS: Final = "\u200c\u200d"
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[^\n]*\n")


@dataclass(frozen=True, slots=True)
class MarkdownLine:
    """Line before wrapping."""

    text: str = ""
    pieces: tuple[Piece, ...] = ()
    first: str = ""
    """Prefix of its first row, such as a bullet."""
    rest: str = ""
    """Prefix of its other rows."""
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class MarkdownRow:
    """Part of a line that fits a width."""

    text: str
    pieces: tuple[Piece, ...] = ()
    is_code: bool = False
    margin: int | None = None
    """Number of characters before the text if the row continues the row before it, else None."""


def rows_of(line: MarkdownLine, width: int) -> list[MarkdownRow]:
    """Wrap a line.

    Args:
        line: The line.
        width: Maximum cells of a row.
    """
    # Prefixes of deeply nested text use at most half of the width.
    most = max(width // 2, 1)
    first, rest = (set_cell_size(part, min(cell_len(part), most)) for part in (line.first, line.rest))
    available = max(width - max(cell_len(first), cell_len(rest)), 2)
    rows = []
    for start, end in wrap(line.text, available):
        before = rest if start else first
        shift = len(before) - start
        pieces: list[Piece] = [(0, len(before), "muted")] if before.strip() else []
        pieces += [
            (max(begin, start) + shift, min(last, end) + shift, mark)
            for begin, last, mark in line.pieces
            if begin < end and last > start
        ]
        margin = len(before) if start else None
        rows.append(MarkdownRow(before + line.text[start:end], tuple(pieces), line.is_code, margin))
    return rows


class Marked:
    """Markdown text that can grow at its end. Only its last block is parsed again.

    Args:
        text: Initial untrusted text.
    """

    def __init__(self, text: str = "") -> None:
        self._texts: list[str] = []
        self._pending: list[str] = []
        self._before = ""
        """Last two characters that were parsed, before sanitizing."""
        self._tail = ""
        self._is_continuation = False
        """Whether the tail continues a block that was split."""
        self._reopening = 0
        """Number of lines at the start of the tail that only reopen the blocks which it continues."""
        self._widths: Sequence[int] = ()
        """Widths of the columns of the last table that was finished."""
        self._settled: list[MarkdownLine] = []
        self._last: list[MarkdownLine] = []
        self.append(text)

    @property
    def text(self) -> str:
        """Complete text as it was added."""
        return "".join(self._texts)

    def append(self, text: str) -> None:
        """Append text. It is parsed when lines are read."""
        if text:
            self._texts.append(text)
            self._pending.append(text)

    def read(self) -> tuple[Sequence[MarkdownLine], Sequence[MarkdownLine]]:
        """Return the final lines, to which later calls only append, and the lines that can still change."""
        if self._pending:
            new = "".join(self._pending)
            # The next addition can start with the second half of this line break.
            self._pending = ["\r"] if new.endswith("\r") else []
            new = self._before + new.removesuffix("\r" if self._pending else "")
            # The two characters before a joiner decide whether it is kept.
            self._tail += clean(new)[len(clean(self._before)) :]
            self._before = new[-2:]
            self._settle()
            while len(self._tail) > _LONGEST_TAIL:
                self._cut()
            self._last = self._lines(_parsed(self._tail))
        return self._settled, self._last

    @property
    def lines(self) -> list[MarkdownLine]:
        """All lines at present."""
        settled, last = self.read()
        return [*settled, *last]

    def _settle(self) -> None:
        """Finish all blocks except the last one."""
        tokens = _parsed(self._tail)
        starts = [index for index, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0 and token.map]
        if len(starts) < 2:
            return
        last = tokens[starts[-1]].map
        assert last is not None, "tokens without a map were filtered out"
        tail = "".join(self._tail.splitlines(keepends=True)[last[0] :])
        if "\n" not in tail and len(tail) < _DECIDED:
            return
        self._settled += self._lines(tokens[: starts[-1]])
        self._tail = tail
        self._is_continuation = False
        self._reopening = 0

    def _cut(self) -> None:
        """Finish the beginning of a long block."""
        fence = _FENCE.match(self._tail)
        wanted = len(self._tail) - _KEPT_TAIL
        if len(self._tail) > 2 * _LONGEST_TAIL:
            wanted = _LONGEST_TAIL
        beginning = self._tail[: wanted + _KEPT_TAIL]
        lines = beginning.splitlines(keepends=True)
        count = self._tail.count("\n", 0, wanted) + 1
        split = (
            None if fence else reopened(_parsed(beginning, "inline", "text_join"), lines[:count], self._reopening + 1)
        )
        if split is not None:
            line, opening = split
            at = sum(map(len, lines[:line]))
            self._finish(at, opening)
            return
        breaks = [found.end() for found in _LINE_START.finditer(self._tail, 0, wanted)]
        at = self._tail.rfind("\n", 0, wanted) + 1 if fence or not breaks else breaks[-1]
        if at <= (fence.end() if fence else 0):
            space = self._tail.rfind(" ", 1, wanted) + 1
            at = wanted if fence or not space else space
        while self._tail[at : at + 1] in tuple(_JOINERS):
            at += 1
        self._finish(at, fence[0] if fence else "")

    def _finish(self, at: int, opening: str) -> None:
        """Finish the tail up to an index, and start its rest with lines that reopen the split blocks."""
        writer = self._written(_parsed(self._tail[:at]))
        self._settled += writer.lines[writer.start :]
        self._widths = writer.widths
        self._is_continuation = True
        self._reopening = opening.count("\n")
        self._tail = opening + self._tail[at:]

    def _lines(self, tokens: Sequence[Token]) -> list[MarkdownLine]:
        writer = self._written(tokens)
        return writer.lines[writer.start :]

    def _written(self, tokens: Sequence[Token]) -> _Writer:
        begun = bool(self._settled) and _needs_gap(self._settled[-1]) and not self._is_continuation
        writer = _Writer(begun=begun, reopening=self._reopening, widths=self._widths)
        writer.write(tokens)
        return writer


def lines_of(text: str) -> list[MarkdownLine]:
    """Return the lines of a complete text. Paragraphs of plain words, such as most descriptions, need no parser."""
    paragraphs = text.split("\n\n")
    if not all(_PLAIN_PARAGRAPH.fullmatch(paragraph) for paragraph in paragraphs):
        return Marked(text).lines
    return [line for paragraph in paragraphs for line in (MarkdownLine(), MarkdownLine(paragraph))][1:]


def load_parser() -> None:
    """Import the parser, which takes a moment."""
    _parser()


@cache
def _parser(without: tuple[str, ...] = ()) -> MarkdownIt:
    from markdown_it import MarkdownIt

    from pegboard.results.markdown_links import limit_links

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 3 * _DEEPEST})
    # A link definition is invisible and would change finished lines above it.
    limit_links(parser)
    return parser.enable(["table", "strikethrough"]).disable(["reference", *without])


def _parsed(text: str, *without: str) -> list[Token]:
    """Parse a text, flattening lists and quotations that the parser would omit.

    Args:
        text: The text.
        without: Rules of the parser that are not applied.
    """
    return _parser(without).parse(_TOO_DEEP.sub(lambda found: found[0][-_DEEPEST:], text))


@dataclass
class _Container:
    """List item or quotation around a block."""

    first: str
    rest: str


@dataclass
class _Writer:
    """Converter of tokens to lines.

    Args:
        begun: Whether there is text above, which an empty line separates from the first block.
        reopening: Number of lines of source that only reopen blocks.
        widths: Minimum widths of the columns of a reopened table.

    Attributes:
        start: Index of the first line that is not of reopened blocks.
    """

    begun: bool
    reopening: int = 0
    widths: Sequence[int] = ()
    lines: list[MarkdownLine] = field(default_factory=list)
    start: int = 0
    _containers: list[_Container] = field(default_factory=list)
    _numbers: list[int | None] = field(default_factory=list)

    def write(self, tokens: Sequence[Token]) -> None:
        """Add the lines of all tokens."""
        index = 0
        while index < len(tokens):
            token = tokens[index]
            is_reopened = self._is_reopened(token)
            match token.type:
                case "fence" if is_reopened:
                    self._code(token.content, token.info)
                case "inline":
                    opening = tokens[index - 1] if index else token
                    self._inline(token, heading=opening.tag if opening.type == "heading_open" else "")
                case "list_item_open":
                    self._item(is_loose=_is_loose(tokens, index))
                case "table_open":
                    end = next(at for at in range(index, len(tokens)) if tokens[at].type == "table_close")
                    if not is_reopened:
                        self._add_gap()
                    self._table(tokens[index:end], is_reopened=is_reopened)
                    index = end
                case "list_item_close" | "blockquote_close":
                    if self._containers[-1].first != self._containers[-1].rest:
                        self._add(MarkdownLine())
                    self._containers.pop()
                case "bullet_list_close" | "ordered_list_close":
                    self._numbers.pop()
                case _:
                    self._block(token)
            index += 1
        if self.reopening:
            self.start = len(self.lines)

    def _is_reopened(self, token: Token) -> bool:
        """Return whether a token is a reopened block with lines of its own; note where such lines begin."""
        if not self.reopening or token.nesting < 0 or not token.map:
            return False
        is_reopened = token.map[0] < self.reopening
        if not is_reopened or token.type in ("fence", "table_open"):
            self.start, self.reopening = len(self.lines), 0
            return is_reopened
        return False

    def _block(self, token: Token) -> None:
        """Add a block that needs no other token, or what precedes a block."""
        match token.type:
            case "paragraph_open" | "heading_open" if not token.hidden:
                self._add_gap()
            case "fence" | "code_block":
                self._add_gap()
                self._code(token.content, token.info)
            case "hr":
                self._add_gap()
                self._add(MarkdownLine("─" * 24, ((0, 24, "muted"),)))
            case "bullet_list_open" | "ordered_list_open":
                if not self._numbers:
                    self._add_gap()
                start = token.attrGet("start")
                self._numbers.append(int(start or 1) if token.type == "ordered_list_open" else None)
            case "blockquote_open":
                self._add_gap()
                self._containers.append(_Container("▌ ", "▌ "))
            case _:
                pass

    def _item(self, *, is_loose: bool) -> None:
        number = self._numbers[-1]
        if number is None:
            sign = "• " if len(self._numbers) % 2 else "◦ "
        else:
            sign = f"{number}. "
            self._numbers[-1] = number + 1
        if is_loose:
            self._add_gap()
        self._containers.append(_Container(sign, " " * len(sign)))

    def _add_gap(self) -> None:
        """Add an empty line unless the line above is blank or a bullet."""
        if any(one.first != one.rest for one in self._containers):
            return
        if self.lines:
            if _needs_gap(self.lines[-1]):
                self.lines.append(MarkdownLine(first="".join(one.rest for one in self._containers)))
        elif self.begun:
            self.lines.append(MarkdownLine())

    def _add(self, line: MarkdownLine) -> None:
        """Add a line with the prefixes of its containers. Only the first line of an item has a bullet."""
        first, rest = "".join(one.first for one in self._containers), "".join(one.rest for one in self._containers)
        for one in self._containers:
            one.first = one.rest
        self.lines.append(MarkdownLine(line.text, line.pieces, first + line.first, rest + line.rest, line.is_code))

    def _inline(self, token: Token, heading: str) -> None:
        text, pieces = _inline_text(token.children or ())
        start = 0
        marks: Iterable[Piece] = [(0, len(text), "heading"), *pieces] if heading else pieces
        lead = "# " if heading == "h1" else ""
        for line in text.split("\n"):
            end = start + len(line)
            own = tuple((max(a, start) - start, min(b, end) - start, m) for a, b, m in marks if a < end and b > start)
            self._add(MarkdownLine(line, own, lead, " " * len(lead)))
            start = end + 1

    def _code(self, code: str, info: str) -> None:
        lines = clean(code.rstrip("\n")).split("\n")
        styles = code_styles("\n".join(lines), info.split(maxsplit=1)[0] if info.strip() else "")
        for line, pieces in zip(lines, styles, strict=True):
            self._add(MarkdownLine(line, pieces, "  ", "  ", is_code=True))

    def _table(self, tokens: Sequence[Token], *, is_reopened: bool) -> None:
        rows: list[list[tuple[str, list[Piece]]]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                text, pieces = _inline_text(token.children or ())
                rows[-1].append((text.replace("\n", " "), pieces))
        columns = max((len(row) for row in rows), default=0)
        widths = [
            min(max((cell_len(row[at][0]) for row in rows if at < len(row)), default=0), _LONGEST_CELL)
            for at in range(columns)
        ]
        if is_reopened and len(self.widths) == columns:
            widths = list(map(max, widths, self.widths))
        self.widths = widths
        for number, row in enumerate(rows):
            if number == 0 and is_reopened:
                continue
            self._add(_table_line(row, widths, is_head=number == 0))
            if number == 0:
                rule = "─┼─".join("─" * width for width in widths)
                self._add(MarkdownLine(rule, ((0, len(rule), "muted"),)))


def _needs_gap(line: MarkdownLine) -> bool:
    """Return True if an empty line must separate this line from the next block."""
    return bool(line.text or line.first.strip()) or line.is_code


def _is_loose(tokens: Sequence[Token], index: int) -> bool:
    first = tokens[index + 1] if index + 1 < len(tokens) else None
    return first is not None and first.type == "paragraph_open" and not first.hidden


def _table_line(cells: Sequence[tuple[str, list[Piece]]], widths: Sequence[int], *, is_head: bool) -> MarkdownLine:
    text, pieces = "", list[Piece]()
    for at, width in enumerate(widths):
        shown, own = cells[at] if at < len(cells) else ("", [])
        if cell_len(shown) > width:
            shown = shown[: max(width - 1, 0)]
            while cell_len(shown) > width - 1:
                shown = shown[:-1]
            shown += "…"
        start = len(text)
        if at:
            text += " │ "
            pieces.append((start, start + 3, "muted"))
            start += 3
        text += shown + " " * (width - cell_len(shown))
        pieces += [(start + a, start + min(b, len(shown)), mark) for a, b, mark in own if a < len(shown)]
        if is_head:
            pieces.append((start, start + len(shown), "strong"))
    return MarkdownLine(text.rstrip(), tuple(pieces))


_SPANS: Final[dict[str, Mark]] = {"strong": "strong", "em": "emphasis", "s": "muted", "link": "link"}


def _inline_text(children: Iterable[Token]) -> tuple[str, list[Piece]]:
    """Return the text and styles of a paragraph, heading or cell, with its hard line breaks."""
    text, pieces, opened = "", list[Piece](), list[tuple[int, str]]()
    for token in children:
        match token.type:
            case "softbreak":
                text += " "
            case "hardbreak":
                text += "\n"
            case "code_inline":
                shown = clean_line(token.content)
                pieces.append((len(text), len(text) + len(shown), "code"))
                text += shown
            case "image":
                shown = clean_line(f"[image: {token.content} {token.attrGet('src')}]")
                pieces.append((len(text), len(text) + len(shown), "muted"))
                text += shown
            case "text":
                text += clean_line(token.content)
            case opening if opening.endswith("_open"):
                opened.append((len(text), str(token.attrGet("href") or "")))
            case closing if closing.endswith("_close") and opened:
                start, target = opened.pop()
                pieces.append((start, len(text), _SPANS.get(closing.removesuffix("_close"), "plain")))
                # Show the target of a link, so that its text can't disguise it.
                if target and target != text[start:]:
                    shown = clean_line(f" ({target})")
                    pieces.append((len(text), len(text) + len(shown), "muted"))
                    text += shown
            case _:
                text += clean_line(token.content)
    return text, pieces
