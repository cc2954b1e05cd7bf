"""Regular expressions of JSON Schema: JavaScript's syntax, with a time limit."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

_SECONDS = 0.04
"""Time limit of one search. Validation runs on the interface's event loop, which must not block for 50 ms."""

_JS_PARTS = re.compile(r"\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$|\(\?<(?![=!])", re.DOTALL)
_PROPERTY = re.compile(r"\\[pP]\{")
"""Start of a Unicode property escape, which the flag ASCII disables."""


class PatternError(ValueError):
    """The pattern is invalid, or the search exceeded its time limit."""


@lru_cache(maxsize=4096)
def compiled(text: str) -> regex.Pattern[str]:
    r"""Compile a pattern in JavaScript's syntax.

    In JavaScript, `$` matches only at the end, classes like `\d` match only ASCII, and named groups have no `P`.

    Args:
        text: Pattern of the schema.

    Raises:
        PatternError: The pattern is invalid.
    """
    # Python's own `re` has no time limit, and `(a|a)*$` takes exponential time
    import regex

    try:
        return regex.compile(_JS_PARTS.sub(_python_part, text), regex.ASCII)
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


def _python_part(match: re.Match[str]) -> str:
    part = match[0]
    if part.startswith(("\\", "[")):
        return f"(?u:{part})" if _PROPERTY.search(part) else part
    return {"$": r"\Z", "(?<": "(?P<"}.get(part, part)
