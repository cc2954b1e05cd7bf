"""Lines that reopen the blocks which a long Markdown text is split in, so that its rest means the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markdown_it.token import Token

_LONGEST: Final = 500
"""Maximum length of the lines; blocks that need more are not reopened."""
_QUOTE: Final = re.compile(r" {0,3}> ?")
_ITEM: Final = re.compile(r" {0,3}(?:[*+-]|\d{1,9}[.)])(?: {1,4}(?=\S)| (?= )|(?=$))")
_PLACEHOLDER: Final = "#"
"""Empty heading, which, unlike a paragraph, never continues in the next line."""


def reopened(tokens: Sequence[Token], lines: Sequence[str], first: int) -> tuple[int, str] | None:
    """Return the last line at which a text can be split, and the lines that reopen the blocks there.

    Args:
        tokens: The parsed text.
        lines: Its lines; the last one can be incomplete.
        first: The lowest line.

    Returns:
        None if the text can't be split between two lines.
    """
    kept = {line for token in tokens if token.map for line in _kept(token.type, *token.map)}
    line = next((line for line in range(len(lines) - 1, first - 1, -1) if line not in kept), None)
    opening = None if line is None else _opening([one for one in tokens if _contains(one, line)], lines)
    if line is None or opening is None or len(opening) > min(_LONGEST, sum(map(len, lines[:line])) - 1):
        return None
    return line, opening


def _kept(kind: str, start: int, end: int) -> Iterable[int]:
    """Return the lines of a block at which it isn't split, as either part would look different."""
    match kind:
        case "paragraph_open":
            return range(start + 1, end)
        case "fence":
            return start + 1, end - 1
        case "table_open":
            return (start + 1,)
        case _:
            return ()


def _contains(token: Token, line: int) -> bool:
    """Return whether a block starts before a line and continues in it."""
    return token.nesting >= 0 and token.map is not None and token.map[0] < line < token.map[1]


def _opening(blocks: Sequence[Token], lines: Sequence[str]) -> str | None:
    """Return the lines that open blocks, the outer ones first, with a placeholder in each list item."""
    opening, lead, column = "", "", 0
    for block in blocks:
        assert block.map is not None, "blocks have lines"
        line = lines[block.map[0]]
        if "\t" in line:
            return None
        match block.type:
            case "blockquote_open" | "list_item_open":
                is_item = block.type == "list_item_open"
                found = (_ITEM if is_item else _QUOTE).match(line.rstrip("\n"), column)
                if found is None:
                    return None
                begin = found[0] if found[0].endswith(" ") or not is_item else f"{found[0]} "
                if is_item:
                    opening += f"{lead}{begin}{_PLACEHOLDER}\n"
                lead += " " * len(begin) if is_item else begin
                column += len(begin)
            case "fence":
                return f"{opening}{lead}{line[column:]}"
            case "table_open":
                return f"{opening}{lead}{line[column:]}{lead}{lines[block.map[0] + 1][column:]}"
            case _:
                pass
    return opening
