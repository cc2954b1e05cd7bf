"""The line of a server's stderr that says why the server ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

_NODE: Final = re.compile(r"Node\.js v\d")
"""Last line of Node.js after an uncaught error, below the error's message, stack and properties."""
_AROUND: Final = re.compile(r"\s|\W*$|node:\S+:\d+$|(file://)?/.*:\d+$")
"""Start of a line of such a report that isn't the message: indented, without words, or the position in the source."""
_NPM: Final = re.compile(r"npm (?:error|ERR!) (?!(?:code|syscall|errno|path) |A complete log )(?P<text>(?:\d+ )?\D.*)")
_PYDANTIC: Final = re.compile(r"[\s|]*For further information visit https://errors\.pydantic\.dev/")
_DOCKER: Final = re.compile(r"Run '.+ --help' for more information|See '.+ --help'\.")
_FRAME: Final = re.compile(r"\s+at \S")
"""Start of a line of the stack of an error that a program in JavaScript or Java has logged, below its message."""


def telling_line(lines: Sequence[str]) -> str:
    """Return the line that says why a server ended: the message of an error, otherwise the last line.

    Args:
        lines: Last lines of stderr.
    """
    kept = [*lines]
    while len(kept) > 1 and not re.search(r"\w", kept[-1]):  # the bottom line of an exception group
        kept.pop()
    found = ""
    if not kept:
        return found
    last, above = kept[-1], kept[:-1]
    if _NODE.match(last):
        found = next((line for line in reversed(above) if not _AROUND.match(line)), "").removesuffix(" {")
    elif last.startswith("npm "):
        found = next((match["text"] for match in map(_NPM.match, kept) if match), "")
    elif _PYDANTIC.match(last):
        found = ": ".join(line.strip(" |") for line in above[-2:])  # the name of the setting and its problem
    elif _DOCKER.match(last) and above:
        found = above[-1]
    elif last[:1].isspace():
        found = _above_stack(kept)
    return (found or last).strip().removeprefix("| ")


def _above_stack(lines: Sequence[str]) -> str:
    """Return the line above the stack and the properties of an error at the end; empty if there are none."""
    below = [*takewhile(lambda line: line[:1].isspace(), reversed(lines))]
    above = lines[: len(lines) - len(below)]
    return above[-1].removesuffix(" {") if above and any(map(_FRAME.match, below)) else ""
