"""Regular expressions of JSON Schema: JavaScript's syntax, with a time limit."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

_SECONDS = 0.04
"""Time limit of one search. Validation runs on the interface's event loop, which must not block for 50 ms."""

_LARGEST = 20_000
"""Limit of the parts of a pattern, counting those of a group as often as it is repeated at least: each takes memory."""

_SHOWN = 200
"""Characters of a pattern that a message shows."""

_LAST = "\U0010ffff"
_SETS = {
    "d": "0-9",
    "D": rf"\x00-/:-{_LAST}",
    "w": "0-9A-Z_a-z",
    "W": rf"\x00-/:-@\[-\^`{{-{_LAST}",
    "s": r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff",
    "S": r"\x00-\x08\x0e-\x1f!-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
    rf"\u3001-\ufefe\uff00-{_LAST}",
}
"""Letter of an escape → its characters in JavaScript, as the inside of a character class."""
_ESCAPE = (
    r"\\u\{(?P<code>[0-9A-Fa-f]{1,6})\}|\\u(?P<high>[Dd][89ABab][0-9A-Fa-f]{2})\\u(?P<low>[Dd][C-Fc-f][0-9A-Fa-f]{2})"
    r"|\\c(?P<control>[A-Za-z])|\\(?P<set>[dDwWsS])|\\[pP]\{[^}]*\}"
    r"|(?P<foreign>\\(?![bBfnrtvdDwWsS]|c[A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|k<)[A-Za-z])|\\."
)
_PARTS = re.compile(
    rf"\\k<(?P<name>\w+)>|(?P<boundary>\\[bB])|{_ESCAPE}|\[(?P<negation>\^?)(?P<class>(?:\\.|[^\]\\])*+)\]|(?P<open>\[)"
    r"|(?P<plain>[.$])"
    r"|(?P<brace>\{(?!\d+(?:,\d*)?\}))|(?P<python>\(\?(?![:=!]|<[=!\w$]|[ims-]+:)|(?:[*+?]|\{\d+(?:,\d*)?\})\+)",
    re.DOTALL,
)
_PARTS_OF_CLASS = re.compile(rf"\\(?P<set_and_dash>[dDwWsS])-|{_ESCAPE}|(?P<literal>\[|-(?=\\[dDwWsS]))", re.DOTALL)


_SIZED = re.compile(
    r"(?P<open>\((?:\?(?:[:=!>]|<[=!]|P?<\w+>|[a-z-]+:))?)|(?P<close>\))|\{(?P<least>\d+)(?:,\d*)?\}|(?P<any>[*+?|])"
    r"|\\.|\[\^?(?:\\.|[^\]\\])*\]|.",
    re.DOTALL,
)
"""Parts of a pattern in Python's syntax."""


class PatternError(ValueError):
    """The pattern is invalid, or the search exceeded its time limit."""


@lru_cache(maxsize=1024)
def compiled(text: str) -> regex.Pattern[str]:
    r"""Compile a pattern in JavaScript's syntax.

    In JavaScript, `$` matches only at the end, `\d` and `\w` match only ASCII, `.` matches no line separator, and
    braces that are not a quantifier match themselves. Python's further syntax is allowed, because tools use it.

    Args:
        text: Pattern of the schema.

    Raises:
        PatternError: The pattern is invalid or too large.
    """
    # Python's own `re` has no time limit, and `(a|a)*$` takes exponential time
    import regex

    if len(text) > _LARGEST:
        raise PatternError(f"the pattern that starts with {text[:_SHOWN]!r} is too long")
    try:
        pattern = _PARTS.sub(_python_part, text)
        if _size_of(pattern) > _LARGEST:
            raise PatternError(f"the pattern {text[:_SHOWN]!r} repeats too much")
        return regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError) as error:
        raise PatternError(f"{text!r} is not a valid pattern: {error}") from error


def occurs(pattern: str, text: str) -> bool:
    """Return whether a text contains a match of a pattern.

    Raises:
        PatternError: The pattern is invalid, or the search took longer than 40 ms.
    """
    try:
        return compiled(pattern).search(text, timeout=_SECONDS) is not None
    except TimeoutError as error:
        raise PatternError(f"the search for the pattern {pattern} took too long") from error


def is_javascript(text: str) -> bool:
    """Return whether a text is a pattern in JavaScript's syntax, without the further syntax of Python."""
    try:
        compiled(text)
    except PatternError:
        return False
    return not any(part["foreign"] or part["python"] for part in _PARTS.finditer(text))


def _size_of(pattern: str) -> int:
    """Return the number of parts that a pattern is compiled to, or a number above the limit if it has too many."""
    sizes, last = [0], 0
    for part in _SIZED.finditer(pattern):
        match part.lastgroup:
            case "open":
                sizes.append(1)
            case "close":
                last = sizes.pop() if len(sizes) > 1 else 1
                sizes[-1] += last
            case "least":
                least = int(part["least"]) if len(part["least"]) < 10 else _LARGEST
                added = last * (least - 1) if least else 0
                last += added
                sizes[-1] += added
            case "any":
                pass
            case _:
                last = 1
                sizes[-1] += 1
        if last > _LARGEST:
            return last
    return sum(sizes)


def _python_part(part: re.Match[str]) -> str:
    match part.lastgroup:
        case "open":
            raise PatternError(f"{part.string[:_SHOWN]!r} is not a valid pattern: a class is not closed")
        case "name":
            return f"(?P={part['name']})"
        case "boundary":
            return f"(?a:{part[0]})"
        case "set":
            return f"[{_SETS[part['set']]}]"
        case "class":
            inner = _PARTS_OF_CLASS.sub(_python_part_of_class, part["class"])
            empty = "(?s:.)" if part["negation"] else "(?!)"
            return f"[{part['negation']}{inner}]" if inner else empty
        case "plain":
            return r"\Z" if part[0] == "$" else r"[^\n\r\u2028\u2029]"
        case "brace":
            return r"\{"
        case _:
            return _character(part)


def _python_part_of_class(part: re.Match[str]) -> str:
    match part.lastgroup:
        case "set":
            return _SETS[part["set"]]
        case "set_and_dash":
            return _SETS[part["set_and_dash"]] + r"\-"
        case "literal":
            return f"\\{part[0]}"
        case _:
            return _character(part)


def _character(part: re.Match[str]) -> str:
    """Return the escape of one character as Python writes it; others are the same."""
    match part.lastgroup:
        case "code":
            return f"\\U{int(part['code'], 16):08x}"
        case "low":
            code = 0x10000 + (int(part["high"], 16) - 0xD800) * 0x400 + int(part["low"], 16) - 0xDC00
            return f"\\U{code:08x}"
        case "control":
            return f"\\x{ord(part['control']) % 32:02x}"
        case _:
            return part[0]
