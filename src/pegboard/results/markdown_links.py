"""Rules for links and images that reject brackets fast if there are many.

For each opening bracket, the parser's own rules search the rest of the paragraph for the closing one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from markdown_it.rules_inline import StateInline, image, link

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_MANY: Final = 100
"""Opening brackets of a paragraph of which each may begin a link."""
_BRACKET: Final = re.compile(r"[\[\]]")


def limit_links(parser: MarkdownIt) -> None:
    """Make a parser without link definitions read paragraphs with many brackets fast."""
    parser.inline.ruler.at("link", _limited(link, 0))
    parser.inline.ruler.at("image", _limited(image, 1))


def _limited(rule: Callable[[StateInline, bool], bool], before: int) -> Callable[[StateInline, bool], bool]:
    """Return a rule that applies only where a link may begin.

    Args:
        rule: Rule of the parser.
        before: Number of characters before its opening bracket.
    """

    def limited(state: StateInline, silent: bool) -> bool:
        possible = _possible(state.src)
        return (possible is None or state.pos + before in possible) and rule(state, silent)

    return limited


@lru_cache(maxsize=1)
def _possible(text: str) -> frozenset[int] | None:
    """Return the opening brackets whose closing one is before a parenthesis, regardless of code.

    Return None if the text has only a few, which the parser reads fast.
    """
    if text.count("[") <= _MANY:
        return None
    opened: list[int] = []
    found = []
    for bracket in _BRACKET.finditer(text):
        if bracket[0] == "[":
            opened.append(bracket.start())
        elif opened:
            start = opened.pop()
            if text.startswith("(", bracket.end()):
                found.append(start)
    return frozenset(found)
