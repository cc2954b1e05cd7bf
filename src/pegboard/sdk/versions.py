"""Finding a version in what a program prints, and comparing two."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.version import Version

_SUFFIX = r"(?:[-._~]?(?:alpha|beta|rc|pre|dev|a|b|p)[-.]?\d+|[a-z]\b)?"
_DOTTED = re.compile(rf"(?<![A-Za-z0-9.])[A-Za-z]{{0,2}}(\d+(?:\.\d+)+{_SUFFIX})")
"""`14.1.0`, `v18.19.0`, `go1.21.5`, `3.3a`, `9.2p1`, `3.13.0rc1`."""

_WHOLE = re.compile(r"(?:^|\bversion\b)[\s:]*v?(\d+)\b", re.IGNORECASE)
"""A number without dots counts only where nothing else can be meant."""

_IN_BRACKETS = re.compile(r"\([^()]*\)")
_NOISE = ("Picked up ",)  # Java tells about its variables first
_MOST_LINES = 40


def version_in(text: str, program: str) -> str | None:
    """Finds a program's version in what it printed.

    Args:
        text: What it printed when it was asked for its version.
        program: Its name.
    """
    lines = [line.strip() for line in text.splitlines()[:_MOST_LINES] if line.strip() and not line.startswith(_NOISE)]
    # A line that speaks of the program's version is better than one that speaks of the library below it.
    speaking = re.compile(rf"\bversion\b|(?<![\w-]){re.escape(program)}(?![\w-])", re.IGNORECASE)
    lines = [line for line in lines if speaking.search(line)] or lines
    for line in lines:
        # In brackets stands what it was packaged or built as, unless that is all there is.
        found = _DOTTED.search(_IN_BRACKETS.sub(" ", line)) or _DOTTED.search(line)
        if found:
            return found[1]
    named = re.compile(rf"^{re.escape(program)}[\s,:-]+v?(\d+)\b", re.IGNORECASE)
    for line in lines:
        found = named.search(line) or _WHOLE.search(line)
        if found:
            return found[1]
    return None


def is_older(version: str, least: str) -> bool:
    """Tells whether a version is older than another.

    `14.0.0-rc1` is older than `14.0.0`; letters and packagers' marks that mean no pre-release (`9.2p1`, `3.3a`) don't
    count.

    Raises:
        ValueError: One of them is no version.
    """
    return _read(version) < _read(least)


def _read(text: str) -> Version:
    from packaging.version import InvalidVersion, Version

    # `3.3a` is the release after `3.3`, not an alpha before it
    text = re.sub(r"(?<=\d)[a-z]$", "", text.strip())
    try:
        return Version(text)
    except InvalidVersion:
        numbers = re.match(r"v?(\d+(?:\.\d+)*)", text)
        if numbers is None:
            raise ValueError(f"“{text}” is no version.") from None
        return Version(numbers[1])
