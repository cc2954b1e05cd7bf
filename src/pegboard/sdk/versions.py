"""Extraction of versions from the output of programs, and their comparison."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.version import Version

_SUFFIX = r"(?:[-._~]?(?:alpha|beta|rc|pre|dev|a|b|p)[-.]?\d+|[a-z]\b)?"
_DOTTED = re.compile(rf"(?<![A-Za-z0-9.])[A-Za-z]{{0,2}}(\d+(?:\.\d+)+{_SUFFIX})")
"""Versions such as `14.1.0`, `v18.19.0`, `go1.21.5`, `3.3a`, `9.2p1`, `3.13.0rc1`."""

_WORD = re.compile(r"\bversion\b", re.IGNORECASE)
_WHOLE = re.compile(rf"(?:^|{_WORD.pattern})[\s:\"'(]*v?(\d+)\b", re.IGNORECASE)
"""Versions without dots, at the start of a line or after the word `version`."""

_PLAIN = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})*", re.ASCII)
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_NOISE = ("Picked up ",)  # Java prints its environment variables first
_MOST_LINES = 40


def version_in(text: str, program: str) -> str | None:
    """Return the version in the output of a program, or None.

    Args:
        text: Output of the program when run with its version flag.
        program: Name of the program.
    """
    lines = [line.strip() for line in text.splitlines()[:_MOST_LINES] if line.strip() and not line.startswith(_NOISE)]
    name = rf"(?<![\w-]){re.escape(program)}(?![\w-])"
    named = re.compile(rf"{name}[\s,:/-]*+(?:version\b[\s,:/\"'-]*+)?{_DOTTED.pattern}", re.IGNORECASE)
    for line in lines:
        if found := named.search(_IN_BRACKETS.sub(" ", line)):
            return found[1]
    # other lines name the versions of libraries
    related = [line for line in lines if _WORD.search(line) or re.search(name, line, re.IGNORECASE)]
    if version := _dotted(lines[:1]) or _dotted(related) or _whole(related, program):
        return version
    is_unreadable = any(map(_WORD.search, related))
    return None if is_unreadable else _dotted(lines) or _whole(lines, program)


def _dotted(lines: list[str]) -> str | None:
    for line in lines:
        # brackets usually contain the version of the package or build
        if found := _DOTTED.search(_IN_BRACKETS.sub(" ", line)) or _DOTTED.search(line):
            return found[1]
    return None


def _whole(lines: list[str], program: str) -> str | None:
    named = re.compile(rf"^{re.escape(program)}[\s,:-]+v?(\d+)\b", re.IGNORECASE)
    for line in lines:
        if found := named.search(line) or _WHOLE.search(line):
            return found[1]
    return None


def is_older(version: str, least: str) -> bool:
    """Return whether a version is older than another.

    `14.0.0-rc1` is older than `14.0.0`. Suffixes that don't mark a pre-release (`9.2p1`, `3.3a`) are ignored.

    Raises:
        ValueError: One of them is not a version.
    """
    if _PLAIN.fullmatch(version) and _PLAIN.fullmatch(least):  # `packaging` takes long to load
        pairs = zip_longest(version.split("."), least.split("."), fillvalue="0")
        return next((int(one) < int(other) for one, other in pairs if int(one) != int(other)), False)
    return _read(version) < _read(least)


def _read(text: str) -> Version:
    from packaging.version import InvalidVersion, Version

    # `3.3a` is the release after `3.3`, not an alpha of it
    text = re.sub(r"(?<=\d)[a-z]$", "", text.strip())
    try:
        return Version(text)
    except InvalidVersion:
        numbers = re.match(r"v?(\d+(?:\.\d+)*)", text)
        if numbers is None:
            raise ValueError(f"“{text}” is not a version.") from None
        return Version(numbers[1])
