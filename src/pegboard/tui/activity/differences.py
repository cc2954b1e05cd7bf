"""The comparison of two calls as lines, in two columns or one. Independent of Textual."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice, zip_longest
from typing import Final

from pydantic import JsonValue
from rich.cells import cell_len, chop_cells

from pegboard.models.difference import CallDiff, JsonDifference, ValueDiff
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count
from pegboard.tui.widgets.line_view import LineSpan

_VALUE: Final = 200_000
"""Characters of one value that are shown."""
_TOTAL: Final = 4_000_000
"""Characters of all values that are shown."""
_EMPHASIZED: Final = 4_000
"""Length of the longest line whose changed part is emphasized."""
_CHUNKS: Final = 100_000
_GAP: Final = "⋯"


@dataclass(frozen=True, slots=True)
class LinePair:
    """A line of each value, or of one of them."""

    before: str | None
    after: str | None
    is_equal: bool = False
    before_number: int | None = None
    after_number: int | None = None


@dataclass(frozen=True, slots=True)
class DifferenceBlock:
    """One difference: the path of the value, and its lines."""

    path: str
    pairs: Sequence[LinePair]
    note: str = ""


@dataclass(frozen=True, slots=True)
class DifferenceSection:
    """The differences of the arguments or of the results."""

    title: str
    blocks: Sequence[DifferenceBlock]
    note: str = ""


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """A row of the view: its text, its styled spans and its kind."""

    text: str
    spans: Sequence[LineSpan] = ()
    kind: str = ""


@dataclass
class DifferenceLayout:
    """The rows for one width, and where each difference starts."""

    rows: list[DifferenceRow] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)


def sections_of(diff: CallDiff) -> Sequence[DifferenceSection]:
    """Return the differences of two calls, sanitized; the length of values is limited."""
    budget = _Budget()
    arguments = _section("Arguments", diff.arguments, budget)
    if diff.result is None:
        return (arguments, DifferenceSection("Result", (), clean_line(diff.problem)))
    return (arguments, _section("Result", diff.result, budget))


def laid_out(sections: Sequence[DifferenceSection], width: int, *, has_two_columns: bool) -> DifferenceLayout:
    """Return the rows of the comparison.

    Args:
        sections: The differences.
        width: Width of a row in cells.
        has_two_columns: Whether both values are side by side; otherwise removed lines precede added ones.
    """
    layout = DifferenceLayout()
    for section in sections:
        if layout.rows:
            layout.rows.append(DifferenceRow(""))
        _add_text(layout, section.title, width, "section")
        if section.note:
            _add_text(layout, section.note, width, "warning")
        for block in section.blocks:
            layout.starts.append(len(layout.rows))
            _add_text(layout, f"{block.path}  {block.note}".rstrip(), width, "path")
            rows = _side_by_side(block, width) if has_two_columns else _unified(block, width)
            layout.rows.extend(rows)
    return layout


# Content


class _Budget:
    """Number of characters that can still be shown."""

    def __init__(self) -> None:
        self._left = _TOTAL

    def cut(self, text: str) -> tuple[str, str]:
        """Return the part of a text that is shown, and a note if that isn't all of it."""
        shown = text[: max(0, min(_VALUE, self._left))]
        self._left -= len(shown)
        return shown, f"only the first {count(len(shown), 'character')} shown" if len(shown) < len(text) else ""


def _section(title: str, diff: ValueDiff, budget: _Budget) -> DifferenceSection:
    blocks = [_block(one, budget) for one in diff.differences]
    if not blocks:
        return DifferenceSection(f"{title} · no difference", (), "" if diff.is_whole else "Only a part was compared.")
    note = "" if diff.is_whole else "More differences follow, which are not shown."
    return DifferenceSection(f"{title} · {count(len(blocks), 'difference')}", blocks, note)


def _block(one: JsonDifference, budget: _Budget) -> DifferenceBlock:
    path = clean_line(one.path) or "the whole value"
    if one.kind == "text":
        note = "" if one.is_whole else "only the first changed lines shown"
        pairs: list[LinePair] = []
        length = 0
        for pair in _text_pairs(one):
            pairs.append(pair)
            length += len(pair.before or "") + len(pair.after or "")
            if length > _VALUE:
                note = "only the first changed lines shown"
                break
        return DifferenceBlock(path, pairs, note)
    before, before_note = budget.cut(_text(one.before)) if one.kind != "added" else ("", "")
    after, after_note = budget.cut(_text(one.after)) if one.kind != "removed" else ("", "")
    old = clean(before).split("\n") if one.kind != "added" else []
    new = clean(after).split("\n") if one.kind != "removed" else []
    note = " · ".join(filter(None, [one.kind if one.kind != "changed" else "", before_note or after_note]))
    return DifferenceBlock(path, [LinePair(*pair) for pair in zip_longest(old, new)], note)


def _text(value: JsonValue) -> str:
    """Return the start of a value as indented JSON, without formatting the rest of a large value."""
    if isinstance(value, str):
        return json.dumps(value[: _VALUE + 1], ensure_ascii=False)
    try:
        chunks = json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(value)
        return "".join(islice(chunks, _CHUNKS))
    except RecursionError:
        return "… (nested too deeply)"


def _text_pairs(one: JsonDifference) -> Iterator[LinePair]:
    last: int | None = None
    for is_equal, group in groupby(one.lines, key=lambda line: line.kind == "equal"):
        lines = list(group)
        number = lines[0].before or lines[0].after or 0
        if is_equal and last is not None and number > last + 1:
            yield LinePair(_GAP, _GAP, is_equal=True)
        if is_equal:
            for at, line in enumerate(lines):
                if at and line.before is not None and line.before > (lines[at - 1].before or 0) + 1:
                    yield LinePair(_GAP, _GAP, is_equal=True)
                text = clean_line(line.text[:_VALUE])
                yield LinePair(text, text, True, line.before, line.after)
        else:
            removed = [line for line in lines if line.kind == "removed"]
            added = [line for line in lines if line.kind == "added"]
            for old, new in zip_longest(removed, added):
                yield LinePair(
                    None if old is None else clean_line(old.text[:_VALUE]),
                    None if new is None else clean_line(new.text[:_VALUE]),
                    before_number=None if old is None else old.before,
                    after_number=None if new is None else new.after,
                )
        last = next((line.before for line in reversed(lines) if line.before is not None), last)


# Layout


def _add_text(layout: DifferenceLayout, text: str, width: int, kind: str) -> None:
    for part, _ in _wrapped(text, width):
        layout.rows.append(DifferenceRow(part, ((0, len(part), kind),), kind if kind != "warning" else ""))


@dataclass(frozen=True, slots=True)
class _Side:
    """Rendering of one of the two values."""

    sign: str
    kind: str
    text: Callable[[LinePair], str | None]
    number: Callable[[LinePair], int | None]


_BEFORE = _Side("-", "removed", lambda pair: pair.before, lambda pair: pair.before_number)
_AFTER = _Side("+", "added", lambda pair: pair.after, lambda pair: pair.after_number)


def _unified(block: DifferenceBlock, width: int) -> Iterator[DifferenceRow]:
    digits = _digits(block)
    for is_equal, group in groupby(block.pairs, key=lambda pair: pair.is_equal):
        pairs = list(group)
        for side in (_AFTER,) if is_equal else (_BEFORE, _AFTER):
            for pair in pairs:
                for text, spans in _cells(pair, side, width, digits):
                    yield DifferenceRow(text, spans)


def _side_by_side(block: DifferenceBlock, width: int) -> Iterator[DifferenceRow]:
    digits = _digits(block)
    left_width = (width - 3) // 2
    nothing: tuple[str, Sequence[LineSpan]] = ("", ())
    for pair in block.pairs:
        left = _cells(pair, _BEFORE, left_width, digits)
        right = _cells(pair, _AFTER, width - 3 - left_width, digits)
        for (old, old_spans), (new, new_spans) in zip_longest(left, right, fillvalue=nothing):
            start = f"{old}{' ' * (left_width - cell_len(old))} │ "
            spans = [*old_spans, (len(start) - 2, len(start) - 1, "muted")]
            spans += ((first + len(start), last + len(start), kind) for first, last, kind in new_spans)
            yield DifferenceRow(f"{start}{new}", spans)


def _digits(block: DifferenceBlock) -> int:
    numbers = [number for pair in block.pairs for number in (pair.before_number, pair.after_number) if number]
    return len(str(max(numbers))) if numbers else 0


def _cells(pair: LinePair, side: _Side, width: int, digits: int) -> Iterator[tuple[str, Sequence[LineSpan]]]:
    """Yield the rows of one line of a value, with its number and sign before the first."""
    text = side.text(pair)
    if text is None:
        return
    number = side.number(pair)
    sign = " " if pair.is_equal else side.sign
    gutter = f"{number or '':>{digits}} {sign} " if digits else f"{sign} "
    kind = "plain" if pair.is_equal else side.kind
    first, last = (0, 0) if pair.is_equal else _changed_part(pair, side)
    for index, (part, start) in enumerate(_wrapped(text, max(width - len(gutter), 8))):
        lead = gutter if index == 0 else " " * len(gutter)
        spans: list[LineSpan] = [
            (0, max(len(lead) - 2, 0), "muted"),
            (max(len(lead) - 2, 0), len(lead) + len(part), kind),
        ]
        emphasized = max(first - start, 0), min(last - start, len(part))
        if emphasized[0] < emphasized[1]:
            spans.append((len(lead) + emphasized[0], len(lead) + emphasized[1], f"{kind}-part"))
        yield lead + part, spans


def _changed_part(pair: LinePair, side: _Side) -> tuple[int, int]:
    """Return where a line differs from the other one, or an empty range if they have little in common."""
    old, new = pair.before, pair.after
    if old is None or new is None or max(len(old), len(new)) > _EMPHASIZED:
        return (0, 0)
    least = min(len(old), len(new))
    start = next((index for index in range(least) if old[index] != new[index]), least)
    end = next((index for index in range(least - start) if old[-1 - index] != new[-1 - index]), least - start)
    if 2 * (start + end) < least:
        return (0, 0)
    return start, len(side.text(pair) or "") - end


def _wrapped(text: str, width: int) -> Iterator[tuple[str, int]]:
    """Yield the parts of a line that fit into the width, each with its index in the line."""
    if text.isascii():
        for start in range(0, max(len(text), 1), width):
            yield text[start : start + width], start
        return
    start = 0
    for part in chop_cells(text, width):
        yield part, start
        start += len(part)
