"""Regular expressions of JSON Schema, which are JavaScript's, searched for within a bounded time."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from pegboard.errors import PegboardError

if TYPE_CHECKING:
    import regex

_SECONDS = 0.04
"""How long one search may take. Arguments are checked on the interface's loop, which must never stand for 50 ms."""

_JS_PARTS = re.compile(r"\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$|\(\?<(?![=!])", re.DOTALL)
_PROPERTY = re.compile(r"\\[pP]\{")
"""The beginning of a Unicode property escape, which means nothing under the flag ASCII."""


class PatternError(PegboardError, ValueError):
    """The text is no pattern, or searching for it takes too long."""


@lru_cache(maxsize=4096)
def compiled(text: str) -> regex.Pattern[str]:
    r"""Compiles a pattern.

    In JavaScript `$` is the very end only, classes like `\d` are ASCII, and named groups have no `P`.

    Args:
        text: The pattern as the schema has it.

    Raises:
        PatternError: It isn't one.
    """
    # Python's own `re` has no time limit, and `(a|a)*$` takes it for ever
    import regex

    try:
        return regex.compile(_JS_PARTS.sub(_python_part, text), regex.ASCII)
    except (regex.error, OverflowError, RecursionError) as error:
        raise PatternError(f"{text!r} is no pattern: {error}") from error


def occurs(pattern: str, text: str) -> bool:
    """Tells whether a pattern is found anywhere in a text.

    Raises:
        PatternError: It is no pattern, or the search takes longer than 40 ms.
    """
    try:
        return compiled(pattern).search(text, timeout=_SECONDS) is not None
    except TimeoutError as error:
        raise PatternError(f"the pattern {pattern} takes too long to be searched for") from error


def _python_part(match: re.Match[str]) -> str:
    part = match[0]
    if part.startswith(("\\", "[")):
        return f"(?u:{part})" if _PROPERTY.search(part) else part
    return {"$": r"\Z", "(?<": "(?P<"}.get(part, part)
