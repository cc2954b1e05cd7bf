"""Styles of code within Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from pegboard.results.marks import Mark, Piece

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

_LONGEST: Final = 20_000
"""Maximum length of highlighted code."""


def code_styles(code: str, language: str) -> Iterator[tuple[Piece, ...]]:
    """Yield the styles of each line of code."""
    lines: list[list[Piece]] = [[] for _ in range(code.count("\n") + 1)]
    if language and len(code) <= _LONGEST:
        number = column = 0
        for mark, text in _lexed(code, language):
            for at, part in enumerate(text.split("\n")):
                if at:
                    number, column = number + 1, 0
                if part and mark != "plain" and number < len(lines):
                    lines[number].append((column, column + len(part), mark))
                column += len(part)
    return map(tuple, lines)


def _lexed(code: str, language: str) -> Iterator[tuple[Mark, str]]:
    from pygments.token import Comment, Keyword, Name, Number, String
    from pygments.util import ClassNotFound

    marks: tuple[tuple[_TokenType, Mark], ...] = (
        (Comment, "muted"),
        (Keyword, "key"),
        (String, "string"),
        (Number, "number"),
        (Name.Function, "constant"),
        (Name.Class, "constant"),
        (Name.Builtin, "constant"),
        (Name.Tag, "key"),
    )
    try:
        lexer = _lexer(language.lower())
    except ClassNotFound:
        return
    for kind, text in lexer.get_tokens(code):
        yield next((mark for wanted, mark in marks if _is_a(kind, wanted)), "plain"), text


def _is_a(kind: _TokenType, wanted: _TokenType) -> bool:
    return kind[: len(wanted)] == wanted


@cache
def _lexer(language: str) -> Lexer:
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(language, stripnl=False, ensurenl=False)
