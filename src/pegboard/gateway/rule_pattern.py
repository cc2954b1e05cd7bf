"""Patterns of rules as regular expressions."""

from __future__ import annotations

import re
from itertools import pairwise

_TOKEN = re.compile(r"(\[[*?\[]\]|\*\*/|\*\*|\*|\?)")
_WILD = {"**/", "**", "*", "?"}
_ANY, _FOLDERS = ".*", "(?:.*/)?"
_SHORTEST = {_ANY: ".*?", "[^/]*": "[^/]*?", _FOLDERS: "(?:.*?/)??"}
"""Expressions of wildcards and those that first match as little as possible."""


def literal(pattern: str) -> str | None:
    """Return the only text that a pattern matches; None if it has wildcards."""
    parts = _TOKEN.split(pattern)
    return None if any(part in _WILD for part in parts[1::2]) else "".join(map(_unescaped, parts))


def expression(pattern: str, *, crosses: bool) -> str:
    """Return a pattern as a regular expression; `crosses` lets `*` and `?` match `/`."""
    one = "." if crosses else "[^/]"
    signs = {"**/": _FOLDERS, "**": _ANY, "*": f"{one}*"}
    pieces = [("", "")]
    """Wildcards of any length, each with the text of a fixed length after it."""
    for part in _TOKEN.split(pattern):
        wildcard, fixed = pieces[-1]
        if part not in signs:
            pieces[-1] = wildcard, fixed + (one if part == "?" else re.escape(_unescaped(part)))
        elif not fixed and _FOLDERS not in {wildcard, signs[part]} and wildcard:
            pieces[-1] = (wildcard if wildcard == _ANY else signs[part]), ""
        else:
            pieces.append((signs[part], ""))
    found = [
        f"(?>{_SHORTEST[wildcard]}{fixed})" if _is_first_enough(wildcard, fixed, after) else wildcard + fixed
        for (wildcard, fixed), (after, _) in pairwise(pieces)
    ]
    return "".join((*found, *pieces[-1]))


def _is_first_enough(wildcard: str, fixed: str, after: str) -> bool:
    """Return whether the first occurrence of a text is enough, so that a mismatch after it needs no search for others.

    It is if the wildcard after it reaches everything that it would reach from a later one. Without this, the time of
    a search grows with a power of the text's length.

    Args:
        wildcard: The wildcard before the text; empty at the start.
        fixed: The text.
        after: The wildcard after it.
    """
    if not wildcard:
        return False
    if after == _FOLDERS:
        return fixed.endswith("/") or (not fixed and wildcard == _FOLDERS)
    return after in {_ANY, wildcard}


def _unescaped(part: str) -> str:
    """Return the literal text of a pattern without wildcards."""
    return part[1] if len(part) == 3 and part[0] == "[" and part[2] == "]" and part[1] in "*?[" else part
