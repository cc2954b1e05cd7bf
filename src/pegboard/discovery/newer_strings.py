"""Recognition of f-strings that only Python 3.12 can read, as their expressions reuse quotes or contain newlines."""

from __future__ import annotations

import ast
import re
from typing import Final

_STRING: Final = r"""(?:(?<!\w)(?P<prefix>[fF][rR]?|[rR][fF]?|[bB][rR]?|[rR][bB]|[uU]))?(?P<quote>'''|\"\"\"|'|")"""
_PIECE: Final = re.compile(rf"#[^\n]*|{_STRING}")
_IN_FIELD: Final = re.compile(rf"#[^\n]*|{_STRING}|[\[\](){{}}:]|!(?!=)")
_REST: Final = {
    "'": re.compile(r"(?:[^\\\n']|\\.)*'", re.DOTALL),
    '"': re.compile(r'(?:[^\\\n"]|\\.)*"', re.DOTALL),
    "'''": re.compile(r"(?:[^\\]|\\.)*?'''", re.DOTALL),
    '"""': re.compile(r'(?:[^\\]|\\.)*?"""', re.DOTALL),
}
"""Rest of a string without fields, by its opening quote."""
_ESCAPE: Final = re.compile(r"\{\{|\}\}|\\N\{[^}\n]*\}|\\.", re.DOTALL)
_CONVERSION: Final = re.compile(r"![rsa]\s*")
_EQUALS: Final = re.compile(r"(?<![=!<>])=\s*$")


class _InvalidStringError(Exception):
    """A string that no Python can read."""


def without_newer_strings(text: str) -> str:
    """Return a source with an empty string in place of each f-string that only Python 3.12 can read.

    Args:
        text: The source; returned unchanged if it contains a string that no Python can read.
    """
    pieces: list[str] = []
    start = 0
    try:
        while piece := _PIECE.search(text, start):
            end = _end_of_piece(text, piece)
            literal = text[piece.start() : end]
            newer = _is_f_string(piece) and not is_valid(literal)
            pieces += [text[start : piece.start()], '""' if newer else literal]
            start = end
    except (_InvalidStringError, RecursionError):
        return text
    return "".join(pieces) + text[start:]


def is_valid(text: str) -> bool:
    """Return whether the running Python can parse a source."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _is_f_string(piece: re.Match[str]) -> bool:
    return "f" in (piece["prefix"] or "").lower()


def _end_of_piece(text: str, piece: re.Match[str]) -> int:
    """Return the end of the comment or string that begins with a match."""
    if piece["quote"] is None:
        return piece.end()
    if _is_f_string(piece):
        return _end_of_f_string(text, piece.end(), piece["quote"])
    rest = _REST[piece["quote"]].match(text, piece.end())
    if rest is None:
        raise _InvalidStringError
    return rest.end()


def _end_of_f_string(text: str, at: int, quote: str) -> int:
    while at < len(text):
        if text.startswith(quote, at):
            return at + len(quote)
        if escape := _ESCAPE.match(text, at):
            at = escape.end()
        elif text[at] == "{":
            at = _end_of_field(text, at + 1)
        elif text[at] == "}" or (text[at] == "\n" and len(quote) == 1):
            break
        else:
            at += 1
    raise _InvalidStringError


def _end_of_field(text: str, at: int) -> int:
    """Return the end of a field, after its closing brace.

    Args:
        text: The source.
        at: Start of its expression.
    """
    expression: list[str] = []
    depth = 0
    while mark := _IN_FIELD.search(text, at):
        if not depth and mark[0] in "}!:":
            break
        end = mark.end()
        if mark["quote"] or mark[0].startswith("#"):
            end = _end_of_piece(text, mark)
        depth += (mark[0] in "([{") - (mark[0] in ")]}")
        expression += [text[at : mark.start()], '""' if _is_f_string(mark) else text[mark.start() : end]]
        at = end
    if mark is None:
        raise _InvalidStringError
    whole = _EQUALS.sub("", "".join(expression) + text[at : mark.start()])
    if not whole.strip() or not is_valid(f"({whole}\n)"):
        raise _InvalidStringError
    conversion = _CONVERSION.match(text, mark.start())
    return _end_of_format(text, conversion.end() if conversion else mark.start())


def _end_of_format(text: str, at: int) -> int:
    """Return the end of a field.

    Args:
        text: The source.
        at: End of its expression and conversion, where its format may begin.
    """
    if text.startswith(":", at):
        at += 1
        while at < len(text) and text[at] not in "}\n":
            at = _end_of_field(text, at + 1) if text[at] == "{" else at + 1
    if not text.startswith("}", at):
        raise _InvalidStringError
    return at + 1
